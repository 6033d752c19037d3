"""Who uses the machine, one row a user or an account: jobs, hours, waits, requests and how they end."""

from __future__ import annotations

from hakaru.analyses._base import HAS_USER, Param, Rule, analysis
from hakaru.analyses._counted import quantile, ranked

HAS_ACCOUNT = Rule("with a known account", "account IS NOT NULL")
SORTS = (
    "pe_hours", "num_jobs", "median_wait_s", "p95_wait_s", "median_run_s", "median_request_accuracy",
    "share_completed", "name",
)  # fmt: skip
PARAMS = (
    Param("sort", "pe_hours", "Column to sort by; ties are sorted by name.", choices=SORTS),
    Param("order", "desc", "The greatest first, or the least.", choices=("desc", "asc")),
    Param("limit", 100, "Rows at most.", low=1, high=10_000),
    Param("offset", 0, "Rows to pass over before the first.", high=1_000_000_000),
)
ENDED = ("completed", "failed", "timeout", "cancelled")


@analysis(
    "users",
    title="Users",
    answers="Who uses the machine, how long do they wait, and how do their jobs end?",
    reproduces="The sums a user as in the workload studies that AAIC cites (section 2, refs. 2 to 5)",
    figure="table",
    rules=[HAS_USER],
    params=PARAMS,
    groups=False,
)
def users(sort: str, order: str, limit: int, offset: int) -> str:
    """One row a user, sorted: jobs, GPU-hours, waits, run time, request accuracy and final states.

    Request accuracy is run time ÷ request, the median over the user's jobs that have both. The shares of
    states are of the jobs that have ended. `num_all` is the number of users before `limit`.
    """
    return _people("jobs.user", "user", "account", sort, order, limit, offset)


@analysis(
    "accounts",
    title="Accounts",
    answers="Which groups use the machine, how long do they wait, and how do their jobs end?",
    reproduces="The sums an account as in the workload studies that AAIC cites (section 2, refs. 2 to 5)",
    figure="table",
    rules=[HAS_ACCOUNT],
    params=PARAMS,
    groups=False,
)
def accounts(sort: str, order: str, limit: int, offset: int) -> str:
    """One row an account, sorted: jobs, GPU-hours, waits, run time, request accuracy and final states.

    As for users; `num_users` counts those who charged a job to the account.
    """
    return _people("jobs.account", "account", "user", sort, order, limit, offset)


def _people(
    holder: str, name: str, other: str, sort: str, order: str, limit: int, offset: int
) -> str:
    ended = "CASE WHEN state IN ('pending', 'running') THEN NULL ELSE state END"
    shares = ", ".join(
        f"avg(CASE WHEN ended_as = '{state}' THEN 1e0 WHEN ended_as IS NOT NULL THEN 0e0 END) "
        f"AS share_{state}"
        for state in ENDED
    )
    by = "holder" if sort == "name" else sort
    return f"""
        WITH {_counts(holder, "wait_s")}, {_counts(holder, "run_s")},
        {_counts(holder, "accuracy", "CASE WHEN requested_s > 0 THEN run_s / requested_s END")}, waits AS (
            SELECT holder, {quantile("wait_s", 0.5)} AS median_wait_s,
                   {quantile("wait_s", 0.95)} AS p95_wait_s
            FROM ({ranked("wait_s_counts", "holder", "wait_s")}) AS ranked GROUP BY holder
        ), runs AS (
            SELECT holder, {quantile("run_s", 0.5)} AS median_run_s
            FROM ({ranked("run_s_counts", "holder", "run_s")}) AS ranked GROUP BY holder
        ), accuracies AS (
            SELECT holder, {quantile("accuracy", 0.5)} AS median_request_accuracy
            FROM ({ranked("accuracy_counts", "holder", "accuracy")}) AS ranked GROUP BY holder
        ), totals AS (
            SELECT holder, count(DISTINCT other) AS num_{other}s, count(*) AS num_jobs,
                   sum(pe_hours) AS pe_hours, {shares},
                   min(submitted_at) AS first_submit, max(submitted_at) AS last_submit
            FROM (SELECT {holder} AS holder, jobs.{other} AS other, pe_hours, submitted_at,
                         {ended} AS ended_as
                  FROM jobs) AS held
            GROUP BY holder
        ), summed AS (
            SELECT totals.*, median_wait_s, p95_wait_s, median_run_s, median_request_accuracy
            FROM totals LEFT JOIN waits ON totals.holder = waits.holder
            LEFT JOIN runs ON totals.holder = runs.holder
            LEFT JOIN accuracies ON totals.holder = accuracies.holder
        )
        SELECT holder AS {name}, num_{other}s, num_jobs, pe_hours,
               pe_hours / nullif(sum(pe_hours) OVER (), 0) AS share_pe_hours, median_wait_s, p95_wait_s,
               median_run_s, median_request_accuracy, share_completed, share_failed, share_timeout,
               share_cancelled, first_submit, last_submit, count(*) OVER () AS num_all
        FROM summed ORDER BY {by} {order.upper()} NULLS LAST, holder LIMIT {limit} OFFSET {offset}
    """


def _counts(holder: str, name: str, value: str | None = None) -> str:
    """How often each value occurs: it can spill to disk, where a quantile over all jobs cannot."""
    return f"""{name}_counts AS (
            SELECT holder, {name}, count({name}) AS num
            FROM (SELECT {holder} AS holder, {value or name} AS {name} FROM jobs) AS held
            GROUP BY holder, {name}
        )"""
