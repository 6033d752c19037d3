"""Awkward folders, full disks and damaged logs: a lake says what is wrong, and stays as it was."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import LakeError
from hakaru.lake import Lake, Upsert
from hakaru.schema import JOBS
from tests.conftest import job, put_jobs, utc
from tests.lake._rows import rows


@pytest.mark.parametrize("name", ["with space", "it's", "計る-é", "a[1]*?", "50%", 'q"x', "#1;"])
def test_a_workspace_may_have_an_awkward_name(tmp_path: Path, con: Any, name: str) -> None:
    lake = Lake.create(tmp_path / name)
    lake.put_rows(con, JOBS, [job(1), job(2)])
    lake.put_rows(con, JOBS, [job(2, exit_code=1), job(3)])
    lake.put_rows(con, JOBS, [job(9, cluster="d")])
    lake.compact(retain_hours=0)
    assert set(rows(Lake.open(tmp_path / name), con)) == {"1", "2", "3", "9"}


def test_a_relative_workspace(tmp_path: Path, con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Lake.create(Path("here")).put_rows(con, JOBS, [job(1)])
    assert len(rows(Lake.open(tmp_path / "here"), con)) == 1


@pytest.mark.parametrize("name", ["a%20b", "back\\slash"])
def test_a_path_that_delta_cannot_hold_is_refused(tmp_path: Path, con: Any, name: str) -> None:
    with pytest.raises(LakeError, match="Choose another folder with --workspace"):
        Lake.create(tmp_path / name).put_rows(con, JOBS, [job(1)])


def test_a_folder_that_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"not a Hakaru workspace.*hakaru ingest"):
        Lake.open(tmp_path)


def test_a_workspace_cannot_be_made_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeError, match="cannot be written: Not a directory"):
        Lake.create(tmp_path / "file" / "workspace")


@pytest.fixture
def plain_user() -> Iterator[Path]:
    """A folder that this process may read and not write, even where the tests run as root."""
    folder = Path(tempfile.mkdtemp())
    yield folder
    if os.geteuid() == 0:
        ctypes.CDLL(None).setfsuid(0)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_workspace_can_be_read_and_says_that_it_cannot_be_written(
    plain_user: Path, con: Any
) -> None:
    lake = Lake.create(plain_user)
    put_jobs(lake, [job(1)])
    for path in [plain_user, *plain_user.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid() == 0:
        ctypes.CDLL(None).setfsuid(65534)
    assert lake.clusters() == ["c"]
    with pytest.raises(LakeError, match=r"cannot be written: Permission denied\n.*permissions"):
        lake.put_rows(con, JOBS, [job(2)])


def test_a_full_disk_leaves_the_lake_as_it_was(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    script = f"""
import resource, sys
from pathlib import Path
from hakaru.engine.duckdb import connect
from hakaru.errors import LakeError
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine
con = connect(Engine())
nulls = ", ".join(f'NULL AS "{{n}}"' for n in JOBS.names if n not in JOBS.key)
con.execute("CREATE TABLE many AS SELECT 'c' AS cluster, uuid()::VARCHAR AS job_id, "
            f"TIMESTAMPTZ '2018-01-01 00:00:00+00' AS submitted_at, {{nulls}} FROM range(200000)")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    Lake.open(Path({str(lake.workspace)!r})).upsert(con, JOBS, "many")
except LakeError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "cannot be written" in told.stdout and "as it was before" in told.stdout, told
    assert list(rows(lake, con)) == ["1"]
    assert lake.put_rows(con, JOBS, [job(2)]) == Upsert(num_new=1)


@pytest.mark.parametrize("content", ["{", '{"add": 3}', "\x00\x00", "not json\n"])
def test_a_damaged_log_is_named(lake: Lake, con: Any, content: str) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    lake.put_rows(con, JOBS, [job(2)])
    (lake.root / "jobs" / "_delta_log" / f"{1:020}.json").write_text(content)
    with pytest.raises(LakeError, match=r"_delta_log cannot be read.*\n.*ingest the logs again"):
        lake.files(JOBS)


def test_an_empty_log_entry_is_a_commit_that_never_was(lake: Lake, con: Any) -> None:
    """As a power cut may leave it: the ingest did not end, and the table is as it was before."""
    lake.put_rows(con, JOBS, [job(1)])
    lake.put_rows(con, JOBS, [job(1, exit_code=3), job(2)])
    (lake.root / "jobs" / "_delta_log" / f"{1:020}.json").write_text("")
    assert list(rows(lake, con)) == ["1"]
    assert lake.put_rows(con, JOBS, [job(1, exit_code=3), job(2)]) == Upsert(1, 1)


def test_a_log_that_lost_its_first_entry_is_named(lake: Lake, con: Any) -> None:
    lake.put_rows(con, JOBS, [job(1)])
    lake.put_rows(con, JOBS, [job(2)])
    (lake.root / "jobs" / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(LakeError, match="_delta_log cannot be read"):
        lake.files(JOBS)


def test_statistics_are_rounded_outwards(lake: Lake, con: Any) -> None:
    first, last = utc("2018-01-01T00:00:00.000999"), utc("2018-01-01T00:00:00.999001")
    lake.put_rows(con, JOBS, [job(1, submitted_at=first), job(2, submitted_at=last)])
    (entry,) = (lake.root / "jobs" / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    (stats,) = [json.loads(action["add"]["stats"]) for action in actions if "add" in action]
    assert stats["numRecords"] == 2
    assert stats["minValues"] == {"cluster": "c", "submitted_at": "2018-01-01T00:00:00.000Z"}
    assert stats["maxValues"] == {"cluster": "c", "submitted_at": "2018-01-01T00:00:01.000Z"}
