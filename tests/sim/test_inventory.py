"""A machine from the lake's `nodes` table, worked by hand: sizes, models, outages, and rows that disagree."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hakaru import sim
from hakaru.analyses import open_session
from hakaru.cli import main
from hakaru.lake import Lake
from hakaru.settings import Capacity, Cluster
from hakaru.sim.inventory import Inventory, kind_of
from hakaru.sim.machine import Change, Group
from hakaru.sim.site import MachineSpec, Site
from tests.conftest import job, put, put_jobs
from tests.sim._jobs import workload

START = datetime(2018, 1, 1, tzinfo=UTC)
BEGIN = int(START.timestamp())


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def node(name: str, since: int, until: int | None = None, **more: Any) -> dict[str, Any]:
    """A node of two GPUs and sixteen CPUs, up, with what a test changes; moments in seconds from START."""
    row = {"cluster": "c", "node": name, "since": at(since), "until": until and at(until)}
    return row | {"gpu_model": None, "num_gpus": 2, "num_cpus": 16, "state": "up"} | more


def built(*rows: dict[str, Any], unit: str = "gpu", **more: Any) -> tuple[sim.Machine, list[str]]:
    ordered = sorted(rows, key=lambda row: (row["node"], row["since"]))
    machine, notes = Inventory(ordered).machine(unit, **more)
    assert machine is not None
    return machine, list(notes)


def changes(machine: sim.Machine) -> list[tuple[int, int, str]]:
    return [(each.time - BEGIN, each.node, each.kind) for each in machine.changes]


def test_nodes_are_grouped_by_size_and_model_in_the_order_of_their_names() -> None:
    machine, notes = built(
        node("n10", 0), node("n2", 0), node("big", 0, num_gpus=8), node("n1", 0, gpu_model="a100")
    )
    assert machine.groups == (Group(1, 8), Group(1, 2, "a100"), Group(2, 2))
    assert machine.names == ("big", "n1", "n2", "n10")
    assert (machine.changes, machine.closed, notes) == ((), (), [])


def test_cpus_are_the_unit_where_jobs_have_no_gpus() -> None:
    machine, notes = built(
        node("a", 0, gpu_model="a100"),
        node("b", 0, num_gpus=0),
        node("c", 0, num_cpus=None),
        unit="cpu",
    )
    assert machine.groups == (Group(2, 16),)  # the GPUs' model is no model of CPUs
    assert notes == ["1 node has no processors in the nodes table: left out"]
    machine, notes = built(node("a", 0), node("login", 0, num_gpus=0), node("cpu", 0, num_gpus=0))
    assert machine.names == ("a",)
    assert notes == ["2 nodes have no GPUs in the nodes table: left out"]


def test_capacity_and_outages_over_time() -> None:
    # a from the beginning; b comes at 50 and leaves at 200; c is lost from 100 to 150, then drained.
    machine, notes = built(
        node("a", 0),
        node("b", 50, 200),
        node("c", 0, 100),
        node("c", 100, 150, state="down"),
        node("c", 150, 180, state="drained"),
        node("c", 180),
    )
    assert (machine.names, machine.closed, notes) == (("a", "b", "c"), (1,), [])
    assert changes(machine) == [(50, 1, "up"), (100, 2, "down"), (180, 2, "up"), (200, 1, "drain")]
    # c's job begins anew on b, which came at 50; the next one finds c again at 180
    jobs = workload(
        *((BEGIN + submit, run, 2) for submit, run in ((0, 300), (0, 120), (160, 10), (190, 10)))
    )
    got = sim.simulate(jobs, machine, sim.POLICIES.get("easy"))
    assert [int(start) - BEGIN for start in got.start] == [0, 100, 180, 190]
    assert [machine.names[got.nodes_of(n)[0]] for n in range(4)] == ["a", "b", "c", "c"]
    assert got.num_restarts.tolist() == [0, 1, 0, 0]


def test_an_outage_may_be_written_over_a_row_that_stays_open() -> None:
    # while both hold the later one counts; when it has ended the earlier one holds again
    outage = {"state": "down", "num_gpus": None, "gpu_model": None}
    machine, notes = built(node("a", 0, gpu_model="v100"), node("a", 10, 20, **outage))
    assert machine.groups == (Group(1, 2, "v100"),)
    assert changes(machine) == [(10, 0, "down"), (20, 0, "up")]
    said = "1 row overlaps a later row of its node: while both hold, the later one counts"
    assert notes == [said]
    machine, notes = built(node("a", 0, 50), node("a", 10, 20, **outage), node("a", 15, 30))
    assert changes(machine) == [(10, 0, "down"), (15, 0, "up")]
    assert notes[0].startswith("2 rows overlap a later row of their node")


def test_a_node_that_was_rebuilt_has_a_place_for_each_of_its_forms() -> None:
    machine, _ = built(node("a", 0, 100), node("a", 100, num_gpus=8), node("b", 0))
    assert (machine.groups, machine.names) == ((Group(2, 2), Group(1, 8)), ("a", "b", "a"))
    assert machine.closed == (2,)
    assert changes(machine) == [(100, 0, "drain"), (100, 2, "up")]
    jobs = workload((BEGIN + 50, 10, 8), (BEGIN + 50, 10, 2))
    got = sim.simulate(jobs, machine, sim.POLICIES.get("easy"))
    assert [int(start) - BEGIN for start in got.start] == [100, 50]


def test_rows_that_cannot_hold_are_counted() -> None:
    _, notes = built(
        node("a", 0),
        node("b", 20, 10),
        node("c", 5, 5),
        node("d", 0, state="asleep"),
        node("e", 0, state=None),
    )
    assert notes == [
        "2 rows of the nodes table end before they begin: left out",
        "1 row has a state that is not known ('asleep'): taken as up",
    ]


def test_before_and_after_the_table_the_machine_is_as_it_was() -> None:
    jobs = workload(
        (BEGIN - 100, 10, 2), (BEGIN - 50, 10, 2), (BEGIN + 500, 10, 4, {"span_nodes": 2})
    )
    machine, notes = built(node("a", 0, 200), node("b", 0, 100), node("c", 100, 200), workload=jobs)
    assert (machine.closed, changes(machine)) == ((2,), [(100, 1, "drain"), (100, 2, "up")])
    assert notes == [
        "2 jobs submitted before the nodes table begins (2018-01-01 00:00 UTC): the machine is taken "
        "to have been as it was then",
        "after 2018-01-01 00:03 UTC, where the nodes table ends, the machine stays as it was",
    ]
    got = sim.simulate(jobs, machine, sim.POLICIES.get("easy"))
    assert [int(start) - BEGIN for start in got.start] == [-100, -50, 500]
    assert got.nodes_of(2) == [0, 2]


def test_models_count_unless_jobs_call_them_otherwise() -> None:
    rows = (node("a", 0, gpu_model="V100"), node("b", 0, gpu_model="A100"))
    asked = workload((BEGIN, 10, 1, {"gpu_model": "V100"}), (BEGIN, 10, 1, {"gpu_model": "K80"}))
    machine, notes = built(*rows, workload=asked)
    assert ([group.model for group in machine.groups], notes) == (["V100", "A100"], [])
    got = sim.simulate(asked, machine, sim.POLICIES.get("easy"))
    assert got.workload.left_out == {"ask for a model that no node has (K80)": 1}
    other = workload((BEGIN, 10, 1, {"gpu_model": "Tesla V100"}))
    machine, notes = built(*rows, workload=other)
    assert machine.groups == (Group(2, 2),)
    assert notes == [
        "jobs ask for Tesla V100 and the nodes table knows A100, V100: models are not looked at"
    ]


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (None, "up"), ("up", "up"), ("drained", "drain"), ("down", "down"), ("IDLE", "up"), ("mixed", "up"),
        ("alloc", "up"), ("IDLE+DRAIN", "drain"), ("DOWN+DRAIN", "down"), ("MIXED+MAINT", "drain"),
        ("idle*", "drain"), ("down*", "down"), ("idle~", "up"), ("mix$", "drain"), ("mix-", "up"),
        ("IDLE+CLOUD+POWERED_DOWN", "up"), ("job-exclusive", "up"), ("offline", "drain"),
        ("UNKNOWN", None), ("", "up"), ("IDLE+PURPLE", None), ("free", "up"),
    ],
)  # fmt: skip
def test_states(state: str | None, kind: str | None) -> None:
    assert kind_of(state) == kind


@pytest.fixture
def known(lake: Lake) -> Lake:
    """Two nodes in the table where the settings say five; two jobs that need one each, then a third."""
    rows = [
        job(n, num_gpus=2, submitted_at=START, run_s=100.0, requested_s=100.0) for n in range(3)
    ]
    put_jobs(lake, rows, json.dumps({"gpus_per_node": 2, "nodes": 5}))
    put(lake, "nodes", [node("gpu-b", 0), node("gpu-a", 0), node("x", 0) | {"cluster": "other"}])
    return lake


def simulated(lake: Lake, output: Path, *more: str) -> tuple[dict[str, Any], str]:
    arguments = ["simulate", "-w", str(lake.workspace), "--cluster", "c", "-o", str(output), *more]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return json.loads(output.read_text()), done.output


def test_the_command_line_goes_before_the_table_and_that_before_the_settings(
    known: Lake, tmp_path: Path
) -> None:
    held, output = simulated(known, tmp_path / "s.json")
    assert [row["nodes"] for row in held["schedule"]] == ["gpu-a", "gpu-b", "gpu-a"]
    assert "on 2 nodes x 2 = 4 GPUs" in output
    assert "the machine is as the lake's nodes table has it" in output
    held, output = simulated(known, tmp_path / "s.json", "--nodes", "3x2")
    assert [row["nodes"] for row in held["schedule"]] == ["node-0", "node-1", "node-2"]
    assert "the machine is as it was asked for" in output
    with open_session(known) as session:
        site = pickle.loads(pickle.dumps(Site.of(session, "c")))
    assert site.machine().machine.names == ("gpu-a", "gpu-b")
    assert site.machine(MachineSpec(size=4)).machine.groups == (Group(2, 4),)
    assert site.machine(MachineSpec(packing="spread")).machine.placement.packing == "spread"


def test_a_table_that_does_not_say_how_large_nodes_are_leaves_it_to_the_settings() -> None:
    rows = [node("a", 0, num_gpus=None)]
    taken = Site(
        "c", Cluster(gpus_per_node=2, nodes=(Capacity(5),)), inventory=Inventory(rows)
    ).machine()
    assert taken.machine == sim.Machine.of_nodes(5, 2)
    assert taken.whence == "as hakaru.toml or the log says"
    assert taken.notes == ("1 node has no GPUs in the nodes table: left out",)


def test_a_stored_schedule_has_the_real_names(known: Lake, tmp_path: Path) -> None:
    simulated(known, tmp_path / "s.json", "--into", "again")
    with open_session(known) as session:
        query = (
            f"SELECT * FROM {session.stored(['cluster', 'job_id', 'nodes'])} AS s ORDER BY job_id"
        )
        rows = session.engine.query(query).to_pylist()
    names = [row["nodes"] for row in rows if row["cluster"] == "again"]
    assert names == [["gpu-a"], ["gpu-b"], ["gpu-a"]]


def test_variants_of_named_nodes() -> None:
    from hakaru.sim.whatif import read
    from hakaru.sim.whatif.variants import prepare

    site = Site("c", inventory=Inventory([node("a", 0), node("b", 0, num_gpus=4), node("c", 0, 9)]))
    text = "[[variant]]\nnodes = +1\n[[variant]]\nnodes = -1\n"
    base, more, fewer = prepare(read(text), workload((BEGIN, 10, 1)), site)
    assert base.machine.names == ("a", "c", "b")  # by group
    assert more.machine.names == ("a", "c", "b", "added-1")
    assert (fewer.machine.names, fewer.machine.groups) == (("c", "b"), (Group(1, 2), Group(1, 4)))
    assert fewer.machine.changes == (Change(BEGIN + 9, 0, "drain"),)


def test_nodes_that_are_taken_away_or_fail_are_nodes_that_are_there() -> None:
    """Two nodes are replaced by two others, whose names come later, before the log begins."""
    from hakaru.sim.whatif import read
    from hakaru.sim.whatif.variants import prepare

    old, new = ((node(name, 0, 50) for name in "ab"), (node(name, 50) for name in "cd"))
    site = Site("c", inventory=Inventory([*old, *new]))
    text = """
        [[variant]]
        nodes = -1
        [[variant]]
        failures = [{ at = 2018-01-01T00:02:00, nodes = 1, hours = 1 }]
    """
    jobs = workload(*((BEGIN + 100, 50, 2) for _ in range(2)))
    runs = prepare(read(text), jobs, site)
    assert [run.machine.names for run in runs] == [tuple("abcd"), tuple("abd"), tuple("abcd")]
    assert runs[1].notes == ("1 node removed (c): 3 instead of 4",)
    starts = [sim.simulate(jobs, run.machine, sim.POLICIES.get("easy")).start for run in runs]
    assert [(start - BEGIN).tolist() for start in starts] == [[100, 100], [100, 150], [150, 100]]


def test_a_node_that_was_rebuilt_is_taken_away_as_one() -> None:
    machine, _ = built(node("a", 0, 100), node("a", 100, num_gpus=8), node("b", 0))
    fewer = machine.without(["a"])
    assert (fewer.groups, fewer.names, fewer.changes) == ((Group(1, 2),), ("b",), ())
    fewer = machine.without(["b"])
    assert (fewer.groups, fewer.names) == ((Group(1, 2), Group(1, 8)), ("a", "a"))
    assert (fewer.closed, changes(fewer)) == ((1,), [(100, 0, "drain"), (100, 1, "up")])


def test_how_long_nodes_are_up() -> None:
    machine, _ = built(
        node("a", 0),
        node("b", 50, 200),
        node("c", 0, 100),
        node("c", 100, 150, state="down"),
        node("c", 150),
    )
    assert machine.seconds_up(BEGIN, BEGIN + 300).tolist() == [300, 150, 250]
    assert machine.seconds_up(BEGIN + 60, BEGIN + 120).tolist() == [60, 60, 40]
    assert machine.seconds_up(BEGIN + 120, BEGIN + 121).tolist() == [1, 1, 0]
    assert machine.seconds_up(BEGIN + 400, BEGIN + 401).tolist() == [1, 0, 1]


def test_the_synthetic_cluster_runs_on_its_own_nodes(tmp_path: Path) -> None:
    where = ["-w", str(tmp_path / "w")]
    done = CliRunner().invoke(main, ["synth", "--jobs", "300", "--samples-days", "0", *where])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["simulate", *where])
    assert done.exit_code == 0, done.output
    assert "300 jobs on 38 nodes x 8" in done.output
    assert "the machine is as the lake's nodes table has it" in done.output


def test_a_node_is_lost_by_its_name(known: Lake, tmp_path: Path) -> None:
    span = "2018-01-01T00:00:30..2018-01-01T01:00"
    held, _ = simulated(known, tmp_path / "s.json", "--fail", f"gpu-b@{span}")
    # the second job begins anew on gpu-a when the first has ended, and the third after it
    assert [row["nodes"] for row in held["schedule"]] == ["gpu-a"] * 3
    assert [row["start"][14:19] for row in held["schedule"]] == ["00:00", "01:40", "03:20"]
    again, _ = simulated(known, tmp_path / "s.json", "--fail", f"1@{span}")
    assert again["schedule"] == held["schedule"]
    arguments = [
        "simulate",
        "-w",
        str(known.workspace),
        "--cluster",
        "c",
        "--fail",
        f"gpu-c@{span}",
    ]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code != 0
    assert "no node is called so; did you mean" in done.output
