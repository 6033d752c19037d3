"""How full the machine is: jobs that wait and PEs that are busy, over time and against its size.

A level is integrated exactly and without spreading a job over the bins it spans: an event that changes the
level by `d` at `t` adds `d × (end of the bin − t)` to its own bin, and `d` to the level of all later ones.
"""

from __future__ import annotations

from hakaru.analyses._base import Param, Rule, analysis
from hakaru.analyses._machine import over_sql

SLOT_S = 900  # every zone's days begin on a quarter of an hour
DAY_S = 86400
WIDTHS_S = (900, 1800, 3600, 7200, 10800, 21600, 43200, *(n * DAY_S for n in (1, 2, 7, 14, 28)))
MONDAY_S = 3 * DAY_S  # the epoch began on a Thursday
LOCAL = f"from_utc_timestamp(timestamp_seconds(slot * {SLOT_S}), zone)"

KNOWN_SIZE = Rule(
    "with a known number of GPUs (or processors)", "num_pes IS NOT NULL", of_size=True
)
PLACED = Rule(
    "whose start and end are known, or that still wait or run",
    "(started_at IS NOT NULL AND (ended_at IS NOT NULL OR state = 'running')) OR (started_at IS NULL "
    "AND (ended_at IS NULL AND state = 'pending' OR ended_at IS NOT NULL AND state IN "
    "('cancelled', 'failed', 'killed')))",
)


@analysis(
    "load",
    title="Queue length and busy PEs over time",
    answers="When is the machine full, and how long is the queue then?",
    reproduces="Load as in the workload studies that AAIC cites (section 2, refs. 2 to 5)",
    figure="timeseries",
    rules=[KNOWN_SIZE, PLACED],
    params=[Param("bins", 400, "Number of bins at most.", low=2, high=100_000)],
    period="present",
)
def load(bins: int) -> str:
    """Time-weighted means in each bin: jobs and PEs that wait, jobs that run, PEs that are busy.

    A job is busy from its recorded start to its end; one that still waits or runs does so until the last
    event of the selected jobs. Bins are as wide as needed, from 15 minutes on; days and weeks begin on
    the site's clock. The machine's size and the utilisation stand where it is known for the whole bin.
    """
    rungs = " ".join(f"WHEN span_s <= {width * (bins - 1)} THEN {width}" for width in WIDTHS_S)
    wide = f"CAST(ceil(span_s / {(bins - 1) * DAY_S}) AS BIGINT) * {DAY_S}"
    local_s = f"unix_seconds({LOCAL})"
    clock_s = f"CASE WHEN width_s < {DAY_S} THEN slot * {SLOT_S} ELSE {local_s} + {MONDAY_S} END"
    bin = f"CAST(floor(({clock_s}) / width_s) AS BIGINT)"
    return f"""
        WITH {_levels(bin, f"CASE {rungs} ELSE {wide} END")}
        SELECT grp, timestamp_seconds(from_s) AS since_at, timestamp_seconds(to_s) AS until_at,
               (jobs_waiting_before * span_s + jobs_waiting_area) / span_s AS num_jobs_waiting,
               (pes_waiting_before * span_s + pes_waiting_area) / span_s AS num_pes_waiting,
               (jobs_running_before * span_s + jobs_running_area) / span_s AS num_jobs_running,
               (pes_busy_before * span_s + pes_busy_area) / span_s AS num_pes_busy,
               installed_pe_s / span_s AS num_pes_installed,
               (pes_busy_before * span_s + pes_busy_area) / installed_pe_s AS utilisation
        FROM levels ORDER BY grp, bin
    """


@analysis(
    "utilisation",
    title="Utilisation of the machine",
    answers="How much of the machine's time is given to jobs?",
    reproduces="Utilisation as in the workload studies that AAIC cites (section 2, refs. 2 to 5)",
    figure="bars",
    rules=[KNOWN_SIZE, PLACED],
    period="present",
)
def utilisation() -> str:
    """Busy PE-hours over installed ones, for the whole period and by quarter on the site's clock.

    A job is busy from its recorded start to its end. Where the machine's size is not known for the whole
    of a row's time, installed hours and utilisation are unknown. A value above 1 says that the log
    gives more PEs than the machine had (AAIC, spring of 2018), so that jobs must have shared them.
    Grouped, each group's hours are set against the whole machine.
    """
    return f"""
        WITH {_levels(f"year({LOCAL}) * 4 + quarter({LOCAL}) - 1", str(SLOT_S))}
        SELECT grp, CASE WHEN bin IS NULL THEN 'all' ELSE concat(
                   CAST(CAST(floor(bin / 4) AS BIGINT) AS STRING), 'Q', CAST(bin % 4 + 1 AS STRING)
               ) END AS quarter,
               sum(span_s) / 3600 AS span_h,
               sum(pes_busy_before * span_s + pes_busy_area) / 3600 AS busy_pe_hours,
               CASE WHEN count(*) = count(installed_pe_s) THEN sum(installed_pe_s) / 3600 END
                   AS installed_pe_hours,
               CASE WHEN count(*) = count(installed_pe_s)
                    THEN sum(pes_busy_before * span_s + pes_busy_area) / sum(installed_pe_s) END
                   AS utilisation
        FROM levels GROUP BY GROUPING SETS ((grp), (grp, bin))
        ORDER BY grp, CASE WHEN bin IS NULL THEN 0 ELSE 1 END, bin
    """


def exceeding() -> str:
    """The query for when more was busy than installed, in slots of 15 minutes: wider means would hide it."""
    return over_sql(_levels("slot", str(SLOT_S)))


def _levels(bin: str, width_s: str) -> str:
    """Common tables up to `levels`: for each group and bin, the levels before it and what it adds.

    `bin` gives the bin of a slot of 15 minutes from `slot`, `zone` and `width_s`. Times are counted from the
    period's beginning, so that the sums stay exact.
    """
    return f"""
        {_axis(bin, width_s)}, {_changes()}, {_installed()},
        levels AS (
            SELECT teams.grp, bins.bin, from_s, to_s, to_s - from_s AS span_s,
                   CASE WHEN known_s = to_s - from_s THEN installed_pe_s END AS installed_pe_s,
                   {_level("jobs_waiting")}, {_level("pes_waiting")}, {_level("jobs_running")},
                   {_level("pes_busy")}
            FROM (SELECT DISTINCT grp, cluster FROM binned) AS teams
            JOIN bins ON teams.cluster = bins.cluster
            LEFT JOIN binned ON binned.grp = teams.grp AND binned.cluster = bins.cluster
                 AND binned.bin = bins.bin
            LEFT JOIN installed ON installed.cluster = bins.cluster AND installed.bin = bins.bin
        )
    """


def _axis(bin: str, width_s: str) -> str:
    """The period of each cluster, its slots of 15 minutes, and the bins that they make."""
    return f"""
        seen AS (
            SELECT cluster, min(submitted_at) AS first_at,
                   max(coalesce(ended_at, started_at, submitted_at)) AS last_at
            FROM jobs GROUP BY cluster
        ),
        bounds AS (
            SELECT seen.cluster, unix_seconds(last_at) AS last_s,
                   coalesce(CAST(floor(since_s) AS BIGINT), unix_seconds(first_at)) AS since_s,
                   coalesce(CAST(floor(until_s) AS BIGINT), unix_seconds(last_at)) AS until_s
            FROM seen JOIN period ON seen.cluster = period.cluster
        ),
        spans AS (
            SELECT cluster, since_s, greatest(until_s, since_s + 1) AS until_s, last_s,
                   greatest(until_s, since_s + 1) - since_s AS span_s
            FROM bounds
        ),
        axis AS (
            SELECT spans.*, {width_s} AS width_s,
                   CAST(floor(since_s / {SLOT_S}) AS BIGINT) AS first_slot,
                   CAST(floor((until_s - 1) / {SLOT_S}) AS BIGINT) AS last_slot
            FROM spans
        ),
        slots AS (
            SELECT slot_rows.cluster, slot, since_s, until_s, {bin} AS bin
            FROM (SELECT axis.*, explode(sequence(first_slot, last_slot)) AS slot FROM axis)
                AS slot_rows JOIN sites ON slot_rows.cluster = sites.cluster
        ),
        bins AS (
            SELECT cluster, bin, max(since_s) AS since_s,
                   greatest(min(slot) * {SLOT_S}, max(since_s)) AS from_s,
                   least((max(slot) + 1) * {SLOT_S}, max(until_s)) AS to_s
            FROM slots GROUP BY cluster, bin
        )
    """


def _changes() -> str:
    """What begins and ends, first by slot, then by bin."""
    return f"""
        stays AS (
            SELECT grp, jobs.cluster, CAST(num_pes AS DOUBLE) AS num_pes, since_s, last_slot,
                   CASE WHEN started_at IS NULL THEN 0e0 ELSE 1e0 END AS ran,
                   least(greatest(unix_seconds(submitted_at), since_s), until_s) AS submitted_s,
                   least(greatest(coalesce(unix_seconds(coalesce(started_at, ended_at)), last_s),
                                  since_s), until_s) AS left_s,
                   least(greatest(coalesce(unix_seconds(ended_at), last_s), since_s), until_s)
                       AS ended_s
            FROM jobs JOIN axis ON jobs.cluster = axis.cluster
        ),
        events AS (
            SELECT grp, cluster, num_pes, since_s, last_slot,
                   CASE step WHEN 1 THEN submitted_s WHEN 2 THEN left_s ELSE ended_s END AS at_s,
                   CASE step WHEN 1 THEN 1e0 WHEN 2 THEN -1e0 ELSE 0e0 END AS waits,
                   CASE step WHEN 1 THEN 0e0 WHEN 2 THEN ran ELSE -ran END AS runs
            FROM stays CROSS JOIN (SELECT explode(sequence(1, 3)) AS step) AS steps
        ),
        changes AS (
            SELECT grp, cluster, slot, {_sums("waits", "jobs_waiting")},
                   {_sums("waits * num_pes", "pes_waiting")}, {_sums("runs", "jobs_running")},
                   {_sums("runs * num_pes", "pes_busy")}
            FROM (SELECT events.*, CAST(at_s - since_s AS DOUBLE) AS after_s,
                         least(CAST(floor(at_s / {SLOT_S}) AS BIGINT), last_slot) AS slot
                  FROM events) AS slotted
            GROUP BY grp, cluster, slot
        ),
        binned AS (
            SELECT grp, changes.cluster, bin, {_added("jobs_waiting")}, {_added("pes_waiting")},
                   {_added("jobs_running")}, {_added("pes_busy")}
            FROM changes JOIN slots ON changes.cluster = slots.cluster AND changes.slot = slots.slot
            GROUP BY grp, changes.cluster, bin
        )
    """


def _installed() -> str:
    """How much of the machine there was in each bin, and for how long that is known."""
    return """
        installed AS (
            SELECT cluster, bin, sum(num_pes * known_s) AS installed_pe_s, sum(known_s) AS known_s
            FROM (SELECT bins.cluster, bin, num_pes, least(to_s, coalesce(until_s, to_s))
                         - greatest(from_s, coalesce(capacity.since_s, from_s)) AS known_s
                  FROM bins JOIN capacity ON bins.cluster = capacity.cluster) AS shared_time
            WHERE known_s > 0 GROUP BY cluster, bin
        )
    """


def _sums(change: str, name: str) -> str:
    """The changes of a level within a slot, and each times its moment."""
    return f"sum({change}) AS {name}, sum({change} * after_s) AS {name}_when"


def _added(name: str) -> str:
    return f"sum({name}) AS {name}, sum({name}_when) AS {name}_when"


def _level(name: str) -> str:
    """The level before a bin, and what the changes within the bin add to its integral."""
    before = f"sum(coalesce({name}, 0)) OVER (PARTITION BY teams.grp ORDER BY bins.bin)"
    return (
        f"{before} - coalesce({name}, 0) AS {name}_before, "
        f"coalesce({name} * (to_s - bins.since_s) - {name}_when, 0) AS {name}_area"
    )
