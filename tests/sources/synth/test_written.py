"""What a run of the generator leaves in the lake, says at its end, and leaves behind when it is killed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from hakaru.engine.duckdb import connect
from hakaru.lake import Lake
from hakaru.schema import INGESTS, JOBS, NODES
from hakaru.settings import Engine
from hakaru.sources import synth
from hakaru.sources.synth import Synth, generate
from tests.conftest import utc

TINY = Synth(
    num_jobs=40, num_nodes=2, gpus_per_node=4, days=2, samples_days=0.01, start=datetime(2024, 4, 1)
)


def test_the_summary_and_the_nodes_are_those_of_the_plan(lake: Lake) -> None:
    """Two days from 1 April in Tokyo, on two nodes of four GPUs; 14 minutes have samples."""
    seen: list[tuple[int, int]] = []
    made = generate(lake, TINY, progress=lambda *step: seen.append(step))
    assert (made.since, made.until) == (utc("2024-03-31T15:00:00"), utc("2024-04-02T15:00:00"))
    assert (made.num_jobs, made.num_nodes, made.num_gpus) == (40, 2, 8)
    assert {total for _, total in seen} == {40 + 14 * 8}
    assert [done for done, _ in seen] == [40, 40 + made.num_samples]
    con = connect(Engine())
    rows = sorted(lake.read(con, NODES).to_pylist(), key=lambda row: row["node"])
    con.close()
    names = ("cluster", "node", "since", "num_gpus", "gpu_model", "state")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("synth", "node01", utc("2024-03-31T15:00:00"), 4, "P100", "up"),
        ("synth", "node02", utc("2024-03-31T15:00:00"), 4, "P100", "up"),
    ]


def test_a_run_that_is_made_again_counts_its_samples(lake: Lake) -> None:
    first, again = generate(lake, TINY), generate(lake, TINY)
    assert again.num_samples == first.num_samples > 0
    assert len(lake.ingests()) == 2


def test_a_killed_run_is_known_as_synthetic_and_can_be_ended(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(synth, "_write", killed)
        generate(lake, TINY)
    assert lake.synthetic_clusters() == {"synth"} and lake.facts()["synth"]["nodes"] == 2
    assert generate(lake, TINY).jobs.num_new == 40
    con = connect(Engine())
    assert lake.read(con, JOBS).num_rows == 40
    assert sorted(lake.read(con, INGESTS)["num_read"].to_pylist(), key=str) == [40, None]
    con.close()


@pytest.mark.parametrize(
    "change",
    [{"days": 3.0}, {"num_nodes": 3}, {"idle_share": 0.2}, {"num_users": 7}],
)
def test_every_parameter_sets_a_cluster_apart(lake: Lake, change: dict[str, float]) -> None:
    generate(lake, replace(TINY, samples_days=0))
    with pytest.raises(
        synth.SourceError, match=f"synthetic jobs made with .*{next(iter(change))}="
    ):
        generate(lake, replace(TINY, samples_days=0, **change))  # type: ignore[arg-type]
