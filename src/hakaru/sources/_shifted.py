"""Jobs that are stored already, at other times: a log read again with another --zone or --start.

Rows that both sides have are where they were. Of the others, a new row and a stored one of the same id are
either two attempts of a requeued job, whose times are any apart, or one job that was moved.
"""

from __future__ import annotations

from dataclasses import dataclass

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row, select_files
from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS, qualified
from hakaru.sources._stage import Batch

FEWEST_SHIFTED = 3  # fewer may be requeued
# between the offsets of two zones, from -12 to +14 hours in quarters
MOST_OFFSET_S, OFFSET_STEP_S = 26 * 3600, 900
# daylight saving of one zone or both, in opposite seasons; Lord Howe's is half an hour
MOST_SAVING_S, SAVING_STEP_S = 2 * 3600, 1800
MOST_SHIFTS = 3  # within a year; times rounded to quarters of an hour are more values apart
SAME_WITHIN_S = 1  # a duration that was rounded, or taken from fractions of seconds
MOST_ATTEMPTS = 20  # of an id that are compared, or an id of all jobs would be compared with itself
COLUMNS = 'job_id, submitted_at, "user", wait_s, run_s, state'


@dataclass(frozen=True)
class Found:
    """New rows with an id that is stored at other times only, where nothing says they are other jobs."""

    num_apart: int
    num_moved: int  # by one time for all, or by two zones' offsets
    num_certain: int  # of these, not by chance


def refuse_shifted(lake: Lake, batch: Batch) -> None:
    """A log read again in another zone, or from another first day, would put its jobs there twice."""
    stored = _stored(lake, batch.cluster)
    found = _find(batch, stored)
    is_certain = FEWEST_SHIFTED <= found.num_certain > found.num_apart / 2
    if not is_certain and not _is_whole_log(batch, stored, found):
        return
    jobs = f"{found.num_moved:,} of the jobs in this log"
    raise SourceError(
        f"{batch.cluster} has {jobs} already, at other times: it was read with another --zone or --start. "
        "Nothing was stored, or these jobs would be there twice. Read it with the same --zone and --start as "
        "before; or, if those were wrong, or these are other jobs, remove the cluster's jobs and read all of "
        f"its logs again in one command:\n  {lake.forget_command(batch.cluster)}"
    )


def _stored(lake: Lake, cluster: str) -> str:
    files = select_files(JOBS, lake.files(JOBS, [cluster]))
    return f"(SELECT {COLUMNS} FROM ({files}) WHERE cluster = {quote(cluster)})"


def _find(batch: Batch, stored: str) -> Found:
    attempts = "row_number() OVER (PARTITION BY job_id ORDER BY submitted_at)"
    num_apart, num_moved, num_certain = one_row(
        batch.con,
        f"""
        WITH stored AS ({stored}),
        fresh AS (SELECT {COLUMNS} FROM staged ANTI JOIN stored USING (job_id, submitted_at)),
        gone AS (
            SELECT {COLUMNS} FROM (FROM stored SEMI JOIN fresh USING (job_id))
            ANTI JOIN staged USING (job_id, submitted_at)),
        new AS (FROM fresh SEMI JOIN gone USING (job_id) QUALIFY {attempts} <= {MOST_ATTEMPTS}),
        old AS (FROM gone QUALIFY {attempts} <= {MOST_ATTEMPTS}),
        pair AS (
            SELECT (job_id, n.submitted_at) AS job,
                   epoch_us(o.submitted_at) - epoch_us(n.submitted_at) AS by_us,
                   {_is_certain()} AS is_certain
            FROM new AS n JOIN old AS o USING (job_id) WHERE NOT ({_are_others()})),
        value AS (
            SELECT by_us, count(DISTINCT job) FILTER (is_certain) AS num_certain, count(DISTINCT job) AS num
            FROM pair GROUP BY by_us),
        usual AS (
            SELECT by_us AS usual_us FROM value ORDER BY num_certain DESC, num DESC, by_us LIMIT 1),
        shift AS (
            SELECT by_us FROM value, usual WHERE {_is_moved()}
            ORDER BY num_certain DESC, num DESC, by_us LIMIT {MOST_SHIFTS})
        SELECT (SELECT count(DISTINCT job) FROM pair), count(DISTINCT job),
               count(DISTINCT job) FILTER (is_certain)
        FROM pair SEMI JOIN shift USING (by_us)
        """,
    )
    return Found(num_apart, num_moved, num_certain)


def _is_whole_log(batch: Batch, stored: str, found: Found) -> bool:
    """Whether most of a log was moved and nothing stayed: enough where it says little of its jobs."""
    if found.num_moved < FEWEST_SHIFTED:
        return False
    num, num_same = one_row(
        batch.con,
        f"""
        SELECT (SELECT count(DISTINCT (job_id, submitted_at)) FROM staged),
               (SELECT count(*) FROM staged SEMI JOIN {stored} AS o USING (job_id, submitted_at))
        """,
    )
    return bool(num_same == 0 and found.num_moved > num / 2)


def _are_others() -> str:
    """What tells two attempts, or two jobs of one id, from one job: the user, the wait and the run."""
    ended = " AND ".join(f"({qualified(JOBS.final, JOBS, alias)})" for alias in "no")
    return f"""coalesce(n."user" <> o."user", false)
        OR coalesce(abs(n.wait_s - o.wait_s) > {SAME_WITHIN_S}, false)
        OR coalesce(abs(n.run_s - o.run_s) > {SAME_WITHIN_S} AND {ended}, false)"""


def _is_certain() -> str:
    """It ran for as long, or its time is no round one, of which any two are apart like two zones."""
    is_round = f"epoch_us(n.submitted_at) % {OFFSET_STEP_S * 10**6} = 0"
    return f"""(coalesce(n.run_s > 0 AND abs(n.run_s - o.run_s) <= {SAME_WITHIN_S}, false)
        OR {_is_offset("by_us")} AND NOT {is_round})"""


def _is_moved() -> str:
    offsets = f"{_is_offset('by_us')} AND {_is_offset('usual_us')}"
    is_saving = _is_step("(by_us - usual_us)", SAVING_STEP_S, MOST_SAVING_S)
    return f"by_us = usual_us OR {offsets} AND {is_saving}"


def _is_offset(us: str) -> str:
    """Whether a difference may be one between the offsets of two zones."""
    return _is_step(us, OFFSET_STEP_S, MOST_OFFSET_S)


def _is_step(us: str, step_s: int, most_s: int) -> str:
    return f"(abs({us}) <= {most_s * 10**6} AND {us} % {step_s * 10**6} = 0)"
