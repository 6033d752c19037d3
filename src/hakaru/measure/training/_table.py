"""The times of several steps on all ranks of a group as arrays, on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hakaru.errors import HakaruError
from hakaru.measure.statistics import Floats
from hakaru.measure.training._times import StepTimes


@dataclass(frozen=True, eq=False)
class StepTable:
    """When each phase ended: [steps, ranks], and of buckets [steps, ranks, buckets], in seconds.

    Buckets that the ranks do not have in common are no buckets; what a rank waits for them is `waited`.
    """

    begin: Floats
    data: Floats
    forward: Floats
    backward: Floats
    optimiser: Floats
    waited: Floats
    ready: Floats
    finished: Floats
    bucket_bytes: tuple[int, ...]

    @classmethod
    def of(
        cls,
        all_ranks_steps: Sequence[Sequence[StepTimes]],
        offsets_s: Sequence[float],
        are_shared: bool = True,
    ) -> StepTable:
        """From each rank's steps, in the order of the ranks; an offset is the rank's clock less rank 0's.

        `are_shared` says whether all ranks sum the same buckets: stages of a pipeline may have buckets of
        the same size by chance.
        """
        _check(all_ranks_steps, offsets_s)
        shift = np.asarray(offsets_s, dtype=np.float64)
        ends = {
            name: _by_step(all_ranks_steps, name) - shift
            for name in ("begin", "data", "forward", "backward", "optimiser")
        }
        waited = _by_step(all_ranks_steps, "waited")
        buckets = {each.bucket_bytes for steps in all_ranks_steps for each in steps}
        is_one = are_shared and len(buckets) == 1
        if not is_one:
            waited = waited + _tails(all_ranks_steps)
        shared = next(iter(buckets)) if is_one else ()
        ready, finished = (
            _of_buckets(all_ranks_steps, name, len(shared)) - shift[:, None]
            for name in ("ready", "finished")
        )
        return cls(
            **ends, waited=waited, ready=ready, finished=_in_order(finished), bucket_bytes=shared
        )  # fmt: skip

    @property
    def num_steps(self) -> int:
        return len(self.begin)

    @property
    def num_ranks(self) -> int:
        return int(self.begin.shape[1])

    @property
    def has_buckets(self) -> bool:
        return bool(self.bucket_bytes)

    @property
    def until_ready(self) -> Floats:
        """What a rank works itself from its begin until its last bucket is ready, or until backward ends."""
        end = self.ready[:, :, -1] if self.has_buckets else self.backward
        return end - self.begin - self.waited

    @property
    def step_s(self) -> float:
        """The median length of a step."""
        return float(np.median(self.optimiser - self.begin))

    @property
    def fences(self) -> NDArray[np.bool_]:
        """Before which steps the ranks wait for one another: none begins until all have ended the last.

        Before the first step they do.
        """
        apart = self.begin[1:].min(axis=1) >= self.optimiser[:-1].max(axis=1)
        return np.concatenate([[True], apart])

    @property
    def is_fenced(self) -> bool:
        """Whether the ranks wait for one another before most steps."""
        return self.num_steps > 1 and bool(self.fences[1:].mean() > 0.5)

    def without_first(self, num: int) -> StepTable:
        """Without the first steps, in which caches are cold and buckets are rebuilt."""
        kept = {
            each.name: getattr(self, each.name)[num:]
            for each in fields(self)
            if each.name != "bucket_bytes"
        }
        return StepTable(**kept, bucket_bytes=self.bucket_bytes)


def _check(ranks: Sequence[Sequence[StepTimes]], offsets_s: Sequence[float]) -> None:
    counts = [len(steps) for steps in ranks]
    if not counts or not counts[0] or len(set(counts)) > 1:
        raise HakaruError(
            f"The ranks of a training run reported {counts or 'no'} steps; expected the same number of "
            "steps, one at least, from every rank. Measure again."
        )
    if len(offsets_s) != len(counts):
        raise HakaruError(
            f"There are {len(offsets_s)} clock offsets for {len(counts)} ranks; expected one for each."
        )


def _by_step(ranks: Sequence[Sequence[StepTimes]], name: str) -> Floats:
    return np.array([[getattr(each, name) for each in steps] for steps in ranks], dtype=float).T


def _of_buckets(ranks: Sequence[Sequence[StepTimes]], name: str, num: int) -> Floats:
    """[steps, ranks, buckets]; without buckets the last axis is empty."""
    if not num:
        return np.zeros((len(ranks[0]), len(ranks), 0))
    by_rank = np.array([[getattr(each, name) for each in steps] for steps in ranks], dtype=float)
    return by_rank.transpose(1, 0, 2)


def _in_order(finished: Floats) -> Floats:
    """When each bucket and all before it are done: gloo sends several at once, which end in any order."""
    done: Floats = np.maximum.accumulate(finished, axis=2) if finished.shape[2] else finished
    return done


def _tails(ranks: Sequence[Sequence[StepTimes]]) -> Floats:
    """What each rank waited for its own buckets after the last one was ready."""
    tails = [[each.backward - max(each.ready) if each.ready else 0.0 for each in s] for s in ranks]
    return np.array(tails, dtype=float).T
