"""The times of `sacct`: epoch seconds, or the local time of where it ran, which says no offset.

When clocks go back, an hour of local time comes twice. Its times are read as of the first, unless that makes
a job run backwards, or shorter than its Elapsed, and the second does not. When clocks go forward, an hour
never comes: a time in it is read as that much later, and rejected if that makes the job run backwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.errors import SourceError
from hakaru.sources import _slurm as slurm
from hakaru.sources._base import head
from hakaru.sources.sacct._header import Layout
from hakaru.sources.sacct._records import cell, records

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TIMES = ("Submit", "Eligible", "Start", "End")
EPOCHS = "SLURM_TIME_FORMAT=%s"
NO_OFFSET = f"add --zone Asia/Tokyo (where sacct ran), or write with {EPOCHS}"


def zone_of(
    con: DuckDBPyConnection, path: Path, layout: Layout, options: Mapping[str, Any]
) -> str | None:
    """The zone of local times: the one that is given, else the site's; a file of epochs needs none."""
    zone = options.get("zone") or options.get("site_zone")
    if zone is None:
        _check_no_local_times(con, path, layout)
    return zone


def readings(zone: str | None) -> dict[str, str]:
    """Each time as `start_first` and, if the clock showed it twice, the later reading as `start_again`."""
    columns = {}
    for name in (name.lower() for name in TIMES):
        columns[f"{name}_first"] = slurm.moment(f"{name}_text", zone)
        columns[f"{name}_again"] = slurm.moment_again(f"{name}_text", zone)
    return columns


def in_order() -> str:
    """The columns `submit`, `eligible`, `start` and `end`, each settled by those before it.

    Submit is part of a job's key, so it does not depend on what later logs say of the job.
    """
    least_s = "coalesce(elapsed_s, 0)"
    ready = "greatest(submit, eligible)"
    return f"""
        submit_first AS submit,
        CASE WHEN eligible_first < submit AND eligible_again >= submit
             THEN eligible_again ELSE eligible_first END AS eligible,
        CASE WHEN start_first < {ready} AND start_again >= {ready} THEN start_again
             WHEN end_again IS NULL AND epoch(end_first) - epoch(start_again) = nullif(elapsed_s, 0)
             THEN start_again ELSE start_first END AS start,
        CASE WHEN epoch(end_first) - epoch(coalesce(start, submit)) < {least_s}
              AND epoch(end_again) - epoch(coalesce(start, submit)) >= {least_s}
             THEN end_again ELSE end_first END AS "end"
    """


def reasons_without_zone() -> list[tuple[str, str]]:
    """Local times further down in a file that began with epochs."""
    return [
        (
            f"regexp_full_match({name.lower()}_text, '{slurm.LOCAL_TIME}')",
            f"'{name} has no offset: {NO_OFFSET}'",
        )
        for name in TIMES
    ]


def reasons_backwards(zone: str | None) -> list[tuple[str, str]]:
    """Times that run backwards where clocks were put back or forward."""
    backwards = '((NOT goes_on AND began < p.submit) OR p."end" < began)'
    again = ", ".join(f"{name.lower()}_again" for name in TIMES)
    repeated = (
        f"coalesce({again}) IS NOT NULL AND {backwards}",
        f"'its times run backwards in an hour that the clock repeats; write with {EPOCHS}'",
    )
    skipped = [
        (
            f"{backwards} AND {slurm.is_skipped(f'{name.lower()}_text', zone)}",
            f"'{name} is a time that the clocks of {zone} skipped: ' || {name.lower()}_text || "
            f"'; is --zone right? Or write with {EPOCHS}'",
        )
        for name in TIMES
    ]
    return [*skipped, repeated]


def _check_no_local_times(con: DuckDBPyConnection, path: Path, layout: Layout) -> None:
    """The beginning tells which way a file is written; a job's name may look like a time, so look again."""
    if not re.search(slurm.LOCAL_TIME, head(path)):
        return
    cells = [cell(layout, name.lower()) for name in TIMES if layout.position(name.lower())]
    local = " OR ".join(f"regexp_full_match(trim({c}), '{slurm.LOCAL_TIME}')" for c in cells)
    found = con.execute(
        f"SELECT 1 FROM ({records(path, layout)}) "
        f"WHERE _stray IS NULL AND _fold IS NOT NULL AND ({local}) LIMIT 1"
    ).fetchall()
    if found:
        raise SourceError(f"{path}: its times have no offset: {NO_OFFSET}")
