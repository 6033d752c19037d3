"""A schedule as a cluster of its own, marked as made up, so that every analysis and figure takes it."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import connect
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.schema import CLUSTERS, INGESTS, JOBS
from hakaru.settings import Engine as EngineSettings
from hakaru.settings import check_cluster_name
from hakaru.sim.workload import COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim.machine import Machine
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.site import Site

SOURCE = "simulation"
# What to ask for instead of COLUMNS, so that nothing of the jobs is lost.
ALL_COLUMNS = (*JOBS.names, *(name for name in COLUMNS if name not in JOBS.names))


def store(lake: Lake, schedule: Schedule, name: str, site: Site, label: str) -> int:
    """Put the simulated jobs in the place of all that the cluster `name` holds; how many there are.

    Only a cluster that an earlier simulation made is replaced.
    """
    check_name(lake, name)
    jobs = jobs_of(schedule, name)
    now = datetime.now(UTC)
    row: dict[str, Any] = {
        "ingest_id": uuid.uuid4().hex,
        "cluster": name,
        "source": SOURCE,
        "inputs": [label],
    }
    row |= {"synthetic": True, "started_at": now, "num_rejected": 0}
    facts: dict[str, Any] = {"cluster": name, "source": SOURCE, "file": "-", "said_at": now}
    facts |= {"facts": json.dumps(facts_of(site, schedule.machine), sort_keys=True)}
    with lake.staging() as folder, closing(connect(EngineSettings(), str(folder))) as con:
        # first of all that it is made up, in case the run is killed
        lake.put_rows(con, INGESTS, [row | {"ended_at": now}])
        lake.put_rows(con, CLUSTERS, [facts])
        con.register("simulated", jobs)
        lake.replace(con, JOBS, "simulated", f"(SELECT {quote(name)} AS cluster)", ("cluster",))
        counts = {"num_read": jobs.num_rows, "num_new": jobs.num_rows}
        lake.put_rows(con, INGESTS, [row | counts | {"ended_at": datetime.now(UTC)}])
    return len(schedule.start)


@contextmanager
def lake_of(schedule: Schedule, site: Site, name: str = "simulated") -> Iterator[Lake]:
    """A lake of its own for one schedule, for as long as it is asked."""
    with tempfile.TemporaryDirectory(prefix="hakaru-") as folder:
        lake = Lake.create(Path(folder))
        store(lake, schedule, name, site, schedule.policy)
        yield lake


def jobs_of(schedule: Schedule, name: str) -> pa.Table:
    """The canonical jobs: as they were, with new times and nodes; one that never began still waits."""
    import pyarrow as pa

    table, num = schedule.table(), len(schedule.start)
    began = pa.array(schedule.start >= 0)
    new = {
        "cluster": pa.array([name]).take(pa.array(np.zeros(num, np.int64))),
        "state": _where(began, table["state"], "pending"),
        "nodes": node_names(schedule),
        # not simulated: holds, and which of a node's GPUs
        "eligible_at": None,
        "gpu_ids": None,
    }
    arrays = [
        _column(new[field.name] if field.name in new else _own(table, field.name), field.type, num)
        for field in JOBS.arrow()
    ]
    return pa.table(arrays, schema=JOBS.arrow())


def facts_of(site: Site, machine: Machine) -> dict[str, Any]:
    """Zone, unit, hours and queues of the original; the machine as it was simulated."""
    cluster = site.cluster
    facts: dict[str, Any] = {
        "zone": cluster.zone if cluster.has_zone else None,
        "unit": site.unit,
        "working_hours": list(cluster.working_hours),
        "users_per_file": cluster.users_per_file,
        "relative_dates": cluster.relative_dates,
        "queues": {name: _known(vars(queue)) for name, queue in cluster.queues.items()},
        "gpus_per_node": cluster.gpus_per_node,
        "cpus_per_node": cluster.cpus_per_node,
    }
    return _known(facts | _size(site, machine))


def _size(site: Site, machine: Machine) -> dict[str, Any]:
    """Nodes over time where they are the settings' own, else what was simulated; a pool has no nodes."""
    cluster, sizes = site.cluster, np.unique(machine.sizes)
    per_node = cluster.per_node(site.unit)
    most = max((span.count for span in cluster.nodes), default=0)
    if per_node and most * per_node == machine.num_pes:
        spans = [
            {"count": each.count} | ({"since": each.since.isoformat()} if each.since else {})
            for each in cluster.nodes
        ]
        return {"nodes": spans}
    if machine.is_flat:
        return {f"{site.unit}s": machine.num_pes}
    if len(sizes) > 1:
        return {"nodes": None, f"{site.unit}s_per_node": None}
    return {"nodes": machine.num_nodes, f"{site.unit}s_per_node": int(sizes[0])}


def check_name(lake: Lake, name: str) -> None:
    """Refuse a name that is none, or that of a cluster with jobs of another source."""
    check_cluster_name(name)
    others = {row["source"] for row in lake.ingests() if row["cluster"] == name} - {SOURCE}
    if others:
        raise HakaruError(
            f"{lake.workspace}: the cluster {name!r} holds jobs of another source "
            f"({', '.join(sorted(others))}); give the simulation a name of its own, "
            f"e.g. --into {name}-simulated"
        )


def node_names(schedule: Schedule) -> Any:
    """Names of the nodes a job got; null where it has none, as on a flat pool."""
    import pyarrow as pa

    if not len(schedule.node):
        return None
    names = pa.array(schedule.machine.node_names)
    ends = np.append(schedule.offset, len(schedule.node)).astype(np.int32)
    got = pa.array(schedule.node, mask=schedule.node < 0)
    lists = pa.ListArray.from_arrays(pa.array(ends), names.take(got))
    return _where(pa.array(schedule.start >= 0), lists, None)


def _where(began: pa.Array, values: Any, other: str | None) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return pc.if_else(began, whole, pa.scalar(other, whole.type))


def _own(table: pa.Table, name: str) -> Any:
    return table[name] if name in table.column_names else None


def _column(values: Any, kind: pa.DataType, num: int) -> Any:
    import pyarrow as pa

    return pa.nulls(num, kind) if values is None else values.cast(kind)


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
