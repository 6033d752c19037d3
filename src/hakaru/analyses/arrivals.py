"""When jobs are submitted (AAIC section 5.5)."""

from __future__ import annotations

from hakaru.analyses._base import Param, analysis

DAYS = Param(
    "days",
    "all",
    "Days that count: all of the period, or only those with a job (the drawing may mean either).",
    choices=("all", "active"),
)
# The chosen period or, where it is open, from the cluster's first selected job to its last.
BOUNDS = """bounds AS (
            SELECT counted.cluster, coalesce(max(period.first_day), min(day)) AS first_day,
                   coalesce(max(period.last_day), max(day)) AS last_day
            FROM counted JOIN period ON counted.cluster = period.cluster
            GROUP BY counted.cluster
        ), teams AS (
            SELECT grp, cluster, count(DISTINCT day) AS num_active FROM counted GROUP BY grp, cluster
        )"""


@analysis(
    "arrivals-by-hour",
    title="Arrivals by hour of day",
    answers="At which hours do people submit?",
    reproduces="AAIC Fig. 9a",
    figure="mean-deviation",
    weighted=True,
    params=[DAYS],
)
def arrivals_by_hour(days: str) -> str:
    """Jobs (or GPU-hours) submitted in each hour of the day: mean, deviation and most over the days.

    Hours and days are those of the site's clock; an hour without a job counts as zero. `is_working`
    marks the site's hours of work.
    """
    num_days = "num_active" if days == "active" else "datediff(last_day, first_day) + 1"
    return f"""
        WITH counted AS (
            SELECT grp, cluster, CAST(submitted_local AS DATE) AS day,
                   hour(submitted_local) AS slot, count(*) AS num_jobs, sum(weight) AS amount
            FROM jobs GROUP BY grp, cluster, CAST(submitted_local AS DATE), hour(submitted_local)
        ), {BOUNDS}, slots AS (
            SELECT grp, teams.cluster, {num_days} AS num_slots, explode(sequence(0, 23)) AS slot
            FROM teams JOIN bounds ON teams.cluster = bounds.cluster
        )
        SELECT slots.grp, slots.slot AS hour,
               max(slots.slot >= working_from AND slots.slot < working_to) AS is_working, {_STATISTICS}
        FROM slots JOIN sites ON slots.cluster = sites.cluster
        LEFT JOIN counted ON slots.grp = counted.grp AND slots.slot = counted.slot
        GROUP BY slots.grp, slots.slot ORDER BY slots.grp, slots.slot
    """


@analysis(
    "arrivals-by-weekday",
    title="Arrivals by day of the week",
    answers="On which days do people submit?",
    reproduces="AAIC Fig. 9b",
    figure="mean-deviation",
    weighted=True,
    params=[DAYS],
)
def arrivals_by_weekday(days: str) -> str:
    """Jobs (or GPU-hours) submitted on each day of the week: mean, deviation and most over the days.

    0 is Monday. Days are those of the site's clock; one without a job counts as zero, and a weekday
    that the period does not hold has no mean.
    """
    active = (
        "(SELECT count(*) FROM counted WHERE counted.grp = week.grp AND counted.slot = week.slot)"
    )
    # how often a weekday falls into num_days that begin on first_slot
    falls = "CAST(floor((num_days + 6 - (slot - first_slot + 7) % 7) / 7) AS BIGINT)"
    return f"""
        WITH counted AS (
            SELECT grp, cluster, CAST(submitted_local AS DATE) AS day,
                   weekday(CAST(submitted_local AS DATE)) AS slot, count(*) AS num_jobs,
                   sum(weight) AS amount
            FROM jobs GROUP BY grp, cluster, CAST(submitted_local AS DATE)
        ), {BOUNDS}, week AS (
            SELECT grp, weekday(first_day) AS first_slot,
                   datediff(last_day, first_day) + 1 AS num_days, explode(sequence(0, 6)) AS slot
            FROM teams JOIN bounds ON teams.cluster = bounds.cluster
        ), slots AS (
            SELECT grp, slot, {active if days == "active" else falls} AS num_slots FROM week
        )
        SELECT slots.grp, slots.slot AS weekday, {_STATISTICS}
        FROM slots LEFT JOIN counted ON slots.grp = counted.grp AND slots.slot = counted.slot
        GROUP BY slots.grp, slots.slot ORDER BY slots.grp, slots.slot
    """


# Over all slots, those without a job being zero.
_STATISTICS = """max(num_slots) AS num_days, coalesce(sum(num_jobs), 0) AS num_jobs,
               coalesce(sum(amount), 0e0) / nullif(max(num_slots), 0) AS mean,
               CASE WHEN max(num_slots) > 1 THEN
                   sqrt(greatest(0e0, (coalesce(sum(amount * amount), 0e0)
                        - power(coalesce(sum(amount), 0e0), 2) / max(num_slots))
                        / (max(num_slots) - 1))) END AS sd,
               CASE WHEN max(num_slots) > 0 THEN coalesce(max(amount), 0e0) END AS most"""
