"""Variants of the machine and of the jobs: what each key makes of them, what is said and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.settings import Capacity, Cluster
from hakaru.sim import Group, Machine
from hakaru.sim.machine import Change
from hakaru.sim.site import Site
from hakaru.sim.whatif import ScenarioError, read
from hakaru.sim.whatif.variants import ORIGIN, Prepared, _longest_there, prepare
from tests.sim._jobs import workload

DAY = 86400
CLUSTER = Cluster(gpus_per_node=8, nodes=(Capacity(8),))


def prepared(text: str, *jobs: Any, cluster: Cluster = CLUSTER, **site: Any) -> list[Prepared]:
    return prepare(read(text), workload(*(jobs or [(0, 10, 1)])), Site("c", cluster, **site))


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ("+1", "1 node added: 9 instead of 8"),
        ("+12", "12 nodes added: 20 instead of 8"),
        ("-1", "1 node removed: 7 instead of 8"),
        ("-7", "7 nodes removed: 1 instead of 8"),
    ],
)
def test_nodes_added_and_removed_are_said(change: str, note: str) -> None:
    assert prepared(f"[[variant]]\nnodes = {change}\n")[1].notes == (note,)


def test_no_change_of_nodes_says_nothing() -> None:
    base, same = prepared("[baseline]\nnodes = 2\n[[variant]]\nnodes = 0\n")
    assert (base.machine.num_nodes, same.machine.num_nodes) == (10, 8)
    assert same.notes == ()


def test_added_nodes_are_like_the_last_ones() -> None:
    jobs = Site("c", CLUSTER).workload(workload((0, 10, 1)).table)
    said = read("[machine]\nnodes = 2\nsize = 4\n[[variant]]\nnodes = 3\n")
    assert prepare(said, jobs)[1].machine.groups == (Group(5, 4),)


@pytest.mark.parametrize(("num_nodes", "most"), [(3, 1), (4, 1), (8, 2), (11, 2), (12, 3)])
def test_at_least_one_node_is_left(num_nodes: int, most: int) -> None:
    cluster = replace(CLUSTER, nodes=(Capacity(num_nodes),))
    with pytest.raises(HakaruError) as caught:
        prepared(f"[[variant]]\nname = 'v'\nnodes = -{num_nodes}\n", cluster=cluster)
    assert str(caught.value) == (
        f"“v”: nodes = -{num_nodes} takes {num_nodes} of {num_nodes} nodes away: leave at least one, e.g. "
        f"nodes = -{most}"
    )


def test_the_nodes_that_are_there_longest_are_removed() -> None:
    """Two of three nodes come halfway from the first submission to the last: the first one is taken."""
    cluster = replace(
        CLUSTER, nodes=(Capacity(1), Capacity(3, datetime.fromtimestamp(5 * DAY, UTC)))
    )
    _, fewer = prepared("[[variant]]\nnodes = -1\n", (0, 9, 1), (10 * DAY, 9, 1), cluster=cluster)
    assert (fewer.machine.num_nodes, fewer.machine.closed) == (2, (0, 1))
    assert [change.time for change in fewer.machine.changes] == [5 * DAY, 5 * DAY]
    # the first leaves on day 2 of 10, when the second comes
    changes = (Change(2 * DAY, 0, "drain"), Change(2 * DAY, 1, "up"))
    machine = Machine.of_nodes(2, 1, changes=changes, closed=(1,))
    jobs = workload((0, 9, 1), (10 * DAY, 9, 1))
    assert _longest_there(machine, 1, jobs) == ["node-1"]


def test_a_pool_of_processors_grows_by_nodes_of_the_size_that_is_known() -> None:
    swf = {"unit": "cpu", "is_swf": True}
    cluster = Cluster(cpus_per_node=1, nodes=(Capacity(4),))
    _, one = prepared("[[variant]]\nnodes = -3\n", cluster=cluster, **swf)
    assert one.machine == Machine.flat(1)
    assert one.notes == ("3 nodes of 1 removed: 1 instead of 4",)
    with pytest.raises(HakaruError, match=r"nodes = -4: the pool has only 4 nodes of 1$"):
        prepared("[[variant]]\nnodes = -4\n", cluster=cluster, **swf)
    with pytest.raises(HakaruError, match=r"is a pool: use machine = \{ processors = … \}"):
        prepared("[machine]\nprocessors = 4\n[[variant]]\nnodes = 1\n", cluster=cluster, **swf)


@pytest.mark.parametrize("locality", ["preferred", "required"])
def test_locality_needs_to_know_the_switches(locality: str) -> None:
    text = f'[[variant]]\nname = "v"\nmachine = {{ locality = "{locality}" }}\n'
    with pytest.raises(HakaruError) as caught:
        prepared(text)
    assert str(caught.value) == (
        f'“v”: machine: locality = "{locality}" needs to know the switches: add switch_size, the number of '
        "nodes under each"
    )
    _, near = prepared(f"[machine]\nswitch_size = 2\n{text}")
    assert (near.machine.switch_size, near.machine.placement.locality) == (2, locality)
    prepared('[[variant]]\nmachine = { locality = "anywhere" }\n')


@pytest.mark.parametrize(
    ("base", "top", "groups"),
    [
        ("nodes = 4\nsize = 2", "nodes = 5", (Group(5, 2),)),
        ("nodes = 4\nsize = 2", "size = 3", (Group(4, 3),)),
        ("nodes = 4\nsize = 2", "processors = 9", (Group(1, 9),)),
        ("nodes = 4\nsize = 2", 'packing = "spread"', (Group(4, 2),)),
        ("processors = 9", "nodes = 5", (Group(5, 8),)),  # of the cluster's own size
        ("processors = 9", "size = 2", (Group(8, 2),)),  # as many as the cluster has
    ],
)
def test_what_a_variant_says_of_the_machine_goes_before(base: str, top: str, groups: Any) -> None:
    machine = prepared(f"[machine]\n{base}\n[[variant]]\nmachine = {{ {top} }}\n")[1].machine
    assert machine.groups == groups


def test_a_flag_that_is_false_is_said_too() -> None:
    text = "[machine]\nwhole_nodes = true\n[[variant]]\nmachine = { whole_nodes = false }\n"
    base, shared = prepared(text)
    assert (base.machine.placement.whole_nodes, shared.machine.placement.whole_nodes) == (
        True,
        False,
    )


def test_notes_of_another_machine_are_told_with_its_variant() -> None:
    """A job of 8 GPUs on one node fits a node as it is; with nodes of 4 it takes two."""
    job = (0, 10, 8, {"span_nodes": 1})
    base, small, more = prepared(
        "[[variant]]\nmachine = { size = 4 }\n[[variant]]\nnodes = 1\n", job
    )
    split = "1 job asks for more GPUs on a node than a node has: taken as several nodes"
    assert (base.notes, small.notes) == ((), (split,))
    base, more = prepared("[machine]\nsize = 4\n[[variant]]\nnodes = 1\n", job)
    assert (base.taken.notes, base.notes) == ((split,), ())
    assert more.notes == ("1 node added: 9 instead of 8",)


def test_failures_are_said_on_the_site_s_clock() -> None:
    """05:30 in Delhi is midnight in UTC, whichever way it is written."""
    cluster = replace(CLUSTER, zone="Asia/Kolkata")
    text = """
        [[variant]]
        failures = [
            { at = 1970-01-02T05:30:00, nodes = 1, hours = 0.5 },
            { at = 1970-01-03T00:00:00Z, nodes = 2, kind = "drain" },
        ]
    """
    _, failing = prepared(text, cluster=cluster)
    assert failing.notes == (
        "1 node down from 1970-01-02 05:30 for 0.5 h; 2 nodes drain from 1970-01-03 05:30 for 24 h",
    )
    assert [(each.time, each.node, each.kind) for each in failing.machine.changes] == [
        (DAY, 0, "down"),
        (DAY + 1800, 0, "up"),
        (2 * DAY, 0, "drain"),
        (2 * DAY, 1, "drain"),
        (3 * DAY, 0, "up"),
        (3 * DAY, 1, "up"),
    ]


def test_no_more_nodes_fail_than_there_are() -> None:
    text = "[[variant]]\nname = 'v'\nfailures = [{{ at = 1970-01-02, nodes = {} }}]\n"
    assert len(prepared(text.format(8))[1].machine.changes) == 16
    with pytest.raises(HakaruError) as caught:
        prepared(text.format(9))
    assert str(caught.value) == "“v”: failures: 9 nodes fail, but there are only 8"


def test_requests_are_made_accurate_before_they_are_scaled_and_queues_cut_them_last() -> None:
    """100 s run and 9000 s asked: 600 s are ten minutes, twice that 1200 s, and the queue allows 900 s."""
    text = """
        [[variant]]
        accurate_requests = 100
        scale_requests = 2
        queues.normal = { max_walltime_h = 0.25 }
    """
    _, changed = prepared(text, (0, 100, 1, {"requested_s": 9000.0}))
    assert changed.workload.request.tolist() == [900]
    assert [note.split(":")[0].split(" (")[0] for note in changed.notes] == [
        "1 of 1 user",
        "requests are scaled by 2",
        "queue normal has no points, no limit and does not yield",
        "queue normal",
    ]


def test_names_that_no_job_has_in_weights_and_queues_that_yield() -> None:
    text = """
        [[variant]]
        name = "w"
        policy = "multifactor"
        weights = { queue = { x = 1 }, qos = { y = 1 } }
        [[variant]]
        name = "p"
        policy = "preempting"
        low_queues = ["normal", "z"]
        [[variant]]
        name = "l"
        limits = ["user:running-jobs=1,queue=normal", "account=labb:running-jobs=1"]
    """
    with pytest.raises(ScenarioError) as raised:
        prepared(text, (0, 10, 1, {"qos": "high"}))
    assert [problem.partition(";")[0] for problem in raised.value.problems] == [
        "w.weights.queue: no job has 'x'",
        "w.weights.qos: no job has 'y'",
        "p.low_queues: no job has 'z'",
        "l.limits[2].only: no job has 'labb'",
    ]


def test_who_is_there_to_submit() -> None:
    """Half of the load is ann's: without her, her jobs are not asked for; the users are as many."""
    jobs = [(0, 50, 1, {"user": "ann"}), (1, 50, 1, {"user": "bob"}), (2, 0, 1, {"user": "cy"})]
    base, half = prepared("seed = 3\n[[variant]]\nload = 0.5\n", *jobs)
    assert base.asked.tolist() == [True, True, True]
    assert sorted(half.asked.tolist()[:2]) == [False, True] and half.asked[2]
    assert (base.num_users, half.num_users) == (3, 3)


def test_a_workload_that_is_numbered_keeps_its_numbers() -> None:
    jobs = workload((0, 10, 1), (1, 10, 1))
    numbered = replace(jobs, table=jobs.table.append_column(ORIGIN, [[1, 0]]))
    (base, _) = prepare(read("[[variant]]\nnodes = 1\n"), numbered, Site("c", CLUSTER))
    assert base.workload.table[ORIGIN].to_pylist() == [1, 0]


def test_a_fair_share_by_file_is_noted() -> None:
    jobs = [(n, 10, 1, {"user": f"{log}/1", "job_id": f"{log}/{n}"}) for n, log in enumerate("ab")]
    text = '[[variant]]\npolicy = "multifactor"\nweights = {{ fair_share = {} }}\n'
    _, fair = prepared(text.format(100), *jobs)
    assert fair.notes[-1].startswith("user ids hold within one of 2 log files")
    assert prepared(text.format(0), *jobs)[1].notes == ()


def test_an_unknown_machine_says_what_to_write_in_the_scenario() -> None:
    with pytest.raises(HakaruError) as caught:
        prepared("[[variant]]\nnodes = 1\n", cluster=Cluster())
    assert str(caught.value) == (
        "“baseline”: the size of c is not known: neither its log nor hakaru.toml has its nodes. Add to the "
        "scenario under [machine]: nodes = 38 and size = 8, with your numbers, or processors = 304 for one "
        "pool; or write in the workspace's hakaru.toml under [clusters.c]: nodes = COUNT and gpus_per_node = "
        "SIZE"
    )
