"""How long jobs wait, what they wait for, and how many give up (the measures of AAIC's section 2)."""

from __future__ import annotations

from hakaru.analyses._base import Rule, analysis
from hakaru.analyses._counted import deviation, quantile, ranked
from hakaru.analyses._select import FATE

HAS_WAIT = Rule("with a known wait (they started)", "wait_s IS NOT NULL")


@analysis(
    "waits",
    title="Wait time, and its parts",
    answers="How long do jobs wait, and is it the queue or a hold that they wait for?",
    reproduces="Wait time as in the workload studies that AAIC cites (section 2, refs. 2 to 5)",
    figure="statistics",
    rules=[HAS_WAIT],
)
def waits() -> str:
    """Wait from submit to start as recorded, and its parts: holds and dependencies, then the queue.

    The parts count the jobs whose eligible time is known and lies between submit and start; where a
    log does not record it, only the whole is known.
    """
    return f"""
        WITH parts AS (SELECT explode(sequence(1, 3)) AS part),
        waited AS (
            SELECT grp, part, CASE
                WHEN part = 3 THEN wait_s
                WHEN NOT eligible_at BETWEEN submitted_at AND started_at THEN NULL
                WHEN part = 1 THEN unix_seconds(eligible_at) - unix_seconds(submitted_at)
                ELSE unix_seconds(started_at) - unix_seconds(eligible_at) END AS waited_s
            FROM jobs CROSS JOIN parts
        ),
        counts AS (
            SELECT grp, part, waited_s, count(waited_s) AS num
            FROM waited GROUP BY grp, part, waited_s
        )
        SELECT grp, CASE part WHEN 1 THEN 'submit to eligible' WHEN 2 THEN 'eligible to start'
                              ELSE 'submit to start' END AS part,
               sum(num) AS num_jobs, max(mean_value) AS mean_s, {deviation("waited_s")} AS sd_s,
               {quantile("waited_s", 0.5)} AS median_s, {quantile("waited_s", 0.9)} AS p90_s,
               {quantile("waited_s", 0.95)} AS p95_s, {quantile("waited_s", 0.99)} AS p99_s,
               max(waited_s) AS max_s,
               sum(CASE WHEN waited_s <= 60 THEN num ELSE 0 END) / nullif(sum(num), 0)
                   AS share_within_1min,
               sum(CASE WHEN waited_s <= 3600 THEN num ELSE 0 END) / nullif(sum(num), 0)
                   AS share_within_1h
        FROM ({ranked("counts", "grp, part", "waited_s")}) AS ranked
        GROUP BY grp, ranked.part ORDER BY grp, ranked.part
    """


@analysis(
    "abandoned-waits",
    title="What became of the wait",
    answers="How many jobs are given up while they wait, and after how long?",
    reproduces="Wait time as in the workload studies that AAIC cites (section 2), with its censored part",
    figure="statistics",
)
def abandoned_waits() -> str:
    """Every submitted job by what became of it: started, abandoned, still pending, or unknown.

    Abandoned jobs were cancelled, killed or failed before they started; they had waited from submit to
    their end. Pending ones have waited at least until the last event of the selected jobs (censored).
    Of the unknown the log says neither when they started nor that they never did.
    """
    return f"""
        WITH ends AS (
            SELECT cluster, max(unix_seconds(coalesce(ended_at, started_at, submitted_at))) AS last_s
            FROM jobs GROUP BY cluster
        ),
        fates AS (
            SELECT grp, submitted_at, ended_at, wait_s, last_s, {FATE} AS fate
            FROM jobs JOIN ends ON jobs.cluster = ends.cluster
        ),
        waited AS (
            SELECT grp, fate, CASE fate
                WHEN 1 THEN wait_s
                WHEN 2 THEN unix_seconds(ended_at) - unix_seconds(submitted_at)
                WHEN 3 THEN last_s - unix_seconds(submitted_at) END AS waited_s
            FROM fates
        ),
        seen AS (
            SELECT grp, fate, waited_s, count(waited_s) AS num, count(*) AS num_jobs
            FROM waited GROUP BY grp, fate, waited_s
        ),
        grid AS (
            SELECT grp, fate FROM (SELECT DISTINCT grp FROM seen) AS groups
            CROSS JOIN (SELECT explode(sequence(1, 4)) AS fate) AS all_fates
        ),
        counts AS (
            SELECT grid.grp, grid.fate, waited_s, coalesce(num, 0) AS num,
                   coalesce(num_jobs, 0) AS num_jobs
            FROM grid LEFT JOIN seen ON grid.grp = seen.grp AND grid.fate = seen.fate
        )
        SELECT grp, CASE fate WHEN 1 THEN 'started' WHEN 2 THEN 'abandoned' WHEN 3 THEN 'pending'
                              ELSE 'unknown' END AS fate,
               sum(num_jobs) AS num_jobs,
               sum(num_jobs) / max(num_submitted) AS share,
               max(mean_value) AS mean_s, {quantile("waited_s", 0.5)} AS median_s,
               {quantile("waited_s", 0.9)} AS p90_s, max(waited_s) AS max_s
        FROM (SELECT ranked.*, sum(num_jobs) OVER (PARTITION BY grp) AS num_submitted
              FROM ({ranked("counts", "grp, fate", "waited_s")}) AS ranked) AS shared
        GROUP BY grp, shared.fate ORDER BY grp, shared.fate
    """
