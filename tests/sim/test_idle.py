"""Idle jobs found in samples, worked by hand: gaps, several GPUs, samples before and after a job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from hakaru.analyses import Selection, Session, open_session
from hakaru.cli import main
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.sim.idle import IdleRule, end_idle, parse_rule, with_idleness
from hakaru.sim.site import Site, jobs_of
from hakaru.web.app import create_app
from tests.conftest import job, put, put_jobs
from tests.sim._jobs import workload
from tests.web._site import running
from tests.web.what_if._runs import API, ended

START = datetime(
    2018, 1, 1, 5, tzinfo=UTC
)  # the six hours of a bucket end at six, within most jobs
TWO_HOURS = IdleRule(2)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def job_of(number: int, hours: float = 6, begin: float = 0, **more: Any) -> dict[str, Any]:
    """A job of one GPU, a:0, with moments in minutes after START."""
    times = {"submitted_at": at(begin) - timedelta(seconds=number), "started_at": at(begin)}
    times["ended_at"] = at(begin + hours * 60)
    return job(
        number,
        **times,
        run_s=hours * 3600,
        requested_s=24 * 3600.0,
        **({"gpu_ids": ["a:0"]} | more),
    )


def samples(
    node: str,
    gpu: int,
    since: float,
    until: float,
    use: float | None,
    every: float = 5,
    **more: Any,
) -> Iterator[dict[str, Any]]:
    """A sample every five minutes, both ends included."""
    for step in range(int((until - since) / every) + 1):
        row = {"cluster": "c", "node": node, "gpu": gpu, "sampled_at": at(since + every * step)}
        yield row | {"utilization": use} | more


def found(lake: Lake, rule: IdleRule = TWO_HOURS) -> list[tuple[float | None, int | None]]:
    """For each job, in minutes, when it would be ended, and how far its idleness is known."""
    with open_session(lake) as session:
        table = told(session, rule)
    ends, known = (table[name].to_pylist() for name in (rule.column, f"{rule.column} known"))
    order = table["job_id"].cast("int64").to_pylist()
    rows = sorted(zip(order, ends, known, strict=True))
    return [(end / 60 if end is not None else None, how) for _, end, how in rows]


def told(session: Session, rule: IdleRule) -> Any:
    jobs = jobs_of(session, Selection(clusters=("c",)))
    return with_idleness(session, "c", jobs, [rule])


def test_a_job_ends_two_hours_after_the_first_idle_sample(lake: Lake) -> None:
    put_jobs(lake, [job_of(1)])
    rows = [*samples("a", 0, 5, 95, 0.5), *samples("a", 0, 100, 360, 0.0)]
    put(lake, "samples", rows)
    assert found(lake) == [(100 + 120, 2)]
    assert found(lake, IdleRule(4.5)) == [
        (None, 2)
    ]  # idle from 100 to 360 only, which is 4 h 20 min


def test_use_breaks_a_spell_and_a_threshold_may_forgive_it(lake: Lake) -> None:
    put_jobs(lake, [job_of(1)])
    rows = [*samples("a", 0, 5, 360, 0.0)]
    rows[20]["utilization"] = 0.04  # at 105 min: the first spell is 100 min long
    put(lake, "samples", rows)
    assert found(lake) == [(110 + 120, 2)]
    assert found(lake, IdleRule(2, use=0.05)) == [(5 + 120, 2)]


def test_missing_telemetry_is_never_idleness(lake: Lake) -> None:
    put_jobs(lake, [job_of(1), job_of(2, begin=1000), job_of(3, begin=2000)])
    rows = [
        *samples("a", 0, 5, 100, 0.0),
        *samples(
            "a", 0, 115, 360, 0.0
        ),  # 15 min without a sample: two spells, the second long enough
        *samples("a", 0, 1005, 1100, 0.0),
        *samples(
            "a", 0, 1110, 1200, 0.0
        ),  # 10 min are allowed: one spell of 195 min; nothing after it
        *samples("a", 0, 2005, 2360, None),  # samples that say nothing
    ]
    put(lake, "samples", rows)
    assert found(lake) == [(115 + 120, 1), (5 + 120, 1), (None, 0)]
    assert found(lake, IdleRule(2, gap_min=5)) == [(115 + 120, 1), (None, 1), (None, 0)]
    assert found(lake, IdleRule(2, gap_min=15)) == [(5 + 120, 2), (5 + 120, 1), (None, 0)]


def test_one_busy_gpu_keeps_the_job(lake: Lake) -> None:
    both = {"num_gpus": 2, "gpu_ids": ["a:0", "b:1"]}
    put_jobs(
        lake, [job_of(1, **both), job_of(2, begin=1000, **both), job_of(3, begin=2000, **both)]
    )
    rows = [
        *samples("a", 0, 5, 360, 0.0),
        *samples("b", 1, 5, 360, 0.9),
        # together they are idle from 1060 to 1240 only: three hours
        *samples("a", 0, 1005, 1240, 0.0),
        *samples("a", 0, 1245, 1360, 1.0),
        *samples("b", 1, 1005, 1055, 1.0),
        *samples("b", 1, 1060, 1360, 0.0),
        *samples("a", 0, 2005, 2360, 0.0),  # of the other GPU nothing is known
    ]
    put(lake, "samples", rows)
    assert found(lake) == [(None, 2), (60 + 120, 2), (None, 0)]
    assert found(lake, IdleRule(3)) == [(None, 2), (60 + 180, 2), (None, 0)]
    assert found(lake, IdleRule(3.01)) == [(None, 2), (None, 2), (None, 0)]


def test_spells_that_only_follow_one_another_are_not_together(lake: Lake) -> None:
    put_jobs(lake, [job_of(1, num_gpus=2, gpu_ids=["a:0", "a:1"])])
    first = [*samples("a", 0, 5, 180, 0.0), *samples("a", 0, 185, 360, 1.0)]
    second = [*samples("a", 1, 5, 175, 1.0), *samples("a", 1, 180, 360, 0.0)]
    put(lake, "samples", [*first, *second])
    assert found(lake) == [(None, 2)]


def test_samples_before_and_after_a_job_are_not_its_own(lake: Lake) -> None:
    # idle for an hour and a half on either side of both bounds; within the job for 150 min, then 90
    put_jobs(lake, [job_of(1)])
    put(
        lake,
        "samples",
        [
            *samples("a", 0, -90, 90, 0.0),
            *samples("a", 0, 95, 265, 1.0),
            *samples("a", 0, 270, 450, 0.0),
        ],
    )
    assert found(lake) == [(None, 2)]
    assert found(lake, IdleRule(1.4)) == [
        (5 + 84, 2)
    ]  # the sample at its start is of the time before
    assert found(lake, IdleRule(1.5)) == [(270 + 90, 2)]


def test_what_the_exporter_says_goes_before_nodes_and_gpus(lake: Lake) -> None:
    # Two jobs on one GPU at a time, which only the exporter can tell apart; none of job 3's samples is known
    # to be its own, as they are said to be another's.
    jobs = [job_of(1, gpu_ids=None), job_of(2, begin=1), job_of(3, begin=1000)]
    put_jobs(lake, jobs)
    rows = [
        *samples("a", 0, 5, 360, 0.0, job_id="1"),
        *samples("a", 0, 6, 361, 0.7, job_id="2"),
        *samples("a", 0, 1005, 1360, 0.0, job_id="99"),
    ]
    put(lake, "samples", rows)
    assert found(lake) == [(125, 2), (None, 2), (None, 0)]


def test_whole_nodes_and_uuids(lake: Lake) -> None:
    on_nodes = {"gpu_ids": None, "num_nodes": 1}
    put_jobs(
        lake,
        [
            job_of(1, num_gpus=2, nodes=["a"], **on_nodes),  # both GPUs of the node
            job_of(2, num_gpus=1, nodes=["a"], begin=1000, **on_nodes),  # one of the two: which?
            job_of(3, gpu_ids=["GPU-7"], begin=2000),
        ],
    )
    rows = []
    for begin in (0, 1000, 2000):
        rows += samples("a", 0, begin + 5, begin + 360, 0.0, gpu_uuid="GPU-7")
        rows += samples("a", 1, begin + 5, begin + 360, 0.0, gpu_uuid="GPU-8")
    put(lake, "samples", rows)
    assert found(lake) == [(125, 2), (None, 0), (125, 2)]


def test_the_run_is_cut_and_what_it_frees_is_told(lake: Lake) -> None:
    """Of six hours each, job 1 ends after 125 min, job 2 is busy, 3 has no samples, and 4 is too short."""
    rows = [job_of(1, num_gpus=2, gpu_ids=["a:0", "a:1"]), job_of(2, gpu_ids=["b:0"])]
    put_jobs(lake, [*rows, job_of(3, gpu_ids=["c:0"]), job_of(4, hours=1, gpu_ids=["d:0"])])
    put(
        lake,
        "samples",
        [
            *samples("a", 0, 5, 360, 0.0),
            *samples("a", 1, 5, 360, 0.0),
            *samples("b", 0, 5, 360, 0.3),
            *samples("d", 0, 5, 60, 0.0),
        ],
    )
    with open_session(lake) as session:
        workload = Site.of(session, "c").workload(told(session, TWO_HOURS))
    changed, note = end_idle(workload, TWO_HOURS)
    minutes = dict(zip(workload.table["job_id"].to_pylist(), changed.run.tolist(), strict=True))
    assert minutes == {"1": 125 * 60, "2": 6 * 3600, "3": 6 * 3600, "4": 3600}
    assert (changed.request == workload.request).all()
    freed = 2 * (360 - 125) / 60
    assert note == (
        "jobs end after 2 h with GPUs not in use (samples at most 10 min apart): idle time is known for 2 of "
        f"3 jobs of that length; 1 of them ends early, which frees {freed:.1f} GPU-hours"
    )


def test_without_samples_it_is_refused(lake: Lake) -> None:
    put_jobs(lake, [job_of(1)])
    put(lake, "samples", [row | {"cluster": "other"} for row in samples("a", 0, 5, 360, 0.0)])
    with open_session(lake) as session:
        with pytest.raises(HakaruError, match="the lake has no samples of c"):
            told(session, TWO_HOURS)
        workload = Site.of(session, "c").workload(jobs_of(session, Selection(clusters=("c",))))
    with pytest.raises(HakaruError, match="only known from measured use"):
        end_idle(workload, TWO_HOURS)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("2", IdleRule(2)),
        ("0.5,use=0.05", IdleRule(0.5, 0.05)),
        ("3,gap=5,use=0", IdleRule(3, 0, 5)),
    ],
)
def test_a_rule_in_words(text: str, rule: IdleRule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    "text", ["", "two", "2,idle=1", "2,use", "-1", "2,use=1", "2,gap=0", "nan"]
)
def test_a_rule_that_says_nothing(text: str) -> None:
    with pytest.raises(HakaruError, match=r"write HOURS|are above 0"):
        parse_rule(text)


@pytest.fixture
def waiting(lake: Lake) -> Lake:
    """One GPU: the first job is idle from its sixth hour on, and a second one waits for it."""
    more = {"submitted_at": START, "wait_s": 0.0}
    first = job_of(1, hours=10) | more
    put_jobs(lake, [first, job_of(2, hours=1, begin=600) | more])
    put(lake, "samples", [*samples("a", 0, 5, 295, 0.9), *samples("a", 0, 300, 600, 0.0)])
    return lake


ONE_GPU = "[machine]\nprocessors = 1\n[[variant]]\nname = 'idle'\nend_idle_after_h = 1\n"


def test_simulate_ends_idle_jobs(waiting: Lake, tmp_path: Path) -> None:
    output = tmp_path / "s.json"
    arguments = [
        "simulate",
        "-w",
        waiting.workspace,
        "--processors",
        1,
        "--end-idle",
        1,
        "-o",
        output,
    ]
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    schedule = json.loads(output.read_text())["schedule"]
    assert [row["start"] for row in schedule] == ["2018-01-01T05:00:00Z", "2018-01-01T11:00:00Z"]
    assert (
        "known for 1 of 2 jobs of that length; 1 of them ends early, which frees 4.0 GPU-hours"
        in (" ".join(done.output.split()))
    )
    refused = CliRunner().invoke(main, ["simulate", "--end-idle", "soon", "-w", str(tmp_path)])
    assert "does not say when idle jobs end" in refused.output


def test_a_variant_ends_idle_jobs(waiting: Lake, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(ONE_GPU)
    output = tmp_path / "w.json"
    arguments = ["whatif", tmp_path / "s.toml", "-w", waiting.workspace, "--jobs", 1, "-o", output]
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    held = json.loads(output.read_text())
    change = held["variants"][0]["changes"]["mean_wait_s"]
    assert (change["before"], change["after"]) == (10 * 3600 / 2, 6 * 3600 / 2)
    assert "frees 4.0 GPU-hours" in held["variants"][0]["notes"][0]


def test_the_web_ends_idle_jobs_and_says_where_there_are_no_samples(
    waiting: Lake, tmp_path: Path
) -> None:
    assert in_the_web(waiting)["outcome"]["variants"][0]["changes"]["mean_wait_s"]["after"] == 10800
    bare = put_jobs(Lake.create(tmp_path / "bare"), [job_of(1)])
    failed = in_the_web(bare)
    assert failed["state"] == "failed" and "has no samples of c" in failed["problem"]


def in_the_web(lake: Lake) -> dict[str, Any]:
    with running(create_app(lake)) as server, server.client() as client:
        id = client.post(API, json={"cluster": "c", "scenario": ONE_GPU}).json()["id"]
        return ended(client, id)


def slowly(one: dict[str, Any], rows: list[dict[str, Any]], rule: IdleRule) -> float | None:
    """The same minute by minute: idle is where each GPU lies between idle samples that are near enough."""
    begin, end = one["started_at"], one["ended_at"]
    idle: set[int] | None = None
    for id in one["gpu_ids"]:
        mine = [
            r for r in rows if f"{r['node']}:{r['gpu']}" == id and begin < r["sampled_at"] <= end
        ]
        mine.sort(key=lambda row: row["sampled_at"])
        minutes = set()
        for one_row, next_row in pairwise(mine):
            low, high = (
                int((r["sampled_at"] - begin).total_seconds()) // 60 for r in (one_row, next_row)
            )
            both = max(one_row["utilization"], next_row["utilization"]) <= rule.use
            if both and high - low <= rule.gap_min:
                minutes |= set(range(low, high))
        idle = minutes if idle is None else idle & minutes
    run = 0
    for minute in range(int((end - begin).total_seconds()) // 60):
        run = run + 1 if minute in (idle or ()) else 0
        if run == rule.hours * 60:
            return minute + 1
    return None


@pytest.mark.parametrize("seed", range(2))
def test_it_agrees_with_an_obvious_peer(lake: Lake, seed: int) -> None:
    random = Random(seed)
    rule = IdleRule(0.5, use=0.1, gap_min=4)
    jobs, rows = [], []
    for number in range(40):  # one after another on four GPUs
        gpus = random.sample(["a:0", "a:1", "b:0", "b:1"], random.randint(1, 3))
        hours = random.choice([0.5, 1, 2, 3])
        jobs.append(job_of(number, hours, 200 * number, num_gpus=len(gpus), gpu_ids=gpus))
        for node, gpu in (("a", 0), ("a", 1), ("b", 0), ("b", 1)):
            use = random.choice([0.0, 0.05, 0.6])
            for minute in range(200 * number, 200 * (number + 1)):
                use = random.choice([0.0, 0.05, 0.6]) if random.random() < 0.02 else use
                if random.random() < 0.7:
                    rows += samples(node, gpu, minute, minute, use)
    put_jobs(lake, jobs)
    put(lake, "samples", rows)
    got = [end for end, _ in found(lake, rule)]
    assert got == [slowly(one, rows, rule) for one in jobs]
    assert any(got) and not all(got)


def test_a_job_that_is_over_when_it_would_be_ended_does_not_end_early() -> None:
    """Two hours idle at the end of three, before it, and never; of the last nothing is known."""
    rule = IdleRule(2)
    jobs = workload(*[(0, 10_800, 2)] * 4)
    ends = pa.array([10_800.0, 7_200.0, None, None])
    known = pa.array([2, 1, 2, None], pa.int64())
    table = jobs.table.append_column(rule.column, ends).append_column(f"{rule.column} known", known)
    got, note = end_idle(replace(jobs, table=table), rule)
    assert got.run.tolist() == [10_800, 7_200, 10_800, 10_800]
    assert note.endswith(
        "idle time is known for 2 of 3 jobs of that length, in part for 1 more; 1 of them ends early, which "
        "frees 2.0 GPU-hours"
    )
