"""A file that holds another log than when it was last read: both readings count, each with its rejects.

A nightly export may overwrite yesterday's. What the lake keeps of a file (its rejects, how many rows it lost)
goes by the file's name, so that a corrected file takes the place of the bad one. If none of its jobs is
stored, it is no correction, and its name gets a mark of its contents, as that of a pipe has.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row, select_files
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.sources._inputs import mark_of
from hakaru.sources._stage import Batch

MARKED = re.compile(r"(.*) \(([0-9a-f]{12})\)", re.DOTALL)


def tell_apart(lake: Lake, batch: Batch) -> None:
    """Give each file the name under which its log was read last, or a new one if this is another log.

    A file that was read together with others may have had no good row: it is the same log, corrected.
    """
    logs = [each for each in batch.inputs.values() if not each.mark]
    rows = [row for row in lake.ingests() if row["cluster"] == batch.cluster]
    before = [dict(map(_place_and_mark, row["inputs"] or [])) for row in rows]
    marks = {place: mark for each in before for place, mark in each.items()}
    alike = any(set(each) == {log.place for log in logs} for each in before)
    is_other = alike and not _is_stored(lake, batch)
    for log in logs:
        mark = mark_of(log.path) if is_other else marks.get(log.place)
        if mark:
            batch.rename(log.path, replace(log, mark=mark))


def _place_and_mark(name: str) -> tuple[str, str]:
    found = MARKED.fullmatch(name)
    return (found[1], found[2]) if found else (name, "")


def _is_stored(lake: Lake, batch: Batch) -> bool:
    """Whether any of the staged jobs is stored already."""
    stored = select_files(JOBS, lake.files(JOBS, [batch.cluster]))
    (num,) = one_row(
        batch.con,
        f"""
        SELECT count(*) FROM (
            SELECT 1 FROM staged SEMI JOIN (
                SELECT job_id, submitted_at FROM ({stored}) WHERE cluster = {quote(batch.cluster)}
            ) AS stored USING (job_id, submitted_at) LIMIT 1)
        """,
    )
    return bool(num)
