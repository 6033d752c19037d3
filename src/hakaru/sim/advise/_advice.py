"""Search the first weeks of a log, and judge what was found on the weeks after them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.errors import HakaruError
from hakaru.sim.advise.case import Case, Constraints, Measured, Objective
from hakaru.sim.advise.search import Effort, Search, Tell
from hakaru.sim.advise.space import Point, Rule, Space, Value
from hakaru.sim.advise.sureness import change_of
from hakaru.sim.advise.verdict import Evidence, Verdict, verdict_of
from hakaru.sim.metrics import groups_of
from hakaru.sim.replay import TRUST, Known, Months, months_of
from hakaru.sim.run import Options, simulate

if TYPE_CHECKING:
    from hakaru.sim.machine import Machine
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.workload import Workload

WEEK_S = 7 * 86400
NUM_BEST = 5


@dataclass(frozen=True)
class Found:
    """A point of the search, on the weeks that were searched and on those held out."""

    point: Point
    searched: Measured
    held_out: Measured


@dataclass(frozen=True)
class Advice:
    """`rule` is what to set, and None unless the verdict is to change."""

    verdict: Verdict
    rule: Rule | None
    point: Point
    baseline: Found
    advised: Found
    refused: (
        Found | None
    )  # the largest gain that breaks what must be kept, where no other was found
    best: Sequence[Found]
    importance: Mapping[str, float]
    without: Mapping[str, float]  # the objective if one setting stayed as it is
    broken_without: Mapping[str, tuple[str, ...]]  # and the constraints that would be broken then
    split: int
    num_trials: int
    num_settings: int
    num_allowed: int  # settings that keep what must be kept
    broken: Mapping[str, int]  # how many settings break each constraint
    constraints: Constraints  # those that held: defaults and what was asked for
    num_searched: int  # jobs
    num_held_out: int
    seconds: float
    months: tuple[int, int]  # whose jobs count, and all
    space: Space
    replayed: Schedule  # the whole log under the baseline
    counted: Any  # the jobs of it that count, as a mask
    change: tuple[float, float] | None  # 95 % interval of the metric's change on the weeks held out
    num_weeks: int  # held out
    errors: Mapping[str, Mapping[str, float]]  # the replay's own, of the chosen jobs and of all

    @property
    def gain(self) -> float:
        """By which part the objective gets better on the weeks held out; negative: worse."""
        before, after = self.baseline.held_out.value, self.advised.held_out.value
        return (before - after) / abs(before) if before else 0.0


def advise(
    workload: Workload,
    machine: Machine,
    baseline: Rule,
    parts: Sequence[str],
    objective: Objective,
    constraints: Constraints | None = None,
    effort: Effort | None = None,
    options: Options | None = None,
    tell: Tell | None = None,
    months: Months = "trusted",
) -> Advice:
    """The best settings that the search finds, with the evidence for or against them.

    Only jobs of `months` count, by default those the log can reproduce; all are replayed.
    """
    begun, effort = time.monotonic(), effort or Effort()
    options = replace(options or Options(), limits=baseline.limits)
    whole = simulate(workload, machine, baseline.policy, options)
    workload = whole.workload  # without what is larger than the machine
    space = Space.of(workload, machine, baseline, parts)
    compared, num_months = _compared(whole, months, options.zone)
    split = split_at(workload, effort.searched, compared)
    first = workload.submit < split
    keep = np.ones(len(workload), bool) if objective.of is None else objective.of(workload)
    _check_jobs(keep & compared, first, objective)
    constraints = (constraints or Constraints()).resolved(workload)
    searched = Case(
        workload.take(first), machine, options, objective, constraints, keep[first], compared[first]
    )
    searched.set_baseline(baseline)
    search = Search(space, searched, effort, tell)
    search.run()
    held_out = Case(workload, machine, options, objective, constraints, keep, compared & ~first)
    held_out.set_baseline(baseline, whole)
    return _conclude(search, held_out, split, begun, whole, num_months, compared)


def _too_few(num_counted: int, num_jobs: int) -> str:
    if num_jobs < 2:
        jobs = "1 job" if num_jobs == 1 else "no jobs"
        return f"a log of {jobs} cannot be searched and judged: give a longer one"
    return (
        f"only {num_counted:,} of {num_jobs:,} jobs are of months the log can reproduce: too few to search "
        "and to judge. Check the size of the machine with `hakaru simulate --replay`, or count every month "
        "with --months all"
    )


def split_at(workload: Workload, part: float, compared: Any = None) -> int:
    """The moment up to which jobs are searched: a part of the weeks with jobs, or of a short log's time."""
    if not 0 < part < 1:
        raise HakaruError(f"the part of the log to search is between 0 and 1, found {part}")
    submit = workload.submit if compared is None else workload.submit[compared]
    if len(submit) < 2:
        raise HakaruError(_too_few(len(submit), len(workload)))
    first, last = int(submit.min()), int(submit.max())
    weeks = np.unique((submit - first) // WEEK_S)
    if len(weeks) < 4:
        return first + round((last - first) * part)
    return first + int(weeks[min(len(weeks) - 1, max(1, round(len(weeks) * part)))]) * WEEK_S


def _compared(replayed: Schedule, months: Months, zone: str) -> tuple[Any, tuple[int, int]]:
    """The jobs that count, and how many months they are of; all where no month is such."""
    known = months_of(replayed, zone)
    chosen = np.array([month.trusted in TRUST[months] for month in known], bool)
    if not chosen.any():
        chosen[:] = True
    codes, _ = groups_of(replayed.workload, "month", zone)
    return chosen[codes], (int(chosen.sum()), len(known))


def _check_jobs(keep: Any, first: Any, objective: Objective) -> None:
    for part, weeks in (("searched", first), ("held out", ~first)):
        if not (keep & weeks).any():
            raise HakaruError(
                f"the weeks {part} hold none of the {objective.words}: "
                "choose other jobs with --for, or another part with --search-part"
            )


def _conclude(
    search: Search,
    held_out: Case,
    split: int,
    begun: float,
    replayed: Schedule,
    months: tuple[int, int],
    counted: Any,
) -> Advice:
    assert held_out.baseline is not None
    space, searched_base = search.space, search.baseline
    allowed, num_settings, broken = search.allowed(), len(search.known), search.broken()
    point, best = allowed[0]
    baseline = Found(space.now, searched_base, held_out.baseline)
    refused = None
    with ThreadPoolExecutor(search.effort.threads) as pool:
        if best.value < searched_base.value:
            point = search.simplified(point, best, pool)
        elif forbidden := search.forbidden():
            refused = forbidden[0]
        without = search.without(point, pool)
        (best,) = search.measured([point], pool)
        others = [each for each in allowed if each[1].value < searched_base.value][:NUM_BEST]
        judged = list(pool.map(held_out.of, [space.rule(other) for other, _ in others]))
    schedule = held_out.play(space.rule(point))
    advised = Found(point, best, held_out.measured(schedule))
    errors = _errors(replayed, held_out)
    evidence = Evidence(
        objective=held_out.objective,
        constraints=held_out.constraints,
        space=space,
        rule=space.rule(point),
        baseline=baseline,
        found=advised,
        refused=_judged(refused, space, held_out),
        interval=change_of(held_out, replayed, schedule),
        num_weeks=held_out.weeks.count,
        error=errors["chosen"].get(held_out.objective.metric),
        num_trials=search.num_trials,
        num_settings=num_settings,
    )
    verdict = verdict_of(evidence)
    return Advice(
        verdict=verdict,
        rule=evidence.rule if verdict.kind == "change" else None,
        point=point,
        baseline=baseline,
        advised=advised,
        refused=evidence.refused,
        best=[Found(p, m, h) for (p, m), h in zip(others, judged, strict=True)],
        importance=search.importance,
        without={name: got.value for name, got in without.items()},
        broken_without={name: got.broken for name, got in without.items()},
        split=split,
        num_trials=search.num_trials,
        num_settings=num_settings,
        num_allowed=len(allowed),
        broken=broken,
        constraints=held_out.constraints,
        num_searched=int(search.case.counted.sum()),
        num_held_out=int(held_out.counted.sum()),
        seconds=time.monotonic() - begun,
        months=months,
        space=space,
        replayed=replayed,
        counted=counted,
        change=evidence.bounds,
        num_weeks=held_out.weeks.count,
        errors=errors,
    )


def _errors(replayed: Schedule, held_out: Case) -> dict[str, Mapping[str, float]]:
    """The replay's own, of the chosen jobs and of all that are held out."""
    return {
        name: Known.of(replayed, held_out.options.zone, jobs).errors()
        for name, jobs in (("chosen", held_out.keep), ("all", held_out.counted))
    }


def _judged(
    refused: tuple[dict[str, Value], Measured] | None, space: Space, held_out: Case
) -> Found | None:
    """What is refused, on the weeks held out too."""
    if refused is None:
        return None
    point, searched = refused
    return Found(point, searched, held_out.of(space.rule(point)))
