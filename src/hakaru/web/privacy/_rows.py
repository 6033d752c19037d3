"""For each analysis, how to count the people behind a row of its table; what is not here is not shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hakaru.analyses import class_name, quarter_name
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
    """What a user may see of an analysis.

    With `cells`, its rows are made of whole cells of the partition: the columns of that which name a row.
    Such a table has counts and hours, and may be narrowed and grouped. With `row` too, that holds for one
    row alone (the column and its value), without counts; `measure` is what it is about.

    Any other is of the whole cluster: `keys` are the columns that name a row, each as SQL over `{source}`;
    `whole` says that a row named `all` stands for all of them, `step` is the key along which a
    cumulative curve rises. `single` are columns that show one job, as the longest, or the days from the
    first to the last. `amounts` are columns that are counts in disguise, as jobs a day. `sums` are means of
    run times, which times the count are hours: less those of all jobs, the hours of the jobs left out.
    `machine` shows the machine over time.
    """

    keys: Callable[[Params], dict[str, str]] = field(default=lambda params: {})
    source: str = "{ruled}"
    whole: bool = False
    single: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    machine: bool = False
    step: str | None = None
    cells: tuple[str, ...] | None = None
    row: tuple[str, str] | None = None
    measure: str = ""


def _fixed(**keys: str) -> Callable[[Params], dict[str, str]]:
    return lambda params: keys


QUARTER = quarter_name("quarter_number")
REPEATED = (
    "(SELECT grp, jobs.user FROM {ruled} AS jobs GROUP BY grp, jobs.user HAVING count(*) > 1)"
)
RULES: dict[str, Rule] = {
    "queues": Rule(cells=("queue",), single=("max_requested_h", "max_nodes", "max_pes")),
    "states": Rule(cells=("state",)),
    "jobs-by-quarter": Rule(cells=("quarter",)),
    "users-by-quarter": Rule(_fixed(quarter=QUARTER)),
    "parallelism": Rule(_fixed(parallelism=CLASS)),
    "gpus-single-node": Rule(_fixed(num_pes="num_pes")),
    "gpus-multi-node": Rule(_fixed(num_pes="num_pes")),
    "parallelism-by-quarter": Rule(_fixed(quarter=QUARTER, parallelism=CLASS)),
    "request-accuracy": Rule(single=("least", "most")),
    "request-accuracy-by-quarter": Rule(_fixed(quarter=QUARTER), single=("least", "most")),
    "walltime": Rule(
        _fixed(**{"class": CLASS}),
        whole=True,
        single=("min_h", "max_h"),
        sums=("mean_h", "sd_h"),
        cells=("state",),
        row=("class", "all"),
        measure="long_runs",
    ),
    "walltime-cdf": Rule(_fixed(**{"class": CLASS}, run_h=STEP), whole=True, step="run_h"),
    "size-vs-walltime": Rule(),
    "arrivals-by-hour": Rule(
        _fixed(hour="hour(submitted_local)"),
        single=("most", "num_days"),
        amounts=("mean", "sd"),
    ),
    "arrivals-by-weekday": Rule(
        _fixed(weekday="weekday(CAST(submitted_local AS DATE))"),
        single=("most", "num_days"),
        amounts=("mean", "sd"),
    ),
    "waits": Rule(
        _fixed(part=PART),
        source="(SELECT jobs.*, part FROM {ruled} AS jobs CROSS JOIN "
        "(SELECT explode(sequence(1, 3)) AS part) AS parts "
        "WHERE part = 3 OR eligible_at BETWEEN submitted_at AND started_at)",
        single=("p99_s", "max_s"),
        cells=(),
        row=("part", "submit to start"),
        measure="waits",
    ),
    "abandoned-waits": Rule(_fixed(fate=FATE), single=("max_s",)),
    "interarrivals": Rule(source=REPEATED),
    "think-time": Rule(source=REPEATED),
    "arrivals-by-week": Rule(
        _fixed(weekday="weekday(CAST(submitted_local AS DATE))", hour="hour(submitted_local)"),
        single=("num_days",),
        amounts=("mean",),
    ),
    "walltime-by-application": Rule(_fixed(application="application", run_h=STEP), step="run_h"),
    "request-vs-run": Rule(
        _fixed(requested_to_h=CELL.format("requested_s"), run_to_h=CELL.format("run_s"))
    ),
    "load": Rule(machine=True),
    "utilisation": Rule(machine=True, single=("span_h", "installed_pe_hours")),
}
