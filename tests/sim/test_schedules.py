"""Orders and backfilling on a flat pool: schedules worked by hand."""

from __future__ import annotations

import pytest

from hakaru import sim
from tests.sim._jobs import play, starts

FOUR = sim.Machine.flat(4)


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "easy++", "sjf-easy"])
def test_the_head_keeps_its_reservation(policy: str) -> None:
    # The second may have all four at 100. The third would leave one of them busy until 520: it waits for
    # the second to end (the order of sjf-easy is the same: 100 s before 500 s).
    assert starts([(0, 100, 3), (10, 100, 4), (20, 500, 1)], FOUR, policy) == [0, 100, 200]


@pytest.mark.parametrize("policy", [each.id for each in sim.POLICIES])
def test_an_early_end_is_used(policy: str) -> None:
    # The first asks for 1000 s and runs 100: the second begins when it ends, not when it might have.
    jobs = [(0, 100, 3, {"requested_s": 1000}), (10, 100, 4)]
    assert starts(jobs, FOUR, policy) == [0, 100]


def test_fcfs_lets_nobody_overtake_and_easy_does() -> None:
    # One processor is free from 0 to 10. The third would end at 5, before the second can begin at 10.
    jobs = [(0, 10, 3), (1, 10, 2), (2, 3, 1)]
    assert starts(jobs, FOUR, "fcfs") == [0, 10, 10]
    assert starts(jobs, FOUR, "easy") == [0, 10, 2]


def test_easy_gives_away_what_the_head_leaves() -> None:
    # At 10 all four are free and the head takes two: the third may run past 10 on the other two, the
    # fourth finds nothing left of them and begins when the head ends at 20.
    jobs = [(0, 10, 2), (1, 10, 3), (2, 100, 1), (3, 100, 1)]
    assert starts(jobs, FOUR, "easy") == [0, 10, 2, 20]


def test_orders_by_time_and_by_area() -> None:
    # At 10 the second asks for 2 × 8 = 16 PE seconds, the third for 4 × 5 = 20.
    jobs = [(0, 10, 4), (1, 8, 2), (2, 5, 4)]
    assert starts(jobs, FOUR, "sjf") == [0, 15, 10]
    assert starts(jobs, FOUR, "sjf-easy") == [0, 15, 10]
    assert starts(jobs, FOUR, "smallest-area") == [0, 10, 18]


def test_easy_scans_in_order_or_the_shortest_first() -> None:
    # At 4 one processor is free; the head has its reservation at 10. In order: the job of 6 s (until 10),
    # and the job of 3 s after the head. Shortest first: the job of 3 s until 7; then 6 s are too long.
    jobs = [(0, 10, 3), (0, 4, 1), (1, 10, 4), (2, 6, 1), (3, 3, 1)]
    assert starts(jobs, FOUR, "easy") == [0, 0, 10, 4, 20]
    assert starts(jobs, FOUR, "easy-sjbf") == [0, 0, 10, 20, 4]


def test_easy_plus_plus_predicts_the_mean_of_the_last_two() -> None:
    # Ann's jobs ran 2 s and 4 s: her third is expected to take 3 of its 100 s, until 15, before the head
    # begins at 20. Bob has ended no job: his requests hold.
    ann, bob = {"user": "ann", "requested_s": 100}, {"user": "bob"}
    jobs = [(0, 2, 1, ann), (0, 4, 1, ann), (10, 10, 1, bob), (11, 5, 2, bob), (12, 3, 1, ann)]
    assert starts(jobs, sim.Machine.flat(2), "easy++") == [0, 0, 10, 20, 12]
    assert starts(jobs, sim.Machine.flat(2), "easy-sjbf") == [0, 0, 10, 20, 25]


def test_easy_plus_plus_rounds_down_and_stays_within_the_request() -> None:
    # (2 + 3) // 2 = 2: at 18 Ann's job is expected to end at 20, when the head begins. Another that asks
    # for 1 s is expected to take that, at 19.
    ann, bob = {"user": "ann", "requested_s": 100}, {"user": "bob"}
    jobs = [(0, 2, 1, ann), (0, 3, 1, ann), (10, 10, 1, bob), (11, 5, 2, bob), (18, 1, 1, ann)]
    jobs += [(19, 1, 1, ann | {"requested_s": 1})]
    assert starts(jobs, sim.Machine.flat(2), "easy++") == [0, 0, 10, 20, 18, 19]


def test_easy_plus_plus_corrects_a_prediction_that_was_passed() -> None:
    # Ann's third job is expected until 15 and runs until 24. From 15 on it is expected until 112, and so is
    # the head, who needs all three. The last job ends at 71, before that, and may begin at 21. Had the
    # prediction stood, the head would have been next and the last behind it, at 29.
    ann, bob = {"user": "ann", "requested_s": 100}, {"user": "bob"}
    jobs = [(0, 2, 1, ann), (0, 4, 1, ann), (10, 10, 2, bob), (11, 5, 3, bob), (12, 12, 1, ann)]
    jobs += [(21, 50, 2, bob)]
    assert starts(jobs, sim.Machine.flat(3), "easy++") == [0, 0, 10, 71, 12, 21]


def test_who_submits_when_an_estimate_ends_finds_its_processors_free() -> None:
    # At 10 the submission comes before the end. The estimate of the first ends there: the second begins at
    # once, before the third is looked at.
    assert starts([(0, 10, 4), (10, 5, 4), (10, 1, 4)], FOUR, "fcfs") == [0, 10, 15]


def test_one_pass_an_event_or_one_a_second() -> None:
    # One by one, the first is alone when it comes; in one pass the shorter of the two is chosen.
    jobs = [(0, 10, 4), (0, 1, 4)]
    assert starts(jobs, FOUR, "sjf") == [0, 10]
    assert starts(jobs, FOUR, "sjf", events="batched") == [1, 0]


def test_estimates_may_be_perfect_or_scaled() -> None:
    # The third runs 5 s and asks for 10. It would end at 7 or, as it says, at 12; the head begins at 10.
    jobs = [(0, 10, 3), (1, 10, 4), (2, 5, 1, {"requested_s": 10})]
    assert starts(jobs, FOUR, "easy") == [0, 10, 20]
    assert starts(jobs, FOUR, "easy", estimates=sim.estimates_of("perfect")) == [0, 10, 2]
    # Twice as long, all say: the head is expected at 20, the third until 2 + 20.
    assert starts(jobs, FOUR, "easy", estimates=sim.estimates_of("scaled:2")) == [0, 10, 20]


@pytest.mark.parametrize("policy", ["sjf", "sjf-easy", "smallest-area"])
def test_the_shortest_is_the_shortest_by_the_estimates_in_force(policy: str) -> None:
    # The second runs 10 s and asks for 1000, the third runs 50 s and asks for 100.
    jobs = [(0, 100, 4), (1, 10, 4, {"requested_s": 1000}), (2, 50, 4, {"requested_s": 100})]
    assert starts(jobs, FOUR, policy) == [0, 150, 100]
    assert starts(jobs, FOUR, policy, estimates=sim.estimates_of("perfect")) == [0, 100, 110]


def test_the_reason_is_the_last_thing_that_held_a_job() -> None:
    def why(schedule: sim.Schedule) -> list[str]:
        return schedule.table()["why_waited"].to_pylist()

    jobs = [(0, 10, 3), (1, 10, 4), (2, 3, 1)]
    # Under FCFS the third is behind the second until 10, and from then on the first that does not fit.
    assert why(play(jobs, FOUR, "fcfs")) == ["none", "resources", "resources"]
    assert why(play(jobs, FOUR, "easy")) == ["none", "resources", "none"]
    assert why(play([*jobs[:2], (1, 1, 4)], FOUR, "fcfs")) == ["none", "resources", "resources"]
    # Both of the first end at 50. One pass starts the head and the last, which until then would have taken
    # the processor that the head was promised at 900.
    long = [(0, 50, 2, {"requested_s": 900}), (0, 50, 1, {"requested_s": 1000})]
    got = play([*long, (10, 100, 3), (20, 5000, 1)], FOUR, "easy", events="batched")
    assert got.start.tolist() == [0, 0, 50, 50]
    assert why(got) == ["none", "none", "resources", "reservation"]
    got = play([*long, (10, 100, 3), (20, 5000, 1)], FOUR, "fcfs", events="batched")
    assert why(got) == ["none", "none", "resources", "behind others"]
    # A limit holds the second until 10; from then on two are free, and it needs four.
    held = [sim.Limit("user", "running-jobs", 1)]
    got = play([(0, 10, 1), (1, 10, 4), (5, 20, 2, {"user": "bob"})], FOUR, "easy", limits=held)
    assert got.start.tolist() == [0, 25, 5]
    assert why(got) == ["none", "resources", "none"]
    # The last fits at 4 and would delay the second; at 5 somebody who ends by 10 takes what it needs.
    jobs = [(0, 10, 2), (1, 10, 4), (4, 30, 2), (5, 5, 1)]
    assert why(play(jobs, FOUR, "easy")) == ["none", "resources", "resources", "none"]
    # Somebody who never begins is told so too.
    got = play(
        [(0, 10, 2), (1, 10, 4)], FOUR, "easy", limits=[sim.Limit("user", "running-gpus", 3)]
    )
    assert why(got) == ["none", "limit"]


def test_totals_are_integrals_over_time() -> None:
    # Busy: 3 from 0 to 10, 4 from 10 to 20, 1 from 20 to 23. One is idle from 0 to 10, and from 1 on
    # somebody waits.
    totals = play([(0, 10, 3), (1, 10, 4), (2, 3, 1)], FOUR, "fcfs").totals
    assert totals["busy_s"] == 30 + 40 + 3
    assert totals["capacity_s"] == 4 * 23
    assert totals["idle_while_waiting_s"] == 9
    assert totals["fragmented_s"] == totals["lost_s"] == 0


def test_who_ends_by_the_shadow_time_goes_first_when_the_queue_is_gone_through() -> None:
    """At 10, when the second ends, the head can begin at 100: 90 s fit before that, and 91 s do not.

    The one of 500 s stands before them, so that the shadow time is known when they are looked at.
    """
    jobs = [(0, 100, 2), (0, 10, 2), (1, 50, 4), (2, 500, 1)]
    assert starts([*jobs, (3, 90, 1)], FOUR, "easy") == [0, 0, 100, 150, 10]
    assert starts([*jobs, (3, 91, 1)], FOUR, "easy") == [0, 0, 100, 150, 150]
