"""Lines of `sacct -P` that are not records: messages, lines of another export, pieces of free text.

Nothing is escaped, so a piece can look like anything. A line that names hardly ever hold is left out
with its reason, because a record that ends in a name is lost in silence.
"""

from __future__ import annotations

from collections.abc import Iterable

from hakaru.engine.dialect import quote
from hakaru.sources import _slurm as slurm
from hakaru.sources._base import LONGEST_NAME, first_reason
from hakaru.sources.sacct._header import DELIMITERS, FIELDS, ID, MESSAGE, Layout

FEW_FIELDS = 5
LONGEST_HEADER = 4096
LONGEST_TEXT = 65536  # a submit line or a comment is longer than a name
MOST_LINES = 20  # that follow a whole record as the rest of its text
RULER = r"^-{4,}( +-{4,})+\s*$"
USUAL_DELIMITERS = ("|", ",", ";", "\t", "\x1f")

SECOND_EXPORT = "part of a second export"
OWN_FILE = "write each export to a file of its own"
OTHER_FIELDS = f"a record with other fields than the header has; {OWN_FILE}"
TOO_MANY = f"more than {MOST_LINES} lines after a record: the rest is not part of its text"
STRAY = "neither a record nor the rest of a job name"
MESSAGE_REASON = "'a message of a command, not a record'"
_STATES = "|".join(slurm.STATES)


def longest(layout: Layout) -> int:
    """Characters that the free text of a record may have."""
    only_names = all(layout.names[at - 1].lower() == "jobname" for at in layout.free)
    return LONGEST_NAME if only_names else LONGEST_TEXT


def other_header(layout: Layout) -> str:
    """A query on the lines `read` for `header_line`, where the header of another export stands, or null.

    The words alone may be a job's name: a delimiter is between them, or a ruler of sacct beneath.
    """
    delimiters = dict.fromkeys((*DELIMITERS, layout.delimiter))
    cells = "list_filter(string_split(_text, d), lambda cell: trim(cell) <> '')"
    split = f"list_filter({_listed(delimiters)}, lambda d: {_are_fields(cells, 'trim(cell)')})"
    words = "regexp_extract_all(_text, '[A-Za-z]+')"
    rulers = f"SELECT _line - 1 FROM read WHERE {_is_ruler('_text')}"
    # most lines do not name the id, and are not split
    may_be = f"contains(lower(_text), 'jobid') AND len(_text) < {LONGEST_HEADER}"
    return f"""
        SELECT min(_line) AS header_line FROM (
            SELECT _line, _line IN ({rulers}) AS is_ruled, _text FROM read WHERE {may_be})
        WHERE CASE WHEN is_ruled THEN {_are_fields(words, "cell")} ELSE len({split}) > 0 END
    """


def _are_fields(cells: str, cell: str) -> str:
    """Four of five cells are names of fields, and three at least."""
    known = f"len(list_filter({cells}, lambda cell: lower({cell}) IN ({_names()})))"
    return f"{known} >= 3 AND 5 * {known} >= 4 * len({cells})"


def _names() -> str:
    return ", ".join(map(quote, sorted(FIELDS)))


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(quote, texts))}]"


def _is_ruler(text: str) -> str:
    return f"starts_with({text}, '----') AND regexp_matches({text}, {quote(RULER)})"


def left_out() -> str:
    """SQL for why a line is not looked at; `header_line` is where another header stands, if one does."""
    return first_reason(
        [
            (
                "_line >= header_line",
                f"{quote(SECOND_EXPORT)} || ', whose header is in line ' || header_line",
            ),
            (_is_ruler("_text"), "'a ruler of sacct without -P, not a record'"),
        ]
    )


def not_text(layout: Layout) -> str:
    """SQL for why a line that is not a record cannot be a piece of free text either, or null."""
    reason = f"'a record with another delimiter than the header has; {OWN_FILE}'"
    return first_reason([(is_message(), MESSAGE_REASON), (_of_another_delimiter(layout), reason)])


def is_message() -> str:
    return f"regexp_matches(_text, {quote(MESSAGE)})"


def _of_another_delimiter(layout: Layout) -> str:
    cells, id = "string_split(_text, d)", layout.position("jobid", "jobidraw") or 1
    whole = f"len({cells}) >= {len(layout.names)} AND regexp_full_match({cells}[{id}], {quote(ID)})"
    others = [each for each in DELIMITERS if each != layout.delimiter]
    usual = [each for each in USUAL_DELIMITERS if each != layout.delimiter]
    checks = [
        "len(_cells) = 1 AND regexp_matches(_text, '^ *[0-9]+([_+.][^ ]*)?[^A-Za-z0-9]') "
        f"AND regexp_matches(_text, '[^A-Za-z]({_STATES})([^A-Za-z]|$)')",
        f"len(list_filter({_listed(usual)}, lambda d: {is_record(cells)})) > 0",
    ]
    if len(layout.names) >= FEW_FIELDS:
        checks.append(f"len(list_filter({_listed(others)}, lambda d: {whole})) > 0")
    return f"({' OR '.join(f'({check})' for check in checks)})"


def is_record(cells: str) -> str:
    """Whether a job's id and a state of Slurm are among the cells, in any places."""
    return f"{_has(cells, ID)} AND {has_state(cells)}"


def has_state(cells: str) -> str:
    return _has(cells, f"({_STATES})( by [0-9]+|[+])?")


def _has(cells: str, pattern: str) -> str:
    fits = f"regexp_full_match(trim(cell, ' \"'), {quote(pattern)})"
    return f"len(list_filter({cells}, lambda cell: {fits})) > 0"
