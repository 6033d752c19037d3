"""`hakaru reproduce`: the paper's numbers from its log, and a log that is no longer the paper's."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hakaru.cli import main
from hakaru.cli import reproduce as verb
from hakaru.reference.claims import Claim
from tests.cli._log import HEADER, ROWS


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


def entry(verdict: str, computed: str, **claim: Any) -> Any:
    told = {"published": "1,234", "where": "Table 1", "says": "jobs"} | claim
    return SimpleNamespace(verdict=verdict, computed=computed, claim=SimpleNamespace(**told))


def test_each_number_stands_beside_the_published_one(capsys: pytest.CaptureFixture[str]) -> None:
    verb._print_table([
        entry("same", "1,234"),
        entry("differs", "1,233", where="Fig. 2"),
        entry("known difference", "1,200: they count otherwise"),
        entry("not in the log", "users are renumbered: nobody knows", says="users"),
    ])  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r"\s{2,}", line) for line in (lines[0], *lines[2:6])] == [
        ["verdict", "published", "computed", "what"],
        ["same", "1,234", "1,234", "Table 1: jobs"],
        ["differs", "1,234", "1,233", "Fig. 2: jobs"],
        ["known difference", "1,234", "1,200", "Table 1: jobs (they count otherwise)"],
        ["not in the log", "1,234", "–", "Table 1: users (users are renumbered: nobody knows)"],
    ]


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    verb._print_json([entry("known difference", "1,200: they count otherwise")])
    assert json.loads(capsys.readouterr().out) == [
        {"where": "Table 1", "what": "jobs", "published": "1,234",
         "computed": "1,200: they count otherwise", "verdict": "known difference"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "code"),
    [("same", 0), ("differs", 1), ("known difference", 0), ("not in the log", 0)],
)
def test_only_a_number_that_differs_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, code: int
) -> None:
    log = tmp_path / "mini.csv"
    log.write_text("\n".join([HEADER, *ROWS]) + "\n")
    judged = [entry(verdict, "2"), entry("same", "1,234")]
    monkeypatch.setattr(verb, "judge_all", lambda session, claims: judged)
    done = reproduce(log)
    assert done.exit_code == code
    assert done.stderr == "this log has 3 of 459,545 jobs: the rest cannot agree\n\n"
    assert done.stdout.startswith("verdict ")


def test_an_analysis_runs_once_for_each_set_of_parameters() -> None:
    """Four claims on two analyses, one of them with two sets of parameters; one needs none."""
    asked: list[Any] = []

    def run(analysis: Any, **params: Any) -> Any:
        asked.append((analysis.id, params))
        return SimpleNamespace(rows=[{"num_jobs": 10 * len(asked)}])

    def claim(analysis: str, says: str, **params: Any) -> Claim:
        return Claim("here", says, "10", analysis, "num_jobs", params=params)

    claims = [
        claim("states", "a"), claim("states", "b"), claim("walltime", "c", short_h=1),
        claim("walltime", "d", short_h=2), Claim("here", "e", "1", why_not="unknown"),
    ]  # fmt: skip
    judged = verb.judge_all(SimpleNamespace(run=run), claims)
    assert asked == [("states", {}), ("walltime", {"short_h": 1}), ("walltime", {"short_h": 2})]
    assert [each.verdict for each in judged] == [
        "same", "same", "differs", "differs", "not in the log",
    ]  # fmt: skip
