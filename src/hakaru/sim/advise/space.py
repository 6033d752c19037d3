"""What `advise` may turn: weights of the priority, limits on each user, and how jobs are backfilled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.errors import HakaruError
from hakaru.registry import hint
from hakaru.sim.limits import Limit
from hakaru.sim.policies import POLICIES, Policy, Weights

if TYPE_CHECKING:
    from hakaru.sim.machine import Machine
    from hakaru.sim.workload import Workload

Value = int | str
Point = Mapping[str, Value]

PARTS = ("weights", "limits", "backfill")
BACKFILLS = ("easy", "easy-sjbf", "easy++")
WEIGHT_NAMES = ("age", "size", "fair_share", "half_life_h")
# Slurm adds priorities up as whole numbers: its weights must be large for the factors to tell.
MOST_POINTS = 100_000
# A job's share of the machine is small, so that a point for size weighs less than one for age.
MOST_SIZE_POINTS = 500_000
PATIENCE = 2
LEAST_SPAN_S = 28 * 86400


@dataclass(frozen=True)
class Rule:
    """What a site sets: a policy, and the limits that hold beside it."""

    policy: Policy
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True)
class Knob:
    """Something to turn: from `low` to `high` or one of `choices`; `now` leaves all as it is."""

    name: str
    now: Value
    low: int = 0
    high: int = 0
    step: int = 1
    log: bool = False
    choices: tuple[str, ...] = ()

    def suggest(self, trial: Any) -> Value:
        """A value from an Optuna trial."""
        if self.choices:
            return str(trial.suggest_categorical(self.name, self.choices))
        return int(trial.suggest_int(self.name, self.low, self.high, step=self.step, log=self.log))

    @property
    def is_open(self) -> bool:
        return len(self.choices) > 1 or self.low < self.high


@dataclass(frozen=True)
class Space:
    """The knobs, and the rule that a point among them stands for."""

    baseline: Rule
    knobs: tuple[Knob, ...]
    num_pes: int

    @classmethod
    def of(
        cls, workload: Workload, machine: Machine, baseline: Rule, parts: Sequence[str]
    ) -> Space:
        """The knobs of these parts; a limit lets the largest job run, and the busiest user."""
        unknown = [part for part in parts if part not in PARTS]
        if unknown or not parts:
            raise HakaruError(f"--search {unknown[0]!r}: {hint(unknown[0], PARTS)}" if unknown
                              else f"nothing to search: choose among {', '.join(PARTS)}")  # fmt: skip
        _check_baseline(baseline.policy, parts)
        found: list[Knob] = []
        for part in dict.fromkeys(parts):
            found += MAKERS[part](workload, machine, baseline)
        knobs = tuple(knob for knob in found if knob.is_open)
        if not knobs:
            raise HakaruError(
                "nothing to search: the largest job takes the whole machine, so that no limit of a "
                "user's GPUs can be set; add weights with --search weights"
            )
        return cls(baseline, knobs, machine.num_pes)

    @property
    def now(self) -> dict[str, Value]:
        """The point where nothing changes."""
        return {knob.name: knob.now for knob in self.knobs}

    def rule(self, point: Point) -> Rule:
        """The baseline with what the point changes; limits that hold nobody are left out."""
        changed = {name: value for name, value in point.items() if value != self.now[name]}
        policy = self.baseline.policy
        if any(name in changed for name in WEIGHT_NAMES):
            policy = replace(
                POLICIES.get("multifactor"),
                scan=policy.scan,
                predictor=policy.predictor,
                weights=_weights(policy.weights or Weights(), changed),
            )
        if "backfill" in changed:
            chosen = POLICIES.get(str(changed["backfill"]))
            policy = replace(policy, scan=chosen.scan, predictor=chosen.predictor)
        return Rule(policy, _limits(self.baseline.limits, changed))


def _check_baseline(policy: Policy, parts: Sequence[str]) -> None:
    if policy.backfill == "conservative":
        raise HakaruError(
            f"{policy.id} knows neither limits nor weights, so that there is nothing to search: begin "
            "from --policy easy or multifactor"
        )
    if policy.order is not None and "weights" in parts:
        raise HakaruError(
            f"weights replace the order of {policy.id}: search them from easy or multifactor"
        )
    if policy.backfill != "easy" and ("backfill" in parts or "weights" in parts):
        raise HakaruError(
            f"{policy.id} does not backfill as EASY does: search only limits with it, or begin "
            "from --policy easy or multifactor"
        )


def _weight_knobs(workload: Workload, machine: Machine, baseline: Rule) -> list[Knob]:
    now = baseline.policy.weights or Weights()
    step = MOST_POINTS // 100
    return [
        Knob("age", round(now.age), 0, MOST_POINTS, step),
        Knob("size", round(now.size), -MOST_SIZE_POINTS, MOST_SIZE_POINTS, 5 * step),
        Knob("fair_share", round(now.fair_share), 0, MOST_POINTS, step),
        Knob("half_life_h", round(now.half_life_s / 3600), 6, 60 * 24, log=True),
    ]


def _limit_knobs(workload: Workload, machine: Machine, baseline: Rule) -> list[Knob]:
    """The machine's size stands for no limit: nobody can hold more."""
    largest, most = int(workload.pes.max(initial=1)), machine.num_pes
    gpus = max(largest, _least(workload, workload.run * workload.pes))
    jobs = _least(workload, workload.run)
    return [
        Knob("gpus_per_user", _now(baseline, "running-gpus", machine), min(gpus, most), most, log=True),
        Knob("jobs_per_user", _now(baseline, "running-jobs", machine), min(jobs, most), most, log=True),
    ]  # fmt: skip


def _least(workload: Workload, work: Any) -> int:
    """What the busiest user needs at once, to be done in `PATIENCE` times the time they submitted in.

    Under less their jobs would pile up: nobody would set it, and to replay it takes for ever.
    """
    known = workload.user >= 0
    users, num_users = workload.user[known], len(workload.names["user"])
    if not len(users):
        return 1
    first, last = np.full(num_users, np.iinfo(np.int64).max), np.zeros(num_users, np.int64)
    np.minimum.at(first, users, workload.submit[known])
    np.maximum.at(last, users, workload.submit[known])
    spans = np.maximum(last - first, LEAST_SPAN_S)
    needs = np.bincount(users, weights=work[known], minlength=num_users) / spans
    return max(1, math.ceil(float(needs.max()) / PATIENCE))


def _backfill_knobs(workload: Workload, machine: Machine, baseline: Rule) -> list[Knob]:
    shape = (baseline.policy.scan, baseline.policy.predictor)
    now = next(
        name
        for name in BACKFILLS
        if (POLICIES.get(name).scan, POLICIES.get(name).predictor) == shape
    )
    return [Knob("backfill", now, choices=BACKFILLS)]


MAKERS: Mapping[str, Callable[[Workload, Machine, Rule], list[Knob]]] = {
    "weights": _weight_knobs,
    "limits": _limit_knobs,
    "backfill": _backfill_knobs,
}


def _now(baseline: Rule, what: str, machine: Machine) -> int:
    values = [limit.value for limit in baseline.limits if _is_of_each_user(limit, what)]
    return min([*values, machine.num_pes])


def _is_of_each_user(limit: Limit, what: str) -> bool:
    others = (limit.queue, limit.only, limit.hours)
    return limit.scope == "user" and limit.what == what and others == (None, None, None)


def _weights(now: Weights, changed: Point) -> Weights:
    """What is not changed stays to the second: a knob has whole points and hours only."""
    points = {name: float(changed[name]) for name in WEIGHT_NAMES if name in changed}
    if "half_life_h" in points:
        points["half_life_s"] = points.pop("half_life_h") * 3600
    return replace(now, **points)  # type: ignore[arg-type]


def _limits(now: Sequence[Limit], changed: Point) -> tuple[Limit, ...]:
    limits = list(now)
    for name, what in (("gpus_per_user", "running-gpus"), ("jobs_per_user", "running-jobs")):
        if name in changed:
            limits = [limit for limit in limits if not _is_of_each_user(limit, what)]
            limits.append(Limit("user", what, int(changed[name])))  # type: ignore[arg-type]
    return tuple(limits)
