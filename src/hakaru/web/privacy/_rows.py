"""For each analysis, how to count the people behind a row of its table; what is not here is not shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hakaru.analyses import class_name, quarter_name
from hakaru.analyses.overview import QUARTER_KEYS
from hakaru.analyses.shapes import CELLS_PER_DECADE
from hakaru.analyses.walltime import STEPS_PER_DECADE

Params = Mapping[str, Any]
CLASS = class_name("class_number")
STEP = f"power(1e1, ceil(log10(greatest(run_s, 1e0)) * {STEPS_PER_DECADE}) / {STEPS_PER_DECADE}e0) / 3600"
CELL = f"power(1e1, ceil(log10(greatest({{}}, 1e0)) * {CELLS_PER_DECADE}) / {CELLS_PER_DECADE}e0) / 3600"
PART = "CASE part WHEN 1 THEN 'submit to eligible' WHEN 2 THEN 'eligible to start' ELSE 'submit to start' END"
FATE = (
    "CASE WHEN started_at IS NOT NULL THEN 'started' "
    "WHEN ended_at IS NOT NULL AND state IN ('cancelled', 'failed', 'killed') THEN 'abandoned' "
    "WHEN ended_at IS NULL AND state = 'pending' THEN 'pending' ELSE 'unknown' END"
)


@dataclass(frozen=True)
class Rule:
    """The columns of a table that name a row, each as SQL over `{source}`; the group is added by itself.

    `whole` says that a row named `all` stands for all of its group. `single` are columns that show one
    job, as the longest. `machine` marks what shows the machine as a whole, that anybody sees in the queue:
    only the cluster and the period may narrow it. `step` is the key along which a cumulative curve rises.
    `params` may be chosen; any other keeps its default, since a threshold that is moved finds the extremes.
    """

    keys: Callable[[Params], dict[str, str]] = field(default=lambda params: {})
    source: str = "{ruled}"
    whole: bool = False
    single: tuple[str, ...] = ()
    machine: bool = False
    step: str | None = None
    params: tuple[str, ...] = ()


def _fixed(**keys: str) -> Callable[[Params], dict[str, str]]:
    return lambda params: keys


def _by_quarter(params: Params) -> dict[str, str]:
    chosen = params.get("quarter", "submitted")
    key = QUARTER_KEYS[chosen]
    return {"quarter": key if chosen == "log" else quarter_name(key)}


RULES: dict[str, Rule] = {
    "queues": Rule(_fixed(queue="queue"), single=("max_requested_h", "max_nodes", "max_pes")),
    "states": Rule(_fixed(state="state")),
    "jobs-by-quarter": Rule(_by_quarter, params=("quarter",)),
    "users-by-quarter": Rule(_by_quarter, params=("quarter",)),
    "parallelism": Rule(_fixed(parallelism=CLASS)),
    "gpus-single-node": Rule(_fixed(num_pes="num_pes")),
    "gpus-multi-node": Rule(_fixed(num_pes="num_pes")),
    "parallelism-by-quarter": Rule(
        _fixed(quarter=quarter_name("quarter_number"), parallelism=CLASS)
    ),
    "request-accuracy": Rule(single=("least", "most")),
    "request-accuracy-by-quarter": Rule(
        _fixed(quarter=quarter_name("quarter_number")), single=("least", "most")
    ),
    "walltime": Rule(_fixed(**{"class": CLASS}), whole=True, single=("min_h", "max_h")),
    "walltime-cdf": Rule(
        _fixed(**{"class": CLASS}, run_h=STEP), whole=True, single=("num_jobs",), step="run_h"
    ),
    "size-vs-walltime": Rule(),
    "arrivals-by-hour": Rule(
        _fixed(hour="hour(submitted_local)"), single=("most",), params=("days",)
    ),
    "arrivals-by-weekday": Rule(
        _fixed(weekday="weekday(CAST(submitted_local AS DATE))"),
        single=("most",),
        params=("days",),
    ),
    "waits": Rule(
        _fixed(part=PART),
        source="(SELECT jobs.*, part FROM {ruled} AS jobs CROSS JOIN "
        "(SELECT explode(sequence(1, 3)) AS part) AS parts "
        "WHERE part = 3 OR eligible_at BETWEEN submitted_at AND started_at)",
        single=("max_s",),
    ),
    "abandoned-waits": Rule(_fixed(fate=FATE), single=("max_s",)),
    "interarrivals": Rule(
        source="(SELECT grp, jobs.user FROM {ruled} AS jobs GROUP BY grp, jobs.user HAVING count(*) > 1)"
    ),
    "think-time": Rule(
        source="(SELECT grp, jobs.user FROM {ruled} AS jobs GROUP BY grp, jobs.user HAVING count(*) > 1)"
    ),
    "arrivals-by-week": Rule(
        _fixed(weekday="weekday(CAST(submitted_local AS DATE))", hour="hour(submitted_local)")
    ),
    "walltime-by-application": Rule(
        _fixed(application="application", run_h=STEP),
        single=("num_jobs",),
        step="run_h",
        params=("top",),
    ),
    "request-vs-run": Rule(
        _fixed(requested_to_h=CELL.format("requested_s"), run_to_h=CELL.format("run_s"))
    ),
    "load": Rule(machine=True, params=("bins",)),
    "utilisation": Rule(machine=True),
}
