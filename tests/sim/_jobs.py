"""Small workloads written by hand for the simulator's tests."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hakaru import sim

_KINDS = {"num_pes": pa.int64(), "span_nodes": pa.int64()} | {
    name: pa.timestamp("us", "UTC") if name.endswith("_at") else pa.float64()
    for name in sim.COLUMNS
    if name.endswith(("_at", "_s"))
}
SCHEMA = pa.schema([(name, _KINDS.get(name, pa.string())) for name in sim.COLUMNS])


def row(number: int, submit: float | None, run: float | None, pes: int | None, **more: Any) -> Any:
    """A job that asks for as long as it runs, on one node, with what a test changes."""
    at = None if submit is None else datetime.fromtimestamp(submit, UTC)
    return {
        "cluster": "c",
        "job_id": str(number),
        "user": "ann",
        "account": "lab",
        "queue": "normal",
        "num_pes": pes,
        "span_nodes": 1,
        "requested_s": run,
        "submitted_at": at,
        "run_s": run,
        "state": "completed",
    } | more


def table(*jobs: Any) -> pa.Table:
    """Each job (submit, run, pes) or (submit, run, pes, {column: value})."""
    rows = [
        row(number, *job[:3], **(job[3] if len(job) > 3 else {})) for number, job in enumerate(jobs)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def workload(*jobs: Any) -> sim.Workload:
    """With runs as they are written: the kernels are tried with jobs of no length too."""
    return sim.Workload.of(table(*jobs), least_run_s=0)


def play(jobs: Iterable[Any], machine: sim.Machine, policy: str, **options: Any) -> sim.Schedule:
    return sim.simulate(workload(*jobs), machine, sim.POLICIES.get(policy), sim.Options(**options))


def starts(jobs: Iterable[Any], machine: sim.Machine, policy: str, **options: Any) -> list[int]:
    return [int(start) for start in play(jobs, machine, policy, **options).start]
