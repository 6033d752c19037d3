"""The shapes of jobs and of the week: what the Neuron study draws job by job, and arrivals hour by hour."""

from __future__ import annotations

from hakaru.analyses._base import HAS_REQUEST, HAS_RUN, HAS_SIZE, Param, Rule, analysis
from hakaru.analyses._lots import highest, lot
from hakaru.analyses.arrivals import BOUNDS
from hakaru.analyses.waits import HAS_WAIT
from hakaru.analyses.walltime import STEPS_PER_DECADE

HAS_NODES = Rule("with a known number of nodes, at least one", "num_nodes >= 1")
HAS_APPLICATION = Rule("whose application is known", "application IS NOT NULL")
ASKED_FOR_TIME = Rule("that asked for more than no time", "requested_s > 0")
CELLS_PER_DECADE = 8
OTHERS = "(others)"


@analysis(
    "arrivals-by-week",
    title="Arrivals over the week",
    answers="At which hours of which days do people submit?",
    reproduces="AAIC Fig. 9a and 9b in one",
    figure="heat-map",
    weighted=True,
)
def arrivals_by_week() -> str:
    """Jobs (or GPU-hours) submitted in each hour of each day of the week: the mean over such days.

    0 is Monday. Hours and days are those of the site's clock; an hour without a job counts as zero, and
    a weekday that the period does not hold has no mean.
    """
    # how often a weekday falls into num_days that begin on first_slot
    falls = "CAST(floor((num_days + 6 - (weekday - first_slot + 7) % 7) / 7) AS BIGINT)"
    return f"""
        WITH counted AS (
            SELECT grp, cluster, CAST(submitted_local AS DATE) AS day,
                   hour(submitted_local) AS hour, count(*) AS num_jobs, sum(weight) AS amount
            FROM jobs GROUP BY grp, cluster, CAST(submitted_local AS DATE), hour(submitted_local)
        ), {BOUNDS}, week AS (
            SELECT grp, weekday(first_day) AS first_slot,
                   datediff(last_day, first_day) + 1 AS num_days, explode(sequence(0, 6)) AS weekday
            FROM teams JOIN bounds ON teams.cluster = bounds.cluster
        ), slots AS (
            SELECT grp, weekday, {falls} AS num_days, explode(sequence(0, 23)) AS hour FROM week
        ), arrived AS (
            SELECT grp, weekday(day) AS weekday, hour, sum(num_jobs) AS num_jobs, sum(amount) AS amount
            FROM counted GROUP BY grp, weekday(day), hour
        )
        SELECT slots.grp, slots.weekday, slots.hour, slots.num_days,
               coalesce(num_jobs, 0) AS num_jobs,
               coalesce(amount, 0e0) / nullif(slots.num_days, 0) AS mean
        FROM slots LEFT JOIN arrived ON slots.grp = arrived.grp AND slots.weekday = arrived.weekday
             AND slots.hour = arrived.hour
        ORDER BY slots.grp, slots.weekday, slots.hour
    """


@analysis(
    "job-shapes",
    title="The shapes of jobs",
    answers="What do single jobs look like: nodes, GPUs, wait and run time?",
    reproduces="Neuron Fig. 4",
    figure="parallel-coordinates",
    rules=[HAS_SIZE, HAS_NODES, HAS_WAIT, HAS_RUN],
    params=[
        Param("sample", 1000, "Jobs drawn, of each group.", low=10, high=5000),
        Param("seed", 1, "Seed of the sample.", high=1_000_000),
    ],
)
def job_shapes(sample: int, seed: int) -> str:
    """A sample of jobs, stratified by their number of nodes: a row a job.

    Strata are 1, 2, 3 to 4, 5 to 8 nodes and so on. Each gets the same part of the sample or, where it has
    fewer jobs, all of them; what is left over goes to the others by what they have left, and what
    rounding leaves to where most are left. `num_like_it` is the number of jobs in the row's stratum, and
    `num_sampled` how many of them are here.
    """
    stratum = "CAST(ceil(log2(num_nodes)) AS BIGINT)"
    return f"""
        WITH strata AS (
            SELECT grp, {stratum} AS stratum, count(*) AS num FROM jobs GROUP BY grp, {stratum}
        ), even AS (
            SELECT grp, stratum, num,
                   least(num, CAST(floor({sample} / count(*) OVER (PARTITION BY grp)) AS BIGINT)) AS part
            FROM strata
        ), shared AS (
            SELECT grp, stratum, num, least(num, part + CAST(floor(
                       ({sample} - sum(part) OVER (PARTITION BY grp)) * (num - part)
                       / coalesce(nullif(sum(num - part) OVER (PARTITION BY grp), 0), 1)) AS BIGINT)
                   ) AS quota
            FROM even
        ), quotas AS (
            SELECT grp, stratum, num, quota + CASE WHEN num > quota AND row_number() OVER (
                       PARTITION BY grp ORDER BY num - quota DESC, stratum
                   ) <= {sample} - sum(quota) OVER (PARTITION BY grp) THEN 1 ELSE 0 END AS quota
            FROM shared
        ), lots AS (
            SELECT grp, cluster, job_id, submitted_at, num_nodes, num_pes, wait_s, run_s, application,
                   {stratum} AS stratum, {lot(seed)} AS lot
            FROM jobs
        ), placed AS (
            SELECT lots.*, num, quota, row_number() OVER (
                       PARTITION BY lots.grp, lots.stratum ORDER BY lot, cluster, job_id, submitted_at
                   ) AS place
            FROM lots JOIN quotas ON lots.grp = quotas.grp AND lots.stratum = quotas.stratum
            WHERE lot <= {highest("(2 * quota + 100) / num")}
        )
        SELECT grp, cluster, job_id, submitted_at, num_nodes, num_pes, wait_s / 3600 AS wait_h,
               run_s / 3600 AS run_h, application, num AS num_like_it, quota AS num_sampled
        FROM placed WHERE place <= quota ORDER BY grp, stratum, place
    """


@analysis(
    "walltime-by-application",
    title="Run time by application",
    answers="Which applications run long?",
    reproduces="Neuron Fig. 5",
    figure="cdf",
    weighted=True,
    rules=[HAS_APPLICATION, HAS_RUN],
    params=[
        Param("top", 7, "Applications with the most jobs; the rest count together.", low=1, high=40)
    ],
)
def walltime_by_application(top: int) -> str:
    """Share of an application's jobs (or GPU-hours) that ran for at most so long; 20 steps a decade."""
    return f"""
        WITH stepped AS (
            SELECT grp, application, weight,
                   CAST(ceil(log10(greatest(run_s, 1e0)) * {STEPS_PER_DECADE}) AS BIGINT) AS step
            FROM jobs
        ), ranked AS (
            SELECT application, row_number() OVER (ORDER BY count(*) DESC, application) AS place
            FROM stepped GROUP BY application
        ), named AS (
            SELECT grp, least(place, {top + 1}) AS place, step, count(*) AS num_jobs,
                   sum(weight) AS weight,
                   max(CASE WHEN place <= {top} THEN stepped.application ELSE '{OTHERS}' END)
                       AS application
            FROM stepped JOIN ranked ON stepped.application = ranked.application
            GROUP BY grp, least(place, {top + 1}), step
        )
        SELECT grp, application, power(1e1, step / {STEPS_PER_DECADE}e0) / 3600 AS run_h, num_jobs,
               sum(weight) OVER (PARTITION BY grp, place ORDER BY step)
                   / nullif(sum(weight) OVER (PARTITION BY grp, place), 0) AS share
        FROM named ORDER BY grp, place, step
    """


@analysis(
    "request-vs-run",
    title="Requested against used time",
    answers="Do people who ask for more run longer?",
    reproduces="AAIC section 5.2, request by request",
    figure="density",
    weighted=True,
    rules=[HAS_RUN, HAS_REQUEST, ASKED_FOR_TIME],
    min_run_s=60,
)
def request_vs_run() -> str:
    """Jobs in each cell of requested and run time, both at eight steps a decade; edges in hours.

    A cell holds what lies above its lower edges and up to its upper ones.
    """
    steps = {name: _cell(f"{name}_s") for name in ("requested", "run")}
    edges = ", ".join(
        f"power(1e1, ({name} - {below}) / {CELLS_PER_DECADE}e0) / 3600 AS {name}_{end}_h"
        for name in steps
        for end, below in (("from", 1), ("to", 0))
    )
    return f"""
        SELECT grp, {edges}, num_jobs, pe_hours,
               weight / nullif(sum(weight) OVER (PARTITION BY grp), 0) AS share
        FROM (SELECT grp, {steps["requested"]} AS requested, {steps["run"]} AS run,
                     count(*) AS num_jobs, sum(pe_hours) AS pe_hours, sum(weight) AS weight
              FROM jobs GROUP BY grp, {steps["requested"]}, {steps["run"]}) AS cells
        ORDER BY grp, requested, run
    """


def _cell(column: str) -> str:
    return f"CAST(ceil(log10(greatest({column}, 1e0)) * {CELLS_PER_DECADE}) AS BIGINT)"
