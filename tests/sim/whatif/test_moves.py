"""Which jobs a wider queue takes over, which users are drawn to change the load, and where copies go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hakaru.settings import Queue
from hakaru.sim import Limit
from hakaru.sim.queues import QueueRule
from hakaru.sim.whatif import changes as change
from hakaru.sim.whatif.intervals import WEEK_S
from hakaru.sim.whatif.scenario import AccurateRequests
from tests.sim._jobs import workload

HOUR = 3600
NARROW = Queue(max_walltime_h=3, max_gpus=1)
WIDE = QueueRule(max_walltime_h=6, max_gpus=4)


@pytest.mark.parametrize(
    ("request_s", "pes", "before", "rule", "moves"),
    [
        (3 * HOUR, 1, NARROW, WIDE, False),  # could have gone there
        (3 * HOUR + 1, 1, NARROW, WIDE, True),
        (6 * HOUR, 4, NARROW, WIDE, True),
        (6 * HOUR + 1, 1, NARROW, WIDE, False),
        (4 * HOUR, 5, NARROW, WIDE, False),
        (HOUR, 2, NARROW, WIDE, True),  # the limit of GPUs alone kept it out
        (4 * HOUR, 2, NARROW, QueueRule(max_walltime_h=6), False),  # which stays where none is said
        (HOUR, 1, Queue(max_gpus=1), WIDE, True),  # nobody knows how long its jobs could be
        (HOUR, 1, None, WIDE, True),
        (99 * HOUR, 4, NARROW, QueueRule(max_gpus=4), True),
        (4 * HOUR, 99, Queue(max_walltime_h=3), QueueRule(max_walltime_h=6), True),
        (2 * HOUR, 99, Queue(max_walltime_h=3), QueueRule(max_walltime_h=6), False),
    ],
)
def test_what_was_kept_out_and_fits_comes_over(
    request_s: int, pes: int, before: Queue | None, rule: QueueRule, moves: bool
) -> None:
    jobs = workload((0, 60, pes, {"requested_s": request_s}), (1, 60, 1, {"queue": "short"}))
    moved, note = change.widen_queue(jobs, "short", rule, before)
    assert moved.names["queue"][moved.queue[0]] == ("short" if moves else "normal")
    assert note.startswith(
        f"queue short takes over {int(moves)} job{'' if moves else 's'} of other"
    )


def test_jobs_come_from_every_queue_and_those_that_were_there_are_not_counted() -> None:
    long = {"requested_s": 5.0 * HOUR}
    jobs = workload(
        (0, 60, 1, {"queue": "short", **long}),
        (1, 60, 1, {"queue": "normal", **long}),
        (2, 60, 1, {"queue": "night", **long}),
        (3, 60, 1, {"queue": None, **long}),
    )
    moved, note = change.widen_queue(jobs, "short", WIDE, NARROW)
    assert moved.queue.tolist() == [0, 0, 0, -1]
    assert note == "queue short takes over 2 jobs of other queues, which its limit of 3 h kept out"
    _, note = change.widen_queue(jobs, "short", WIDE, None)
    assert note == "queue short takes over 2 jobs of other queues"


def test_a_queue_of_which_no_node_is_said_takes_jobs_of_two() -> None:
    jobs = workload((0, 60, 3, {"span_nodes": 2}), (1, 60, 1, {"queue": "short"}))
    for before, queue in ((None, 1), (Queue(max_nodes=2), 1), (Queue(max_nodes=1), 0)):
        moved, _ = change.widen_queue(jobs, "short", QueueRule(), before)
        assert moved.queue[0] == queue


@pytest.mark.parametrize(
    ("points", "limits", "low", "matters"),
    [
        ({}, (), (), False),
        ({"short": 0.0, "long": 5.0}, (), (), False),
        ({"short": 5.0}, (), (), True),
        ({}, (Limit("user", "running-jobs", 1),), (), False),
        ({}, (Limit("user", "running-jobs", 1, queue="long"),), (), False),
        ({}, (Limit("user", "running-jobs", 1, queue="short"),), (), True),
        ({}, (Limit("queue", "running-jobs", 1),), (), True),
        ({}, (), ("long",), False),
        ({}, (), ("long", "short"), True),
    ],
)
def test_when_a_queue_matters(points: Any, limits: Any, low: Any, matters: bool) -> None:
    assert change.matters("short", points, limits, low) is matters


class Order:
    """Chance that is known beforehand: the users in order, and copies moved by these weeks."""

    def __init__(self, *shifts: int) -> None:
        self.shifts, self.asked = shifts, ()

    def permutation(self, number: int) -> Any:
        return np.arange(number)

    def integers(self, low: int, high: int, size: int) -> Any:
        self.asked = (low, high, size)
        return np.array(self.shifts)


@pytest.mark.parametrize(
    ("loads", "target", "again", "drawn"),
    [
        ([50, 30, 20], 20, False, [2]),  # the first two would take it too far
        ([21, 20], 20, False, [0]),  # by a hundredth of the whole it may
        ([21.1, 20], 20, False, [1]),
        ([19.9, 1], 20, False, [0]),  # near enough
        ([19.8, 1], 20, False, [0, 1]),
        ([0, 20], 20, False, [1]),  # without load, no change
        ([10, 50], 30, False, [0]),
        ([10, 50], 30, True, [0, 0, 0]),
        ([60, 50], 30, True, []),
        ([0.2], 30, True, [0] * 100),  # who has next to nothing is copied a hundred times at most
    ],
)
def test_users_are_drawn_until_the_load_is_met(
    loads: list[float], target: float, again: bool, drawn: list[int]
) -> None:
    assert change._drawn(np.array(loads, float), target, 100.0, Order(), again) == drawn


def test_copies_go_round_the_log_by_whole_weeks() -> None:
    """Of three weeks and a bit, whole ones count: 2.5 weeks and one more is half a week from the first."""
    first, half = 100, WEEK_S // 2
    jobs = workload(
        (first, 10, 1, {"user": "ann", "account": "a"}),
        (first + WEEK_S, 20, 2, {"user": "bob", "account": "b"}),
        (first + 5 * half, 30, 3, {"user": "ann", "account": "a"}),
        (first + 3 * WEEK_S + 5, 40, 4, {"user": None}),
    )
    chance = Order(1, 2)
    grown = change._with_copies(jobs, [0, 1], chance)
    assert chance.asked == (1, 3, 2)
    copies = np.asarray(grown.user) >= 2
    assert grown.names["user"] == ("ann", "bob", "ann (copy 1)", "bob (copy 2)")
    rows = zip(grown.submit, grown.user, grown.pes, grown.run, grown.account, strict=True)
    assert [tuple(map(int, row)) for row, is_copy in zip(rows, copies, strict=True) if is_copy] == [
        (first, 3, 2, 20, 1),
        (first + half, 2, 3, 30, 0),
        (first + WEEK_S, 2, 1, 10, 0),
    ]
    assert grown.table["job_id"].to_pylist() == ["0", "1", "2", "1", "0", "2", "3"]
    assert grown.submit.tolist() == sorted(grown.submit.tolist())


def test_two_weeks_are_enough_for_more_load() -> None:
    jobs = [(at, 100, 1, {"user": f"u{at}"}) for at in (0, WEEK_S, 2 * WEEK_S)]
    grown, note = change.grow_load(workload(*jobs), 1.34, seed=1)
    assert len(grown) == 4
    assert note == (
        "1 user drawn anew (seed 1), moved by whole weeks: the load is 1.333 times the log's"
    )


def test_less_load_leaves_each_user_out_once() -> None:
    """Of 80, 10 and 10 the first would take too much, and the others are gone only once."""
    jobs = [(0, run, 1, {"user": f"u{run}{n}"}) for n, run in enumerate((80, 10, 10))]
    fewer, note = change.grow_load(workload(*jobs), 0.5, seed=1)
    assert fewer.names["user"][fewer.user[0]] == "u800" and len(fewer) == 1
    assert note == "2 users are left out (seed 1): the load is 0.800 times the log's"


def test_a_log_without_load_has_none_to_change() -> None:
    same, note = change.grow_load(workload((0, 0, 1), (1, 0, 1)), 0.5, seed=1)
    assert len(same) == 2
    assert note == "0 users are left out (seed 1): the load is 1.000 times the log's"


def test_jobs_of_nobody_count_in_the_load_but_are_neither_copied_nor_left_out() -> None:
    """Half of 100 PE seconds: those of ann and bob, who have 25 each."""
    jobs = [(0, 50, 1, {"user": None}), (1, 25, 1, {"user": "ann"}), (2, 25, 1, {"user": "bob"})]
    fewer, _ = change.grow_load(workload(*jobs), 0.5, seed=1)
    assert fewer.user.tolist() == [-1]
    _, note = change.grow_load(workload(*jobs), 0.75, seed=1)
    assert note == "1 user is left out (seed 1): the load is 0.750 times the log's"


def test_what_is_said_of_accurate_and_scaled_requests() -> None:
    """1.5 times 1000 s is just what the second asks for: nothing changes."""
    jobs = workload(
        (0, 1000, 1, {"requested_s": 5000.0}),
        (1, 1000, 1, {"requested_s": 1500.0}),
        (2, 0, 1, {"requested_s": 5000.0}),
    )
    changed, note = change.make_accurate(jobs, AccurateRequests(100, 1.5, 0), seed=4)
    assert changed.request.tolist() == [1500, 1500, 0]
    assert note == (
        "1 of 1 user (seed 4) asks for 1.5 times what their jobs run, at least 0 min, where that is less "
        "than they asked: 2 jobs"
    )
    scaled, note = change.scale_requests(jobs, 0.25)
    assert scaled.request.tolist() == [1250, 1000, 1250]
    assert scaled.request.dtype == np.int64
    assert note.endswith("by 0.25; 1 that would fall below the run time stay at it")
    scaled, note = change.scale_requests(jobs, 0.2)
    assert scaled.request.tolist() == [1000, 1000, 1000]  # exactly the run time does not fall below
    assert note.endswith("by 0.2; 1 that would fall below the run time stay at it")
    scaled, note = change.scale_requests(jobs, 1.0015)
    assert scaled.request.tolist() == [5008, 1502, 5008]
    assert note == "requests are scaled by 1.0015"
