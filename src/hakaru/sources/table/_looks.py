"""What a sample says of each column of an unknown log: numbers, times, durations, sizes or words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.sources.table._cells import MISSING, SIZE, UNLIMITED, Raw, duration_s, iso_time
from hakaru.sources.table._mapping import kind_of
from hakaru.sources.table._synonyms import UNITS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST = 0.95  # a few bad rows do not hide what a column is
NUM_TRIED = 300
FORMATS = (
    *(
        f"{day}{clock}"
        for day in ("%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y年%m月%d日")
        for clock in (" %H:%M:%S", " %H:%M", " %I:%M:%S %p", " %I:%M %p", "")
    ),
    *("%a %b %d %H:%M:%S %Y", "%d %b %Y %H:%M:%S", "%Y%m%d%H%M%S", "%Y%m%d %H:%M:%S"),
)


@dataclass(frozen=True)
class Look:
    """What the sample says of one column."""

    name: str
    raw: Raw
    num_known: int
    num_distinct: int
    whole: bool
    number: bool
    duration: bool
    size: bool
    naive: bool
    unset: tuple[str, ...]
    highest: float
    time: dict[str, str] | None
    ambiguous: bool
    examples: tuple[str, ...]

    @property
    def keys(self) -> list[tuple[str, str | None]]:
        """The name as it is compared, whole and without a unit at its end, with that unit."""
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", self.name).lower()
        words = re.findall(r"[^\W_]+", spaced)
        keys: list[tuple[str, str | None]] = [("".join(words), None)]
        if len(words) > 1 and words[-1] in UNITS:
            keys.append(("".join(words[:-1]), UNITS[words[-1]]))
        return keys

    def fits(self, canonical: str) -> bool:
        kind = kind_of(canonical)
        return self.num_known > 0 and {
            "time": self.time is not None,
            "count": self.whole,
            "duration": self.number or self.duration,
            "memory": self.number or self.size,
            "list": not self.number,
        }.get(kind, True)


def look_at(con: DuckDBPyConnection, raw: Raw) -> Look:
    """The shares of a column's values in the table `sample` that read as this or that."""
    number = "TRY_CAST(x AS DOUBLE)"
    row = one_row(
        con,
        f"""
        WITH {_cells(raw)}
        SELECT count(*), count(DISTINCT x), count({number}),
               count(*) FILTER ({number} = floor({number}) AND abs({number}) < 1e15),
               count(*) FILTER ({number} BETWEEN 5e8 AND 5e9),
               count(*) FILTER ({number} BETWEEN 5e11 AND 5e12),
               count(*) FILTER ({number} = 0), count(*) FILTER ({number} = -1),
               coalesce(max({number}), 0), count({duration_s("x")}),
               count(*) FILTER (regexp_full_match(x, {quote("(?i)" + SIZE)})),
               count({iso_time("x", "UTC")}), count(*) FILTER (regexp_matches(x, ':.*[+Z-]')),
               (SELECT list(x) FROM (SELECT DISTINCT x FROM cells ORDER BY x LIMIT 3))
        FROM cells
        """,
    )
    return _judge(con, raw, row)


def _cells(raw: Raw) -> str:
    listed = ", ".join(quote(word) for word in (*MISSING, *UNLIMITED))
    return f"""cells AS (
        SELECT trim(CAST({raw.sql} AS VARCHAR)) AS x FROM sample
        WHERE lower(trim(CAST({raw.sql} AS VARCHAR))) NOT IN ('', {listed}))"""


def _judge(con: DuckDBPyConnection, raw: Raw, row: Sequence[Any]) -> Look:
    known, distinct, numbers, wholes, seconds, millis, zeros, minus = row[:8]
    highest, durations, sizes, isos, offsets, examples = row[8:]
    most = MOST * max(known, 1)
    unset = [word for word, count in (("0", zeros), ("-1", minus)) if count]
    time: dict[str, str] | None = None
    ambiguous = False
    if seconds and seconds + zeros + minus >= most:
        time = {"unit": "s"}
    elif millis and millis + zeros + minus >= most:
        time = {"unit": "ms"}
    elif isos >= most:
        time = {}
    elif known and durations < most and (numbers < most or highest > 1e13):
        time, ambiguous = _format(con, raw)
    return Look(
        name=raw.name,
        raw=raw,
        num_known=known,
        num_distinct=distinct,
        whole=wholes >= most,
        number=numbers >= most,
        duration=durations >= most,
        size=sizes >= most,
        naive=time is not None and "unit" not in time and offsets == 0,
        unset=tuple(unset),
        highest=highest,
        time=time,
        ambiguous=ambiguous,
        examples=tuple(str(example) for example in examples or ()),
    )


def _format(con: DuckDBPyConnection, raw: Raw) -> tuple[dict[str, str] | None, bool]:
    """The first format that reads most values, and whether day and month could be swapped.

    On some values only: a format that fails costs a hundred times one that fits.
    """
    counts = one_row(
        con,
        f"WITH {_cells(raw)} SELECT count(*), "
        + ", ".join(f"count(try_strptime(x, {quote(form)}))" for form in FORMATS)
        + f" FROM (SELECT DISTINCT x FROM cells ORDER BY hash(x) LIMIT {NUM_TRIED})",
    )
    num_values, *fits = counts
    if max(fits) < MOST * num_values:
        return None, False
    form = FORMATS[fits.index(max(fits))]
    other = form.replace("%m/%d/", "%d/%m/")
    return {"format": form}, other != form and fits[FORMATS.index(other)] == max(fits)
