"""What ran where on a day: bars of jobs on the lanes of their nodes, few enough to be drawn."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from hakaru.web.what_if import player
from hakaru.web.what_if.models import Bar, NodesOfDay, Outcome

MAX_BARS = 3000


def nodes_of_day(folder: Path, outcome: Outcome, variant: int, day: date) -> NodesOfDay:
    since, until = _bounds(day, outcome.zone)
    machine = outcome.machines[variant]
    rows = np.load(folder / f"rows-{variant}.npy", mmap_mode="r")
    ran = rows[(rows["start"] < until) & (rows["end"] > since)]
    kept = ran[:0] if machine.is_flat else _longest(ran, since, until)
    bars = _bars(folder, outcome, variant, kept, since, until)
    return NodesOfDay(
        variant=outcome.runs[variant].name,
        day=day,
        zone=outcome.zone,
        machine=machine,
        num_jobs=len(ran),
        num_left_out=0 if machine.is_flat else len(ran) - len(kept),
        bars=bars,
    )


def _bounds(day: date, zone: str) -> tuple[int, int]:
    clock = ZoneInfo(zone)
    begins = (datetime.combine(each, time(), clock) for each in (day, day + timedelta(days=1)))
    since, until = (int(moment.timestamp()) for moment in begins)
    return since, until


def _longest(rows: Any, since: int, until: int) -> Any:
    """Those that take most of the day, as many as can be drawn."""
    spent = np.minimum(rows["end"], until) - np.maximum(rows["start"], since)
    order = np.argsort(-spent, kind="stable")
    num_bars = np.cumsum(np.maximum(rows["num_nodes"][order], 1))
    return rows[np.sort(order[num_bars <= MAX_BARS])]


def _bars(
    folder: Path, outcome: Outcome, variant: int, rows: Any, since: int, until: int
) -> list[Bar]:
    """A loop over what is drawn, never over the log."""
    nodes = np.load(folder / f"nodes-{variant}.npy", mmap_mode="r")
    jobs = _jobs(folder, rows["job"])
    free: dict[int, list[int]] = {}  # of each node, when each lane is free again
    bars = []
    for place in np.argsort(rows["start"], kind="stable"):
        row, job = rows[place], jobs[place]
        own = nodes[row["offset"] : row["offset"] + row["num_nodes"]].tolist() or [0]
        begin, end = int(max(row["start"], since)), int(min(row["end"], until))
        parallelism = outcome.classes[job.pop("class")]
        for at, node in enumerate(own):
            num_pes = job["num_pes"] // len(own) + (at < job["num_pes"] % len(own))
            lanes = free.setdefault(node, [0] * outcome.machines[variant].node_size)
            bars += [
                Bar(
                    node=node, lane=lane, num_lanes=count, start=begin, end=end,
                    parallelism=parallelism, **job,
                )
                for lane, count in _taken(lanes, num_pes, int(row["start"]), int(row["end"]))
            ]  # fmt: skip
    return bars


def _jobs(folder: Path, numbers: Any) -> list[dict[str, Any]]:
    with pa.memory_map(str(folder / player.NAMES)) as source:
        return list(pa.ipc.open_file(source).read_all().take(pa.array(numbers)).to_pylist())


def _taken(lanes: list[int], num: int, start: int, end: int) -> list[tuple[int, int]]:
    """Takes so many free lanes, side by side where there are such; gives them as first and how many."""
    free = [lane for lane, until in enumerate(lanes) if until <= start]
    beside = [i for i in range(len(free) - num + 1) if free[i + num - 1] - free[i] == num - 1]
    chosen = free[beside[0] :][:num] if num and beside else free[:num]
    for lane in chosen:
        lanes[lane] = end
    parts: list[tuple[int, int]] = []
    for lane in chosen:
        if parts and sum(parts[-1]) == lane:
            parts[-1] = (parts[-1][0], parts[-1][1] + 1)
        else:
            parts.append((lane, 1))
    return parts
