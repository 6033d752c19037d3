"""What a rule is judged by: an objective and constraints, measured against the baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim.advise.losses import (
    KINDS,
    MOST_LOSS,
    Kind,
    Loss,
    Waits,
    excess_h,
    losses_of,
    waits_of,
)
from hakaru.sim.metrics import measure
from hakaru.sim.run import Options, simulate
from hakaru.sim.whatif.curves import use_of
from hakaru.sim.whatif.intervals import WEEK_S, Weeks

if TYPE_CHECKING:
    from hakaru.sim.advise.space import Rule
    from hakaru.sim.machine import Machine
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.workload import Workload

METRICS = (
    "mean_wait_s", "median_wait_s", "p95_wait_s", "p99_wait_s", "mean_bounded_slowdown",
    "median_bounded_slowdown", "utilisation", "fragmentation", "idle_while_waiting", "gini_wait",
    "worst_user_wait_s", "pe_hours_lost",
)  # fmt: skip
# Summed by the kernels over the whole replay, not over the weeks that are judged.
OF_WHOLE_REPLAY = ("fragmentation", "idle_while_waiting", "pe_hours_lost")
HIGHER_IS_BETTER = ("utilisation",)
SEED, NUM_RESAMPLES = 1, 1000


@dataclass(frozen=True)
class Objective:
    """A metric to lower (or raise) over the jobs that `of` chooses; all of them without it."""

    metric: str
    of: Callable[[Workload], Any] | None = None
    words: str = "all jobs"

    @property
    def sign(self) -> int:
        """What turns the metric into something to make small."""
        return -1 if self.metric in HIGHER_IS_BETTER else 1


@dataclass(frozen=True)
class Constraints:
    """What must hold beside: metrics that may get worse by a part only, and nobody who loses more.

    `keep` maps metrics of all jobs to the part; `loses` maps account or user to the part that the mean wait
    of any of them may grow by, where that is not a tenth; infinity lifts it. That no job is left waiting for
    ever is always asked for.
    """

    keep: Mapping[str, float] = field(default_factory=dict)
    loses: Mapping[Kind, float] = field(default_factory=dict)

    def resolved(self, workload: Workload) -> Constraints:
        """With the default for what is not named, as far as the log knows users and accounts."""
        for kind in self.loses:
            if not workload.names[kind] and math.isfinite(self.loses[kind]):
                raise HakaruError(
                    f"the log knows no {kind}s, so that none can be kept from losing: leave out "
                    f"--no-{kind}-loses-more-than"
                )
        usual = {kind: MOST_LOSS for kind in KINDS if workload.names[kind]}
        every = {**usual, **self.loses}
        return replace(
            self, loses={kind: most for kind, most in every.items() if math.isfinite(most)}
        )


@dataclass(frozen=True)
class Measured:
    """What a rule gives on some weeks. A constraint above 0 is broken; `losses`: who loses too much."""

    value: float
    chosen: Mapping[str, float]
    all_jobs: Mapping[str, float]
    constraints: Mapping[str, float] = field(default_factory=dict)
    losses: tuple[Loss, ...] = ()

    @property
    def broken(self) -> tuple[str, ...]:
        return tuple(name for name, value in self.constraints.items() if value > 0)


def metric_of(name: str) -> str:
    """`p95-wait` or `p95_wait_s` as `measure` calls it."""
    known = {key.removesuffix("_s").replace("_", "-"): key for key in METRICS}
    found = known.get(name.removesuffix("_s").replace("_", "-"))
    if found is None:
        raise HakaruError(f"there is no metric {name!r}; {hint(name, list(known))}")
    return found


class Case:
    """A part of the log on which rules are measured, against the baseline on the same part."""

    def __init__(
        self, workload: Workload, machine: Machine, options: Options, objective: Objective,
        constraints: Constraints, keep: Any, counted: Any = None,
    ) -> None:  # fmt: skip
        self.workload, self.machine, self.options = workload, machine, options
        self.objective, self.constraints = objective, constraints
        self.counted = np.ones(len(workload), bool) if counted is None else counted
        self.keep = keep & self.counted
        self.weeks = Weeks.of(workload.submit[self.counted], SEED, NUM_RESAMPLES)
        self.baseline: Measured | None = None
        self.base_waits: dict[Kind, Waits] = {}

    def set_baseline(self, rule: Rule, schedule: Schedule | None = None) -> None:
        schedule = schedule or self.play(rule)
        self.base_waits = {
            kind: waits_of(schedule, kind, self.counted) for kind in self.constraints.loses
        }
        self.baseline = self.measured(schedule)
        if math.isnan(self.baseline.value):
            raise HakaruError(
                f"{self.objective.metric} of {self.objective.words} is not known under what you have: "
                "choose another metric or other jobs"
            )

    def of(self, rule: Rule) -> Measured:
        return self.measured(self.play(rule))

    def play(self, rule: Rule) -> Schedule:
        options = replace(self.options, limits=rule.limits)
        return simulate(self.workload, self.machine, rule.policy, options)

    def measured(self, schedule: Schedule) -> Measured:
        use = self._use(schedule)
        chosen, all_jobs = (measure(schedule, jobs) | use for jobs in (self.keep, self.counted))
        value = chosen[self.objective.metric] * self.objective.sign
        if self.baseline is None:
            return Measured(value, chosen, all_jobs)
        constraints = {
            f"keep {metric}": _worse(metric, self.baseline.all_jobs[metric], all_jobs[metric])
            - most
            for metric, most in self.constraints.keep.items()
        }
        losses: list[Loss] = []
        for kind, most in self.constraints.loses.items():
            before, after = self.base_waits[kind], waits_of(schedule, kind, self.counted)
            constraints[f"no {kind} loses"] = excess_h(before, after, most)
            losses += losses_of(before, after, most)
        unstarted = all_jobs["num_unstarted"] - self.baseline.all_jobs["num_unstarted"]
        return Measured(
            value, chosen, all_jobs, {**constraints, "every job begins": unstarted}, tuple(losses)
        )

    def _use(self, schedule: Schedule) -> dict[str, float]:
        """Utilisation of the weeks in which jobs count; other uses are known of the whole replay only."""
        used, there = (float(each.sum()) for each in use_of(schedule, self.weeks.begins, WEEK_S))
        return {"utilisation": used / there if there else math.nan}


def _worse(metric: str, before: float, after: float) -> float:
    """By which part of what it was a metric gets worse; negative: better."""
    if math.isnan(before) or math.isnan(after):
        return 0.0
    worse = before - after if metric in HIGHER_IS_BETTER else after - before
    return worse / abs(before) if before else worse
