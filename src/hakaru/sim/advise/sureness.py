"""How sure a gain is: the interval of the objective's change over the weeks held out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.sim.metrics import bounded_slowdown
from hakaru.sim.whatif import intervals as draw
from hakaru.sim.whatif.curves import use_of
from hakaru.sim.whatif.intervals import Interval, Sample

if TYPE_CHECKING:
    from hakaru.sim.advise.case import Case
    from hakaru.sim.schedule import Schedule

QUANTILES = {
    "median_wait_s": 0.5,
    "p95_wait_s": 0.95,
    "p99_wait_s": 0.99,
    "median_bounded_slowdown": 0.5,
}


def change_of(case: Case, before: Schedule, after: Schedule) -> Interval:
    """The 95 % interval of the metric's change, from the weeks of the case, as in a what-if.

    None where there are too few weeks, or where the metric has none.
    """
    metric, weeks = case.objective.metric, case.weeks
    if metric == "utilisation":
        uses = [use_of(schedule, weeks.begins, draw.WEEK_S) for schedule in (before, after)]
        return draw.ratio_change(weeks, uses[0], uses[1])
    began = case.keep & (before.start >= 0) & (after.start >= 0)
    first, second = (_sample(case, schedule, began) for schedule in (before, after))
    if metric in QUANTILES:
        return draw.quantile_change(weeks, first, second, [QUANTILES[metric]])[0]
    if metric in ("mean_wait_s", "mean_bounded_slowdown"):
        return draw.mean_change(weeks, first, second)
    return draw.gini_change(weeks, first, second) if metric == "gini_wait" else None


def _sample(case: Case, schedule: Schedule, began: Any) -> Sample:
    is_slowdown = case.objective.metric.endswith("slowdown")
    values = bounded_slowdown(schedule) if is_slowdown else schedule.wait.astype(float)
    workload = schedule.workload
    week = case.weeks.of_jobs(workload.submit[began])
    return Sample(np.asarray(values)[began], week, workload.user[began])
