"""What a queue allows, on the command line and in a scenario: the same jobs are cut or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hakaru.cli import main
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.sim.notation import parse_limit
from hakaru.sim.queues import QueueRule, limit_queue, parse_walltime, write_walltime
from tests.conftest import job, put_jobs
from tests.sim._jobs import workload

HOUR = 3600.0


@pytest.fixture
def cluster(lake: Lake) -> Lake:
    """Three jobs of `short` ask for 1, 4 and 4 h and run for 1, 1 and 3; one of `normal` asks for 4."""
    asked = ((1, 1, "short"), (4, 1, "short"), (4, 3, "short"), (4, 4, "normal"))
    rows = [
        job(n, queue=queue, requested_s=request * HOUR, run_s=run * HOUR)
        for n, (request, run, queue) in enumerate(asked)
    ]
    return put_jobs(lake, rows)


def simulated(lake: Lake, *more: str) -> tuple[list[float], list[str]]:
    """How many hours each job runs, and what is noted."""
    output = lake.workspace / "s.json"
    arguments = [
        "simulate",
        "-w",
        str(lake.workspace),
        "--processors",
        "9",
        "-o",
        str(output),
        *more,
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    held: dict[str, Any] = json.loads(output.read_text())
    hours = [(_hour(row["end"]) - _hour(row["start"])) for row in held["schedule"]]
    return hours, held["notes"]


def _hour(text: str) -> float:
    return int(text[11:13])


def test_requests_above_the_limit_are_cut_and_jobs_end_there(cluster: Lake) -> None:
    hours, notes = simulated(cluster, "--walltime", "short=2")
    assert hours == [1, 1, 2, 4]
    assert "queue short: 2 requests cut to 2 h, 1 job ended there" in notes
    assert any(note.endswith("events: one-by-one, walltime short=2") for note in notes)


def test_or_they_are_refused(cluster: Lake) -> None:
    hours, notes = simulated(cluster, "--walltime", "short=2,refuse", "--walltime", "normal=4")
    assert hours == [1, 4]
    assert "left out 2: above the limits of queue short" in notes
    hours, _ = simulated(cluster, "--walltime", "short=0.5,refuse", "--walltime", "normal=1,refuse")
    assert hours == []


def test_a_scenario_does_the_same(cluster: Lake, tmp_path: Path) -> None:
    text = "[machine]\nprocessors = 9\n[[variant]]\n[variant.queues.short]\nmax_walltime_h = 2\n"
    (tmp_path / "s.toml").write_text(text)
    arguments = [
        "whatif",
        tmp_path / "s.toml",
        "-w",
        cluster.workspace,
        "--jobs",
        1,
        "-o",
        tmp_path / "w.json",
    ]
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    notes = json.loads((tmp_path / "w.json").read_text())["variants"][0]["notes"]
    assert "queue short: 2 requests cut to 2 h, 1 job ended there" in notes


def test_a_queue_that_no_job_has(cluster: Lake) -> None:
    arguments = [
        "simulate",
        "-w",
        str(cluster.workspace),
        "--processors",
        "9",
        "--walltime",
        "shrt=2",
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code != 0
    assert "the queue 'shrt', which no job has" in done.output and "short" in done.output


@pytest.mark.parametrize(
    ("text", "name", "rule"),
    [
        ("short=6", "short", QueueRule(6)),
        ("short=0.5,refuse", "short", QueueRule(0.5, over="refuse")),
        ("a=b=3", "a=b", QueueRule(3)),
    ],
)
def test_a_walltime_in_words(text: str, name: str, rule: QueueRule) -> None:
    assert parse_walltime(text) == (name, rule)
    assert write_walltime(name, rule) == f"walltime {text}"


@pytest.mark.parametrize(
    "text", ["short", "=6", "short=", "short=0", "short=inf", "short=6,drop", "short=x"]
)
def test_a_walltime_that_cannot_be_read(text: str) -> None:
    with pytest.raises(HakaruError, match="write QUEUE=HOURS"):
        parse_walltime(text)


def test_a_limit_on_walltimes_says_how_each_verb_sets_them() -> None:
    with pytest.raises(HakaruError) as caught:
        parse_limit("queue=long:walltime=6")
    assert "`hakaru simulate --walltime long=6`" in str(caught.value)
    assert "`hakaru whatif`: queues.long = { max_walltime_h = 6 }" in str(caught.value)


def test_what_asks_for_as_much_as_a_queue_allows_stays():
    """An hour and a second is cut to an hour; an hour is neither cut nor refused."""
    jobs = workload((0, 3600, 1), (0, 3601, 1), (0, 60, 1, {"requested_s": 3601.0}))
    got, note = limit_queue(jobs, "normal", QueueRule(1))
    assert (got.request.tolist(), got.run.tolist()) == ([3600] * 3, [3600, 3600, 60])
    assert note == "queue normal: 2 requests cut to 1 h, 1 job ended there"
    refused, _ = limit_queue(jobs, "normal", QueueRule(1, over="refuse"))
    assert refused.table["job_id"].to_pylist() == ["0"]
    assert refused.left_out == {"above the limits of queue normal": 2}
