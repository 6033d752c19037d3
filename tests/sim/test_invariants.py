"""What holds of every schedule, whatever the policy and the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hakaru import sim
from tests.sim._jobs import workload
from tests.sim._slow import Slow
from tests.sim.test_agreement import QUEUEING, changes, events, flat, jobs, limits, of_nodes, quick

EVERY = pytest.mark.parametrize("policy", [each.id for each in sim.POLICIES])
UNCHANGING = ["easy", "easy-sjbf", "sjf-easy", "smallest-area"]


def shapes(schedule: sim.Schedule) -> list[tuple[int, int, dict[int, int]]]:
    """Of each job that ran: from, to, and PEs by node."""
    found = []
    for j, (start, end) in enumerate(zip(schedule.start, schedule.end, strict=True)):
        pes = int(schedule.workload.pes[j])
        nodes = schedule.nodes_of(j) or [0]
        taken = dict.fromkeys(nodes, -(-pes // len(nodes)))
        if schedule.machine.placement.whole_nodes and len(nodes) > 1:
            taken = {node: int(schedule.machine.sizes[node]) for node in nodes}
        if start >= 0:
            found.append((int(start), int(end), taken))
    return found


def is_within_capacity(schedule: sim.Schedule) -> bool:
    """At the moment when any job begins, which is when a node is fullest."""
    ran, sizes = shapes(schedule), schedule.machine.sizes
    return all(
        sum(pes.get(node, 0) for start, end, pes in ran if start <= moment < end) <= size
        for moment in {start for start, _, _ in ran}
        for node, size in enumerate(sizes)
    )


def is_within_what_is_up(schedule: sim.Schedule) -> bool:
    """At every second: what is busy is no more than what is up, or drained and still in use."""
    ran, sizes, drained = shapes(schedule), schedule.machine.sizes, set[int]()
    up = [True] * len(sizes)
    changes = sorted(schedule.machine.changes, key=lambda change: change.time)
    for moment in range(-2, max((end for _, end, _ in ran), default=0)):
        for change in (each for each in changes if each.time == moment):
            up[change.node] = change.kind == "up"
            drained = drained - {change.node} | ({change.node} if change.kind == "drain" else set())
        busy = [pes for start, end, pes in ran if start <= moment < end]
        for node, size in enumerate(sizes):
            most = size if up[node] or node in drained else 0
            if sum(pes.get(node, 0) for pes in busy) > most:
                return False
    return True


@EVERY
@quick
@given(rows=jobs(), machine=flat | of_nodes, events=events)
def test_every_job_runs_once_within_the_machine(
    policy: str, rows: Any, machine: sim.Machine, events: Any
) -> None:
    options = sim.Options(events=events)
    got = sim.simulate(workload(*rows), machine, sim.POLICIES.get(policy), options)
    played = got.workload
    assert len(played) + sum(played.left_out.values()) == len(rows)
    assert (got.start >= played.submit).all()
    assert (got.end - got.start == played.run).all()
    assert is_within_capacity(got)
    held = [
        run * sum(pes.values()) for run, (_, _, pes) in zip(played.run, shapes(got), strict=True)
    ]
    assert got.totals["busy_s"] == sum(held)
    first, last = int(min(played.submit, default=0)), int(max(got.end, default=0))
    assert got.totals["capacity_s"] == (last - first) * machine.num_pes
    again = sim.simulate(workload(*rows), machine, sim.POLICIES.get(policy), options)
    assert (again.start == got.start).all()
    assert (again.node == got.node).all()


@EVERY
@quick
@given(rows=jobs(), machine=of_nodes, changes=changes)
def test_nothing_begins_on_a_node_that_is_not_there(
    policy: str, rows: Any, machine: sim.Machine, changes: list[sim.Change]
) -> None:
    machine = replace(machine, changes=tuple(changes))
    got = sim.simulate(workload(*rows), machine, sim.POLICIES.get(policy))
    assert is_within_capacity(got)
    assert is_within_what_is_up(got)
    assert got.totals["busy_s"] <= got.totals["capacity_s"]
    ordered = sorted(changes, key=lambda change: change.time)
    for start, end, pes in shapes(got):
        for node in pes:
            mine = [change for change in ordered if change.node == node]
            # A change comes after all else in its second.
            before = [change.kind for change in mine if change.time < start]
            at_once = [change.kind for change in mine if change.time == start]
            assert "up" in (before or ["up"])[-1:] + at_once
            assert not any(c.kind == "down" for c in mine if start < c.time < end)


@pytest.mark.parametrize("policy", QUEUEING)
@quick
@given(rows=jobs(), machine=of_nodes | flat, limit=limits.map(lambda some: some[0]))
def test_no_limit_is_exceeded(
    policy: str, rows: Any, machine: sim.Machine, limit: sim.Limit
) -> None:
    chosen = sim.POLICIES.get(policy)
    got = sim.simulate(workload(*rows), machine, chosen, sim.Options(limits=[limit]))
    played = got.workload
    people = getattr(played, limit.scope) if limit.scope != "all" else played.submit * 0
    if limit.what == "queued-jobs":
        assert all(
            begin_from_within(got, np.flatnonzero(people == who), limit.value)
            for who in set(people[people >= 0])
        )
        return
    ran = [j for j in range(len(played)) if got.start[j] >= 0]
    pes = [int(played.pes[j]) for j in ran]
    for at in ran:
        moment, who = got.start[at], people[at]
        now = [
            x for x, j in enumerate(ran) if got.start[j] <= moment < got.end[j] and people[j] == who
        ]
        many = {"running-jobs": len(now), "running-gpus": sum(pes[x] for x in now)}
        assert who < 0 or many[limit.what] <= limit.value


def begin_from_within(schedule: sim.Schedule, mine: Any, most: int) -> bool:
    """Whether everybody begins from among the first `most` who wait: the queue is entered in order, and who
    begins makes room for one more, perhaps in the same second."""
    start, submit = schedule.start, schedule.workload.submit
    for moment in sorted(set(start[mine]) - {-1}):
        waiting = [j for j in mine if submit[j] <= moment and not 0 <= start[j] < moment]
        begin = {j for j in waiting if start[j] == moment}
        while allowed := begin & set(waiting[:most]):
            waiting = [j for j in waiting if j not in allowed]
            begin -= allowed
        if begin:
            return False
    return True


def test_who_begins_from_outside_the_queue_is_noticed() -> None:
    # The third begins at 1 while the second still waits: with one in the queue it would have to wait too.
    jobs = [(0, 10, 3), (0, 10, 4), (1, 5, 1)]
    got = sim.simulate(workload(*jobs), sim.Machine.flat(4), sim.POLICIES.get("easy"))
    assert got.start.tolist() == [0, 10, 1]
    assert begin_from_within(got, np.arange(3), 2)
    assert not begin_from_within(got, np.arange(3), 1)


@pytest.mark.parametrize("policy", UNCHANGING)
@quick
@given(rows=jobs(), machine=of_nodes | flat, events=events)
def test_easy_keeps_what_it_promised_the_head(
    policy: str, rows: Any, machine: sim.Machine, events: Any
) -> None:
    """Whoever is first in the queue at a pass, and has a moment by the estimates then, begins by that moment,
    unless a job that came later goes first by the policy's order. (Estimates are requests, which nobody
    outlives; nodes stay.)"""
    chosen, options = sim.POLICIES.get(policy), sim.Options(events=events)
    got = sim.simulate(workload(*rows), machine, chosen, options)
    slow = Slow(got.workload, machine, chosen, options).play()
    for head, moment in slow.promises:
        mine = slow.jobs[head]
        overtaken = any(
            slow.place(job) < slow.place(mine) and job.number > head for job in slow.jobs
        )
        assert overtaken or got.start[head] <= moment


@quick
@given(rows=jobs(), machine=of_nodes | flat, events=events)
def test_fcfs_lets_nobody_overtake(rows: Any, machine: sim.Machine, events: Any) -> None:
    options = sim.Options(events=events)
    got = sim.simulate(workload(*rows), machine, sim.POLICIES.get("fcfs"), options)
    assert (got.start[1:] >= got.start[:-1]).all()


@quick
@given(rows=jobs(), machine=flat, scale=st.integers(2, 5))
def test_time_has_no_unit(rows: Any, machine: sim.Machine, scale: int) -> None:
    """All times multiplied give a schedule multiplied."""
    longer = [
        (at * scale, run * scale, pes, more | {"requested_s": more["requested_s"] * scale})
        for at, run, pes, more in rows
    ]
    easy = sim.POLICIES.get("easy")
    before = sim.simulate(workload(*rows), machine, easy).start
    assert (sim.simulate(workload(*longer), machine, easy).start == before * scale).all()
