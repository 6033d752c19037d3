"""A cluster's dates are all real or all relative: what happens when a log brings the other kind.

A log that is read again with its first day replaces its jobs that had relative dates, if all of them are in
it. Anything else would put jobs there twice, at 1970 and at their dates, and is refused.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row, select_files
from hakaru.errors import SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS, OPTION
from hakaru.settings import load
from hakaru.sources._base import FIRST_DATE_S, RELATIVE, with_dates
from hakaru.sources._stage import Batch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def num_dated_anew(lake: Lake, batch: Batch) -> int:
    """How many stored jobs are to be replaced by the staged ones, which are the same with real dates."""
    relative = _is_relative_now(batch)
    stored = _stored(lake, batch.cluster)
    num_stored, last = one_row(batch.con, f"SELECT count(*), max(submitted_at) FROM {stored}")
    if not num_stored:
        return 0
    said = lake.facts().get(batch.cluster, {}).get(RELATIVE, False)
    was_relative = said or last < datetime.fromtimestamp(FIRST_DATE_S, UTC)
    if relative == was_relative:
        return 0
    if relative:
        zone = load(lake.workspace, lake.facts()).cluster(batch.cluster).zone
        day = last.astimezone(ZoneInfo(zone)).date()
        raise SourceError(
            f"the dates of this log are relative, and {batch.cluster} has jobs with real dates (the last is "
            f"of {day}). Add the log's first day, e.g. --start 2014-03-01, or another --cluster"
        )
    num_lost = _num_not_staged(batch.con, stored)
    if num_lost:
        raise SourceError(
            f"{batch.cluster} has {num_stored:,} jobs with relative dates, and {num_lost:,} of them are not "
            "in this log, so it cannot replace them. Read all logs of the cluster in one command, or remove "
            f"its jobs first:\n  {lake.forget_command(batch.cluster)}"
        )
    return int(num_stored)


def without_relative(lake: Lake, cluster: str) -> dict[tuple[str, str], dict[str, Any]]:
    """What is known of the cluster, for when all its jobs have real dates."""
    facts = {key: json.loads(text) for key, text in lake.spoken(cluster).items()}
    return {key: with_dates(each, None) for key, each in facts.items() if RELATIVE in each}


def _is_relative_now(batch: Batch) -> bool:
    files = {
        file: bool(facts.get(RELATIVE))
        for (source, file), facts in batch.facts.items()
        if source != OPTION
    }
    kinds = {kind: file for file, kind in files.items()}
    if len(kinds) > 1:
        raise SourceError(
            f"{kinds[True]} has relative dates and {kinds[False]} real ones. Read them one by one, the first "
            "with its first day, e.g. --start 2014-03-01"
        )
    return True in kinds


def _stored(lake: Lake, cluster: str) -> str:
    files = select_files(JOBS, lake.files(JOBS, [cluster]))
    return f"(SELECT job_id, submitted_at FROM ({files}) WHERE cluster = {quote(cluster)})"


def _num_not_staged(con: DuckDBPyConnection, stored: str) -> int:
    """Stored jobs that do not stand among the staged ones at a later time, the same for all of them."""
    (num,) = one_row(
        con,
        f"""
        WITH old AS (SELECT job_id, epoch_us(submitted_at) AS us FROM {stored}),
        new AS (SELECT job_id, epoch_us(submitted_at) AS us FROM staged),
        shift AS (
            SELECT coalesce(mode(n.us - o.us), 0) AS by_us
            FROM (SELECT job_id, min(us) AS us FROM old GROUP BY job_id) AS o
            JOIN (SELECT job_id, min(us) AS us FROM new GROUP BY job_id) AS n USING (job_id))
        SELECT count(*) FROM (SELECT job_id, us + by_us AS us FROM old, shift) AS moved
        ANTI JOIN new USING (job_id, us)
        """,
    )
    return int(num)
