"""Nodes that come, are drained and are lost, worked by hand."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest

from hakaru import sim
from hakaru.settings import Capacity, Cluster
from hakaru.sim.inventory import Inventory
from tests.sim._jobs import play, workload


def test_nodes_over_time() -> None:
    # One node, two from 50, one from 100. The second job begins on node 1 when that comes and keeps it
    # until 130, though it is drained at 100; the last two share node 0 in turn.
    machine = sim.Machine.over_time([(0, 1), (50, 2), (100, 1)], 4)
    got = play([(0, 80, 4), (10, 80, 4), (110, 10, 4), (111, 10, 4)], machine, "easy")
    assert got.start.tolist() == [0, 50, 110, 120]
    assert [got.nodes_of(j) for j in range(4)] == [[0], [1], [0], [0]]
    # A drained node counts as long as it is used: 4 × 50, 8 × 50, and 8 from 100 to 130.
    assert got.totals["capacity_s"] == 200 + 400 + 240
    assert got.totals["busy_s"] == 4 * (80 + 80 + 10 + 10)


def test_a_node_that_is_lost_takes_its_jobs_along() -> None:
    # At 30 node 0 goes with 4 PEs × 30 s of work. Its job begins anew on node 1 at 40 and ends at 140.
    changes = (sim.Change(30, 0, "down"), sim.Change(60, 0, "up"))
    machine = sim.Machine.of_nodes(2, 4, changes=changes)
    got = play([(0, 100, 4), (0, 40, 4), (50, 5, 4)], machine, "easy")
    assert got.start.tolist() == [40, 0, 60]
    assert got.end.tolist() == [140, 40, 65]
    assert got.num_restarts.tolist() == [1, 0, 0]
    assert got.totals["lost_s"] == 120
    # Work that was lost was work: 30 + 100 + 40 + 5 s on four PEs.
    assert got.totals["busy_s"] == 4 * 175
    # 8 until 30, 4 until 60, 8 until 140.
    assert got.totals["capacity_s"] == 8 * 30 + 4 * 30 + 8 * 80


def test_a_job_of_two_nodes_is_lost_with_one_of_them() -> None:
    machine = sim.Machine.of_nodes(3, 2, changes=(sim.Change(7, 1, "down"),))
    got = play([(0, 10, 4, {"span_nodes": 2})], machine, "easy")
    assert (got.start.tolist(), got.nodes_of(0), got.totals["lost_s"]) == ([7], [0, 2], 28)
    assert got.table()["why_waited"].to_pylist() == ["node lost"]


def test_a_drained_node_finishes_its_jobs() -> None:
    machine = sim.Machine.of_nodes(2, 4, changes=(sim.Change(30, 0, "drain"),))
    got = play([(0, 100, 4), (0, 40, 4), (35, 10, 4), (36, 10, 4)], machine, "easy")
    assert got.start.tolist() == [0, 0, 40, 50]
    assert got.num_restarts.sum() == got.totals["lost_s"] == 0


def test_a_loss_when_a_job_ends_costs_nothing() -> None:
    machine = sim.Machine.of_nodes(1, 4, changes=(sim.Change(10, 0, "down"),))
    got = play([(0, 10, 4)], machine, "easy")
    assert (got.end.tolist(), got.totals["lost_s"]) == ([10], 0)


def test_what_changed_before_the_log_is_not_counted() -> None:
    machine = sim.Machine.of_nodes(2, 4, changes=(sim.Change(500, 1, "drain"),))
    got = play([(1000, 10, 4), (1000, 10, 4)], machine, "easy")
    assert got.start.tolist() == [1000, 1010]
    assert got.totals["capacity_s"] == got.totals["busy_s"] == 80


def test_a_machine_that_never_comes_back_leaves_jobs_waiting() -> None:
    machine = sim.Machine.of_nodes(1, 4, changes=(sim.Change(5, 0, "down"),))
    got = play([(0, 10, 4), (20, 10, 4)], machine, "easy")
    assert got.start.tolist() == got.end.tolist() == [-1, -1]
    table = got.table()
    assert table["started_at"].null_count == table["ended_at"].null_count == 2
    assert table["wait_s"].null_count == table["run_s"].null_count == 2
    assert got.nodes_of(0) == []


TOUCHING = [sim.Outage(0, 0, 100, "down"), sim.Outage(0, 100, 200, "down")]
OVERLAPPING = [sim.Outage(0, 0, 100, "down"), sim.Outage(0, 50, 200, "drain")]
WITHIN = [
    sim.Outage(0, 0, 200, "drain"),
    sim.Outage(0, 50, 60, "down"),
    sim.Outage(0, 60, 70, "down"),
]


@pytest.mark.parametrize(
    "outages",
    [order for all in (TOUCHING, OVERLAPPING, WITHIN) for order in itertools.permutations(all)],
)
def test_a_node_comes_back_when_all_of_its_outages_are_over(outages: list[sim.Outage]) -> None:
    machine = sim.Machine.of_nodes(1, 8).with_outages(outages)
    assert play([(10, 10, 8)], machine, "easy").start.tolist() == [200]
    assert machine.changes[-1] == sim.Change(200, 0, "up")


def test_a_drained_node_may_still_be_lost() -> None:
    outages = [sim.Outage(0, 10, 100, "drain"), sim.Outage(0, 20, 50, "down")]
    machine = sim.Machine.of_nodes(1, 8).with_outages(outages)
    got = play([(0, 30, 8)], machine, "easy")
    assert (got.start.tolist(), got.totals["lost_s"]) == ([100], 8 * 20)


def test_an_outage_brings_back_no_node_that_the_machine_has_not() -> None:
    # Node 1 is there until 1000 and again from 3000 on, but lost from 500 to 2000.
    planned = sim.Machine.over_time([(0, 2), (1000, 1), (3000, 2)], 8)
    machine = planned.with_outages([sim.Outage(1, 500, 2000, "down")])
    assert machine.changes == (sim.Change(500, 1, "down"), sim.Change(3000, 1, "up"))
    got = play([(2500, 1000, 8), (2500, 100, 8)], machine, "easy")
    assert got.start.tolist() == [2500, 3000]


def test_an_outage_of_a_node_that_never_is_there() -> None:
    machine = sim.Machine.over_time([(0, 1), (50, 2)], 8).with_outages(
        [sim.Outage(1, 0, 20, "down"), sim.Outage(0, 5, 6, "down")]
    )
    assert machine.changes == (
        sim.Change(0, 1, "down"), sim.Change(5, 0, "down"), sim.Change(6, 0, "up"), sim.Change(50, 1, "up"),
    )  # fmt: skip


def test_a_size_that_is_known_from_a_moment_on_held_before_it_too() -> None:
    """hakaru.toml says four nodes of 2 from 1000 s on, and one from 2000 s on: at 0 there are four."""
    at = [datetime.fromtimestamp(moment, UTC) for moment in (1000, 2000)]
    cluster = Cluster(gpus_per_node=2, nodes=(Capacity(1, at[1]), Capacity(4, at[0])))
    machine = sim.Machine.of_cluster("c", cluster, "gpu")
    assert machine.num_pes == 8
    assert machine.changes == tuple(sim.Change(2000, node, "drain") for node in (1, 2, 3))
    jobs = [(0, 100, 2)] * 4 + [(1950, 100, 2)] * 2 + [(2001, 10, 2)]
    got = play(jobs, machine, "easy")
    # whoever runs at 2000 goes on; who comes after it has one node, which is free at 2050
    assert got.start.tolist() == [0, 0, 0, 0, 1950, 1950, 2050]
    assert got.num_restarts.sum() == 0


def test_a_log_that_begins_before_the_nodes_table_is_played_on_its_first_machine() -> None:
    rows = [
        {"node": name, "since": datetime.fromtimestamp(1000, UTC), "until": None, "gpu_model": None,
         "num_gpus": 4, "num_cpus": None, "state": None}
        for name in ("a", "b")
    ]  # fmt: skip
    rows[1]["until"] = datetime.fromtimestamp(1500, UTC)
    jobs = workload((0, 10, 4), (0, 10, 4), (1600, 10, 4), (1600, 10, 4))
    machine, notes = Inventory(rows).machine("gpu", jobs)
    assert machine is not None
    assert notes[0].startswith(
        "2 jobs submitted before the nodes table begins (1970-01-01 00:16 UTC)"
    )
    got = sim.simulate(jobs, machine, sim.POLICIES.get("easy"))
    assert got.start.tolist() == [0, 0, 1600, 1610]
