"""`hakaru advise` on made-up weeks where the best limit is known; see tests/sim/test_advise.py."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from click.testing import CliRunner, Result

from hakaru.cli import main
from hakaru.lake import Lake
from tests.conftest import job, put_jobs, utc

WEEK = 7 * 86400
HOG, ANN = 7, 8
ANYBODY = ("--no-user-loses-more-than", "100%", "--no-account-loses-more-than", "any")


def hakaru(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["advise", *(str(argument) for argument in arguments)])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty-four weeks: eight jobs of 1000 s at once from one user, five short ones from another.

    The waits are those on 4 processors under EASY, worked by hand in tests/sim/test_advise.py. One job is
    too large.
    """
    rows: list[tuple[int, int, int, int, int]] = []
    for at in range(0, 34 * WEEK, WEEK):
        rows += [(at, 1000, 1, HOG, 0)] * 4 + [(at, 1000, 1, HOG, 1000)] * 4
        rows += [(at + 100 + 200 * i, 100, 1, ANN, 1900 - 200 * i) for i in range(4)]
        rows.append((at + 900, 100, 1, ANN, 1200))
    rows.append((33 * WEEK + 5000, 10, 5, ANN, 0))
    lines = ["; UnixStartTime: 1514764800", "; TimeZoneString: UTC", "; MaxProcs: 4"]
    for number, (submit, run, procs, user, wait) in enumerate(rows, 1):
        asked = f"{procs} {run} -1 1 {user} {user + 10} -1 1 -1 -1 -1"
        lines.append(f"{number} {submit} {wait} {run} {procs} -1 -1 {asked}")
    path = tmp_path_factory.mktemp("log") / "made.swf"
    path.write_text("\n".join(lines) + "\n")
    return path


def asked(log: Path, *more: object) -> list[object]:
    return ["--from", log, "--processors", 4, "--trials", 20, "--search", "limits",
            "--for", f"user = '{ANN}'", *more]  # fmt: skip


def test_the_advice_its_evidence_and_the_lines_for_slurm(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "out" / "advice.json"
    result = hakaru(*asked(log, *ANYBODY, "--keep", "utilisation", "-o", path))
    assert result.exit_code == 0, result.output
    got = json.loads(path.read_text())
    assert got["verdict"] == "change"
    assert " ".join(result.stdout.split()).startswith(got["sentence"])
    assert got["sentence"].startswith(
        "Change the settings below: p95 wait of jobs with user = '8' goes "
    )
    assert {3, 4} == set(got["settings"].values())
    assert got["settings_now"] == {"gpus_per_user": 4, "jobs_per_user": 4}
    assert (got["num_jobs"], got["num_trials"]) == ({"searched": 24 * 13, "held_out": 10 * 13}, 20)
    assert got["split"] == "2018-06-18T00:00:00+00:00"
    assert got["left_out"] == {"larger than the machine": 1}
    assert got["found"]["held_out"]["chosen"]["p95_wait_s"] == 0
    assert got["constraints"] == {"keep": {"utilisation": 0.01}, "loses": {"user": 1.0}}
    (command,) = got["slurm"]["commands"]
    assert command in result.output
    assert command.endswith(("MaxTRESPerUser=cpu=3", "MaxJobsPerUser=3"))
    assert got["slurm"]["conf"] == ["AccountingStorageEnforce=associations,limits,qos"]
    assert "what you have: easy" in result.output
    told = " ".join(result.stdout.split())
    assert got["num_weeks_held_out"] == 10
    assert max(got["change_interval"]) < 0
    assert "machine idle while jobs wait (whole replay)" in told
    assert "left out 1: larger than the machine" in result.output
    assert "The error of the replay" in result.output
    # durations and shares are written in one way, but those that are given as whole numbers
    assert not re.search(r"\d%", told) and re.search(r"\d\.\d %", told)
    assert set(re.findall(r"[^.\d](\d+ (?:min|h|days?))\b", told)) <= {"5 min"}
    assert got["replay"]["differences"][0]["num_jobs"] == 34 * 13
    assert (got["cluster"], got["num_pes"], got["why"], got["refused"]) == ("made", 4, [], None)
    assert got["objective"] == {"metric": "p95_wait_s", "jobs": "jobs with user = '8'"}
    assert (got["gain"], got["change_interval"]) == (1.0, [-1900.0, -1900.0])
    assert got["num_months"] == {"counted": 8, "all": 8}
    assert got["num_settings"] == got["num_allowed"] + sum(got["broken"].values())
    assert list(got["broken"]) == ["no user loses"]
    for part, num_weeks in (("searched", 24), ("held_out", 10)):
        before, after = got["baseline"][part], got["found"][part]
        assert before["chosen"]["p95_wait_s"] == 1900 and after["chosen"]["p95_wait_s"] == 0
        assert before["chosen"]["num_jobs"] == 5 * num_weeks
        assert before["all_jobs"]["num_jobs"] == 13 * num_weeks
        # eight waits of 0 or 1000 s, and five of 1900, 1700, 1500, 1300 and 1200 s
        assert before["all_jobs"]["mean_wait_s"] == pytest.approx((4000 + 7600) / 13)
    assert got["baseline"]["settings"] == got["settings_now"]
    assert got["found"]["settings"] == got["settings"]
    assert got["replay_error"]["chosen"]["p95_wait_s"] == 0
    (kept,) = got["without"].values()
    assert kept == 1900 and list(got["broken_without"].values()) == [[]]
    months = [month["month"] for month in got["replay"]["months"]]
    assert months == [f"2018-0{n}" for n in range(1, 9)]
    assert [each["name"] for each in got["replay"]["predictors"]] == ["replay", "naive"]
    assert "the machine is as it was asked for" in told
    assert "20 trials in " in told and "judged by the 130 jobs after" in told


def test_a_large_gain_by_which_one_user_loses_is_not_advised(log: Path, tmp_path: Path) -> None:
    """By default: a limit brings ann from 31 min to 0, and the hog from 500 s to 875 s or more."""
    path = tmp_path / "advice.json"
    result = hakaru(*asked(log, "-o", path))
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert told.startswith("Do not change anything: ")
    assert f"who would lose: account {HOG + 10} (8.3 min to " in told
    assert f"user {HOG} (8.3 min to " in told
    assert "sacctmgr" not in told and "AccountingStorage" not in told and "Change the" not in told
    got = json.loads(path.read_text())
    assert (got["verdict"], got["slurm"], got["best"]) == ("keep", None, [])
    assert {loss["name"] for loss in got["losses"]} == {str(HOG), str(HOG + 10)}
    assert got["constraints"]["loses"] == {"account": 0.1, "user": 0.1}


def test_what_is_to_be_tried_comes_without_lines(log: Path, tmp_path: Path) -> None:
    """The error of slowdowns is not known, so that a gain of them is no reason to change all at once."""
    path = tmp_path / "advice.json"
    result = hakaru(*asked(log, *ANYBODY, "--minimise", "mean-bounded-slowdown", "-o", path))
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert told.startswith("Try the settings below on a part of the machine first: ")
    assert "to try" in told and "sacctmgr" not in told and "AccountingStorage" not in told
    got = json.loads(path.read_text())
    assert (got["verdict"], got["slurm"]) == ("try", None)


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
    for week in range(24):
        for number in range(13):
            late = 100 + 200 * (number - 8) if number >= 8 else 0
            wait = 1000.0 * (number >= 4) if number < 8 else 2000.0 + 100 * (number == 12) - late
            submitted = begin + timedelta(seconds=week * WEEK + late)
            rows.append(
                job(
                    week * 100 + number,
                    user="hog" if number < 8 else "ann",
                    submitted_at=submitted,
                    started_at=submitted + timedelta(seconds=wait),
                    wait_s=wait,
                    run_s=1000.0 if number < 8 else 100.0,
                    requested_s=1000.0,
                    num_gpus=1,
                )
            )
    put_jobs(lake, rows)
    result = hakaru(
        "-w", lake.workspace, "--nodes", "2x2", "--for", "single-pe", "--where", "user IS NOT NULL",
        "--minimise", "median-wait", "--search", "limits", "--trials", 12, "--qos", "batch",
        "--search-part", "50%", *ANYBODY,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "median wait of single-pe jobs goes from" in " ".join(result.output.split())
    assert "sacctmgr -i modify qos where name=batch set Max" in result.output


def test_an_aim_for_some_jobs_is_within_the_filter(tmp_path: Path) -> None:
    """Of ann's and bob's jobs those on two GPUs: bob's one. Without brackets it would be ann's too."""
    from hakaru.analyses import Selection, open_session
    from hakaru.cli.advise import _chooser
    from hakaru.sim.workload import Workload

    users = (("ann", 1), ("bob", 2), ("cat", 2), ("bob", 1))
    rows = [job(i, user=user, num_gpus=size) for i, (user, size) in enumerate(users)]
    lake = put_jobs(Lake.create(tmp_path), rows)
    whole = Selection(clusters=("c",))
    with open_session(lake) as session:
        chooses = _chooser(
            session, replace(whole, where="user = 'ann' OR user = 'bob'"), "num_gpus = 2"
        )
        columns = "job_id, submitted_at"
        jobs = session.ask(f"SELECT {columns} FROM jobs ORDER BY job_id", whole)
        assert list(chooses(cast(Workload, SimpleNamespace(table=jobs)))) == [
            False,
            True,
            False,
            False,
        ]


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
