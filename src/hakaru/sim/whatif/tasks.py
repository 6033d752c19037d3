"""A run as files, so that another process or another machine can play it: numbers in, numbers out."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.sim.run import simulate
from hakaru.sim.schedule import Schedule
from hakaru.sim.workload import ARRAYS, Workload

if TYPE_CHECKING:
    from hakaru.sim.whatif.variants import Prepared

RESULTS = ("start", "end", "reason", "num_restarts", "num_nodes", "offset", "node")
ROW = "row"


def play_here(prepared: Prepared) -> Schedule:
    policy, options = prepared.recipe.make()
    return simulate(prepared.workload, prepared.machine, policy, options)


def save(prepared: Prepared, folder: Path, number: int) -> None:
    """The workload without its table, and how it is to be played."""
    workload = prepared.workload
    np.savez(_path(folder, number, "in.npz"), **{name: getattr(workload, name) for name in ARRAYS})
    rest = (dict(workload.names), prepared.machine, prepared.recipe)
    _path(folder, number, "in.pickle").write_bytes(pickle.dumps(rest))


def play(folder: Path, number: int) -> int:
    """Play what was saved and write the schedule beside it; gives the number of jobs."""
    import pyarrow as pa

    names, machine, recipe = pickle.loads(_path(folder, number, "in.pickle").read_bytes())
    with np.load(_path(folder, number, "in.npz")) as held:
        arrays = {name: held[name] for name in ARRAYS}
    table = pa.table({ROW: np.arange(len(arrays["submit"]))})
    policy, options = recipe.make()
    schedule = simulate(Workload(table, **arrays, names=names), machine, policy, options)
    rows = schedule.workload.table[ROW].to_numpy()
    results = {name: getattr(schedule, name) for name in RESULTS}
    totals = dict(schedule.totals)
    left_out = schedule.workload.left_out
    part = _path(folder, number, "part.npz")
    np.savez(
        part,
        rows=rows,
        totals=np.array(list(totals.values()), float),
        totals_of=np.array(list(totals), str),
        left_out=np.array(list(left_out.values()), np.int64),
        left_out_of=np.array(list(left_out), str),
        **results,
    )
    part.rename(_path(folder, number, "out.npz"))  # whole, or not there
    return len(rows)


def load(prepared: Prepared, folder: Path, number: int) -> Schedule:
    """The schedule that was written, with the jobs as they are here."""
    with np.load(_path(folder, number, "out.npz")) as held:
        got: dict[str, Any] = {name: held[name] for name in held.files}
    totals = dict(zip(got["totals_of"].tolist(), got["totals"].tolist(), strict=True))
    more = dict(zip(got["left_out_of"].tolist(), got["left_out"].tolist(), strict=True))
    workload = prepared.workload.take(got["rows"])
    return Schedule(
        replace(workload, left_out=dict(workload.left_out) | more),
        prepared.machine,
        prepared.recipe.policy,
        **{name: got[name] for name in RESULTS},
        totals=totals,
    )


def _path(folder: Path, number: int, ending: str) -> Path:
    return folder / f"run-{number}.{ending}"
