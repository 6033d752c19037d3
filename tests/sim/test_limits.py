"""Limits on what runs and what may be queued, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hakaru import sim
from hakaru.errors import HakaruError
from hakaru.sim.limits import rows_of
from tests.sim._jobs import play, starts, workload

FOUR = sim.Machine.flat(4)


def why(schedule: sim.Schedule) -> list[str]:
    return schedule.table()["why_waited"].to_pylist()


def test_running_jobs_of_a_user() -> None:
    # Ann's second waits for her first; it holds nobody up.
    jobs = [(0, 10, 1), (1, 10, 1), (2, 10, 1, {"user": "bob"})]
    got = play(jobs, FOUR, "fcfs", limits=[sim.Limit("user", "running-jobs", 1)])
    assert got.start.tolist() == [0, 10, 2]
    assert why(got) == ["none", "limit", "none"]


def test_running_gpus_of_an_account() -> None:
    # Two and two are more than three; the other account has its own three.
    jobs = [(0, 10, 2), (1, 10, 2), (2, 10, 2, {"account": "hub"}), (3, 10, 1, {"user": "bob"})]
    held = [sim.Limit("account", "running-gpus", 3)]
    assert starts(jobs, sim.Machine.flat(8), "fcfs", limits=held) == [0, 10, 2, 3]


def test_running_jobs_of_a_queue_and_of_all() -> None:
    jobs = [(0, 10, 1), (1, 10, 1, {"queue": "short"}), (2, 10, 1), (3, 2, 1, {"queue": "short"})]
    a_queue = [sim.Limit("queue", "running-jobs", 1)]
    # The queue's second at the end of its first: at 10 and at 11.
    assert starts(jobs, FOUR, "fcfs", limits=a_queue) == [0, 1, 10, 11]
    # Two at once: the third at 10; the fourth finds two again until 11.
    everybody = [sim.Limit("all", "running-jobs", 2)]
    assert starts(jobs, FOUR, "fcfs", limits=everybody) == [0, 1, 10, 11]
    assert starts(jobs, FOUR, "fcfs", limits=[sim.Limit("all", "running-jobs", 3)]) == [0, 1, 2, 10]


def test_a_limit_for_one_person_or_in_one_queue() -> None:
    bob, short = {"user": "bob"}, {"queue": "short"}
    jobs = [(0, 10, 1), (0, 10, 1), (0, 10, 1, bob), (0, 10, 1, bob), (0, 10, 1, short)]
    only_bob = [sim.Limit("user", "running-jobs", 1, only="bob")]
    assert starts(jobs, sim.Machine.flat(8), "easy", limits=only_bob) == [0, 0, 0, 10, 0]
    in_normal = [sim.Limit("user", "running-jobs", 1, queue="normal")]
    assert starts(jobs, sim.Machine.flat(8), "easy", limits=in_normal) == [0, 10, 0, 10, 0]


def test_queued_jobs_wait_at_the_gate() -> None:
    # One may be queued. The third is let in when the second begins at 100, and begins at once itself.
    jobs = [(0, 100, 2), (1, 500, 1), (2, 10, 1)]
    held = [sim.Limit("user", "queued-jobs", 1)]
    got = play(jobs, sim.Machine.flat(2), "easy", limits=held)
    assert got.start.tolist() == [0, 100, 100]
    assert why(got) == ["none", "resources", "queue limit"]


def test_who_is_at_the_gate_is_not_in_the_queue() -> None:
    # By size the third would go first at 100. It is not let in before the second has begun.
    jobs = [(0, 100, 2), (1, 500, 2), (2, 10, 2)]
    held = [sim.Limit("user", "queued-jobs", 1)]
    assert starts(jobs, sim.Machine.flat(2), "sjf") == [0, 110, 100]
    assert starts(jobs, sim.Machine.flat(2), "sjf", limits=held) == [0, 100, 600]


def test_a_job_beyond_its_limit_never_begins_and_holds_nobody_up() -> None:
    held = [sim.Limit("user", "running-gpus", 3)]
    got = play([(0, 10, 4), (1, 10, 3)], FOUR, "fcfs", limits=held)
    assert got.start.tolist() == [-1, 1]
    assert why(got) == ["limit", "none"]
    got = play([(0, 10, 4), (1, 10, 3)], FOUR, "fcfs", limits=[sim.Limit("all", "queued-jobs", 0)])
    assert got.start.tolist() == [-1, -1]
    assert why(got) == ["queue limit", "queue limit"]


def test_a_limit_of_users_does_not_hold_jobs_without_one() -> None:
    jobs = [(0, 10, 1, {"user": None}), (0, 10, 1, {"user": None}), (0, 10, 1), (0, 10, 1)]
    held = [sim.Limit("user", "running-jobs", 1)]
    assert starts(jobs, FOUR, "fcfs", limits=held) == [0, 0, 0, 10]


def test_a_head_that_waits_for_its_limit_holds_nobody_up() -> None:
    # Ann may run two. Her second is the head (it fits at 100); her third begins behind it at 2 and uses up
    # her limit. From then on she waits for the limit, and Bob's is the next in line: at 3 it fits.
    bob = {"user": "bob"}
    jobs = [(0, 100, 2), (1, 100, 3), (2, 50, 1), (3, 1000, 1, bob)]
    held = [sim.Limit("user", "running-jobs", 2)]
    assert starts(jobs, FOUR, "easy", limits=held) == [0, 100, 2, 3]


@pytest.mark.parametrize(
    ("zone", "hours", "jobs", "expected"),
    [
        # From 9 to 17 in Tokyo it is 0:00 to 8:00 UTC: at 0 it is so already, and at 28,800 no longer.
        ("Asia/Tokyo", (9, 17), [(0, 36000, 1), (10, 10, 1)], [0, 28800]),
        ("UTC", (9, 17), [(0, 36000, 1), (10, 10, 1)], [0, 10]),
        # It begins at 9:00, when one runs already: who runs goes on, nobody begins before 17:00.
        ("UTC", (9, 17), [(32000, 90000, 1), (32500, 10, 1)], [32000, 61200]),
        # From 22 to 6 in Tokyo it is 13:00 to 21:00 UTC.
        ("Asia/Tokyo", (22, 6), [(46000, 90000, 1), (46801, 10, 1)], [46000, 75600]),
        ("UTC", (0, 24), [(0, 36000, 1), (10, 10, 1)], [0, 36000]),
        # Clocks went back on 2018-10-28 in Berlin: 6:00 was 4:00 UTC the day before and 5:00 that day.
        ("Europe/Berlin", (0, 6), [(1540680000, 90000, 1), (1540684801, 10, 1)], [1540680000, 1540702800]),
    ],
)  # fmt: skip
def test_limits_by_the_hour(
    zone: str, hours: tuple[int, int], jobs: list[Any], expected: list[int]
) -> None:
    held = [sim.Limit("user", "running-jobs", 1, hours=hours)]
    assert starts(jobs, FOUR, "easy", limits=held, zone=zone) == expected


def test_nothing_happens_at_an_hour_at_which_no_limit_changes() -> None:
    jobs = workload((0, 10, 1))
    all_day = sim.Limit("user", "running-jobs", 1, hours=(0, 24))
    by_day = sim.Limit("user", "running-jobs", 1, hours=(9, 17))
    assert len(rows_of([all_day], jobs, "UTC")[1]) == 1
    _, since, values, _ = rows_of([all_day, by_day], jobs, "UTC")
    assert (since[1:4] / 3600).tolist() == [9, 17, 33]
    assert values[:4].tolist() == [[1, -1], [1, 1], [1, -1], [1, 1]]


def test_limits_by_the_hour_hold_years_after_the_log() -> None:
    # Nobody begins by day (0 to 12). One job runs for 100 days; the next comes after it, at noon.
    held = [sim.Limit("all", "running-jobs", 0, hours=(0, 12))]
    jobs = [(43200, 100 * 86400, 4), (43300, 10, 4)]
    assert starts(jobs, FOUR, "fcfs", limits=held) == [43200, 43200 + 100 * 86400]
    jobs[0] = (43200, 100 * 86400 - 10, 4)
    assert starts(jobs, FOUR, "fcfs", limits=held) == [43200, 43200 + 100 * 86400]


def test_what_follows_the_last_end_is_not_counted() -> None:
    # The second may never run. The hours go on changing for ten years, and nothing runs any more.
    held = [
        sim.Limit("user", "running-jobs", 0, only="bob"),
        sim.Limit("all", "running-jobs", 9, hours=(0, 6)),
    ]
    got = play([(0, 100, 4), (10, 5, 4, {"user": "bob"})], FOUR, "easy", limits=held)
    assert got.start.tolist() == [0, -1]
    assert got.totals["capacity_s"] == got.totals["busy_s"] == 400


@pytest.mark.parametrize(
    "wrong",
    [
        {"scope": "person"},
        {"what": "running-cpus"},
        {"value": -1},
        {"hours": (8, 25)},
        {"hours": (8, 8)},
        {"hours": (24, 0)},
        {"hours": (8, 12, 18)},
    ],
)
def test_a_limit_says_what_it_does_not_understand(wrong: dict[str, Any]) -> None:
    with pytest.raises(HakaruError, match="limit"):
        sim.Limit(**({"scope": "user", "what": "running-jobs", "value": 1} | wrong))


@pytest.mark.parametrize(
    ("limit", "zone", "message"),
    [
        (sim.Limit("user", "running-jobs", 1, only="amn"), "UTC", "'amn', which no job has.*ann"),
        (sim.Limit("all", "running-jobs", 1, queue="nomal"), "UTC", "'nomal', which no job has"),
        (sim.Limit("all", "running-jobs", 1, hours=(0, 6)), "Mars", "'Mars'"),
    ],
)
def test_a_limit_names_what_is_there(limit: sim.Limit, zone: str, message: str) -> None:
    options = sim.Options(limits=[limit], zone=zone)
    with pytest.raises(HakaruError, match=message):
        sim.simulate(workload((0, 1, 1)), FOUR, sim.POLICIES.get("easy"), options)


def test_whoever_came_first_steps_in_first_at_whichever_door() -> None:
    """One runs and one is queued; of those outside, at a door of their own each, the earlier goes in."""
    jobs = [(at, 100 if at == 0 else 10, 4, {"user": f"u{at}"}) for at in range(5)]
    held = [sim.Limit("all", "queued-jobs", 1), sim.Limit("user", "queued-jobs", 1)]
    assert starts(jobs, FOUR, "easy", limits=held) == [0, 100, 110, 120, 130]
