"""How well people know how long their jobs will run (AAIC section 5.2)."""

from __future__ import annotations

from hakaru.analyses._base import HAS_REQUEST, HAS_RUN, analysis
from hakaru.analyses._site import quarter_name


@analysis(
    "request-accuracy",
    title="Walltime request accuracy",
    answers="How much of the time that people ask for do they use?",
    reproduces="AAIC Fig. 7a and section 5.2",
    figure="box",
    rules=[HAS_RUN, HAS_REQUEST],
    min_run_s=60,
    states=["completed"],
)
def request_accuracy() -> str:
    """Walltime request accuracy, run time ÷ request, over all jobs.

    `share_at_max` is the share of jobs that asked for the most their queue allows: the limit in
    `hakaru.toml` or the log's header, else the largest request that the log has seen in the queue.
    `share_with_known_limit` is the share of jobs to which the former applies.
    """
    return _statistics(["grp"])


@analysis(
    "request-accuracy-by-quarter",
    title="Walltime request accuracy by quarter",
    answers="Do people learn to ask for the time they need?",
    reproduces="AAIC Fig. 7b",
    figure="box",
    rules=[HAS_RUN, HAS_REQUEST],
    min_run_s=60,
    states=["completed"],
)
def request_accuracy_by_quarter() -> str:
    """Walltime request accuracy, run time ÷ request, of each quarter's jobs."""
    return _statistics(["grp", "quarter_number"])


def _statistics(keys: list[str]) -> str:
    listed = ", ".join(keys)
    shown = listed.replace("quarter_number", f"{quarter_name('quarter_number')} AS quarter")
    return f"""
        WITH rated AS (
            SELECT {", ".join(f"jobs.{key} AS {key}" for key in keys)},
                   run_s / requested_s AS accuracy,
                   CASE WHEN requested_s >= limit_s THEN 1e0 ELSE 0e0 END AS at_max,
                   CASE WHEN is_known THEN 1e0 ELSE 0e0 END AS is_known
            FROM jobs LEFT JOIN limits
                 ON jobs.cluster = limits.cluster
                    AND coalesce(jobs.queue, '') = coalesce(limits.queue, '')
        )
        SELECT {shown}, count(*) AS num_jobs, avg(accuracy) AS mean,
               stddev_samp(accuracy) AS sd, min(accuracy) AS least,
               percentile(accuracy, 0.25) AS p25, percentile(accuracy, 0.5) AS median,
               percentile(accuracy, 0.75) AS p75, max(accuracy) AS most,
               avg(at_max) AS share_at_max, avg(is_known) AS share_with_known_limit
        FROM rated GROUP BY {listed} ORDER BY {listed}
    """
