"""What a step consists of: each rank's parts, and communication as a pipeline of buckets.

Communication of a bucket begins when the last rank is ready with it and the bucket before is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hakaru.measure.statistics import Floats
from hakaru.measure.training._table import StepTable

DOMINATES = 0.4  # of the step: communication that is to blame


@dataclass(frozen=True)
class Communication:
    """Of a step in the median: what is sent, and how much of the time hides behind compute."""

    num_bytes: int
    exposed_s: float
    hidden_s: float
    step_s: float

    @property
    def dominates(self) -> bool:
        return self.exposed_s > DOMINATES * self.step_s

    def to_json(self) -> dict[str, Any]:
        return {
            "bytes": self.num_bytes,
            "exposed_ms": round(self.exposed_s * 1e3, 3),
            "hidden_ms": round(self.hidden_s * 1e3, 3),
        }


def communication_of(table: StepTable) -> Communication:
    """Of a step in the median."""
    each_s = exposed_s(table)
    exposed = float(np.median(each_s))
    if not table.has_buckets:
        return Communication(0, exposed, 0.0, table.step_s)
    finish, ready = table.finished.max(axis=1), table.ready.max(axis=1)
    hidden = float(np.median(_durations(finish, ready).sum(axis=1) - each_s))
    return Communication(sum(table.bucket_bytes), exposed, hidden, table.step_s)


def exposed_s(table: StepTable) -> Floats:
    """Of each step what the job waits after its last rank is ready, so that no rank's lateness counts.

    All wait for the rank that sees the end last. Without buckets it is what the rank waits that waits least:
    it is the last, and all that it waits for is communication.
    """
    if not table.has_buckets:
        least: Floats = table.waited.min(axis=1)
        return least
    tail: Floats = table.finished[:, :, -1].max(axis=1) - table.ready[:, :, -1].max(axis=1)
    return tail


def breakdown_of(
    table: StepTable, hosts: Sequence[str], ranks: Sequence[int] = ()
) -> list[dict[str, Any]]:
    """Each rank's step in ms: medians of its parts, scaled so that they sum to its median step.

    `ranks` are their numbers in the run; else they count from 0.
    """
    parts = _parts(table)
    medians = {name: np.median(each, axis=0) for name, each in parts.items()}
    total = sum(medians.values(), np.zeros(table.num_ranks))
    steps = np.median(table.optimiser - table.begin, axis=0)
    scale = np.divide(steps, total, out=np.ones_like(total), where=total > 0) * 1e3
    return [
        {"rank": ranks[rank] if ranks else rank, "host": hosts[rank]}
        | {name: round(float(each[rank] * scale[rank]), 4) for name, each in medians.items()}
        for rank in range(table.num_ranks)
    ]


def durations(table: StepTable) -> Floats:
    """d_i [steps, buckets]: what communication of each bucket took once it could begin.

    One that is below zero shows that the clocks disagree; it is kept, so that a replay gives what was seen.
    """
    return _durations(usual_finish(table), table.ready.max(axis=1))


def usual_durations(table: StepTable) -> Floats:
    """Of each bucket in the median, so that together they take what all take in the median."""
    each = durations(table)
    usual: Floats = np.median(each, axis=0)
    whole = float(np.median(each.sum(axis=1)))
    return usual * (whole / usual.sum()) if usual.sum() > 0 else usual


def replayed(ready: Floats, taken: Floats) -> Floats:
    """When each bucket finishes, [steps, buckets]: from when the last rank is ready, and the durations."""
    finish = np.empty_like(taken)
    done = np.full(len(taken), -np.inf)
    for bucket in range(taken.shape[1]):
        done = np.maximum(ready[:, bucket], done) + taken[:, bucket]
        finish[:, bucket] = done
    return finish


def usual_finish(table: StepTable) -> Floats:
    """Of each bucket [steps, buckets].

    The ranks see it a little apart. Part of that hides behind the next bucket, so that their median counts.
    """
    return np.median(table.finished, axis=1)


def _durations(finish: Floats, ready: Floats) -> Floats:
    before = np.concatenate([np.full((len(finish), 1), -np.inf), finish[:, :-1]], axis=1)
    taken: Floats = finish - np.maximum(ready, before)
    return taken


def _parts(table: StepTable) -> dict[str, Floats]:
    """The phases of the step as people read it; waiting is taken out of the passes in proportion."""
    data, forward = table.data - table.begin, table.forward - table.data
    end = table.ready[:, :, -1] if table.has_buckets else table.backward
    backward, tail = end - table.forward, table.backward - end
    passes = forward + backward
    kept = np.divide(
        passes - table.waited, passes, out=np.ones_like(passes), where=passes > 0
    ).clip(0.0, None)
    return {
        "data": data,
        "forward": forward * kept,
        "backward": backward * kept,
        "exposed": tail + table.waited,
        "optimiser": table.optimiser - table.backward,
    }
