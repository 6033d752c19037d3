"""A block of synthetic jobs as a canonical Arrow table, with nodes and GPUs where they are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from hakaru.schema import JOBS
from hakaru.sources.synth import _figures as figures
from hakaru.sources.synth._jobs import Jobs
from hakaru.sources.synth._samples import Placement
from hakaru.sources.synth._spec import Plan
from hakaru.sources.synth._tables import Ints


def block_table(plan: Plan, jobs: Jobs, placement: Placement | None) -> pa.Table:
    num = len(jobs.number)
    started, placed = _placed(jobs, placement, plan)
    users = pa.array([f"user{i:03}" for i in range(1, plan.spec.num_users + 1)])
    num_groups = max(1, round(plan.spec.num_users / figures.USERS_A_GROUP))
    groups = pa.array([f"group{i:02}" for i in range(1, num_groups + 1)])
    columns: dict[str, Any] = {
        "cluster": pa.repeat(pa.scalar(plan.spec.cluster), num),
        "job_id": pa.array(jobs.number).cast(pa.string()),
        "user": users.take(pa.array(jobs.user)),
        "account": groups.take(pa.array(jobs.user % num_groups)),
        "queue": pa.array(figures.QUEUES).take(pa.array(jobs.queue)),
        "state": pa.array(figures.STATES).take(pa.array(jobs.state)),
        "exit_code": pa.array(figures.EXIT_CODES).take(pa.array(jobs.state)),
        "num_nodes": pa.array(jobs.num_nodes),
        "num_gpus": pa.array(jobs.num_gpus),
        "gpu_model": pa.repeat(pa.scalar(figures.GPU_MODEL), num),
        "requested_s": pa.array(jobs.requested_s),
        "submitted_at": _times(jobs.submitted),
        "started_at": _times(started),
        "ended_at": _times(started + jobs.run_s),
        "wait_s": pa.array((started - jobs.submitted).astype(np.float64)),
        "run_s": pa.array(jobs.run_s.astype(np.float64)),
        **placed,
    }
    schema = JOBS.arrow()
    return pa.table(
        [columns.get(field.name, pa.nulls(num, field.type)) for field in schema], schema=schema
    )


def _placed(
    jobs: Jobs, placement: Placement | None, plan: Plan
) -> tuple[Ints, dict[str, pa.Array]]:
    """Starts as the placement has them, and lists of nodes and GPUs for the jobs that it holds."""
    if placement is None:
        return jobs.started, {}
    low, high = np.searchsorted(placement.number, [jobs.number[0], jobs.number[-1] + 1])
    rows = placement.number[low:high] - jobs.number[0]
    if not len(rows):
        return jobs.started, {}
    started = jobs.started.copy()
    started[rows] = placement.started[low:high]
    first, last = np.searchsorted(placement.owner, [low, high])
    gpu, row = placement.gpu[first:last], rows[placement.owner[first:last] - low]
    node = gpu // plan.spec.gpus_per_node
    names = pa.array(plan.node_names())
    ids = [f"{name}:{i}" for name in names.to_pylist() for i in range(plan.spec.gpus_per_node)]
    # a job's GPUs rise, so a node is new where it differs from the entry before
    new = (np.diff(node, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0)
    num = len(jobs.number)
    return started, {
        "nodes": _lists(num, rows, row[new], names.take(pa.array(node[new]))),
        "gpu_ids": _lists(num, rows, row, pa.array(ids).take(pa.array(gpu))),
    }


def _lists(num: int, known: Ints, row: Ints, values: pa.Array) -> pa.Array:
    """A list a row, null where nothing is known."""
    counts = np.bincount(row, minlength=num)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    unknown = np.ones(num, dtype=bool)
    unknown[known] = False
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=pa.array(unknown))


def _times(seconds: Ints) -> pa.Array:
    moments = (seconds * 1_000_000).astype("datetime64[us]")
    return pa.array(moments).cast(pa.timestamp("us", tz="UTC"))
