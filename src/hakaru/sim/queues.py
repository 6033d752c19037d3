"""What a queue allows: how long its jobs may ask for, and how large they may be."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim.notation import counted

if TYPE_CHECKING:
    from hakaru.sim.workload import Workload

WALLTIME_FORM = "write QUEUE=HOURS[,refuse], e.g. short=6 or short=0.5,refuse"


@dataclass(frozen=True)
class QueueRule:
    """A queue's limits: a job that asks for more is cut (and ends there) or refused.

    Jobs of other queues (`takes_from`; all, if none is named) come over where the wider limit lets them in.
    """

    max_walltime_h: float | None = None
    max_gpus: int | None = None
    over: str = "cut"
    takes_from: tuple[str, ...] | None = None


def limit_queue(workload: Workload, name: str, rule: QueueRule) -> tuple[Workload, str]:
    """Jobs of the queue that ask for more than it allows are cut at the limit, or do not run."""
    mine = workload.queue == workload.names["queue"].index(name)
    limit_s = np.inf if rule.max_walltime_h is None else rule.max_walltime_h * 3600
    long = mine & (workload.request > limit_s)
    large = mine & (workload.pes > (rule.max_gpus or np.inf))
    refused = large | (long if rule.over == "refuse" else False)
    notes = []
    cut = long & ~refused
    if cut.any():
        request = np.where(cut, limit_s, workload.request).astype(np.int64)
        ended = int((cut & (workload.run > request)).sum())
        workload = replace(workload, request=request, run=np.minimum(workload.run, request))
        notes.append(
            f"queue {name}: {counted(int(cut.sum()), 'request')} cut to {rule.max_walltime_h:g} h, "
            f"{counted(ended)} ended there"
        )
    reason = f"above the limits of queue {name}"
    return workload.take(~refused, reason) if refused.any() else workload, "; ".join(notes)


def parse_walltime(text: str) -> tuple[str, QueueRule]:
    """`short=6`: requests of the queue are cut at six hours; `short=6,refuse`: such jobs do not run."""
    limit, _, over = text.partition(",")
    name, _, hours = limit.rpartition("=")
    try:
        value = float(hours)
    except ValueError:
        value = math.nan
    if not name or over not in ("", "refuse", "cut") or not 0 < value < math.inf:
        raise HakaruError(f"walltime {text!r} cannot be read: {WALLTIME_FORM}")
    return name, QueueRule(value, over=over or "cut")


def write_walltime(name: str, rule: QueueRule) -> str:
    more = ",refuse" if rule.over == "refuse" else ""
    return f"walltime {name}={rule.max_walltime_h:g}{more}"


def check_queue(workload: Workload, name: str) -> None:
    names = workload.names["queue"]
    if name not in names:
        raise HakaruError(
            f"a walltime names the queue {name!r}, which no job has; {hint(name, names)}"
        )
