"""The machine, the period and the people of a synthetic cluster, and what its GPUs show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from duckdb import DuckDBPyConnection

from hakaru.engine.duckdb import connect, one_row
from hakaru.settings import Engine
from hakaru.sources.synth import Synth, jobs_table, samples_table
from hakaru.sources.synth._jobs import Jobs
from hakaru.sources.synth._samples import Placement, _allocate, _Held, _holders
from hakaru.sources.synth._spec import Plan, plan
from tests.sources.synth._made import as_one

SMALL = Synth(num_jobs=3_000, seed=5, num_nodes=6, samples_days=1)


def utc(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def test_the_period_begins_by_the_site_s_clock_and_ends_with_the_samples() -> None:
    """1 April 2024 begins in Tokyo at 15:00 UTC of the day before."""
    made = plan(replace(SMALL, start=datetime(2024, 4, 1), days=10, samples_days=1.5))
    assert made.start_s == utc("2024-03-31T15:00:00")
    assert made.end_s == utc("2024-04-10T15:00:00")
    assert made.window_s == (utc("2024-04-09T03:00:00"), utc("2024-04-10T15:00:00"))
    late = plan(replace(SMALL, start=datetime(2024, 4, 1, tzinfo=UTC), days=1, samples_days=9))
    assert late.start_s == utc("2024-04-01T00:00:00")
    assert late.window_s == (late.start_s, late.start_s + 86400)  # no longer than the period


def test_half_the_load_takes_twice_the_time_or_twice_the_machine() -> None:
    jobs = replace(SMALL, num_jobs=50_000, num_nodes=None)
    full, half = (plan(replace(jobs, load=load)) for load in (0.8, 0.4))
    assert full.num_nodes == half.num_nodes == 38
    assert half.num_hours == pytest.approx(2 * full.num_hours, abs=1)
    wide, wider = (plan(replace(jobs, load=load, days=20)) for load in (0.8, 0.4))
    assert wide.num_hours == wider.num_hours == 480
    assert wider.num_nodes == pytest.approx(2 * wide.num_nodes, abs=1)
    small, large = (plan(replace(jobs, num_nodes=num)) for num in (10, 40))
    assert small.num_hours == pytest.approx(4 * large.num_hours, rel=0.15)


def test_more_than_the_log_had_runs_on_a_larger_machine() -> None:
    made = plan(Synth(num_jobs=5_000_000))
    assert made.num_hours == 535 * 24 and made.num_nodes > 38


@pytest.mark.parametrize(
    ("num_nodes", "first", "last"), [(6, "node01", "node06"), (120, "node001", "node120")]
)
def test_names_of_nodes_sort_as_their_numbers(num_nodes: int, first: str, last: str) -> None:
    names = plan(replace(SMALL, num_nodes=num_nodes)).node_names()
    assert (names[0], names[-1], len(names)) == (first, last, num_nodes)
    assert names == sorted(names)


def test_the_settings_are_those_of_the_machine() -> None:
    facts = plan(replace(SMALL, zone="Europe/Paris", gpus_per_node=4)).facts()
    assert facts == {
        "zone": "Europe/Paris",
        "unit": "gpu",
        "gpus_per_node": 4,
        "nodes": 6,
        "queues": {
            "normal": {"max_walltime_h": 72, "max_nodes": 6},
            "short": {"max_walltime_h": 3, "max_nodes": 1, "max_gpus": 1},
            "middle": {"max_walltime_h": 168, "max_nodes": 1, "max_gpus": 4},
            "long": {"max_walltime_h": 336, "max_nodes": 1, "max_gpus": 4},
        },
    }


@pytest.fixture(scope="module")
def made() -> Iterator[DuckDBPyConnection]:
    con = connect(Engine())
    con.register("jobs", as_one(jobs_table(SMALL)))
    con.register("samples", as_one(samples_table(SMALL)))
    yield con
    con.close()


def test_each_end_has_its_exit_code(made: DuckDBPyConnection) -> None:
    found = made.execute(
        "SELECT DISTINCT state, exit_code FROM jobs WHERE state <> 'killed' ORDER BY state"
    ).fetchall()
    assert found == [("cancelled", None), ("completed", 0), ("failed", 1), ("timeout", None)]


def test_a_user_has_one_group_and_a_group_about_three_users(made: DuckDBPyConnection) -> None:
    """106 users make 35 groups."""
    most, num_groups = one_row(
        made,
        'SELECT max(n), count(*) FROM (SELECT count(DISTINCT "user") AS n FROM jobs GROUP BY account)',
    )
    assert (most <= 4, 25 <= num_groups <= 35) == (True, True)
    several = 'SELECT count(*) FROM (SELECT 1 FROM jobs GROUP BY "user" HAVING count(DISTINCT account) > 1)'
    assert one_row(made, several) == (0,)


def test_waits_are_dispatched_at_once_or_end_within_a_week(made: DuckDBPyConnection) -> None:
    drawn = as_one(jobs_table(replace(SMALL, samples_days=0)))
    made.register("drawn", drawn)
    assert one_row(made, "SELECT min(wait_s), max(wait_s) <= 7 * 86400 FROM drawn") == (4.0, True)


def test_samples_are_whole_per_cents_and_gpus_without_work_draw_little(
    made: DuckDBPyConnection,
) -> None:
    """30 W idle, 4 more with memory held, and a little noise; a GPU at work draws up to 250."""
    cents, idle_low, idle_high, busy = one_row(
        made,
        """
        SELECT max(abs(utilization * 100 - round(utilization * 100))),
               min(power_w) FILTER (memory_used_mib = 0),
               max(power_w) FILTER (utilization = 0), avg(power_w) FILTER (utilization > 0.9)
        FROM samples
        """,
    )
    assert cents < 1e-9
    assert 30 <= idle_low < 30.1 and 34 < idle_high < 45 and 130 < busy < 230


def test_exporters_fall_silent_for_some_minutes_and_a_whole_node(made: DuckDBPyConnection) -> None:
    """One sample in 500 is lost by itself; six nodes have about one silence a day, of 5 to 90 minutes."""
    num, num_silent, shortest, longest = one_row(
        made,
        """
        WITH seen AS (SELECT DISTINCT node, epoch(sampled_at) / 60 AS minute FROM samples),
             gaps AS (SELECT minute - lag(minute) OVER (PARTITION BY node ORDER BY minute) - 1 AS gap
                      FROM seen)
        SELECT (SELECT count(*) FROM samples), sum(gap), min(gap) FILTER (gap > 0), max(gap) FROM gaps
        """,
    )
    assert 5 <= shortest <= longest <= 2 * 90
    lost_alone = 1440 * 6 * 8 - 8 * num_silent - num
    assert lost_alone == pytest.approx(0.002 * 1440 * 6 * 8, rel=0.4)


def test_some_jobs_use_none_or_only_the_first_of_their_gpus() -> None:
    """A tenth holds GPUs in vain; of the others a tenth uses the first of two only, and the rest both."""
    jobs = np.arange(4000)
    zero = np.zeros(4000, dtype=np.int64)
    placement = Placement(jobs, zero, zero + 600, np.repeat(jobs, 2), np.tile([0, 1], 4000))
    held = _Held.draw(plan(SMALL), placement)
    used = held.utilization.reshape(-1, 2) > 0
    assert not (used[:, 1] & ~used[:, 0]).any()
    assert (~used[:, 0]).mean() == pytest.approx(0.1, abs=0.015)
    assert (used[:, 0] & ~used[:, 1]).mean() == pytest.approx(0.09, abs=0.015)
    assert (held.memory_mib <= 16280).all()
    nearly_all = (held.memory_mib.reshape(-1, 2)[:, 0] > 0.94 * 16280) & used[:, 0]
    assert nearly_all.mean() == pytest.approx(0.45, abs=0.03)  # half of those at work


def test_a_job_is_measured_from_its_first_whole_minute_to_its_end() -> None:
    """From 00:30 to 03:00 it is seen at minutes 1 and 2; one within a minute is not seen at all."""
    started, ended = np.array([30, 70]), np.array([180, 110])
    placement = Placement(np.array([1, 2]), started, ended, np.array([0, 1]), np.array([0, 1]))
    holder, age = _holders(placement, np.arange(5), 3)
    assert holder[:, 0].tolist() == [-1, 0, 0, -1, -1]
    assert age[:, 0].tolist() == [0, 0, 1, 0, 0]
    assert (holder[:, 1:] == -1).all()


def _jobs(rows: list[tuple[int, int, int, int]]) -> Jobs:
    """Jobs by nodes, GPUs, start and run time."""
    nodes, gpus, started, run = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows), dtype=np.int64)
    return Jobs(
        np.arange(len(rows)), none, none, none, nodes, gpus, none + 0.0, started, started, run
    )


def test_where_jobs_go_worked_by_hand() -> None:
    """Two nodes of four GPUs: small jobs fill one node, so that the other stays whole."""
    two = Plan(Synth(num_nodes=2, gpus_per_node=4), 0, 1, 2)
    started, gpus = _allocate(
        two,
        _jobs(
            [
                (1, 1, 0, 100),  # GPU 0
                (1, 2, 1, 100),  # beside it: the fuller node that has room
                (1, 4, 2, 50),  # the other node, which is whole
                (1, 2, 3, 10),  # one is free on the first node; the second is free at 52
                (1, 1, 4, 10),  # the last free one, at once
                (2, 8, 5, 10),  # both nodes are free when the last job of each has ended
            ]
        ),
    )
    assert [list(map(int, each)) for each in gpus] == [
        [0], [1, 2], [4, 5, 6, 7], [4, 5], [3], [0, 1, 2, 3, 4, 5, 6, 7],
    ]  # fmt: skip
    assert started.tolist() == [0, 1, 2, 52, 4, 101]
