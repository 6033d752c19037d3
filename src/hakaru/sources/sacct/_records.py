"""The records of `sacct -P`, which escapes nothing: broken lines rejoined, split names folded back.

A line that holds a job id where the header says so is an anchor. The other lines are pieces of free text
with newlines in it, and belong to the anchor before them (or after them, where free text comes first), unless
`_lines.py` knows them for something else.
"""

from __future__ import annotations

from pathlib import Path

from hakaru.engine.dialect import quote
from hakaru.sources._base import first_reason, lines
from hakaru.sources.sacct._header import ID, Layout
from hakaru.sources.sacct._lines import (
    MESSAGE_REASON,
    MOST_LINES,
    OTHER_FIELDS,
    STRAY,
    TOO_MANY,
    has_state,
    is_message,
    is_record,
    left_out,
    longest,
    not_text,
    other_header,
)

_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+|[0-9]+|Unknown|None|"
_CLOCK, _NUMBER = r"([0-9]+-)?[0-9:.]+", r"[0-9]*"
# How a field looks that is not free text: tells which of several texts has the extra delimiters.
SHAPES: dict[str, str] = {
    "jobid": ID,
    "jobidraw": ID,
    "state": r"[A-Z_]+( by [0-9]+)?",
    "exitcode": r"[0-9]+:[0-9]+|",
    **dict.fromkeys(("submit", "eligible", "start", "end"), _TIME),
    **dict.fromkeys(("elapsed", "suspended", "cputime", "totalcpu"), _CLOCK),
    **dict.fromkeys(("elapsedraw", "uid", "allocnodes", "alloccpus", "ncpus", "priority"), _NUMBER),
}


def records(path: Path, layout: Layout) -> str:
    """A query for `_line`, `_text`, `_cells`, `_fold` (see `cell`), `_folded` and `_stray`.

    `_folded` counts the lines that were joined to the record, `_stray` is why a line belongs to none.
    """
    fold = f"CASE WHEN len(_cells) = {layout.width} THEN 0 ELSE {_fold(layout)} END"
    return f"SELECT *, {fold} AS _fold FROM ({_rejoined(path, layout)})"


def cell(layout: Layout, *names: str) -> str:
    """The first of these fields that the header has; the free text numbered `_fold` spans several cells."""
    at = layout.position(*names)
    if at is None:
        return "CAST(NULL AS VARCHAR)"
    extra = f"(len(_cells) - {layout.width})"
    if not layout.free or at < layout.free[0]:
        return f"_cells[{at}]"
    moved = f"_cells[{at} + CASE WHEN _fold BETWEEN 1 AND {at - 1} THEN {extra} ELSE 0 END]"
    if at not in layout.free:
        return moved
    whole = f"array_to_string(_cells[{at}:{at} + {extra}], {quote(layout.delimiter)})"
    return f"CASE WHEN _fold = {at} THEN {whole} ELSE {moved} END"


def _fold(layout: Layout) -> str:
    """Which free text holds the extra delimiters: the only one with which all other fields look right."""
    if len(layout.free) <= 1:
        only = layout.free[0] if layout.free else "NULL"
        return f"CASE WHEN len(_cells) > {layout.width} THEN {only} END"
    fits = ", ".join(f"CASE WHEN {_fits(layout, free)} THEN {free} END" for free in layout.free)
    found = f"list_filter([{fits}], lambda x: x IS NOT NULL)"
    return f"CASE WHEN len(_cells) > {layout.width} AND len({found}) = 1 THEN {found}[1] END"


def _fits(layout: Layout, free: int) -> str:
    extra = f"len(_cells) - {layout.width}"
    checks = [
        f"regexp_full_match(_cells[{at}{f' + {extra}' if at > free else ''}], "
        f"{quote(SHAPES[name.lower()])})"
        for at, name in enumerate(layout.names, 1)
        if name.lower() in SHAPES
    ]
    return " AND ".join(checks) or "true"


def _rejoined(path: Path, layout: Layout) -> str:
    # Reading is one thread's work and splitting everyone's, so the lines are held in between. Files
    # laid end to end repeat the header.
    every = f"""
        read AS MATERIALIZED (
            SELECT * FROM ({lines(path)})
            WHERE _line <> {layout.line} AND _text <> {quote(layout.header)}),
        other AS MATERIALIZED ({other_header(layout)}),
        every AS MATERIALIZED (SELECT _line, _text, {left_out()} AS _stray FROM read, other)
    """
    if layout.free:
        return f"WITH {every}, {_with_pieces(layout)}"
    message = first_reason([(f"len(_cells) < {layout.width} AND {is_message()}", MESSAGE_REASON)])
    return f"""
        WITH {every}
        SELECT * REPLACE (coalesce(_stray, {message}) AS _stray)
        FROM (SELECT _line, _text, {_cells(layout)} AS _cells, 0 AS _folded, _stray
              FROM every WHERE _text <> '')
    """


def _cells(layout: Layout, text: str = "_text") -> str:
    return f"string_split({text}, {quote(layout.delimiter)})"


def _with_pieces(layout: Layout) -> str:
    """Common tables and the query: the anchors, those that took pieces, and the lines of none."""
    text_first = _text_comes_first(layout)
    anchor = f"coalesce({_is_anchor(layout, text_first)}, false)"
    joined = "p.text || chr(10) || a._text" if text_first else "a._text || chr(10) || p.text"
    split = f"SELECT *, {_cells(layout)} AS _cells FROM every WHERE _stray IS NULL"
    too_long = f"'not the rest of a job name: longer than {longest(layout):,} characters'"
    return f"""
        rest AS MATERIALIZED (
            SELECT *, {not_text(layout)} AS why FROM ({split}) WHERE NOT {anchor}),
        runs AS MATERIALIZED (
            SELECT * EXCLUDE (why), _line - row_number() OVER (ORDER BY _line) AS run
            FROM rest WHERE why IS NULL),
        besides AS MATERIALIZED (
            SELECT run, {"max(_line) + 1" if text_first else "min(_line) - 1"} AS beside
            FROM runs GROUP BY run),
        near AS MATERIALIZED (
            SELECT run, beside, len(_cells) AS num_near, {has_state("_cells")} AS is_stated
            FROM ({split} AND _line IN (SELECT beside FROM besides)) JOIN besides ON beside = _line
            WHERE {anchor}),
        judged AS MATERIALIZED ({_judged(layout, text_first)}),
        pieces AS MATERIALIZED (
            SELECT run, any_value(beside) AS beside, min(_line) AS line, max(len(_cells)) AS num_cells,
                   sum(len(_cells) - 1) AS num_added, count_if(_text <> '') AS num_lines,
                   rtrim(string_agg(_text, chr(10) ORDER BY _line), chr(10)) AS text
            FROM judged WHERE why IS NULL GROUP BY run),
        anchors AS (SELECT * FROM ({split}) WHERE {anchor}),
        taken AS MATERIALIZED (
            SELECT run, p.beside, least(a._line, p.line) AS _line, p.num_lines, {joined} AS _text
            FROM anchors AS a JOIN pieces AS p ON p.beside = a._line
            WHERE {_takes(layout, text_first)})
        SELECT _line, _text, _cells, 0 AS _folded, CAST(NULL AS VARCHAR) AS _stray
        FROM anchors WHERE _line NOT IN (SELECT beside FROM taken)
        UNION ALL
        SELECT _line, _text, {_cells(layout)}, num_lines, NULL FROM taken
        UNION ALL
        SELECT _line, _text, [], 0, _stray FROM every WHERE _stray IS NOT NULL AND _text <> ''
        UNION ALL
        SELECT _line, _text, [], 0, why FROM rest WHERE why IS NOT NULL
        UNION ALL
        SELECT _line, _text, [], 0, why FROM judged WHERE why IS NOT NULL AND _text <> ''
        UNION ALL
        SELECT _line, _text, [], 0,
               CASE WHEN len(p.text) > {longest(layout)} THEN {too_long} ELSE '{STRAY}' END
        FROM judged JOIN pieces AS p USING (run)
        WHERE why IS NULL AND _text <> '' AND run NOT IN (SELECT run FROM taken)
    """


def _judged(layout: Layout, text_first: bool) -> str:
    """The lines of each run in their order from its anchor, and why one is not part of its text, or null.

    The first piece with an id and a state may be the rest of a record that lacks both; later ones and those
    after a whole record are records of another export, and what follows those belongs to nobody.
    """
    window = f"PARTITION BY run ORDER BY _line {'DESC' if text_first else ''}"
    before = f"({window} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    lacks = f"num_near + coalesce(sum(len(_cells) - 1) OVER {before}, 0) < {layout.width}"
    foreign = "is_record AND (is_stated OR num_records > 1 OR NOT coalesce(lacks, false))"
    why = [
        ("is_foreign", quote(OTHER_FIELDS)),
        ("after_foreign", quote(STRAY)),
        (f"num_spare > {MOST_LINES}", quote(TOO_MANY)),
    ]
    return f"""
        SELECT *, {first_reason(why)} AS why FROM (
            SELECT *, bool_or(is_foreign) OVER {before} AS after_foreign,
                   count_if(NOT lacks AND _text <> '') OVER ({window}) AS num_spare
            FROM (SELECT *, coalesce({foreign}, false) AS is_foreign FROM (
                SELECT *, count_if(is_record) OVER ({window}) AS num_records, {lacks} AS lacks
                FROM (SELECT *, {is_record("_cells")} AS is_record FROM runs)
                LEFT JOIN near USING (run))))
    """


def _text_comes_first(layout: Layout) -> bool:
    """Whether free text stands before the job's id and none after it."""
    at = layout.position("jobid", "jobidraw") or 0
    return bool(layout.free) and layout.free[-1] < at


def _is_anchor(layout: Layout, text_first: bool) -> str:
    """It has a job id in its place, or all its fields: a damaged record must not end in a job's name."""
    at = layout.position("jobid", "jobidraw") or 0
    place = f"len(_cells) - {layout.width - at}" if text_first else f"{at}"
    return (
        f"len(_cells) >= {layout.width} OR (len(_cells) > 1 AND {place} > 0 "
        f"AND regexp_full_match(_cells[{place}], {quote(ID)}))"
    )


def _takes(layout: Layout, text_first: bool) -> str:
    """Whether an anchor `a` takes the pieces `p`: they have what it lacks, or its text has an open end.

    At an open end anything might follow, so pieces with many delimiters are taken for damaged records, and
    those that would make too long a text for junk.
    """
    open_cell = "a._cells[1]" if text_first else "a._cells[-1]"
    short = f"len({open_cell}) + 1 + len(p.text) <= {longest(layout)}"
    completed = f"len(a._cells) + p.num_added >= {layout.width}"
    open_end = layout.free[0] == 1 if text_first else layout.free[-1] == len(layout.names)
    follows = f"{str(open_end).lower()} AND 2 * (p.num_cells - 1) < {layout.width - 1}"
    if layout.trailing and not text_first:  # of `sacct -p` the last piece ends with the delimiter
        follows += f" AND suffix(p.text, {quote(layout.delimiter)})"
    return (
        f"{short} AND CASE WHEN len(a._cells) < {layout.width} THEN {completed} ELSE {follows} END"
    )
