"""A schedule as a cluster: nothing of the jobs is lost but their times, and every analysis takes it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from hakaru import sim
from hakaru.analyses import Selection, load_all, open_session
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.settings import Capacity, Cluster, Queue
from hakaru.sim.site import Site
from hakaru.sim.store import ALL_COLUMNS, facts_of, lake_of, store
from tests.conftest import job, put_jobs, utc

FACTS = {
    "zone": "Asia/Tokyo",
    "gpus_per_node": 2,
    "nodes": 2,
    "queues": {"normal": {"max_gpus": 2}},
}
AT = utc("2018-01-01T00:00:00")
ROWS = [
    job(1, name="train", num_gpus=2, nodes=["a"], run_s=100.0, requested_s=100.0,
        eligible_at=AT + timedelta(hours=1), gpu_ids=["GPU-7"]),
    job(2, name="tune", num_gpus=4, num_nodes=2, run_s=50.0, requested_s=60.0),
]  # fmt: skip


@pytest.fixture
def cluster(lake: Lake) -> Lake:
    return put_jobs(lake, ROWS, json.dumps(FACTS))


def played(lake: Lake, machine: sim.Machine) -> tuple[sim.Schedule, Site]:
    listed = ", ".join(f'"{name}"' for name in ALL_COLUMNS)
    with open_session(lake) as session:
        table = session.ask(f"SELECT {listed} FROM jobs ORDER BY {sim.ORDER}", Selection(("c",)))
        site = Site.of(session, "c")
    return sim.simulate(sim.Workload.of(table), machine, sim.POLICIES.get("fcfs")), site


def stored(lake: Lake, name: str) -> list[dict[str, Any]]:
    with open_session(lake) as session:
        query = "SELECT * FROM " + session.stored(ALL_COLUMNS[:26]) + " AS s ORDER BY job_id"
        return [row for row in session.engine.query(query).to_pylist() if row["cluster"] == name]


def test_only_times_and_nodes_are_new(cluster: Lake):
    store(cluster, *_with_name(cluster, "c-fcfs"), label="c under fcfs")
    first, second = stored(cluster, "c-fcfs")
    assert first["started_at"] == AT and first["ended_at"] == AT + timedelta(seconds=100)
    assert (first["wait_s"], first["run_s"], first["nodes"]) == (0, 100, ["node-0"])
    assert second["started_at"] == AT + timedelta(seconds=100)  # it needs both nodes
    assert (second["wait_s"], second["nodes"]) == (100, ["node-0", "node-1"])
    assert (first["eligible_at"], first["gpu_ids"]) == (None, None), "neither is simulated"
    new = (
        "cluster",
        "started_at",
        "ended_at",
        "wait_s",
        "run_s",
        "nodes",
        "eligible_at",
        "gpu_ids",
    )
    for before, after in zip(stored(cluster, "c"), (first, second), strict=True):
        assert {k: v for k, v in before.items() if k not in new} == {
            k: v for k, v in after.items() if k not in new
        }


def _with_name(lake: Lake, name: str) -> tuple[sim.Schedule, str, Site]:
    schedule, site = played(lake, sim.Machine.of_nodes(2, 2))
    return schedule, name, site


def test_it_is_marked_and_knows_its_site(cluster: Lake):
    store(cluster, *_with_name(cluster, "c-fcfs"), label="c under fcfs")
    with open_session(cluster) as session:
        assert session.synthetic == {"c-fcfs"}
        ours, theirs = session.settings.cluster("c-fcfs"), session.settings.cluster("c")
    assert (ours.zone, ours.nodes, ours.queues) == (theirs.zone, theirs.nodes, theirs.queues)
    assert ours.gpus_per_node == 2


def test_the_next_simulation_replaces_it(cluster: Lake):
    for machine in (sim.Machine.of_nodes(2, 2), sim.Machine.of_nodes(4, 2)):
        schedule, site = played(cluster, machine)
        store(cluster, schedule, "again", site, "c")
    assert [row["wait_s"] for row in stored(cluster, "again")] == [0, 0]
    with open_session(cluster) as session:
        assert session.settings.cluster("again").nodes == (Capacity(4),)


def test_a_real_cluster_is_never_replaced(cluster: Lake):
    with pytest.raises(HakaruError, match="another source"):
        store(cluster, *_with_name(cluster, "c"), label="c")
    assert len(stored(cluster, "c")) == 2


def test_one_analysis_without_storing(cluster: Lake):
    schedule, site = played(cluster, sim.Machine.of_nodes(2, 2))
    with lake_of(schedule, site) as lake, open_session(lake) as session:
        result = session.run(load_all().get("waits"))
    row = next(row for row in result.rows if row["part"] == "submit to start")
    assert (row["num_jobs"], row["mean_s"]) == (2, 50)
    assert result.synthetic
    assert cluster.clusters() == ["c"]


def test_a_job_that_never_begins_waits(cluster: Lake):
    closed = sim.Machine.of_nodes(2, 2, changes=(sim.Change(0, 1, "down"),))
    schedule, site = played(cluster, closed)
    store(cluster, schedule, "shut", site, "c")
    first, second = stored(cluster, "shut")
    assert (first["state"], first["nodes"]) == ("completed", ["node-0"])
    assert (second["state"], second["started_at"], second["nodes"]) == ("pending", None, None)


def test_what_the_log_does_not_know_of_nodes_stays_unknown(lake: Lake):
    """Jobs of 2 and 4 GPUs on nodes of which nobody knows: a pool of 8 does not put them on one."""
    put_jobs(lake, [job(n, num_gpus=n, num_nodes=None) for n in (1, 2, 4)])
    schedule, site = played(lake, sim.Machine.flat(8))
    store(lake, schedule, "pool", site, "c under fcfs")
    with open_session(lake) as session:
        assert session.settings.cluster("pool").size("gpu") == (Capacity(8),)
        for name in ("c", "pool"):
            rows = session.run(load_all().get("parallelism"), Selection((name,))).rows
            counts = {row["parallelism"]: row["num_jobs"] for row in rows}
            assert counts == {"single-pe": 1, "unknown-nodes": 2}, name


def test_the_machine_that_was_simulated_is_the_capacity():
    site = Site("c", Cluster(zone="UTC", gpus_per_node=8, nodes=(Capacity(4),)))
    assert facts_of(site, sim.Machine.of_nodes(4, 8))["nodes"] == [{"count": 4}]
    pool = facts_of(site, sim.Machine.flat(40))
    assert (pool["gpus"], pool["gpus_per_node"]) == (40, 8)
    assert "nodes" not in pool
    mixed = sim.Machine((sim.Group(2, 8), sim.Group(1, 4)))
    assert "nodes" not in facts_of(site, mixed)
    queues = Site("c", Cluster(queues={"q": Queue(max_gpus=2)}), "cpu")
    facts = facts_of(queues, sim.Machine.flat(4))
    assert (facts["queues"], facts.get("zone")) == ({"q": {"max_gpus": 2}}, None), "not UTC"
