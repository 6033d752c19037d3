"""When jobs are submitted (AAIC section 5.5)."""

from __future__ import annotations

from hakaru.analyses._base import Param, analysis

DAYS = Param(
    "days",
    "all",
    "Days that count: all of the period, or only those with a job (the drawing may mean either).",
    choices=("all", "active"),
)


@analysis(
    "arrivals-by-hour",
    title="Arrivals by hour of day",
    answers="At which hours do people submit?",
    reproduces="AAIC Fig. 9a",
    figure="mean-deviation",
    params=[DAYS],
)
def arrivals_by_hour(days: str) -> str:
    """Jobs submitted in each hour of the day, by the site's clock: mean and deviation over the days.

    An hour without a job counts as zero.
    """
    return f"""
        WITH counted AS (
            SELECT grp, CAST(submitted_local AS DATE) AS day, hour(submitted_local) AS slot,
                   count(*) AS num_jobs
            FROM jobs GROUP BY grp, CAST(submitted_local AS DATE), hour(submitted_local)
        ), spans AS (
            SELECT grp, {_num_days(days)} AS num_slots FROM counted GROUP BY grp
        ), slots AS (
            SELECT grp, num_slots, explode(sequence(0, 23)) AS slot FROM spans
        )
        {_statistics("hour")}
    """


@analysis(
    "arrivals-by-weekday",
    title="Arrivals by day of the week",
    answers="On which days do people submit?",
    reproduces="AAIC Fig. 9b",
    figure="mean-deviation",
    params=[DAYS],
)
def arrivals_by_weekday(days: str) -> str:
    """Jobs submitted on each day of the week (0 is Monday), by the site's clock: mean and deviation.

    A day without a job counts as zero.
    """
    return f"""
        WITH counted AS (
            SELECT grp, CAST(submitted_local AS DATE) AS day,
                   weekday(CAST(submitted_local AS DATE)) AS slot, count(*) AS num_jobs
            FROM jobs GROUP BY grp, CAST(submitted_local AS DATE)
        ), spans AS (
            SELECT grp, min(day) AS first_day, {_num_days("all")} AS num_days FROM counted GROUP BY grp
        ), week AS (
            SELECT grp, weekday(first_day) AS first_slot, num_days, explode(sequence(0, 6)) AS slot
            FROM spans
        ), slots AS (
            SELECT grp, slot, {_num_weekdays(days)} AS num_slots FROM week
        )
        {_statistics("weekday")}
    """


def _num_days(days: str) -> str:
    if days == "active":
        return "count(DISTINCT day)"
    return "datediff(max(day), min(day)) + 1"


def _num_weekdays(days: str) -> str:
    """How often a weekday falls into the period of `num_days` that begins on `first_slot`."""
    if days == "active":
        return "(SELECT count(*) FROM counted WHERE counted.grp = week.grp AND counted.slot = week.slot)"
    return "CAST(floor((num_days + 6 - (slot - first_slot + 7) % 7) / 7) AS BIGINT)"


def _statistics(name: str) -> str:
    """Mean and deviation over all slots, those without a job being zero."""
    return f"""
        SELECT slots.grp, slots.slot AS {name}, max(num_slots) AS num_days,
               coalesce(sum(num_jobs), 0) AS num_jobs,
               coalesce(sum(num_jobs), 0) / max(num_slots) AS mean_jobs,
               CASE WHEN max(num_slots) > 1 THEN
                   sqrt(greatest(0e0, (coalesce(sum(CAST(num_jobs AS DOUBLE) * num_jobs), 0e0)
                        - power(coalesce(sum(num_jobs), 0), 2) / max(num_slots))
                        / (max(num_slots) - 1))) END AS sd_jobs,
               max(num_jobs) AS max_jobs
        FROM slots LEFT JOIN counted ON slots.grp = counted.grp AND slots.slot = counted.slot
        GROUP BY slots.grp, slots.slot ORDER BY slots.grp, slots.slot
    """
