"""A link in a place of our own: what it leads to is neither emptied, nor written to, nor removed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError, LakeError
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.web.access.tokens import Tokens
from tests.conftest import job
from tests.lake._rows import rows


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


def refused(call: Callable[[], object], link: Path) -> None:
    with pytest.raises(HakaruError, match=f"{link.name} is a link to .*, and nothing is written"):
        call()


@pytest.mark.parametrize("name", ["_lock", "_staging.lock"])
def test_a_lock_of_the_lake_that_is_a_link(lake: Lake, victim: Path, con: Any, name: str) -> None:
    (lake.root / name).symlink_to(victim)
    refused(lambda: lake.put_rows(con, JOBS, [job(1)]), lake.root / name)
    assert victim.read_text() == "precious"
    assert lake.files(JOBS) == []


def test_the_lock_of_a_staging_folder_that_is_a_link(lake: Lake, victim: Path, con: Any) -> None:
    dead = lake.root / "_staging" / "dead"
    dead.mkdir(parents=True)
    (dead / "lock").symlink_to(victim)
    refused(lambda: lake.put_rows(con, JOBS, [job(1)]), dead / "lock")
    assert victim.read_text() == "precious"


def test_a_lock_that_leads_to_nothing_makes_no_file_there(lake: Lake, con: Any) -> None:
    there = lake.workspace / "there"
    (lake.root / "_lock").symlink_to(there)
    refused(lambda: lake.put_rows(con, JOBS, [job(1)]), lake.root / "_lock")
    assert not there.exists()


@pytest.mark.parametrize("name", ["_staging", "_staging/dead"])
def test_folders_that_a_link_leads_to_are_not_tidied(
    lake: Lake, tmp_path: Path, con: Any, name: str
) -> None:
    kept = tmp_path / "mine" / "thesis" / "chapter"
    kept.mkdir(parents=True)
    link = lake.root / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "mine")
    refused(lambda: lake.put_rows(con, JOBS, [job(1)]), link)
    assert [path.name for path in (tmp_path / "mine").rglob("*")] == ["thesis", "chapter"]


def test_the_lock_of_the_tokens_that_is_a_link(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "tokens.lock").symlink_to(victim)
    tokens = Tokens(tmp_path)
    refused(lambda: tokens.create("a", "operator", None), tmp_path / "tokens.lock")
    assert victim.read_text() == "precious"
    assert not tokens.exist


def test_a_lock_that_is_another_file_by_a_second_name_is_not_emptied(
    tmp_path: Path, victim: Path
) -> None:
    (tmp_path / "tokens.lock").hardlink_to(victim)
    Tokens(tmp_path).create("a", "operator", None)
    assert victim.read_text() == "precious"


def test_compaction_deletes_nothing_that_a_link_leads_to(
    lake: Lake, victim: Path, con: Any
) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    link = lake.root / "jobs" / "mine"
    link.symlink_to(victim.parent)
    refused(lambda: lake.compact(retain_hours=0), link)
    assert victim.read_text() == "precious"


def test_a_table_whose_folder_is_a_link(lake: Lake, tmp_path: Path, con: Any) -> None:
    (tmp_path / "elsewhere").mkdir()
    (lake.root / "jobs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LakeError, match="jobs is a link; a table is read and written in"):
        lake.put_rows(con, JOBS, [job(1)])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def named_in_log(lake: Lake, name: str) -> None:
    """Let the log of the jobs name another file."""
    (entry,) = (lake.root / "jobs" / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = name
    entry.write_text("\n".join(json.dumps(action) for action in actions))


@pytest.mark.parametrize("way", ["up", "absolute", "link"])
def test_a_log_that_names_a_file_outside_of_its_table(
    lake: Lake, tmp_path: Path, con: Any, way: str
) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    (file,) = lake.files(JOBS)
    outside = tmp_path / "other.parquet"
    Path(file).rename(outside)
    (lake.root / "jobs" / "inside.parquet").symlink_to(outside)
    name = {"up": "../../../other.parquet", "absolute": str(outside), "link": "inside.parquet"}[way]
    named_in_log(lake, name)
    found = re.escape(
        f"the table 'jobs' in {lake.root / 'jobs' / '_delta_log'} names the file {name!r}"
    )
    with pytest.raises(LakeError, match=found):
        Lake.open(lake.workspace).files(JOBS)


def test_a_whole_lake_may_be_a_link(lake: Lake, tmp_path: Path, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    lake.root.rename(tmp_path / "disk")
    lake.root.symlink_to(tmp_path / "disk")
    lake.put_rows(con, JOBS, [job(2)])
    lake.compact(retain_hours=0)
    assert set(rows(Lake.open(lake.workspace), con)) == {"1", "2"}
