"""The kernel against the slow simulator, job for job, on workloads that Hypothesis and chance draw."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hakaru import sim
from tests.sim._jobs import workload
from tests.sim._slow import Slow

QUEUEING = [each.id for each in sim.POLICIES if each.backfill != "conservative"]
quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))

WEIGHTS = sim.Weights(
    age=7, max_age_s=20, size=5, fair_share=9, half_life_s=15, period_s=4, queue={"long": 3.5},
    qos={"high": 2.25},
)  # fmt: skip


@st.composite
def jobs(draw: Any, sizes: int = 4, nodes: int = 3, most: int = 14) -> list[Any]:
    """Times are small, so that much happens at once; runs of no length and exact requests are common."""
    rows, at = [], 0
    for _ in range(draw(st.integers(1, most))):
        at += draw(st.sampled_from([0, 0, 0, 1, 1, 2, 5]))
        run = draw(st.integers(0, 9))
        names = {
            "requested_s": run + draw(st.sampled_from([0, 0, 1, 3, 9])),
            "user": draw(st.sampled_from(["ann", "bob", "cy", None])),
            "account": draw(st.sampled_from(["lab", "hub", None])),
            "queue": draw(st.sampled_from(["short", "long", None])),
            "qos": draw(st.sampled_from(["high", "low", None])),
            "gpu_model": draw(st.sampled_from(["a", "b", None])),
            "span_nodes": draw(st.sampled_from([1, 1, 1, *range(2, nodes + 1)])),
        }
        rows.append((at, run, draw(st.integers(1, sizes)), names))
    return rows


changes = st.lists(
    st.builds(
        sim.Change,
        time=st.integers(-2, 30),
        node=st.integers(0, 3),
        kind=st.sampled_from(["up", "drain", "down"]),
    ),
    max_size=5,
)
placements = st.builds(
    sim.Placement,
    packing=st.sampled_from(["best-fit", "spread"]),
    whole_nodes=st.booleans(),
    locality=st.sampled_from(["anywhere", "preferred", "required"]),
)
flat = st.builds(sim.Machine.flat, st.integers(3, 6))
of_nodes = st.builds(
    sim.Machine,
    groups=st.sampled_from(
        [
            (sim.Group(4, 4),),
            (sim.Group(2, 4, "a"), sim.Group(2, 2, "b")),
            (sim.Group(1, 2), sim.Group(3, 4, "a")),
        ]
    ),
    switch_size=st.sampled_from([None, 2, 3]),
    placement=placements,
)
limits = st.lists(
    st.builds(
        sim.Limit,
        scope=st.sampled_from(["all", "user", "account", "queue"]),
        what=st.sampled_from(["running-jobs", "running-gpus", "queued-jobs"]),
        value=st.integers(0, 4),
    ),
    min_size=1,
    max_size=3,
)
events = st.sampled_from(["one-by-one", "batched"])
estimates = st.sampled_from(["request", "perfect", "scaled:0.5", "scaled:2"])


def agree(
    rows: Any, machine: sim.Machine, policy: str | sim.Policy, **options: Any
) -> tuple[sim.Schedule, Slow]:
    chosen = sim.POLICIES.get(policy) if isinstance(policy, str) else policy
    others = sim.Options(**options)
    got = sim.simulate(workload(*rows), machine, chosen, others)
    slow = Slow(got.workload, machine, chosen, others).play()
    assert got.start.tolist() == [job.start for job in slow.jobs]
    assert got.end.tolist() == [job.end for job in slow.jobs]
    assert got.num_restarts.tolist() == [job.restarts for job in slow.jobs]
    integrals = {name: got.totals[name] for name in slow.totals_at_end}
    assert (integrals, got.totals["lost_s"]) == (slow.totals_at_end, slow.lost)
    waited = [job.start != job.submit for job in slow.jobs]
    reasons = [job.why if waits else "none" for job, waits in zip(slow.jobs, waited, strict=True)]
    told = [sim.REASONS[code] for code in got.why]
    if any(limit.hours for limit in others.limits):  # the slow one's hours end sooner
        told, reasons = (
            [w for w, at in zip(x, got.start, strict=True) if at >= 0] for x in (told, reasons)
        )
    assert told == reasons
    if not machine.is_flat:
        for job in slow.jobs:
            assert got.nodes_of(job.number) == (job.nodes if job.start >= 0 else []), job.number
    return got, slow


@pytest.mark.parametrize("policy", QUEUEING)
@quick
@given(rows=jobs(sizes=6), machine=flat, events=events, text=estimates)
def test_flat(policy: str, rows: Any, machine: sim.Machine, events: Any, text: str) -> None:
    agree(rows, machine, policy, events=events, estimates=sim.estimates_of(text))


@pytest.mark.parametrize("policy", QUEUEING)
@quick
@given(rows=jobs(), machine=of_nodes, events=events)
def test_nodes(policy: str, rows: Any, machine: sim.Machine, events: Any) -> None:
    agree(rows, machine, policy, events=events)


@pytest.mark.parametrize("policy", QUEUEING)
@quick
@given(rows=jobs(), machine=of_nodes, limits=limits, events=events)
def test_limits(
    policy: str, rows: Any, machine: sim.Machine, limits: list[sim.Limit], events: Any
) -> None:
    agree(rows, machine, policy, limits=limits, events=events)


@pytest.mark.parametrize("policy", QUEUEING)
@quick
@given(
    rows=jobs(), machine=of_nodes, changes=changes, closed=st.sets(st.integers(0, 3), max_size=2)
)
def test_nodes_that_come_and_go(
    policy: str, rows: Any, machine: sim.Machine, changes: list[sim.Change], closed: set[int]
) -> None:
    agree(rows, replace(machine, changes=tuple(changes), closed=tuple(closed)), policy)


@quick
@given(
    rows=jobs(),
    machine=of_nodes | flat,
    limits=limits | st.just([]),
    events=events,
    low=st.sampled_from([["short"], ["long"]]),
    changes=changes | st.just([]),
)
def test_preemption(
    rows: Any, machine: sim.Machine, limits: Any, events: Any, low: list[str], changes: Any
) -> None:
    rows = [*rows, (0, 1, 1, {"queue": "short"}), (0, 1, 1, {"queue": "long"})]
    rows.sort(key=lambda row: row[0])
    if not machine.is_flat:
        machine = replace(machine, changes=tuple(changes))
    agree(rows, machine, "preempting", limits=limits, events=events, low_queues=low)


@quick
@given(
    rows=jobs(),
    machine=of_nodes | flat,
    limits=limits,
    hours=st.tuples(st.integers(0, 11), st.integers(12, 24)),
    zone=st.sampled_from(["UTC", "Asia/Tokyo", "Asia/Kolkata"]),
    policy=st.sampled_from(["fcfs", "easy", "easy++"]),
    is_night=st.booleans(),
)
def test_limits_by_the_hour(
    rows: Any, machine: Any, limits: Any, hours: Any, zone: str, policy: str, is_night: bool
) -> None:
    """As the others, but a second is twenty minutes."""
    longer = [
        (at * 1200, run * 1200, pes, more | {"requested_s": more["requested_s"] * 1200})
        for at, run, pes, more in rows
    ]
    hours = hours[::-1] if is_night else hours
    agree(longer, machine, policy, limits=[replace(limits[0], hours=hours), *limits[1:]], zone=zone)


@pytest.mark.parametrize("preempts", [False, True], ids=["", "preempting"])
@quick
@given(
    rows=jobs(),
    machine=of_nodes | flat,
    limits=limits | st.just([]),
    events=events,
    scan=st.sampled_from(["queue-order", "shortest-first"]),
    changes=changes | st.just([]),
)
def test_priorities(
    preempts: bool,
    rows: Any,
    machine: sim.Machine,
    limits: Any,
    events: Any,
    scan: Any,
    changes: Any,
) -> None:
    policy = sim.POLICIES.get("multifactor")
    policy = replace(policy, weights=WEIGHTS, preempts=preempts, scan=scan)
    if not machine.is_flat:
        machine = replace(machine, changes=tuple(changes))
    rows[0][3].update(queue="long", qos="high")
    agree(rows, machine, policy, limits=limits, events=events, low_queues=["long"])


@pytest.mark.parametrize("policy", QUEUEING)
@pytest.mark.parametrize(
    "machine", [sim.Machine.flat(8), sim.Machine.of_nodes(4, 4)], ids=["flat", "nodes"]
)
def test_a_long_queue(policy: str, machine: sim.Machine) -> None:
    """Longer than several of the kernel's blocks of 64 jobs."""
    chance = random.Random(policy)
    rows = []
    for _ in range(260):
        run = chance.randrange(0, 90)
        people = {"user": chance.choice("abcdef"), "requested_s": run + chance.randrange(0, 60)}
        wide = {"span_nodes": chance.choice([1, 1, 1, 1, 2])}
        rows.append((chance.randrange(0, 600), run, chance.randint(1, 6), people | wide))
    rows.sort(key=lambda row: row[0])
    held = [sim.Limit("user", "running-jobs", 3), sim.Limit("user", "queued-jobs", 40)]
    agree(rows, machine, policy, limits=held)
    agree(rows, machine, policy)


@pytest.mark.parametrize("seed", range(30))
def test_many_limits_at_once(seed: int) -> None:
    """Of one person, account or queue too, each counting perhaps one queue alone."""
    chance = random.Random(seed)
    names = {"user": ("ann", "bob", "cy"), "account": ("lab", "hub"), "queue": ("short", "long")}
    people = [dict(zip(names, each, strict=True)) for each in itertools.product(*names.values())]
    rows = []
    for at in sorted(chance.randrange(0, 80) for _ in range(60)):
        run = chance.randrange(0, 30)
        asked = {"requested_s": run + chance.choice([0, 0, 5, 30])}
        rows.append((at, run, chance.randint(1, 6), chance.choice(people) | asked))
    limits = []
    for _ in range(chance.randint(2, 8)):
        scope = chance.choice(["all", *names])
        what = chance.choice(["running-jobs", "running-gpus", "queued-jobs"])
        only = chance.choice(names[scope]) if scope != "all" and chance.random() < 0.5 else None
        queue = chance.choice([None, None, *names["queue"]])
        value = chance.choice([0, 1, 2, 4, 8])
        limits.append(sim.Limit(scope, what, value, queue=queue, only=only))
    machine = chance.choice([sim.Machine.flat(8), sim.Machine.of_nodes(4, 4)])
    policy, events = QUEUEING[seed % len(QUEUEING)], chance.choice(["one-by-one", "batched"])
    agree(rows, machine, policy, limits=limits, events=events, low_queues=["long"])


def test_who_stays_outside_does_not_hide_that_the_head_is_held() -> None:
    # The fourth is begun behind the second, whose limit it uses up; then the third need no longer wait
    # for the second, and is begun when the fifth comes to a queue that is shut.
    rows = [
        (0, 100, 2, {"user": "x"}), (1, 10, 4, {"user": "u"}), (2, 200, 1, {"user": "v"}),
        (3, 50, 1, {"user": "u"}), (5, 5, 1, {"user": "g", "queue": "shut"}),
    ]  # fmt: skip
    limits = [
        sim.Limit("user", "running-jobs", 1, only="u"),
        sim.Limit("queue", "queued-jobs", 0, only="shut"),
    ]
    got, _ = agree(rows, sim.Machine.flat(4), "easy", limits=limits)
    assert got.start.tolist() == [0, 205, 5, 3, -1]


def test_jobs_that_are_put_back_again_and_again() -> None:
    """Sixty-four low jobs yield to a wide one forty times; each time one more comes that may not begin."""
    policy = replace(sim.POLICIES.get("preempting"), order=lambda _, estimates: estimates)
    low = {"queue": "low", "requested_s": 100_000}
    rows: list[Any] = [(0, 50_000, 1, low)] * 64
    for turn in range(40):
        held = {"queue": "low", "user": "held", "requested_s": 1000 + turn}
        rows += [(10 + 10 * turn, 5, 64), (16 + 10 * turn, 5, 64, held)]
    held_back = sim.Limit("user", "running-jobs", 0, only="held")
    got, _ = agree(rows, sim.Machine.flat(64), policy, limits=[held_back], low_queues=["low"])
    assert got.num_restarts[:64].tolist() == [40] * 64
