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

CLUSTER = "c1"


def kept(workspace: Path, *rows: tuple[str, str, str], **more: Any) -> Table:
    """What is read of rows of a check, a node and a status."""
    path = preflight_file(workspace, CLUSTER)
    path.parent.mkdir(exist_ok=True)
    listed = [dict(zip(("check", "node", "status"), row, strict=True)) for row in rows]
    path.write_text(json.dumps({"verdict": "good", "rows": listed} | more))
    found = read_preflight(workspace, CLUSTER)
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
    found = read_preflight(tmp_path, CLUSTER)
    assert found is not None
    assert (found.verdict, found.problem, found.rows) == (
        "not measured", "preflight-c1.json cannot be read", (),
    )  # fmt: skip


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    preflight_file(tmp_path, CLUSTER).parent.mkdir()
    os.mkfifo(preflight_file(tmp_path, CLUSTER))
    found = read_preflight(tmp_path, CLUSTER)
    assert found is not None and found.problem


def test_a_preflight_that_cannot_be_read_passes_nothing(tmp_path: Path) -> None:
    assert read_preflight(tmp_path, CLUSTER) is None
    path = preflight_file(tmp_path, CLUSTER)
    path.parent.mkdir()
    path.write_text("{half")
    found = read_preflight(tmp_path, CLUSTER)
    assert found is not None and (found.verdict, found.rows) == ("not measured", ())
    rows = [{"check": "files", "node": f"n{at}", "status": "pass", "found": "9"} for at in range(3)]
    odd = {"check": "ecc", "node": "n1", "status": "fine, I think", "found": "x", "fix": ["?"]}
    path.write_text(json.dumps({"verdict": "good", "rows": [*rows, odd]}))
    found = read_preflight(tmp_path, CLUSTER)
    assert found is not None
    assert [(row.check, row.node, row.status) for row in found.rows] == [
        ("ecc", "n1", "not measured"), ("files", "3 nodes", "pass"),
    ]  # fmt: skip
    assert found.verdict == "not measured"


@pytest.mark.parametrize(
    ("stated", "statuses", "verdict"),
    [
        ("good", ["pass", "warn", "n/a"], "good"),
        ("good", ["pass", "fail"], "failed"),
        ("good", ["pass", "not measured"], "not measured"),
        ("good", ["pass", "fine"], "not measured"),
        ("good", ["n/a"], "not measured"),
        ("good", [], "not measured"),
        ("splendid", ["pass"], "not measured"),
        ("not measured", ["pass"], "not measured"),
        ("failed", ["pass"], "failed"),
    ],
)
def test_the_verdict_is_the_worse_of_the_headline_and_the_rows(
    tmp_path: Path, stated: str, statuses: list[str], verdict: str
) -> None:
    rows = [(f"check{at}", "n1", status) for at, status in enumerate(statuses)]
    found = kept(tmp_path, *rows, verdict=stated, summary="ready for 16 ranks")

    assert found.verdict == verdict
    assert found.problem or verdict == stated


def test_a_check_that_only_advises_does_not_decide(tmp_path: Path) -> None:
    rows = [("files", "n1", "pass"), ("clock-sync", "n1", "not measured")]
    advice = {"id": "clock-sync", "title": "Time service", "essential": False}

    assert kept(tmp_path, *rows, checks=[advice]).verdict == "good"
    assert kept(tmp_path, *rows, checks=[advice | {"essential": None}]).verdict == "not measured"


def test_a_row_that_is_none_is_not_left_out(tmp_path: Path) -> None:
    good = {"check": "files", "node": "n1", "status": "pass"}
    found = kept(tmp_path, rows=[good, "odd"])

    assert (found.verdict, found.counts) == ("not measured", {"pass": 1, "not measured": 1})


def test_each_cluster_has_its_own(tmp_path: Path) -> None:
    """Without a name it is that of the only cluster that has one."""
    assert kept(tmp_path, nodes=["n1", "n2"], launcher="slurm").where == "2 nodes by slurm"
    alone = read_preflight(tmp_path, None)
    assert alone is not None and alone.cluster == CLUSTER
    assert read_preflight(tmp_path, "c2") is None
    preflight_file(tmp_path, "c2").write_text("{}")
    assert read_preflight(tmp_path, None) is None
    assert read_preflight(tmp_path, "../c1") is None
