"""Conservative backfilling: the reference schedule, schedules worked by hand, and a slow implementation."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.errors import HakaruError
from hakaru.sim import (
    POLICIES,
    Change,
    Group,
    Limit,
    Machine,
    Options,
    Placement,
    Schedule,
    Workload,
    simulate,
)
from tests.sim._slow_conservative import Job, Slow

CONSERVATIVE = POLICIES.get("conservative")


def workload_of(rows: list[tuple[int, ...]]) -> Workload:
    """Rows of (submit, run, request, pes) and perhaps nodes."""
    whole = np.array([(*row, 1)[:5] for row in rows], np.int64).reshape(-1, 5)
    submit, run, request, pes, num_nodes = whole.T
    nobody = np.full(len(rows), -1)
    kinds = ("user", "account", "queue", "qos", "gpu_model")
    names: dict[str, tuple[str, ...]] = dict.fromkeys(kinds, ())
    table = pa.table({"job_id": [str(x) for x in range(len(rows))]})
    return Workload(
        table, submit, run, request, pes, num_nodes, nobody, nobody, nobody, nobody, nobody, names
    )


def play(rows: list[tuple[int, ...]], machine: Machine, **options: Any) -> Schedule:
    depth = options.pop("depth", None)
    policy = replace(CONSERVATIVE, depth=depth)
    return simulate(workload_of(rows), machine, policy, Options(**options))


def starts(rows: list[tuple[int, ...]], machine: Machine, **options: Any) -> list[int]:
    return [int(start) for start in play(rows, machine, **options).start]


def test_equals_the_reference_schedule_of_kth_job_for_job(shared: Path) -> None:
    folder = shared / "data" / "schedules"
    with gzip.open(folder / "kth-100.swf.gz", "rt") as lines:
        log = np.loadtxt((line for line in lines if not line.startswith(";")), float).astype(int)
    with gzip.open(folder / "kth-100-conservative.csv.gz", "rt") as lines:
        wanted = dict(np.loadtxt(lines, int, delimiter=",", skiprows=1).tolist())
    log = log[np.argsort(log[:, 1], kind="stable")]
    request = log[:, 8]
    rows = np.column_stack([log[:, 1], np.minimum(log[:, 3], request), request, log[:, 4]])
    found = starts([tuple(row) for row in rows.tolist()], Machine.flat(100))
    assert dict(zip(log[:, 0].tolist(), found, strict=True)) == wanted


def test_a_short_job_goes_first_only_where_it_delays_nobody() -> None:
    rows = [(0, 100, 100, 3), (10, 100, 100, 4), (20, 500, 500, 1), (30, 70, 70, 1)]
    assert starts(rows, Machine.flat(4)) == [0, 100, 200, 30]


def test_an_early_end_moves_reservations_up() -> None:
    assert starts([(0, 100, 1000, 3), (10, 100, 100, 4)], Machine.flat(4)) == [0, 100]


def test_places_are_taken_in_order_of_submission_when_time_is_given_back() -> None:
    # At 0 the second is promised 100, the third 100 beside it, the fourth 150. At 20 all of it is free:
    # the second and third begin, and the fourth moves up to when the second ends.
    rows = [(0, 20, 100, 4), (1, 50, 50, 2), (2, 60, 60, 2), (3, 10, 10, 2)]
    assert starts(rows, Machine.flat(4)) == [0, 20, 20, 70]


def test_who_waits_for_a_place_is_told_so() -> None:
    schedule = play([(0, 10, 10, 4), (1, 10, 10, 4)], Machine.flat(4))
    assert schedule.reason.tolist() == [1, 4]
    assert schedule.totals["busy_s"] == 80
    assert schedule.totals["capacity_s"] == 80


def test_beyond_the_depth_jobs_wait_without_a_place() -> None:
    # The third would fit beside the first for its 5 s, but only one may hold a place: it gets
    # one when the second begins.
    rows = [(0, 20, 20, 3), (1, 10, 10, 4), (2, 5, 5, 1), (3, 50, 50, 4)]
    assert starts(rows, Machine.flat(4)) == [0, 20, 2, 30]
    assert starts(rows, Machine.flat(4), depth=1) == [0, 20, 30, 35]


def test_a_job_of_several_nodes_waits_for_whole_ones() -> None:
    rows = [(0, 10, 10, 1), (0, 30, 30, 1), (1, 10, 10, 4, 2), (2, 5, 5, 3)]
    machine = Machine.of_nodes(2, 2)
    assert starts(rows[:3], machine) == [0, 0, 30]
    spread = Machine.of_nodes(2, 2, placement=Placement(packing="spread"))
    assert starts(rows[:3], spread) == [0, 0, 30]
    shared_nodes = Machine.of_nodes(2, 2, placement=Placement(whole_nodes=False))
    assert starts([(0, 10, 10, 1), (1, 10, 10, 2, 2)], shared_nodes) == [0, 1]
    assert starts([(0, 10, 10, 1), (1, 10, 10, 2, 2)], machine) == [0, 10]


def test_nodes_are_those_of_the_reservation() -> None:
    schedule = play([(0, 10, 10, 2), (0, 20, 20, 2), (1, 5, 5, 2)], Machine.of_nodes(2, 2))
    assert [schedule.nodes_of(x) for x in range(3)] == [[0], [1], [0]]
    assert schedule.start.tolist() == [0, 0, 10]


def test_who_outlives_an_estimate_pushes_others_back() -> None:
    rows = [(0, 30, 40, 4), (1, 10, 10, 4)]
    half = {"estimates": lambda workload: workload.request // 4}
    assert starts(rows, Machine.flat(4), **half) == [0, 30]


def test_a_node_that_goes_and_comes() -> None:
    rows = [(0, 10, 10, 2), (1, 10, 10, 2), (2, 10, 10, 2)]
    groups = (Group(2, 2),)
    drained = Machine(groups, changes=(Change(5, 1, "drain"),))
    assert starts(rows, drained) == [0, 1, 10]
    lost = Machine(groups, changes=(Change(5, 1, "down"), Change(15, 1, "up")))
    schedule = play(rows, lost)
    assert schedule.start.tolist() == [0, 10, 15]
    assert schedule.num_restarts.tolist() == [0, 1, 0]
    assert schedule.totals["lost_s"] == 8
    late = Machine(groups, changes=(Change(1000, 1, "drain"),))
    assert (
        play(rows, late).totals["capacity_s"] == 20 * 4
    )  # what comes after the last end is not counted
    gone = Machine(groups, changes=(Change(5, 0, "down"), Change(5, 1, "down")))
    assert starts(rows, gone) == [-1, -1, -1]


def test_nothing_to_do_and_jobs_too_large() -> None:
    assert starts([], Machine.flat(4)) == []
    schedule = play([(0, 1, 1, 5), (0, 0, 0, 4)], Machine.flat(4))
    assert schedule.start.tolist() == [0]
    assert schedule.workload.left_out == {"larger than the machine": 1}


def test_what_it_does_not_know_is_refused() -> None:
    with pytest.raises(HakaruError, match="knows no limits"):
        play([(0, 1, 1, 1)], Machine.flat(4), limits=[Limit("all", "running-jobs", 1)])
    sjf = replace(CONSERVATIVE, order=lambda _, estimates: estimates)
    with pytest.raises(HakaruError, match="order other than"):
        simulate(workload_of([(0, 1, 1, 1)]), Machine.flat(4), sjf)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    num_nodes, size = draw(st.sampled_from([(1, 4), (2, 2), (4, 2), (3, 4)]))
    row = st.tuples(
        st.integers(0, 12),
        st.integers(0, 8),
        st.integers(0, 6),  # how much more it asks for
        st.integers(1, size),
        st.integers(1, num_nodes),
        st.integers(1, 10),  # its estimate, where the request is not taken
    )
    rows = sorted(draw(st.lists(row, min_size=1, max_size=10)), key=lambda row: row[0])
    change = st.tuples(
        st.integers(0, 30), st.integers(0, num_nodes - 1), st.sampled_from(["up", "drain", "down"])
    )
    return {
        "rows": rows,
        "sizes": [size] * num_nodes,
        "changes": draw(st.lists(change, max_size=3)) if num_nodes > 1 else [],
        "packing": draw(st.sampled_from(["best-fit", "spread"])),
        "whole_nodes": draw(st.booleans()),
        "locality": draw(st.sampled_from(["anywhere", "preferred", "required"])),
        "switch_size": draw(st.sampled_from([2, 100])),
        "batched": draw(st.booleans()),
        "depth": draw(st.sampled_from([1, 2, 100])),
        "by_request": draw(st.booleans()),
    }


@settings(max_examples=300, deadline=None)
@given(cases())
def test_equals_a_slow_implementation(case: dict[str, Any]) -> None:
    rows, by_request = case.pop("rows"), case.pop("by_request")
    if case["locality"] == "required":  # what fits under no switch is left out before
        rows = [(*row[:4], min(row[4], case["switch_size"]), row[5]) for row in rows]
    slow = Slow(
        [
            Job(submit, run, run + more, run + more if by_request else guess, pes, num)
            for submit, run, more, pes, num, guess in rows
        ],
        **{**case, "changes": list(case["changes"])},
    )
    wanted = slow.play()
    machine = Machine(
        (Group(len(case["sizes"]), case["sizes"][0]),),
        is_flat=len(case["sizes"]) == 1,
        switch_size=case["switch_size"],
        changes=tuple(Change(*change) for change in case["changes"]),
        placement=Placement(case["packing"], case["whole_nodes"], case["locality"]),
    )
    guesses = np.array([row[5] for row in rows])
    schedule = play(
        [(row[0], row[1], row[1] + row[2], row[3] * row[4], row[4]) for row in rows],
        machine,
        depth=case["depth"],
        events="batched" if case["batched"] else "one-by-one",
        estimates=None if by_request else lambda workload: guesses,
    )
    assert [None if start < 0 else int(start) for start in schedule.start] == wanted
    if not machine.is_flat:
        ran = [j for j, start in enumerate(wanted) if start is not None]
        assert [tuple(schedule.nodes_of(j)) for j in ran] == [slow.jobs[j].nodes for j in ran]
