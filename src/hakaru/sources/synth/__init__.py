"""A synthetic cluster with jobs, nodes and one-minute GPU samples, fitted to AAIC's published figures.

The same parameters give the same rows, in chunks of any size. Jobs begin first come, first served, when the
machine has enough GPUs free, so the waits come from the load. In the window with samples every job has GPUs
of its own on its nodes; before it the GPUs are only counted. All of it is marked synthetic in the lake.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hakaru.engine.duckdb import connect
from hakaru.errors import SourceError
from hakaru.lake import Lake, Upsert
from hakaru.schema import INGESTS, JOBS, NODES, SAMPLES, Table
from hakaru.settings import Engine as EngineSettings
from hakaru.sources.ingest import log_ingest, put_facts
from hakaru.sources.synth._spec import Plan, Synth, plan

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from hakaru.sources.synth._making import Making

__all__ = ["Generated", "Synth", "generate", "jobs_table", "samples_table"]

SOURCE = "synth"
CHUNK_ROWS = 1_000_000
# rows done, rows in all (jobs and samples, the latter as if none were missing)
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Generated:
    """What a run wrote, and the machine and period that the parameters came to."""

    cluster: str
    jobs: Upsert
    samples: Upsert
    num_jobs: int
    num_samples: int
    num_nodes: int
    num_gpus: int
    since: datetime
    until: datetime
    seconds: float


def generate(
    lake: Lake,
    spec: Synth,
    progress: Progress | None = None,
    engine: EngineSettings | None = None,
) -> Generated:
    """Write the cluster into the lake, chunk by chunk; again, and nothing changes."""
    chosen = plan(spec)
    _refuse_mixture(lake, chosen)
    started_at = datetime.now(UTC)
    ingest_id = uuid.uuid4().hex
    with lake.staging() as folder:
        con = connect(engine or EngineSettings(memory="1GB"), spill_to=str(folder))
        try:
            _announce(lake, con, chosen, ingest_id, started_at)
            tell = _Counter(chosen, progress)
            making = _begin(chosen)
            jobs = _write(lake, con, JOBS, making.jobs(CHUNK_ROWS), tell)
            samples = _write(lake, con, SAMPLES, making.samples(), tell)
            log_ingest(
                lake,
                con,
                cluster=spec.cluster,
                sources=[SOURCE],
                inputs=[chosen.label()],
                synthetic=True,
                started_at=started_at,
                num_read=spec.num_jobs,
                num_rejected=0,
                upsert=jobs,
                ingest_id=ingest_id,
            )
        finally:
            con.close()
    return _generated(chosen, jobs, samples, started_at)


def jobs_table(spec: Synth, chunk_rows: int = CHUNK_ROWS) -> Iterator[pa.Table]:
    """The jobs as canonical Arrow tables of about `chunk_rows` rows, in the order of submission."""
    return _begin(plan(spec)).jobs(chunk_rows)


def samples_table(spec: Synth) -> Iterator[pa.Table]:
    """The samples as canonical Arrow tables, in the order of time."""
    return _begin(plan(spec)).samples()


def _begin(chosen: Plan) -> Making:
    from hakaru.sources.synth._making import Making

    return Making(chosen)


class _Counter:
    """Tells `progress` how many rows are done."""

    def __init__(self, chosen: Plan, progress: Progress | None) -> None:
        low, high = chosen.window_s
        self.total = chosen.num_jobs + (high - low) // 60 * chosen.num_gpus
        self.done = 0
        self.progress = progress

    def add(self, num_rows: int) -> None:
        self.done += num_rows
        if self.progress:
            self.progress(self.done, self.total)


def _write(
    lake: Lake, con: DuckDBPyConnection, table: Table, chunks: Iterator[pa.Table], tell: _Counter
) -> Upsert:
    """Merge the chunks one by one; they rise in time, so each meets few of the files before it."""
    total = Upsert()
    for chunk in chunks:
        con.register("synth_chunk", chunk)
        done = lake.upsert(con, table, "synth_chunk")
        con.unregister("synth_chunk")
        total = total.plus(done)
        tell.add(chunk.num_rows)
    return total


def _refuse_mixture(lake: Lake, chosen: Plan) -> None:
    """Two sets of parameters, or a real log and a made one, would be a cluster that nobody asked for."""
    name, asked = chosen.spec.cluster, chosen.label()
    for row in lake.ingests():
        if row["cluster"] != name or row["inputs"] == [asked]:
            continue
        found = "jobs of another source"
        if row["source"] == SOURCE:
            others = [word for word in row["inputs"][0].split() if word not in asked.split()]
            found = f"synthetic jobs made with {' '.join(others)}"
        raise SourceError(
            f"{lake.workspace}: the cluster {name!r} already holds {found}; these would be mixed with "
            "the new ones. Choose another name with --cluster."
        )


def _announce(
    lake: Lake, con: DuckDBPyConnection, chosen: Plan, ingest_id: str, started_at: datetime
) -> None:
    """Say that the cluster is synthetic before its first row is there, in case the run is killed.

    The row without counts knows less than the final one with its id, so that one replaces it.
    """
    cluster = chosen.spec.cluster
    row = {"ingest_id": ingest_id, "cluster": cluster, "source": SOURCE, "synthetic": True}
    row |= {"inputs": [chosen.label()], "started_at": started_at, "ended_at": started_at}
    lake.put_rows(con, INGESTS, [row])
    put_facts(lake, con, cluster, {(SOURCE, chosen.label()): chosen.facts()}, started_at)
    lake.put_rows(con, NODES, _node_rows(chosen))


def _node_rows(chosen: Plan) -> list[dict[str, object]]:
    from hakaru.sources.synth._figures import GPU_MODEL

    since = datetime.fromtimestamp(chosen.start_s, UTC)
    row = {"cluster": chosen.spec.cluster, "since": since, "gpu_model": GPU_MODEL, "state": "up"}
    row |= {"num_gpus": chosen.spec.gpus_per_node}
    return [row | {"node": name} for name in chosen.node_names()]


def _generated(chosen: Plan, jobs: Upsert, samples: Upsert, started_at: datetime) -> Generated:
    return Generated(
        cluster=chosen.spec.cluster,
        jobs=jobs,
        samples=samples,
        num_jobs=chosen.num_jobs,
        num_samples=samples.num_new + samples.num_updated + samples.num_unchanged,
        num_nodes=chosen.num_nodes,
        num_gpus=chosen.num_gpus,
        since=datetime.fromtimestamp(chosen.start_s, UTC),
        until=datetime.fromtimestamp(chosen.end_s, UTC),
        seconds=(datetime.now(UTC) - started_at).total_seconds(),
    )
