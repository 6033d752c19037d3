"""What was submitted, by whom and how it ended (AAIC section 4)."""

from __future__ import annotations

from hakaru.analyses._base import HAS_USER, Param, analysis
from hakaru.analyses._site import quarter_name
from hakaru.schema import ENDED

SHARE = "sum(weight) / nullif(sum(sum(weight)) OVER (PARTITION BY grp), 0) AS share"

HAS_ENDED = f"state IN {ENDED}"
SHARE_OF_ENDED = (
    f"CASE WHEN {HAS_ENDED} THEN sum(weight) / nullif("
    f"sum(sum(CASE WHEN {HAS_ENDED} THEN weight END)) OVER (PARTITION BY grp), 0) END AS share"
)

# AAIC's files do not end with the quarters, and its user ids hold within one file only.
QUARTER = Param(
    "quarter",
    "submitted",
    "Quarter of the submission or of the end, or the log file that holds the job.",
    choices=("submitted", "ended", "log"),
)

QUARTER_KEYS = {
    "submitted": "quarter_number",
    "ended": "ended_quarter_number",
    "log": "split_part(job_id, '/', 1)",
}


@analysis(
    "queues",
    title="Jobs by queue",
    answers="Which queues do people use?",
    reproduces="AAIC Fig. 2 and Table 1",
    figure="bars",
    weighted=True,
)
def queues() -> str:
    """Jobs and GPU-hours of each queue, its share of all, and the most that a job there asked for."""
    return f"""
        SELECT grp, queue, count(*) AS num_jobs, sum(pe_hours) AS pe_hours, {SHARE},
               max(requested_s) / 3600 AS max_requested_h, max(num_nodes) AS max_nodes,
               max(num_pes) AS max_pes
        FROM jobs GROUP BY grp, queue ORDER BY grp, num_jobs DESC, queue
    """


@analysis(
    "states",
    title="How jobs ended",
    answers="How many jobs succeed, fail, run out of time or are cancelled?",
    reproduces="AAIC Fig. 3",
    figure="bars",
    weighted=True,
)
def states() -> str:
    """Jobs and GPU-hours of each state, and the state's share of what has ended.

    Jobs that wait or run, and those of which the log does not say how they ended, have no share.
    """
    return f"""
        SELECT grp, state, count(*) AS num_jobs, sum(pe_hours) AS pe_hours, {SHARE_OF_ENDED}
        FROM jobs GROUP BY grp, state ORDER BY grp, num_jobs DESC, state
    """


@analysis(
    "jobs-by-quarter",
    title="Jobs by quarter",
    answers="Does the number of jobs grow?",
    reproduces="AAIC Fig. 4",
    figure="bars",
    weighted=True,
    params=[QUARTER],
)
def jobs_by_quarter(quarter: str) -> str:
    """Jobs and GPU-hours of each calendar quarter, by the site's clock."""
    return f"""
        SELECT grp, {_quarter(quarter)} AS quarter, count(*) AS num_jobs,
               sum(pe_hours) AS pe_hours, {SHARE}
        FROM jobs GROUP BY grp, {QUARTER_KEYS[quarter]} ORDER BY grp, quarter
    """


@analysis(
    "users-by-quarter",
    title="Active users and groups by quarter",
    answers="How many people and groups use the machine?",
    reproduces="AAIC Fig. 5",
    figure="bars",
    rules=[HAS_USER],
    params=[QUARTER],
)
def users_by_quarter(quarter: str) -> str:
    """Users who submitted a job in the quarter, and the accounts that they submitted it with (null: unknown).

    Where a log's ids hold within one file only (AAIC), a person in two files counts as two:
    `--param quarter=log` then counts by file.
    """
    return f"""
        SELECT grp, {_quarter(quarter)} AS quarter,
               count(DISTINCT jobs.user) AS num_users,
               nullif(count(DISTINCT account), 0) AS num_accounts,
               count(*) AS num_jobs
        FROM jobs GROUP BY grp, {QUARTER_KEYS[quarter]} ORDER BY grp, quarter
    """


def _quarter(quarter: str) -> str:
    key = QUARTER_KEYS[quarter]
    return key if quarter == "log" else quarter_name(key)
