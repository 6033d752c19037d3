"""How long jobs run, and whether larger ones run longer (AAIC section 5.3 and 5.4)."""

from __future__ import annotations

from hakaru.analyses._base import HAS_RUN, HAS_SIZE, Param, analysis


@analysis(
    "walltime",
    title="Run time by parallelism",
    answers="How long do jobs run, and do larger ones run longer?",
    reproduces="AAIC Table 3 and section 5.3",
    figure="statistics",
    rules=[HAS_SIZE, HAS_RUN],
    min_run_s=60,
    states=["completed"],
    params=[
        Param("short_h", 3.0, "Share of jobs that ran for at most this many hours."),
        Param("long_h", 24.0, "Share of jobs that ran for at least this many hours."),
    ],
)
def walltime(short_h: float, long_h: float) -> str:
    """Mean, spread, median and range of run time in hours, for all jobs and each class of parallelism."""
    return f"""
        SELECT grp, coalesce(parallelism, 'all') AS parallelism, count(*) AS num_jobs,
               avg(run_s) / 3600 AS mean_h, stddev_samp(run_s) / 3600 AS sd_h,
               percentile(run_s, 0.5) / 3600 AS median_h,
               min(run_s) / 3600 AS min_h, max(run_s) / 3600 AS max_h,
               avg(CASE WHEN run_s <= {short_h} * 3600 THEN 1e0 ELSE 0e0 END) AS share_short,
               avg(CASE WHEN run_s >= {long_h} * 3600 THEN 1e0 ELSE 0e0 END) AS share_long
        FROM jobs
        GROUP BY GROUPING SETS ((grp), (grp, parallelism))
        ORDER BY grp, CASE parallelism WHEN 'single-pe' THEN 1 WHEN 'single-node' THEN 2
                                       WHEN 'multi-node' THEN 3 ELSE 0 END
    """
