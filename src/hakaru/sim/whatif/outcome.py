"""What a scenario gives: each variant's metrics, how they differ from the baseline, and for whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hakaru.sim.schedule import Schedule


@dataclass(frozen=True)
class Change:
    """A variant's value less the baseline's, with its 95 % interval from so many resampled weeks.

    Without `low` and `high` it has no interval: there are too few weeks for one, or the metric has none, or
    jobs no longer run.
    """

    before: float
    after: float
    low: float | None = None
    high: float | None = None
    num_weeks: int | None = None
    error: float | None = None  # the replay's own in this metric, where it is known
    has_too_few_weeks: bool = False  # an interval was asked for, and the weeks do not give one

    @property
    def is_within_error(self) -> bool:
        """Whether the replay itself is farther from the record than the runs are from one another."""
        return self.error is not None and abs(self.change) <= self.error

    @property
    def change(self) -> float:
        return self.after - self.before

    @property
    def relative(self) -> float | None:
        return self.change / self.before if self.before else None

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves zero out."""
        if self.low is None or self.high is None:
            return False
        return self.low > 0 or self.high < 0

    def as_dict(self) -> dict[str, Any]:
        names = (
            "before", "after", "change", "relative", "low", "high", "num_weeks", "is_sure", "error",
            "is_within_error", "has_too_few_weeks",
        )  # fmt: skip
        return {name: _plain(getattr(self, name)) for name in names}


@dataclass(frozen=True)
class GroupChange:
    """What a variant is for one group of jobs, by what they are in the log."""

    by: str
    group: str
    num_jobs: int
    changes: Mapping[str, Change]  # mean_wait_s, median_wait_s, p95_wait_s
    num_no_longer_run: int = 0  # where there are any, changes have no interval

    def as_dict(self) -> dict[str, Any]:
        listed = {name: change.as_dict() for name, change in self.changes.items()}
        return {
            "by": self.by,
            "group": self.group,
            "num_no_longer_run": self.num_no_longer_run,
            "num_jobs": self.num_jobs,
            "changes": listed,
        }


@dataclass(frozen=True)
class Variant:
    """One run; `changes` and `groups` are empty for the baseline itself.

    Metrics and changes of waits are of the jobs that begin in the baseline too. `no_longer_run` counts,
    for each way to group, those that begin there and not here; `metrics` has their number.
    `waits` and `busy` are curves to draw: (seconds, share of jobs that waited no longer), and
    (seconds since the epoch, mean busy PEs from then on).
    """

    name: str
    metrics: Mapping[str, float]
    notes: tuple[str, ...] = ()
    changes: Mapping[str, Change] = field(default_factory=dict)
    groups: tuple[GroupChange, ...] = ()
    no_longer_run: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    waits: tuple[tuple[float, float], ...] = ()
    busy: tuple[tuple[int, float], ...] = ()
    schedule: Schedule | None = None  # the whole of it; not in `as_dict`

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "no_longer_run": {by: dict(counts) for by, counts in self.no_longer_run.items()},
            "metrics": {name: _plain(value) for name, value in self.metrics.items()},
            "changes": {name: change.as_dict() for name, change in self.changes.items()},
            "groups": [group.as_dict() for group in self.groups],
            "notes": list(self.notes),
            "waits": [[_plain(x), _plain(y)] for x, y in self.waits],
            "busy": [[int(x), _plain(y)] for x, y in self.busy],
        }


@dataclass(frozen=True)
class Outcome:
    """The baseline, the variants, and in words who gains and who loses."""

    baseline: Variant
    variants: tuple[Variant, ...]
    sentences: tuple[str, ...]
    known_error: str
    notes: tuple[str, ...]
    num_weeks: int
    num_resamples: int
    seed: int
    unit: str = "gpu"
    zone: str = "UTC"
    headlines: tuple[str, ...] = ()  # of the sentences, what matters most: one a variant

    @property
    def runs(self) -> Sequence[Variant]:
        return (self.baseline, *self.variants)

    def as_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold: what is not known is null."""
        plain = ("num_weeks", "num_resamples", "seed", "unit", "zone")
        return {
            "baseline": self.baseline.as_dict(),
            "variants": [variant.as_dict() for variant in self.variants],
            "headlines": list(self.headlines),
            "sentences": list(self.sentences),
            "known_error": self.known_error,
            "notes": list(self.notes),
        } | {name: getattr(self, name) for name in plain}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    return float(value) if math.isfinite(value) else None
