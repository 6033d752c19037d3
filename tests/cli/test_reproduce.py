"""`hakaru reproduce`: the paper's numbers from its log, and a log that is no longer the paper's."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hakaru.cli import main
from hakaru.cli import reproduce as verb


def reproduce(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["reproduce", "aaic", *(str(a) for a in arguments)])


def test_every_number_of_the_paper_is_found_again(aaic_files: list[Path]) -> None:
    result = reproduce(*aaic_files, "--format", "json")
    assert result.exit_code == 0, result.output
    rows = json.loads(result.output)
    verdicts = Counter(row["verdict"] for row in rows)
    assert verdicts["differs"] == 0
    assert verdicts["same"] >= 60
    computed = {row["what"]: row["computed"] for row in rows}
    assert computed["jobs in the log"] == "459,545"
    users = next(row for row in rows if row["what"] == "users in all")
    assert users["verdict"] == "not in the log" and "renumbered" in users["computed"]


def test_a_changed_log_differs_and_fails(aaic_files: list[Path], tmp_path: Path) -> None:
    """The last quarter without its last job: one number less in many places."""
    *whole, last = aaic_files
    damaged = tmp_path / last.name
    with gzip.open(last, "rt") as given, gzip.open(damaged, "wt") as copy:
        copy.writelines(given.readlines()[:-1])
    result = reproduce(*whole, damaged, "--format", "json")
    assert result.exit_code == 1
    assert "this log has 459,544 of 459,545 jobs: the rest cannot agree" in result.stderr
    rows = {row["what"]: row for row in json.loads(result.stdout)}
    assert rows["jobs in the log"]["verdict"] == "differs"
    assert rows["jobs in the log"]["computed"] == "459,544"
    assert rows["successful jobs, %"]["verdict"] == "same"


def test_a_broken_line_is_named_and_nothing_is_judged(
    aaic_files: list[Path], tmp_path: Path
) -> None:
    damaged = tmp_path / aaic_files[0].name
    with gzip.open(aaic_files[0], "rt") as given, gzip.open(damaged, "wt") as copy:
        lines = given.readlines()
        lines[41] = "not a job\n"
        copy.writelines(lines)
    result = reproduce(damaged)
    assert result.exit_code == 1
    assert f"{damaged}, line 42: expected 13 columns, found 1" in result.output
    assert "--strict" not in result.output


def test_a_cut_off_file_is_refused(aaic_files: list[Path], tmp_path: Path) -> None:
    damaged = tmp_path / aaic_files[0].name
    packed = aaic_files[0].read_bytes()
    damaged.write_bytes(packed[: len(packed) // 2])
    result = reproduce(damaged)
    assert result.exit_code == 1
    assert str(damaged) in result.output and "Traceback" not in result.output


def test_a_paper_that_is_not_known_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["reproduce", "nature", str(tmp_path)])
    assert result.exit_code == 2 and "'aaic'" in result.output


def test_a_part_of_the_paper_s_log_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    claims: Any = [SimpleNamespace(says="users", published="7"),
                   SimpleNamespace(says="jobs in the log", published="1,234")]  # fmt: skip
    assert verb._missing(claims, 1234) == []
    assert verb._missing(claims, 1233)[0].startswith("this log has 1,233 of 1,234 jobs")
    verdicts = ["same"] * 4 + ["differs"] * 3 + ["known difference"] * 2 + ["not in the log"]
    claim = SimpleNamespace(published="1", where="Table 1", says="jobs")
    judged: Any = [
        SimpleNamespace(verdict=each, computed="2: off", claim=claim) for each in verdicts
    ]
    verb._print_table(judged)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "4 the same, 3 different, 2 known to differ, 1 that the log cannot tell"
