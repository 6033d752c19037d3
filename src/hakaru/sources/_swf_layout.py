"""Whether the lines of a file are those of the Standard Workload Format, or of another in its place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hakaru.errors import SourceError
from hakaru.sources._base import FIRST_DATE_S, first_reason, table_advice

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SAMPLED_LINES = 1000


def refuse_other_layouts(
    con: DuckDBPyConnection, path: Path, parsed: str, titles: Sequence[str], start_s: float
) -> float | None:
    """Look at the first lines as a whole: what makes one line odd makes all of them another format.

    `parsed` is a query for the lines, `titles` are the columns. Gives the earliest submit time among them.
    """
    seen = con.execute(
        f"""
        SELECT {first_reason(_checks(len(titles), start_s))}, first_line, first_text, first_submit_s FROM (
            SELECT count(*) AS num_lines, mode(num_cells) AS usual_cells,
                   count_if(num_cells <> {len(titles)}) AS num_other,
                   count_if(NOT coalesce(status IN (-1, 0, 1, 2, 3, 4, 5), false)) AS num_strange,
                   count_if(status NOT IN (2, 3, 4)) AS num_whole,
                   count(DISTINCT job) FILTER (status NOT IN (2, 3, 4)) AS num_ids,
                   count_if((job - last_job) * (submit - last_submit) < 0) AS num_crossed,
                   count_if(submit < last_submit) AS num_earlier, {_in_order("start")}, {_in_order("end")},
                   count_if(submit - last_submit = 1) AS num_counting,
                   count_if(job - last_job = 1) AS num_next,
                   count_if(wait >= submit) AS num_late, max(submit) AS last_submit_s,
                   min(submit) AS first_submit_s,
                   min(_line) AS first_line, left(arg_min(_text, _line), 120) AS first_text
            FROM (SELECT *, lag(job) OVER lines AS last_job, lag(submit) OVER lines AS last_submit,
                         lag(start_s) OVER lines AS last_start_s, lag(end_s) OVER lines AS last_end_s
                  FROM (SELECT *, CASE WHEN wait >= 0 THEN submit + wait END AS start_s,
                               CASE WHEN wait >= 0 AND run >= 0 THEN submit + wait + run END AS end_s
                        FROM (FROM ({parsed}) LIMIT {SAMPLED_LINES}))
                  WINDOW lines AS (ORDER BY _line)))
        """
    ).fetchall()
    ((problem, line, text, first_submit_s),) = seen
    if problem:
        raise SourceError(
            f"{path}: not the Standard Workload Format: {problem}. Line {line} reads {text!r}.\n"
            f"Its {len(titles)} columns are: {', '.join(titles)}. "
            f"{table_advice(path)}"
        )
    return first_submit_s  # type: ignore[no-any-return]


def _in_order(moment: str) -> str:
    """SQL over the sampled lines for `num_by_end`: those that end no earlier than the line before."""
    return f"count_if({moment}_s + 1 >= last_{moment}_s) AS num_by_{moment}"


def _checks(num_fields: int, start_s: float) -> list[tuple[str, str]]:
    """Conditions over the sampled lines, each with SQL for what was seen."""
    checks = [
        (
            "num_other * 2 > num_lines",
            f"'expected {num_fields} columns, found ' || usual_cells || ' in most lines ('"
            f" || num_other || ' of the first ' || num_lines || ' have other than {num_fields})'",
        ),
        (
            "num_strange * 2 > num_lines",
            "'field 11 (status) is not one of -1 to 5 in ' || num_strange || ' of the first '"
            " || num_lines || ' lines'",
        ),
        (
            "num_whole >= 3 AND num_ids * 2 <= num_whole",
            "'field 1 (job number) has only ' || num_ids || ' values in ' || num_whole || ' lines'",
        ),
        (
            # a log may be sorted by start or end: then the submit times go up and down, and rightly
            "num_crossed >= 2 AND num_crossed * 3 > num_lines AND (num_earlier * 20 <= num_lines "
            "OR greatest(num_by_start, num_by_end) * 20 < (num_lines - 1) * 19)",
            "'field 1 (job number) and field 2 (submit time) do not rise together: one rises while the"
            " other falls in ' || num_crossed || ' of the first ' || num_lines || ' lines'",
        ),
        (
            "num_lines >= 5 AND num_counting = num_lines - 1 AND num_next < num_lines - 1",
            "'field 2 (submit time) counts the lines one by one and field 1 (job number) does not,"
            " as if the two were exchanged'",
        ),
        (
            "num_lines >= 10 AND num_late = num_lines AND last_submit_s >= 86400",
            "'field 3 (wait time) is never below field 2 (submit time), as if it were a start time'",
        ),
    ]
    if start_s > FIRST_DATE_S:
        checks.append(
            (
                "first_submit_s > 3e8",
                "'field 2 (submit time) begins at ' || first_submit_s || ' beside a UnixStartTime"
                " or --start: it holds Unix times where seconds since then are expected'",
            )
        )
    return checks
