"""The last preflight for the page: the words of the terminal, and what is not a pass first."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from hakaru.figures.measure.preflight import Table, read_preflight
from hakaru.measure.folders import preflight_file


def kept(workspace: Path, *rows: tuple[str, str, str], **more: Any) -> Table:
    """What is read of rows of a check, a node and a status."""
    path = preflight_file(workspace)
    path.parent.mkdir(exist_ok=True)
    listed = [dict(zip(("check", "node", "status"), row, strict=True)) for row in rows]
    path.write_text(json.dumps({"verdict": "good", "rows": listed} | more))
    found = read_preflight(workspace)
    assert found is not None
    return found


def test_a_check_has_its_title_and_a_status_its_word(tmp_path: Path) -> None:
    checks = [{"id": "clock-sync", "title": "Time service"}, "odd", {"id": ["x"]}]
    rows = [("clock-sync", "n1", "not measured"), ("older", "n1", "unknown"), ("odd", "n1", "fine")]
    found = kept(tmp_path, *rows, checks=checks)
    assert [(row.check, row.status) for row in found.rows] == [
        ("Time service", "not measured"), ("older", "not measured"), ("odd", "not measured"),
    ]  # fmt: skip
    assert found.counts == {"not measured": 3}


def test_what_is_not_a_pass_comes_first_and_the_rest_behind(tmp_path: Path) -> None:
    rows = [("a", "n1", "n/a"), ("b", "n1", "pass"), ("c", "n1", "warn"), ("b", "n2", "pass"),
            ("d", "n1", "not measured"), ("e", "n1", "fail")]  # fmt: skip
    found = kept(tmp_path, *rows)
    assert [row.check for row in found.loud] == ["e", "d", "c"]
    assert [(row.check, row.node) for row in found.quiet] == [("b", "2 nodes"), ("a", "n1")]
    assert found.rows == found.loud + found.quiet
    assert "loud" not in asdict(found), "the API takes the fields"


def test_a_time_of_another_zone_is_told_in_utc(tmp_path: Path) -> None:
    found = kept(tmp_path, made_at="2026-11-18T21:00:00+09:00")
    assert found.made_at.isoformat() == "2026-11-18T12:00:00+00:00"
    assert kept(tmp_path, made_at="0001-01-01T00:00:00+09:00").made_at.year >= 2020


@pytest.mark.parametrize("error", [PermissionError, NotADirectoryError])
def test_a_folder_that_cannot_be_read_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error(13, "refused")

    monkeypatch.setattr(Path, "stat", refuse)
    found = read_preflight(tmp_path)
    assert found is not None
    assert (found.verdict, found.problem, found.rows) == (
        "not measured", "preflight.json cannot be read", (),
    )  # fmt: skip


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    preflight_file(tmp_path).parent.mkdir()
    os.mkfifo(preflight_file(tmp_path))
    found = read_preflight(tmp_path)
    assert found is not None and found.problem
