"""One way to a machine and a workload: every verb and the web replay a log alike."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from hakaru import sim
from hakaru.analyses import Selection, open_session
from hakaru.cli import main
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.settings import Capacity, Cluster, Queue
from hakaru.sim.site import MachineSpec, Site, jobs_of
from hakaru.sources import ingest
from hakaru.web.app import create_app
from tests.conftest import job, put_jobs, utc
from tests.sim._jobs import table
from tests.web._site import running
from tests.web.what_if._runs import API, ended

SCENARIO = 'months = "all"\n[[variant]]\nname = "in order"\npolicy = "fcfs"\n'


@pytest.fixture(scope="module")
def kth(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.create(tmp_path_factory.mktemp("kth"))
    ingest(lake, [shared / "data" / "schedules" / "kth-100.swf.gz"], "kth")
    return lake


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Jobs without a request in a queue whose walltime the settings know, on two nodes of two."""
    first = utc("2018-01-01T00:00:00")
    rows = [
        job(
            n,
            num_gpus=1 + n % 3,
            requested_s=None if n % 2 else 4000.0,
            submitted_at=first + timedelta(minutes=7 * n),
            run_s=600.0 + 311 * (n % 7),
        )
        for n in range(200)
    ]
    queues = {"normal": {"max_walltime_h": 12}}
    facts = {"gpus_per_node": 2, "nodes": 2, "queues": queues}
    return put_jobs(Lake.create(tmp_path_factory.mktemp("made")), rows, json.dumps(facts))


def simulated(lake: Lake, output: Path) -> float:
    done = CliRunner().invoke(main, ["simulate", "-w", str(lake.workspace), "-o", str(output)])
    assert done.exit_code == 0, done.output
    return float(json.loads(output.read_text())["metrics"]["mean_wait_s"])


def whatif(lake: Lake, folder: Path) -> float:
    (folder / "s.toml").write_text(SCENARIO)
    arguments = ["whatif", folder / "s.toml", "-w", lake.workspace, "-o", folder / "w.json"]
    done = CliRunner().invoke(main, [*map(str, arguments), "--jobs", "1"])
    assert done.exit_code == 0, done.output
    return float(json.loads((folder / "w.json").read_text())["baseline"]["metrics"]["mean_wait_s"])


def in_the_web(lake: Lake, cluster: str) -> float:
    with running(create_app(lake)) as server, server.client() as client:
        wanted = {"cluster": cluster, "scenario": SCENARIO}
        found = ended(client, client.post(API, json=wanted).json()["id"])
    assert found["state"] == "done", found
    return float(found["outcome"]["baseline"]["metrics"]["mean_wait_s"])


@pytest.mark.parametrize("name", ["kth", "c"])
def test_a_log_is_replayed_alike_everywhere(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    lake: Lake = request.getfixturevalue("kth" if name == "kth" else "made")
    waits = {simulated(lake, tmp_path / "s.json"), whatif(lake, tmp_path), in_the_web(lake, name)}
    assert len(waits) == 1
    assert min(waits) > 0


def test_advice_is_measured_from_the_same_replay(made: Lake, tmp_path: Path) -> None:
    output = tmp_path / "advice.json"
    arguments = ["advise", "-w", made.workspace, "--trials", "1", "--months", "all", "-o", output]
    done = CliRunner().invoke(main, [*map(str, arguments), "--search", "limits"])
    assert done.exit_code == 0, done.output
    with open_session(made) as session:
        site = Site.of(session, "c")
        workload = site.workload(jobs_of(session, Selection(clusters=("c",))))
    schedule = sim.simulate(workload, site.machine().machine, sim.POLICIES.get("easy"))
    replay = json.loads(output.read_text())["replay"]["differences"][0]
    assert replay["simulated_mean_s"] == pytest.approx(schedule.wait.mean())
    assert "the machine is as hakaru.toml or the log says" in done.output
    said = "assumed: 100 jobs ask for no time: taken to ask for their queue's longest walltime"
    assert said in " ".join(done.output.split())


def test_a_bare_log_and_an_ingested_one_are_alike(kth: Lake, shared: Path, tmp_path: Path) -> None:
    log = shared / "data" / "schedules" / "kth-100.swf.gz"
    (tmp_path / "s.toml").write_text(SCENARIO)
    arguments = ["whatif", tmp_path / "s.toml", "--from", log, "-o", tmp_path / "f.json"]
    done = CliRunner().invoke(main, [*map(str, arguments), "--jobs", "1"])
    assert done.exit_code == 0, done.output
    held = json.loads((tmp_path / "f.json").read_text())
    assert held["baseline"]["metrics"]["mean_wait_s"] == whatif(kth, tmp_path)
    said = "The baseline's machine is as hakaru.toml or the log says: 100 processors in one pool."
    assert said in held["notes"]


SWF = Site("s", Cluster(cpus_per_node=2, nodes=(Capacity(4),)), "cpu", is_swf=True, processors=9)


@pytest.mark.parametrize(
    ("site", "said", "machine", "whence"),
    [
        (SWF, MachineSpec(), sim.Machine.flat(8), "hakaru.toml"),
        (SWF, MachineSpec(processors=3), sim.Machine.flat(3), "asked for"),
        (SWF, MachineSpec(on_nodes=True), sim.Machine.of_nodes(4, 2), "hakaru.toml"),
        (SWF, MachineSpec(size=4), sim.Machine.of_nodes(4, 4), "hakaru.toml"),
        (SWF, MachineSpec(nodes=3), sim.Machine.of_nodes(3, 2), "asked for"),
        (SWF, MachineSpec(nodes=3, size=5), sim.Machine.of_nodes(3, 5), "asked for"),
        (Site("s", is_swf=True, processors=9), MachineSpec(), sim.Machine.flat(9), "log's header"),
        (SWF, MachineSpec(groups=(sim.Group(1, 7),)), sim.Machine.of_nodes(1, 7), "asked for"),
    ],
)
def test_what_is_said_goes_before_what_is_known(
    site: Site, said: MachineSpec, machine: sim.Machine, whence: str
) -> None:
    taken = site.machine(said)
    assert taken.machine == machine
    assert whence in taken.whence


def test_an_unknown_size_says_what_to_set() -> None:
    with pytest.raises(
        HakaruError, match=re.escape("under [clusters.s]: nodes = COUNT and cpus_per_node = SIZE")
    ):
        Site("s", unit="cpu", processors=9).machine()  # no SWF: its jobs have nodes
    with pytest.raises(HakaruError, match="says nodes but not their size"):
        Site("s").machine(MachineSpec(nodes=3))


@pytest.mark.parametrize("is_swf", [True, False])
def test_a_size_that_changes_is_not_denied(is_swf: bool) -> None:
    spans = (Capacity(80), Capacity(100, datetime(2018, 2, 1, tzinfo=UTC)))
    with pytest.raises(HakaruError) as told:
        Site("s", Cluster(cpus=spans), "cpu", is_swf).machine()
    assert str(told.value).startswith(
        "the nodes of s are not known: its log or hakaru.toml has the number of its processors only, "
        "which changes over time, and one pool cannot. "
    )
    with pytest.raises(HakaruError, match=r"has the number of its GPUs only\. Write"):
        Site("s", Cluster(gpus=(Capacity(80),))).machine()


def test_a_job_without_a_request_asks_for_what_its_queue_allows_but_not_in_an_swf() -> None:
    jobs = table((0, 100, 1, {"requested_s": None}))
    cluster = Cluster(queues={"normal": Queue(max_walltime_h=2)})
    assert Site("s", cluster).workload(jobs).request.tolist() == [7200]
    assert Site("s", cluster, is_swf=True).workload(jobs).request.tolist() == [100]
    assert Site("s", cluster, is_swf=True).workload(jobs, "queue-limit").request.tolist() == [7200]


def test_nothing_to_simulate_says_why() -> None:
    site = Site("s", rejected={"rejected when the log was read: no digits": 3})
    with pytest.raises(
        HakaruError, match=r"no job of s can be simulated: 3: rejected .*; 1: no run"
    ):
        site.workload(table((0, None, 1)))
    with pytest.raises(HakaruError, match="none is selected"):
        site.workload(table())


def test_a_variant_that_speaks_of_nodes_brings_the_baseline_along() -> None:
    """Else it would differ by the kind of machine too; more nodes are more of the pool."""
    from hakaru.sim.whatif import read
    from hakaru.sim.whatif.variants import prepare

    jobs = SWF.workload(table((0, 100, 1)))
    pools = prepare(read("[[variant]]\nnodes = +2\n[[variant]]\nnodes = -3\n"), jobs, SWF)
    assert [each.machine for each in pools] == [sim.Machine.flat(n) for n in (8, 12, 2)]
    assert pools[1].notes == ("2 nodes of 2 added: 12 instead of 8",)
    failing = "[[variant]]\nfailures = [{ at = 1970-01-02T09:00:00 }]\n[[variant]]\nnodes = +2\n"
    nodes = prepare(read(failing), jobs, SWF)
    assert [(each.machine.is_flat, each.machine.num_nodes) for each in nodes] == [
        (False, 4),
        (False, 4),
        (False, 6),
    ]
    with pytest.raises(HakaruError, match="the pool has only 4 nodes of 2"):
        prepare(read("[[variant]]\nnodes = -4\n"), jobs, SWF)


def test_jobs_that_are_larger_than_a_node_are_counted() -> None:
    """Of 4 GPUs on one node, 6 on two, 1 on one, 4 on unknown nodes, and 100, which is left out anyway."""
    sizes: list[tuple[int, int | None]] = [(4, 1), (6, 2), (1, 1), (4, None), (100, 1)]
    jobs = Site().workload(table(*((0, 10, pes, {"span_nodes": n}) for pes, n in sizes)))
    site = Site("s", Cluster(gpus_per_node=2, nodes=(Capacity(4),)))
    taken = site.machine(workload=jobs)
    said = "2 jobs ask for more GPUs on a node than a node has: taken as several nodes"
    assert taken.notes == (said,)
    got = sim.simulate(jobs, taken.machine, sim.POLICIES.get("easy"))
    assert got.num_nodes.tolist() == [2, 3, 1, 2]
    assert site.machine(MachineSpec(size=3), jobs).notes[0].startswith("1 job asks for more GPUs")
    assert site.machine(MachineSpec(size=4), jobs).notes == ()
    assert site.machine(MachineSpec(processors=8), jobs).notes == ()


def test_a_pool_that_grows_is_played_on_nodes() -> None:
    """A pool has one size; where hakaru.toml knows another from a moment on, nodes come and go."""
    later = datetime.fromtimestamp(5000, UTC)
    cluster = Cluster(cpus_per_node=2, nodes=(Capacity(1), Capacity(3, later)))
    grows = Site("s", cluster, "cpu", is_swf=True, processors=9)
    machine = grows.machine().machine
    assert not machine.is_flat
    assert (machine.num_nodes, len(machine.closed)) == (3, 2)
    assert [(each.time, each.node, each.kind) for each in machine.changes] == [
        (5000, 1, "up"),
        (5000, 2, "up"),
    ]


def test_a_pool_is_as_large_as_the_machine_whose_nodes_differ() -> None:
    """Gaia's header has 2,004 processors on 151 nodes: no number of processors is true of every node."""
    cluster = Cluster(nodes=(Capacity(151),), cpus=(Capacity(2004),))
    taken = Site(cluster=cluster, unit="cpu", is_swf=True).machine()
    assert taken.machine.is_flat
    assert taken.machine.num_pes == 2004


@pytest.mark.parametrize("is_swf", [True, False])
def test_a_total_that_is_not_that_of_the_nodes_comes_first(is_swf: bool) -> None:
    """Utilisation counts 100 processors: a replay on 10 nodes of 8 would be one of another machine."""
    cluster = Cluster(nodes=(Capacity(10),), cpus_per_node=8, cpus=(Capacity(100),))
    site = Site("s", cluster, "cpu", is_swf)
    assert site.machine(MachineSpec(size=4)).machine == sim.Machine.of_nodes(10, 4)
    if is_swf:
        assert site.machine().machine == sim.Machine.flat(100)
        return
    with pytest.raises(HakaruError) as told:
        site.machine()
    assert str(told.value) == (
        "the nodes of s are not all known: nodes × cpus_per_node is not the number of its processors that "
        "its log or hakaru.toml has. Write in the workspace's hakaru.toml under [clusters.s]: "
        "nodes = COUNT and cpus_per_node = SIZE, without cpus"
    )
