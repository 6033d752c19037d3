"""Lines of `sacct -P` that are no records: messages, lines of another export, pieces of free text.

Nothing is escaped, so a piece can look like anything. A line that names hardly ever hold is left out
with its reason, because a record that ends in a name is lost in silence.
"""

from __future__ import annotations

from hakaru.engine.dialect import quote
from hakaru.sources import _slurm as slurm
from hakaru.sources._base import LONGEST_NAME, first_reason
from hakaru.sources.sacct._header import DELIMITERS, FIELDS, ID, MESSAGE, Layout

FEW_FIELDS = 5
LONGEST_HEADER = 4096
LONGEST_TEXT = 65536  # a submit line or a comment is longer than a name
RULER = r"^-{4,}( +-{4,})+\s*$"

SECOND_EXPORT = "part of a second export"
OWN_FILE = "write each export to a file of its own"
STRAY = "neither a record nor the rest of a job name"


def longest(layout: Layout) -> int:
    """Characters that the free text of a record may have."""
    only_names = all(layout.names[at - 1].lower() == "jobname" for at in layout.free)
    return LONGEST_NAME if only_names else LONGEST_TEXT


def other_headers() -> str:
    """SQL that is true for a header: four of five words are fields, and one is the job's id."""
    names = ", ".join(map(quote, sorted(FIELDS)))
    words = "regexp_extract_all(_text, '[A-Za-z]+')"
    known = f"list_filter({words}, lambda word: lower(word) IN ({names}))"
    return (
        f"CASE WHEN contains(lower(_text), 'jobid') AND len(_text) < {LONGEST_HEADER} "
        f"THEN len({known}) >= 3 AND 5 * len({known}) >= 4 * len({words}) ELSE false END"
    )


def left_out() -> str:
    """SQL for why a line is not looked at; `header_line` is where another header stands, if one does."""
    is_message = f"left(_text, 5) IN ('sacct', 'slurm') AND regexp_matches(_text, {quote(MESSAGE)})"
    is_ruler = f"starts_with(_text, '----') AND regexp_matches(_text, {quote(RULER)})"
    return first_reason(
        [
            (
                "_line >= header_line",
                f"{quote(SECOND_EXPORT)} || ', whose header is in line ' || header_line",
            ),
            (is_message, "'a message of Slurm, not a record'"),
            (is_ruler, "'a ruler of sacct without -P, not a record'"),
        ]
    )


def of_another_export(layout: Layout) -> str:
    """SQL for why a line is a record of another delimiter, or null."""
    delimiters = [each for each in DELIMITERS if each != layout.delimiter]
    cells, id = "string_split(_text, d)", layout.position("jobid", "jobidraw") or 1
    whole = f"len({cells}) >= {len(layout.names)} AND regexp_full_match({cells}[{id}], {quote(ID)})"
    split = f"len(list_filter([{', '.join(map(quote, delimiters))}], lambda d: {whole})) > 0"
    states = "|".join(slurm.STATES)
    stated = (
        "regexp_matches(_text, '^ *[0-9]+([_+.][^ ]*)?[^A-Za-z0-9]') "
        f"AND regexp_matches(_text, '[^A-Za-z]({states})([^A-Za-z]|$)')"
    )
    checks = [split, stated] if len(layout.names) >= FEW_FIELDS else [stated]
    reason = f"'a record with another delimiter than the header has; {OWN_FILE}'"
    return first_reason([(f"({' OR '.join(f'({c})' for c in checks)})", reason)])
