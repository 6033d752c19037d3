"""Who loses by a rule: users and accounts whose mean wait grows by more than they may lose.

Somebody loses more than a part if their mean wait grows by more than that part of what it was, and by more
than a minute: from 2 s to 3 s is no loss. The search refuses settings by which anybody with enough jobs
loses; the mean of a few jobs is chance, so those with fewer are named, and make the verdict a trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hakaru.sim.schedule import Schedule

Kind = Literal["account", "user"]
KINDS: tuple[Kind, ...] = ("account", "user")
MOST_LOSS = 0.1
NO_LOSS_S = 60.0
LEAST_JOBS = 5


@dataclass(frozen=True)
class Waits:
    """The mean wait of each account or user by their code, nan without jobs, and of how many jobs."""

    kind: Kind
    names: Sequence[str]
    mean_s: Any
    num_jobs: Any


@dataclass(frozen=True)
class Loss:
    """Somebody whose mean wait grows by more than they may lose."""

    kind: Kind
    name: str
    num_jobs: int
    before_s: float
    after_s: float

    @property
    def is_certain(self) -> bool:
        """Whether there are enough jobs for a mean that is not one job's chance."""
        return self.num_jobs >= LEAST_JOBS


def waits_of(schedule: Schedule, kind: Kind, counted: Any) -> Waits:
    """Of the jobs that count and begin."""
    codes, names = getattr(schedule.workload, kind), schedule.workload.names[kind]
    began = counted & (schedule.start >= 0) & (codes >= 0)
    num_jobs = np.bincount(codes[began], minlength=len(names))
    waits = np.bincount(codes[began], weights=schedule.wait[began], minlength=len(names))
    mean = np.divide(waits, num_jobs, out=np.full(len(names), np.nan), where=num_jobs > 0)
    return Waits(kind, names, mean, num_jobs)


def excess_h(before: Waits, after: Waits, most: float) -> float:
    """By how many hours the worst off of those with enough jobs passes what may be lost."""
    excess = np.where(before.num_jobs >= LEAST_JOBS, _excess_s(before, after, most), -np.inf)
    return max(float(excess.max(initial=-np.inf)), -1e9) / 3600


def losses_of(before: Waits, after: Waits, most: float) -> list[Loss]:
    """All who lose more than they may, whoever loses most seconds first."""
    excess = _excess_s(before, after, most)
    lost = after.mean_s - before.mean_s
    found = np.flatnonzero(excess > 0)
    return [
        Loss(
            before.kind,
            str(before.names[code]),
            int(before.num_jobs[code]),
            float(before.mean_s[code]),
            float(after.mean_s[code]),
        )
        for code in found[np.argsort(-lost[found], kind="stable")].tolist()
    ]


def _excess_s(before: Waits, after: Waits, most: float) -> Any:
    """Seconds lost beyond what may be lost; nobody loses who has no jobs."""
    allowed = np.maximum(before.mean_s * most, NO_LOSS_S)
    return np.nan_to_num(after.mean_s - before.mean_s - allowed, nan=-np.inf)
