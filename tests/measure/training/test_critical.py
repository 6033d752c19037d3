"""The late rank: named, and its cost known, on simulated jobs; none is named in healthy ones."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hakaru.errors import HakaruError
from hakaru.measure.collective._blame import blame
from hakaru.measure.training._critical import (
    StepTable,
    breakdown_of,
    communication_of,
    culprit_of,
    culprits_of,
    durations,
    network_sentence,
    replayed,
)
from hakaru.measure.training._times import StepTimes
from tests.measure.training._simulated import Job

HOSTS = [f"n{rank}" for rank in range(16)]
DELAY_S = 0.25
WITHIN = 0.1
LEAST_S = 0.005  # no cost is known better than the noise of a step


def lost_s(job: Job) -> float:
    """The truth: the same noise with and without the delays."""
    healthy = replace(job, delays=())
    job.run()
    healthy.run()
    return float(np.median(job.steps_s) - np.median(healthy.steps_s))


def test_a_step_worked_by_hand() -> None:
    """Three ranks and two buckets of 1 s: rank 2 is 3 s late with both, and one of them hides."""

    def times(ready: tuple[float, ...]) -> StepTimes:
        return StepTimes(0.0, 1.0, 2.0, 10.0, 11.0, ready, (9.0, 10.0), (8, 4))

    steps = [[times((4.0, 5.0))] * 5, [times((4.0, 5.0))] * 5, [times((7.0, 8.0))] * 5]
    table = StepTable.of(steps, [0.0] * 3)
    assert durations(table)[0].tolist() == [2.0, 1.0]
    assert replayed(np.array([[4.0, 5.0]]), np.array([[2.0, 1.0]])).tolist() == [[6.0, 7.0]]
    found = culprit_of(table, HOSTS)
    assert found is not None
    assert (found.rank, found.host, found.phases) == (2, "n2", ("backward",))
    assert (found.late_s, found.cost_s, found.hidden_s) == (3.0, 3.0, 0.0)
    assert found.sentence == (
        "rank 2 on n2 is ready 3,000 ms later than the others (its backward pass), "
        "which costs 3,000 ms a step"
    )
    assert found.to_json()["cost_ms"] == 3000.0


def test_lateness_that_hides_costs_nothing_and_says_so() -> None:
    job = Job(buckets=4, bucket_s=0.4, delays=[(2, 3, DELAY_S)])
    found = culprit_of(job.table(), HOSTS)
    assert found is not None and found.rank == 2 and found.is_free
    assert found.cost_s == pytest.approx(0.0, abs=LEAST_S)
    assert found.hidden_s == pytest.approx(DELAY_S, rel=WITHIN)
    assert found.sentence.startswith("rank 2 on n2 is ready 2")
    assert found.sentence.endswith(
        "than the others (its backward pass), which costs nothing: communication takes longer anyway"
    )


def test_lateness_that_hides_in_part_says_what_remains() -> None:
    job = Job(bucket_s=0.1, noise=0.01, delays=[(1, 3, DELAY_S)])
    found = culprit_of(job.table(), HOSTS)
    truth = lost_s(job)
    assert 0.05 < truth < 0.2
    assert found is not None
    assert found.cost_s == pytest.approx(truth, rel=WITHIN)
    assert found.hidden_s == pytest.approx(DELAY_S - truth, rel=WITHIN)
    assert "hide behind communication" in found.sentence
    assert not found.is_free


@settings(max_examples=150, deadline=None)
@given(
    ranks=st.integers(2, 8),
    steps=st.integers(8, 30),
    buckets=st.integers(1, 8),
    noise=st.floats(0.0, 0.04),
    late=st.integers(0, 7),
    where=st.sampled_from(["data", "forward", "optimiser", "first", "middle", "last"]),
    sent=st.floats(0.01, 2.0),
    fenced=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_the_late_rank_alone_is_named_with_its_cost(
    ranks: int,
    steps: int,
    buckets: int,
    noise: float,
    late: int,
    where: str,
    sent: float,
    fenced: bool,
    seed: int,
) -> None:
    """From communication that takes no time to one that takes twice as long as all else."""
    bucket = {"first": 0, "middle": buckets // 2, "last": buckets - 1}.get(where, where)
    job = Job(
        ranks=ranks,
        steps=steps,
        buckets=buckets,
        noise=noise,
        bucket_s=sent / buckets,
        fenced=fenced,
        seed=seed,
        delays=[(late % ranks, bucket, DELAY_S)],
    )
    found = culprits_of(job.table(), HOSTS)
    truth = lost_s(job)
    assert [each.rank for each in found] == [late % ranks]
    assert found[0].late_s == pytest.approx(DELAY_S, rel=WITHIN)
    # one rank less is noisy in the truth too: the median of few steps is known to a share of the noise
    unsure = LEAST_S + noise * 0.35 / np.sqrt(steps)
    assert found[0].cost_s == pytest.approx(truth, rel=WITHIN, abs=unsure)
    expected = where if isinstance(bucket, str) else "backward"
    assert found[0].phases == (expected,)


def test_the_cost_is_that_of_the_simulated_truth() -> None:
    """Over many jobs the cost is neither too high nor too low."""
    for bucket_s in (0.005, 0.05, 0.1, 0.2):
        misses = []
        for seed in range(20):
            job = Job(bucket_s=bucket_s, seed=seed, steal=0.03, delays=[(3, seed % 4, DELAY_S)])
            found = culprit_of(job.table(), HOSTS)
            assert found is not None and found.rank == 3
            misses.append(found.cost_s - lost_s(job))
        assert abs(float(np.mean(misses))) < LEAST_S


def test_no_rank_of_a_healthy_job_is_named() -> None:
    """At most one in a hundred; also where the processor is taken away now and then."""
    named = []
    sizes = itertools.product((2, 3, 4, 8), (3, 5, 8, 30), (0.01, 0.03, 0.08), (0.0, 0.05, 0.2))
    for seed, (ranks, steps, noise, steal) in enumerate(itertools.chain(*[list(sizes)] * 4)):
        job = Job(
            ranks=ranks, steps=steps, noise=noise, steal=steal, seed=seed,
            bucket_s=0.15 if seed % 2 else 0.01, fenced=seed % 3 == 0,
        )  # fmt: skip
        named.append(bool(culprits_of(job.table(), HOSTS)))
    assert len(named) > 500
    assert np.mean(named) <= 0.01


def test_ranks_that_see_the_end_of_communication_late_are_not_to_blame() -> None:
    """Behind a slow link they begin their next step late, and are ready late."""
    job = Job(bucket_s=0.3, staggered_s=0.2)
    table = job.table()
    late = table.ready[1:, :, -1]
    assert np.median(late[:, 3] - late[:, 0]) > 0.15
    assert culprits_of(table, HOSTS) == ()


def test_clock_offsets_are_removed() -> None:
    offsets = [0.0, 5000.0, -31.5, 0.25]
    plain = Job(delays=[(2, 1, DELAY_S)])
    shifted = replace(plain, offsets_s=offsets, steps_s=[])
    expected, found = culprit_of(plain.table(), HOSTS), culprit_of(shifted.table(), HOSTS)
    assert expected is not None and found is not None
    assert found.cost_s == pytest.approx(expected.cost_s, abs=1e-6)
    assert found.rank == 2
    # a wrong clock alone makes no rank late
    healthy = Job(offsets_s=offsets)
    assert culprits_of(StepTable.of(healthy.run(), [0.0] * 4), HOSTS) == ()


def test_two_late_ranks_are_both_named_with_what_they_cost_together() -> None:
    job = Job(ranks=6, noise=0.01, delays=[(1, 2, DELAY_S), (4, 0, 0.2)])
    found = culprits_of(job.table(), HOSTS)
    assert [each.rank for each in found] == [1, 4]
    assert found[0].cost_s == pytest.approx(lost_s(job), rel=WITHIN)
    assert found[1].cost_s == found[0].cost_s
    assert found[1].late_s == pytest.approx(0.2, rel=WITHIN)
    assert found[0].sentence.startswith("ranks 1 on n1 (25")
    assert " and 4 on n4 (" in found[0].sentence
    assert "are ready later than the others (their backward pass), which together costs" in (
        found[0].sentence
    )


def test_who_is_a_little_late_hides_behind_the_latest() -> None:
    job = Job(noise=0.002, delays=[(1, 2, DELAY_S), (2, 0, 0.03)])
    assert [each.rank for each in culprits_of(job.table(), HOSTS)] == [1]


def test_ranks_that_all_differ_are_not_late() -> None:
    """The spread among the others is as large as the lateness."""
    job = Job(noise=0.002, delays=[(1, 2, 0.05), (2, 2, 0.1), (3, 2, 0.15)])
    assert culprits_of(job.table(), HOSTS) == ()


@pytest.mark.parametrize("fenced", [False, True])
def test_a_late_optimiser_costs_time_with_and_without_a_fence(fenced: bool) -> None:
    job = Job(fenced=fenced, delays=[(0, "optimiser", DELAY_S)])
    found = culprit_of(job.table(), HOSTS)
    assert found is not None and found.rank == 0
    assert found.cost_s == pytest.approx(lost_s(job), rel=WITHIN)
    late = "ends its step" if fenced else "is ready"
    assert late in found.sentence and "(its optimiser)" in found.sentence


def test_fences_between_blocks_of_steps_are_not_work() -> None:
    """Between blocks other trainings run: all begin together, long after."""
    job = Job(steps=20, delays=[(1, "optimiser", DELAY_S)])
    steps = [list(each) for each in job.run()]
    for rank in steps:
        for at in range(10, 20):
            rank[at] = _later(rank[at], 30.0)
    begin = min(rank[10].begin for rank in steps)
    for rank in steps:
        own = rank[10].begin - begin
        for at in range(10, 20):
            rank[at] = _later(rank[at], -own)
    found = culprits_of(StepTable.of(steps, [0.0] * 4), HOSTS)
    assert [each.rank for each in found] == [1]
    assert found[0].late_s == pytest.approx(DELAY_S, rel=WITHIN)


def _later(step: StepTimes, by_s: float) -> StepTimes:
    moved = {
        name: getattr(step, name) + by_s
        for name in ("begin", "data", "forward", "backward", "optimiser")
    }
    ready, finished = (tuple(v + by_s for v in each) for each in (step.ready, step.finished))
    return StepTimes(**moved, ready=ready, finished=finished, bucket_bytes=step.bucket_bytes)


def without_buckets(job: Job) -> StepTable:
    """The same steps where a rank only knows how long it waited."""
    steps = [
        [
            replace(each, ready=(), finished=(), bucket_bytes=(), waited=each.backward - each.ready[-1])
            for each in rank
        ]
        for rank in job.run()
    ]  # fmt: skip
    return StepTable.of(steps, [0.0] * job.ranks)


def test_without_buckets_the_rank_that_computes_longer_is_named() -> None:
    found = culprit_of(without_buckets(Job(delays=[(1, 2, DELAY_S)])), HOSTS)
    assert found is not None and found.rank == 1
    assert found.cost_s == found.late_s == pytest.approx(DELAY_S, rel=WITHIN)
    assert "works 2" in found.sentence
    assert "ms longer than the others (its forward and backward passes)" in found.sentence
    assert culprits_of(without_buckets(Job(seed=4)), HOSTS) == ()


def test_buckets_that_differ_among_ranks_are_no_buckets() -> None:
    """Stages of a pipeline have other gradients each; they still wait for their sums."""
    steps = Job().run()
    other = [replace(each, bucket_bytes=(1,) * 4) for each in steps[1]]
    table = StepTable.of([steps[0], other], [0.0, 0.0])
    assert not table.has_buckets
    assert table.waited[0, 0] == pytest.approx(steps[0][0].backward - steps[0][0].ready[-1])


def test_one_rank_and_too_few_steps_name_nobody() -> None:
    assert culprits_of(Job(ranks=1, delays=[(0, 1, DELAY_S)]).table(), HOSTS) == ()
    assert culprits_of(Job(steps=2, delays=[(0, 1, DELAY_S)]).table(), HOSTS) == ()
    few = culprits_of(Job(steps=3, delays=[(0, 1, DELAY_S)]).table(), HOSTS)
    assert [each.rank for each in few] == [0]


def test_a_step_is_the_sum_of_its_parts() -> None:
    job = Job(noise=0.05, steal=0.1, delays=[(2, 1, DELAY_S)])
    for table in (job.table(), without_buckets(job)):
        found = breakdown_of(table, HOSTS)
        for rank, row in enumerate(found):
            parts = [row[name] for name in ("data", "forward", "backward", "exposed", "optimiser")]
            step = np.median(table.optimiser[:, rank] - table.begin[:, rank]) * 1e3
            assert sum(parts) == pytest.approx(step, abs=0.001)
            assert min(parts) >= 0
            assert (row["rank"], row["host"]) == (rank, HOSTS[rank])
    rows = breakdown_of(job.table(), HOSTS)
    assert rows[2]["backward"] == pytest.approx(rows[0]["backward"] + 250, rel=0.1)
    assert rows[0]["exposed"] > rows[2]["exposed"] + 200


def test_communication_counts_no_rank_s_lateness() -> None:
    healthy = communication_of(Job(noise=0.0, bucket_s=0.02).table())
    assert healthy.num_bytes == 4 << 20
    assert healthy.exposed_s == pytest.approx(0.02)
    assert healthy.hidden_s == pytest.approx(0.06)
    late = communication_of(Job(noise=0.0, bucket_s=0.02, delays=[(1, 3, DELAY_S)]).table())
    assert late.exposed_s == pytest.approx(0.02)
    assert late.to_json() == {"bytes": 4 << 20, "exposed_ms": 20.0, "hidden_ms": 60.0}


def test_a_slow_network_is_blamed_and_no_rank() -> None:
    rates = {(a, b): 0.02 if "n3" in (a, b) else 1.0
             for a, b in itertools.permutations(HOSTS[:4], 2)}  # fmt: skip
    job = Job(bucket_s=0.4, staggered_s=0.1)
    said = network_sentence(job.table(), culprit_of(job.table(), HOSTS), blame(rates, HOSTS[:4]))
    assert said is not None
    assert "no rank is late: the network is to blame: n3 is slow to all its partners" in said
    assert " % of the step" in said
    # a rank whose lateness hides is not to blame either; one that costs time is
    hidden = Job(bucket_s=0.4, delays=[(0, 3, DELAY_S)])
    found = culprit_of(hidden.table(), HOSTS)
    assert "no late rank costs anything" in (network_sentence(hidden.table(), found) or "")
    exposed = Job(bucket_s=0.4, delays=[(0, 0, 0.6)])
    assert network_sentence(exposed.table(), culprit_of(exposed.table(), HOSTS)) is None
    assert network_sentence(Job().table(), None) is None


def test_ranks_with_other_numbers_of_steps_are_refused() -> None:
    steps = Job().run()
    with pytest.raises(HakaruError, match="expected the same number of steps"):
        StepTable.of([steps[0], steps[1][:-1]], [0.0, 0.0])
    with pytest.raises(HakaruError, match="1 clock offsets for 4 ranks"):
        StepTable.of(steps, [0.0])
    assert StepTable.of(steps, [0.0] * 4).without_first(3).num_steps == 9
