"""`hakaru advise` on made-up weeks where the best limit is known; see tests/sim/test_advise.py."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hakaru.cli import main
from hakaru.lake import Lake
from tests.conftest import job, put_jobs, utc

WEEK = 7 * 86400
HOG, ANN = 7, 8


def hakaru(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["advise", *(str(argument) for argument in arguments)])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten weeks: eight jobs of 1000 s at once from one user, five short ones from another, one too large."""
    rows: list[tuple[int, int, int, int]] = []
    for week in range(10):
        rows += [(week * WEEK, 1000, 1, HOG)] * 8
        rows += [(week * WEEK + 100 + 200 * i, 100, 1, ANN) for i in range(5)]
    rows.append((9 * WEEK + 5000, 10, 5, ANN))
    lines = ["; UnixStartTime: 1514764800", "; MaxProcs: 4"]
    for number, (submit, run, procs, user) in enumerate(rows, 1):
        lines.append(
            f"{number} {submit} 0 {run} {procs} -1 -1 {procs} {run} -1 1 {user} {user + 10} -1 1 -1 -1 -1"
        )
    path = tmp_path_factory.mktemp("log") / "made.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def asked(log: Path, *more: object) -> list[object]:
    return ["--from", log, "--processors", 4, "--trials", 20, "--search", "limits",
            "--for", f"user = '{ANN}'", *more]  # fmt: skip


def test_the_advice_its_evidence_and_the_lines_for_slurm(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "out" / "advice.json"
    result = hakaru(
        *asked(log, "--no-user-loses-more-than", "100%", "--keep", "utilisation", "-o", path)
    )
    assert result.exit_code == 0, result.output
    got = json.loads(path.read_text())
    assert got["is_advised"]
    assert {3, 4} == set(got["settings"].values())
    assert got["settings_now"] == {"gpus_per_user": 4, "jobs_per_user": 4}
    assert (got["num_jobs"], got["num_trials"]) == ({"searched": 91, "held_out": 39}, 20)
    assert got["split"] == "2018-02-19T00:00:00+00:00"
    assert got["left_out"] == {"larger than the machine": 1}
    assert got["advised"]["held_out"]["chosen"]["p95_wait_s"] == 0
    assert got["constraints"] == {"keep": {"utilisation": 0.01}, "loses": {"user": 1.0}}
    (command,) = got["slurm"]["commands"]
    assert command in result.output
    assert command.endswith(("MaxTRESPerUser=cpu=3", "MaxJobsPerUser=3"))
    assert got["slurm"]["conf"] == ["AccountingStorageEnforce=associations,limits,qos"]
    assert "what you have: easy" in result.output
    told = " ".join(result.output.split())
    assert "These are 3, and an interval needs 10: how much of the gain is chance is not" in told
    assert (got["num_weeks_held_out"], got["change_interval"]) == (3, None)
    assert "machine idle while jobs wait (whole replay)" in told
    assert "left out 1: larger than the machine" in result.output
    assert "The error of the replay" in result.output
    assert got["replay"]["differences"][0]["num_jobs"] == 130


def test_where_nothing_is_better_nothing_is_advised(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "advice.json"
    result = hakaru(*asked(log, "--no-account-loses-more-than", "0.1", "-o", path))
    assert result.exit_code == 0, result.output
    assert "Nothing is advised: " in result.output
    assert "no account loses" in result.output
    assert "sacctmgr" not in result.output
    got = json.loads(path.read_text())
    assert (got["is_advised"], got["slurm"], got["best"]) == (False, None, [])


def test_the_same_seed_says_the_same(log: Path, tmp_path: Path) -> None:
    documents = []
    for threads in (1, 2):
        path = tmp_path / f"{threads}.json"
        assert hakaru(*asked(log, "--threads", threads, "-o", path)).exit_code == 0
        documents.append(json.loads(path.read_text()) | {"seconds": 0})
    assert documents[0] == documents[1]


def test_gpus_of_a_workspace_are_limited_as_such(lake: Lake) -> None:
    begin = utc("2018-01-01T00:00:00")
    rows = []
    for week in range(5):
        for number in range(13):
            late = 100 + 200 * (number - 8) if number >= 8 else 0
            rows.append(
                job(
                    week * 100 + number,
                    user="hog" if number < 8 else "ann",
                    submitted_at=begin + timedelta(seconds=week * WEEK + late),
                    run_s=1000.0 if number < 8 else 100.0,
                    requested_s=1000.0,
                    num_gpus=1,
                )
            )
    put_jobs(lake, rows)
    result = hakaru(
        "-w", lake.workspace, "--nodes", "2x2", "--for", "single-pe", "--where", "user IS NOT NULL",
        "--minimise", "mean-bounded-slowdown", "--search", "limits", "--trials", 12, "--qos", "batch",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "bounded slowdown of single-pe jobs goes from" in result.output
    assert "sacctmgr -i modify qos where name=batch set Max" in result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--minimise", "p95-wiat"], "p95-wait"),
        (["--minimise", "utilisation"], "--maximise utilisation"),
        (["--maximise", "p95-wait"], "--minimise p95-wait"),
        (["--minimise", "p95-wait", "--maximise", "utilisation"], "not both"),
        (["--keep", "utilisation:much"], "'much' is not a part: write 10% or 0.1"),
        (["--no-user-loses-more-than", "ten"], "--no-user-loses-more-than 'ten' is not a part"),
        (["--search", "wieghts"], "weights"),
        (["--search-part", "100%"], "above 0% and below 100%, found 100%"),
        (["--for", "user = 'nobody'"], "hold none of the jobs with user = 'nobody'"),
        (["--policy", "sjf", "--search", "weights"], "order of sjf"),
        (["--policy", "preempting"], "which queues yield cannot be said here"),
        (["--for", "multi-nod"], "is no class of jobs (did you mean multi-node?)"),
        (["--qos", "a b"], "--qos 'a b' is no name of a QOS"),
        (["-o", "advice.txt"], "end it in .json"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    log: Path, arguments: list[str], told: str
) -> None:
    result = hakaru("--from", log, "--processors", 4, "--trials", 4, *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert told in result.stderr
    assert "Traceback" not in result.output
