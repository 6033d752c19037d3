"""The published schedules of KTH's log, job for job."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hakaru import sim
from hakaru.analyses import Selection, open_session
from hakaru.lake import Lake
from hakaru.sources import ingest


@pytest.fixture(scope="module")
def kth(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> sim.Workload:
    lake = Lake.create(tmp_path_factory.mktemp("kth"))
    ingest(lake, [shared / "data" / "schedules" / "kth-100.swf.gz"], "kth")
    query = f"SELECT {', '.join(sim.COLUMNS)} FROM jobs ORDER BY {sim.ORDER}"
    with open_session(lake) as session:
        return sim.Workload.of(session.ask(query, Selection(clusters=("kth",))))


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
def test_kth_on_100_processors(kth: sim.Workload, shared: Path, policy: str) -> None:
    path = shared / "data" / "schedules" / f"kth-100-{policy}.csv.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()[1:]
    expected = {job: int(start) for job, start in (line.split(",") for line in lines)}
    got = sim.simulate(kth, sim.Machine.flat(100), sim.POLICIES.get(policy))
    assert len(expected) == len(kth) == 28481
    assert (
        dict(zip(got.workload.table["job_id"].to_pylist(), got.start.tolist(), strict=True))
        == expected
    )


@pytest.mark.parametrize("policy", ["fcfs", "sjf"])
def test_a_hundred_nodes_of_one_are_a_pool(kth: sim.Workload, policy: str) -> None:
    # Without reservations, which are of certain nodes, it makes no difference which processors a job gets.
    part, chosen = kth.take(kth.submit < kth.submit[3000]), sim.POLICIES.get(policy)
    flat = sim.simulate(part, sim.Machine.flat(100), chosen)
    nodes = sim.simulate(part, sim.Machine.of_nodes(100, 1), chosen)
    assert nodes.start.tolist() == flat.start.tolist()
