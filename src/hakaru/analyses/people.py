"""Who uses the machine, one row a user or an account: jobs, hours, waits, requests and how they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from hakaru.analyses._base import HAS_USER, Param, Rule, analysis
from hakaru.analyses._counted import narrowed, quantile, step
from hakaru.schema import ENDED, FAILED, LOST

HAS_ACCOUNT = Rule("with a known account", "account IS NOT NULL")
Sort = Literal[
    "pe_hours", "num_jobs", "median_wait_s", "p95_wait_s", "median_run_s", "median_request_accuracy",
    "share_completed", "share_failed", "share_timeout", "share_cancelled", "share_other_end",
    "lost_pe_hours", "name",
]  # fmt: skip
PARAMS = (
    Param(
        "sort", "pe_hours", "Column to sort by; ties are sorted by name.", choices=get_args(Sort)
    ),
    Param("order", "desc", "The greatest first, or the least.", choices=("desc", "asc")),
    Param("limit", 100, "Rows at most.", low=1, high=100_000),
    Param("offset", 0, "Rows to pass over before the first.", high=1_000_000_000),
)
WAIT, RUN, ACCURACY = 1, 2, 3  # the kinds of values that have quantiles
NAMED_ENDS: dict[str, tuple[str, ...]] = {
    "completed": ("completed",),
    "failed": FAILED,
    "timeout": ("timeout",),
    "cancelled": ("cancelled",),
}
_named = [state for states in NAMED_ENDS.values() for state in states]
# with the rest, killed and preempted, so that the shares add up to one
ENDS = NAMED_ENDS | {"other_end": tuple(state for state in ENDED if state not in _named)}


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
    states are of the user's jobs that have ended, and add up to 1: out of memory and a failed node count as
    failed, and `share_other_end` is the jobs that were killed or preempted. `num_accounts` is null where no
    job has an account.
    `lost_pe_hours` are the GPU-hours of the jobs that ended without being completed: failed, timed out,
    cancelled, killed or preempted. `share_pe_hours` is the part of all selected jobs' GPU-hours. `num_all`
    is the number of users before `limit`.
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
    counts = ", ".join(
        f"count(CASE WHEN {_in(states)} THEN 1 END) AS num_{end}" for end, states in ENDS.items()
    )
    shares = ", ".join(f"sum(num_{end}) / nullif(sum(num_ended), 0) AS share_{end}" for end in ENDS)
    by = "holder" if sort == "name" else sort
    parts_a_unit = f"CASE kind WHEN {ACCURACY} THEN 1000000 ELSE 1 END"
    return f"""
        WITH valued AS (
            SELECT {holder} AS holder, kind, CASE kind WHEN {WAIT} THEN wait_s WHEN {RUN} THEN run_s
                   ELSE CASE WHEN requested_s > 0 THEN run_s / requested_s END END AS value
            FROM jobs CROSS JOIN (SELECT explode(sequence({WAIT}, {ACCURACY})) AS kind) AS kinds
        ), held AS (
            SELECT valued.*, {step("value", parts_a_unit)} AS step FROM valued
        ), {narrowed("held", ["holder", "kind"], [0.5, 0.95])}, points AS (
            SELECT holder, kind, {quantile("value", 0.5)} AS median, {quantile("value", 0.95)} AS p95
            FROM narrowed GROUP BY holder, kind
        ), quantiles AS (
            SELECT holder, {_of(WAIT, "median")} AS median_wait_s, {_of(WAIT, "p95")} AS p95_wait_s,
                   {_of(RUN, "median")} AS median_run_s,
                   {_of(ACCURACY, "median")} AS median_request_accuracy
            FROM points GROUP BY holder
        ), parts AS (
            SELECT {holder} AS holder, jobs.{other} AS other, count(*) AS num_jobs,
                   sum(pe_hours) AS pe_hours, {counts},
                   count(CASE WHEN {_in(ENDED)} THEN 1 END) AS num_ended,
                   sum(CASE WHEN {_in(LOST)} THEN pe_hours END) AS lost_pe_hours,
                   min(submitted_at) AS first_submit, max(submitted_at) AS last_submit
            FROM jobs GROUP BY {holder}, jobs.{other}
        ), totals AS (
            SELECT holder, nullif(count(other), 0) AS num_{other}s, sum(num_jobs) AS num_jobs,
                   sum(pe_hours) AS pe_hours, {shares},
                   CASE WHEN sum(num_ended) > 0 AND sum(num_ended) = sum(num_completed) THEN 0e0
                        ELSE sum(lost_pe_hours) END AS lost_pe_hours,
                   min(first_submit) AS first_submit, max(last_submit) AS last_submit
            FROM parts GROUP BY holder
        ), summed AS (
            SELECT totals.*, median_wait_s, p95_wait_s, median_run_s, median_request_accuracy
            FROM totals LEFT JOIN quantiles ON totals.holder = quantiles.holder
        )
        SELECT holder AS {name}, num_{other}s, num_jobs, pe_hours,
               pe_hours / nullif(sum(pe_hours) OVER (), 0) AS share_pe_hours, median_wait_s, p95_wait_s,
               median_run_s, median_request_accuracy, {", ".join(f"share_{end}" for end in ENDS)},
               lost_pe_hours, first_submit, last_submit, count(*) OVER () AS num_all
        FROM summed ORDER BY {by} {order.upper()} NULLS LAST, holder LIMIT {limit} OFFSET {offset}
    """


def _in(states: Sequence[str]) -> str:
    listed = ", ".join(f"'{state}'" for state in states)
    return f"state IN ({listed})"


def _of(kind: int, point: str) -> str:
    return f"max(CASE WHEN kind = {kind} THEN {point} END)"
