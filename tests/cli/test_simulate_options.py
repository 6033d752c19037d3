"""`hakaru simulate` in another zone: queues' walltimes, months, outages, and jobs that never start."""

from __future__ import annotations

import csv
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hakaru.cli import main
from hakaru.lake import Lake
from tests.conftest import job, put_jobs, utc

AT = utc("2018-01-31T16:00:00")  # 1:00 on the first of February in Tokyo
TOKYO = '{"zone": "Asia/Tokyo", "gpus_per_node": 2, "nodes": 1}'


def simulate(lake: Lake, *arguments: object) -> str:
    runner = CliRunner(env={"COLUMNS": "200"})
    given = [str(each) for each in ("simulate", "-w", lake.workspace, *arguments)]
    result = runner.invoke(main, given)
    assert result.exit_code == 0, result.output
    return result.stdout


def starts(lake: Lake, output: Path, *arguments: object) -> dict[str, tuple[str, str]]:
    simulate(lake, *arguments, "-o", output)
    rows = csv.DictReader(output.read_text().splitlines())
    return {row["job_id"]: (row["start"][11:16], row["end"][11:16]) for row in rows}


@pytest.fixture
def two(lake: Lake) -> Lake:
    """On one node of two GPUs, a job of four hours, and one of an hour that comes 90 minutes later."""
    later = {"submitted_at": AT + timedelta(minutes=90), "queue": "long", "requested_s": 3600.0}
    first: dict[str, Any] = {"submitted_at": AT, "run_s": 14400.0, "requested_s": 14400.0}
    return put_jobs(lake, [job(1, queue="short", **first), job(2, **later)], TOKYO)


def test_every_queue_has_its_walltime(two: Lake) -> None:
    """Cut to half an hour, the job of four ends there, and so does that of one."""
    said = " ".join(simulate(two, "--walltime", "short=0.5", "--walltime", "long=0.5").split())
    for queue in ("short", "long"):
        assert f"queue {queue}: 1 request cut to 0.5 h, 1 job ended there" in said


def test_months_are_those_of_the_sites_clock(two: Lake) -> None:
    lines = simulate(two, "--by", "month").splitlines()
    assert any(line.startswith("2018-02 ") for line in lines)
    assert not any(line.startswith("2018-01") for line in lines)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ((), {"1": ("16:00", "20:00"), "2": ("17:30", "18:30")}),
        # 2:00 to 3:00 in Tokyo is 17:00 to 18:00 in UTC: a drained node lets its job end,
        (("--drain",), {"1": ("16:00", "20:00"), "2": ("18:00", "19:00")}),
        # a failed one does not: it begins again at 18:00
        (("--fail",), {"1": ("18:00", "22:00"), "2": ("18:00", "19:00")}),
    ],
)
def test_a_drained_node_lets_its_jobs_end_and_a_failed_one_does_not(
    two: Lake, tmp_path: Path, option: tuple[str, ...], expected: dict[str, tuple[str, str]]
) -> None:
    outage = ("0@2018-02-01T02:00..2018-02-01T03:00",) if option else ()
    assert starts(two, tmp_path / "s.csv", "--nodes", "1x2", *option, *outage) == expected


def test_a_job_of_no_length_runs_as_long_as_is_asked(lake: Lake, tmp_path: Path) -> None:
    put_jobs(lake, [job(1, run_s=0.0, num_gpus=2)], TOKYO)
    for least, end in ((0, "16:00"), (60, "16:01")):
        put_jobs(lake, [job(1, submitted_at=AT, run_s=0.0, num_gpus=2)], TOKYO)
        found = starts(lake, tmp_path / "s.csv", "--since", "2018-02-01", "--least-run", least)
        assert found["1"] == ("16:00", end)


def test_percentiles_are_those_of_their_names(lake: Lake) -> None:
    """101 jobs at once on one GPU, a minute each: the last waits 100 min, 95 % wait at most 95."""
    rows = [job(n, submitted_at=AT, run_s=60.0, requested_s=60.0) for n in range(101)]
    put_jobs(lake, rows, '{"zone": "Asia/Tokyo", "gpus_per_node": 1, "nodes": 1}')
    lines = simulate(lake, "--policy", "fcfs").splitlines()
    told = {
        name: cell
        for name, cell, *_ in (re.split(r"\s{2,}", line) for line in lines if "  " in line)
    }
    assert told["wait, median"] == "50.0 min"
    assert told["wait, 95th percentile"] == "95.0 min"
    assert told["wait, 99th percentile"] == "99.0 min"


def test_a_job_that_never_starts_has_no_start(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    line = "{n} 0 -1 60 {pes} -1 -1 {pes} 60 -1 1 {user} 1 -1 1 -1 -1 -1\n"
    log.write_text("; UnixStartTime: 1000000000\n; MaxProcs: 4\n"
                   + line.format(n=1, pes=1, user=1) + line.format(n=2, pes=3, user=2))  # fmt: skip
    output = tmp_path / "s.csv"
    arguments = ["simulate", "--from", log, "--limit", "user=2:running-gpus=2", "-o", output]
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    assert "1 job never starts under these rules" in result.output
    assert output.read_text() == "job_id,start\n1,0\n2,\n"
