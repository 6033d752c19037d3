"""Sites, machines and replays: numbers at their limits, none of them equal to another."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from hakaru import sim
from hakaru.analyses import open_session
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.schema import INGESTS, JOBS, REJECTS
from hakaru.settings import Capacity, Cluster
from hakaru.sim.inventory import kind_of
from hakaru.sim.machine import Change as NodeChange
from hakaru.sim.machine import Group, Machine, Placement
from hakaru.sim.metrics import measure, measure_by
from hakaru.sim.naive import scores
from hakaru.sim.replay import Known, months_of, overload
from hakaru.sim.site import MachineSpec, Site
from hakaru.sim.whatif.curves import capacity_up_to
from tests.conftest import job, put, put_jobs
from tests.sim._jobs import play, table, workload
from tests.sim.test_inventory import built, node
from tests.sim.test_replay import MAY, recorded

DAY, HOUR = 86400, 3600
SPREAD = Machine.of_nodes(2, 4, placement=Placement(packing="spread"))


# ---- sites and machines


def test_reasons_of_rejects_are_counted_the_most_first(lake: Lake) -> None:
    """Seven reasons with 7, 6, … 1 lines: five are named, the other three lines are of other reasons."""
    put_jobs(lake, [job(1)])
    bad = {"cluster": "c", "file": "f", "source": "swf", "text": "…"}
    rows = [
        bad | {"line": 10 * n + m, "reason": f"why {'abcdefg'[n]} '{m}'"}
        for n in range(7)
        for m in range(n + 1)
    ]
    put(lake, REJECTS.name, [*rows, bad | {"cluster": "d", "line": 99, "reason": "another's"}])
    with open_session(lake) as session:
        rejected = Site.of(session, "c").rejected
    begins = "rejected when the log was read: why "
    assert rejected == {f"{begins}{name} …": n for name, n in zip("gfedc", range(7, 2, -1), strict=True)} | {
        "rejected when the log was read, for other reasons": 3
    }  # fmt: skip


@pytest.mark.parametrize(("sources", "is_swf"), [(["swf"], True), (["swf", "sacct"], False)])
def test_a_log_of_two_formats_is_no_swf(tmp_path: Path, sources: list[str], is_swf: bool) -> None:
    lake = Lake.create(tmp_path / "w")
    put(lake, JOBS.name, [job(1)])
    at = datetime(2018, 1, 1, tzinfo=UTC)
    times = {"started_at": at, "ended_at": at, "synthetic": False}
    rows = [{"ingest_id": name, "cluster": "c", "source": name} | times for name in sources]
    put(lake, INGESTS.name, rows)
    with open_session(lake) as session:
        assert Site.of(session, "c").is_swf == is_swf


def test_what_speaks_of_nodes() -> None:
    assert MachineSpec(whole_nodes=False).speaks_of_nodes and MachineSpec(size=4).speaks_of_nodes
    assert not MachineSpec(processors=9).speaks_of_nodes and not MachineSpec().speaks_of_nodes


def test_a_total_that_grew_is_no_pool() -> None:
    later = datetime(2018, 1, 1, tzinfo=UTC)
    grown = Cluster(cpus=(Capacity(4), Capacity(8, later)))
    assert (
        Site(cluster=Cluster(cpus=(Capacity(4),)), unit="cpu", is_swf=True)
        .machine()
        .machine.num_pes
        == 4
    )
    with pytest.raises(HakaruError, match="which changes over time, and one pool cannot"):
        Site(cluster=grown, unit="cpu", is_swf=True).machine()


def test_a_machine_of_unknown_size_says_how_to_give_it() -> None:
    """A log of processors that is no SWF, and of which no nodes are known."""
    with pytest.raises(HakaruError, match=r"the size of a\.b is not known") as caught:
        Site(name="a.b", unit="cpu").machine()
    assert '[clusters."a.b"]: nodes = COUNT and cpus_per_node = SIZE' in str(caught.value)
    assert "--nodes" not in str(caught.value)  # not every verb has it


def test_for_how_long_of_a_span_each_node_takes_jobs() -> None:
    changes = (NodeChange(50, 0, "drain"), NodeChange(150, 1, "up"), NodeChange(300, 2, "down"))
    machine = Machine.of_nodes(3, 2, changes=changes, closed=(1,))
    assert machine.seconds_up(100, 200).tolist() == [0, 50, 100]
    assert machine.seconds_up(0, 400).tolist() == [50, 250, 300]
    # 4 PEs at first, 2 from 50, 4 from 150, 2 from 300 on
    assert capacity_up_to(machine, 0, np.array([50, 150, 300, 400])).tolist() == [
        200,
        400,
        1000,
        1200,
    ]


def test_a_machine_without_some_nodes_keeps_the_others_as_they_are() -> None:
    machine = Machine(
        (Group(2, 4), Group(2, 8, "v100")),
        changes=(NodeChange(9, 1, "down"), NodeChange(9, 3, "up")),
        closed=(0, 3),
        names=("a", "b", "c", "d"),
    )
    less = machine.without(["a", "c"])
    assert less.groups == (Group(1, 4), Group(1, 8, "v100"))
    assert (less.closed, less.names) == ((1,), ("b", "d"))
    assert less.changes == (NodeChange(9, 0, "down"), NodeChange(9, 1, "up"))
    assert Machine.of_nodes(10, 1).node_names[-1] == "node-9"
    assert Machine.of_nodes(11, 1).node_names[0] == "node-00"


def test_a_size_that_is_asked_for_is_that_of_nodes_with_gpus() -> None:
    machine, _ = built(node("a", 0), node("login", 0, num_gpus=0), size=4)
    assert (machine.groups, machine.names) == ((Group(1, 4),), ("a",))
    asked = workload((0, 10, 1, {"gpu_model": "x"}))
    models = [node(name, 0, gpu_model=name) for name in ("d", "c", "b", "a")]
    _, notes = built(*models, workload=asked)
    assert notes[-1].startswith(
        "jobs ask for x and the nodes table knows a, b, c, …: models are not"
    )


@pytest.mark.parametrize(
    ("kind", "states"),
    [
        ("up", "planned reserved blocked completing power_saving powering_up busy perfctrs"),
        ("drain", "not_responding no_respond maint reboot failing future inval provisioning drng"),
        ("down", "fail error stale down"),
    ],
)
def test_words_of_slurm_and_pbs(kind: str, states: str) -> None:
    assert {kind_of(state) for state in states.upper().split()} == {kind}


# ---- jobs


def test_scaled_estimates_are_rounded_and_never_nothing() -> None:
    jobs = workload((0, 10, 1), (0, 1, 1), (0, 1000, 1))
    assert sim.estimates_of("scaled:0.26")(jobs).tolist() == [3, 1, 260]
    assert sim.estimates_of("perfect")(jobs).tolist() == [10, 1, 1000]


def test_a_second_is_some_time() -> None:
    assert "run for no time at all" not in workload((0, 1, 1), (0, 2, 1)).notes
    assert workload((0, 1, 1), (0, 0, 1)).notes["run for no time at all"] == 1


def test_every_job_that_is_lengthened_is_counted() -> None:
    """Of 0, 30, 59, 60 and 100 s three are below a minute; 200 s that asked for 20 s run for 20."""
    jobs = [(0, run, 1) for run in (0, 30, 59, 60, 100)] + [(0, 200, 1, {"requested_s": 20})]
    lengthened = sim.Workload.of(table(*jobs), least_run_s=60)
    assert lengthened.run.tolist() == [60, 60, 60, 60, 100, 60]
    assert lengthened.notes["run for less than 60 s: taken as 60 s"] == 4


# ---- the replay


def test_a_third_more_than_the_machine_is_far_more() -> None:
    jobs = [recorded(MAY, 20 * DAY, 3, 0.0), recorded(MAY, 20 * DAY, 1, 0.0)]
    (far,) = months_of(play(jobs, sim.Machine.flat(3), "fcfs"))
    assert far.trusted == "no" and "1.25 times the machine" in far.why


def test_a_node_that_comes_back_before_its_jobs_end_was_there_all_the_time() -> None:
    """Drained at 60 and back at 80, while a job on both nodes runs to 100: three PEs are needed from 80."""
    changes = (NodeChange(60, 1, "drain"), NodeChange(80, 1, "up"))
    machine = Machine.of_nodes(2, 1, changes=changes)
    jobs = workload(recorded(0, 100, 2, 0.0), recorded(0, 20, 1, 80.0))
    assert overload(jobs, machine, [0, 100]).tolist() == [0.2]


def test_the_worst_month_is_the_one_whose_mean_is_off_most() -> None:
    """One job off by 50 s is a worse month than six off by 10 s, which weigh more in the average."""
    recorded_s = np.zeros(7)
    simulated = np.array([10.0] * 6 + [50.0])
    known = Known(
        recorded_s, simulated, np.array([0] * 6 + [1]), ["June", "July"], np.ones(7, bool)
    )
    assert known.worst_month() == ("July", 1, 0, 50)
    assert known.errors()["mean_wait_s"] == pytest.approx((6 * 10 + 50) / 7)


def test_each_score_is_its_own() -> None:
    """Recorded 0, 10, … 1000 s, replayed none: the 95th percentile is off by 950 s, the mean by 500 s."""
    jobs = [recorded(60 * n, 1, 1, 10.0 * n) for n in range(101)]
    replay, _ = scores(play(jobs, sim.Machine.flat(9), "fcfs"), "UTC", None)
    assert (replay.mean_off_s, replay.p95_off_s) == (500, 950)
    assert replay.share_within_5min == pytest.approx(31 / 101)


def test_what_is_free_but_too_little_is_idle_and_not_fragmented() -> None:
    """One PE of four is free for the 90 s in which a job of four waits. Then: two on each of two nodes, of
    which a job on one node needs three."""
    whole = measure(play([(0, 100, 3), (10, 100, 4)], sim.Machine.of_nodes(1, 4), "fcfs"))
    assert whole["idle_while_waiting"] == pytest.approx(90 / 800)
    assert whole["fragmentation"] == 0
    torn = measure(play([(0, 100, 2), (0, 100, 2), (10, 100, 3)], SPREAD, "fcfs"))
    assert torn["fragmentation"] == pytest.approx(4 * 90 / 1600)


def test_hours_that_are_lost_and_classes_of_unknown_nodes() -> None:
    """A node of four PEs is lost after an hour, and its job begins anew."""
    machine = sim.Machine.of_nodes(2, 4, changes=(sim.Change(HOUR, 0, "down"),))
    jobs = [(0, 2 * HOUR, 4, {"span_nodes": None}), (1, 10, 1, {"span_nodes": None})]
    got = play(jobs, machine, "easy")
    assert measure(got)["pe_hours_lost"] == 4
    classes = measure_by(got, "class").to_pylist()
    assert [each["class"] for each in classes] == ["single-pe", "unknown-nodes"]
