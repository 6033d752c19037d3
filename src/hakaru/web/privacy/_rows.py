"""What a user may see of each analysis of others' jobs; what is not here is for operators."""

from __future__ import annotations

from dataclasses import dataclass

REPEATED = "(SELECT jobs.user FROM {ruled} AS jobs GROUP BY jobs.user HAVING count(*) > 1)"
# a job that never started, or that took no time or no GPU, adds nothing to what is busy
BUSY = (
    "(SELECT jobs.user FROM {ruled} AS jobs WHERE num_pes > 0 AND started_at IS NOT NULL "
    "AND coalesce(ended_at > started_at, true))"
)


@dataclass(frozen=True)
class Rule:
    """Counts of whole cells, or statistics without counts.

    With `cells`, an answer is made of whole cells of the partition, and these columns of it name the rows:
    counts and hours are sums of cells. With a `measure` of the partition it has means and medians of that
    instead. Without `cells` it is of the whole cluster, statistics too, if those who hold `source` are
    enough: those whose jobs enter the statistic, after all of the analysis' own conditions. `row` keeps
    one kind of rows: the column and its value. `single` are columns that show one job, as the longest,
    or that count jobs within cells. `spread` are quantiles and what tells a deviation: shown in rows whose
    column `count` has jobs enough.
    """

    cells: tuple[str, ...] | None = None
    measure: str = ""
    row: tuple[str, str] | None = None
    source: str = "{ruled}"
    single: tuple[str, ...] = ()
    spread: tuple[str, ...] = ()
    count: str = "num_jobs"


RULES: dict[str, Rule] = {
    "queues": Rule(("queue",), single=("max_requested_h", "max_nodes", "max_pes")),
    "states": Rule(("state",)),
    "jobs-by-quarter": Rule(("quarter",)),
    "parallelism": Rule(("parallelism",)),
    "parallelism-by-quarter": Rule(("quarter", "parallelism")),
    "request-accuracy": Rule((), "requests", single=("least", "most"), spread=("sd", "p25", "p75")),
    "request-accuracy-by-quarter": Rule(
        ("quarter",), "requests", single=("least", "most"), spread=("sd", "p25", "p75")
    ),
    "walltime": Rule(("parallelism",), "runs", single=("min_h", "max_h"), spread=("sd_h",)),
    # a cell has one class, so that either side of the correlation is of enough people
    "size-vs-walltime": Rule(("parallelism",), "runs", spread=("low", "high")),
    "waits": Rule(
        (),
        "waits",
        row=("part", "submit to start"),
        single=("p99_s", "max_s"),
        spread=("sd_s", "p90_s", "p95_s"),
    ),
    "abandoned-waits": Rule(("fate",), single=("mean_s", "median_s", "p90_s", "max_s")),
    # the mean, as often as there are gaps, is the time from the first job to the last; sd ÷ cv is the mean
    "interarrivals": Rule(
        source=REPEATED,
        single=("mean_s", "sd_s"),
        spread=("cv", "p25_s", "p75_s", "p90_s"),
        count="num_gaps",
    ),
    "utilisation": Rule(
        row=("quarter", "all"), source=BUSY, single=("span_h", "installed_pe_hours")
    ),
}
