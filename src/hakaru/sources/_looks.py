"""What a sample says of each column of an unknown log: numbers, times, durations, sizes or words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.sources._cells import MISSING, SIZE, UNLIMITED, Raw, duration_s, iso_time
from hakaru.sources._mapping import kind_of
from hakaru.sources._synonyms import UNITS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST = 0.95  # a few bad rows do not hide what a column is
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
    """The shares of a column's values that read as this or that, in one query."""
    listed = ", ".join(quote(word) for word in (*MISSING, *UNLIMITED))
    number = "TRY_CAST(x AS DOUBLE)"
    formats = ", ".join(f"count(try_strptime(x, {quote(form)}))" for form in FORMATS)
    row = one_row(
        con,
        f"""
        WITH cells AS (
            SELECT trim(CAST({raw.sql} AS VARCHAR)) AS x FROM sample
            WHERE lower(trim(CAST({raw.sql} AS VARCHAR))) NOT IN ('', {listed}))
        SELECT count(*), count(DISTINCT x), count({number}),
               count(*) FILTER ({number} = floor({number}) AND abs({number}) < 1e15),
               count(*) FILTER ({number} BETWEEN 5e8 AND 5e9),
               count(*) FILTER ({number} BETWEEN 5e11 AND 5e12),
               count(*) FILTER ({number} = 0), count(*) FILTER ({number} = -1),
               coalesce(max({number}), 0), count({duration_s("x")}),
               count(*) FILTER (regexp_full_match(x, {quote("(?i)" + SIZE)})),
               count({iso_time("x", "UTC")}), count(*) FILTER (regexp_matches(x, ':.*[+Z-]')),
               (SELECT list(x) FROM (SELECT DISTINCT x FROM cells ORDER BY x LIMIT 3)), {formats}
        FROM cells
        """,
    )
    return _judge(raw, row)


def _judge(raw: Raw, row: Sequence[Any]) -> Look:
    known, distinct, numbers, wholes, seconds, millis, zeros, minus = row[:8]
    highest, durations, sizes, isos, offsets, examples, *formats = row[8:]
    most = MOST * known
    unset = [word for word, count in (("0", zeros), ("-1", minus)) if count]
    time: dict[str, str] | None = None
    if seconds and seconds + zeros + minus >= most:
        time = {"unit": "s"}
    elif millis and millis + zeros + minus >= most:
        time = {"unit": "ms"}
    elif known and isos >= most:
        time = {}
    elif known and max(formats) >= most:
        time = {"format": FORMATS[formats.index(max(formats))]}
    return Look(
        name=raw.name,
        raw=raw,
        num_known=known,
        num_distinct=distinct,
        whole=known > 0 and wholes >= most,
        number=known > 0 and numbers >= most,
        duration=known > 0 and durations >= most,
        size=known > 0 and sizes >= most,
        naive=time is not None and "unit" not in time and offsets == 0,
        unset=tuple(unset),
        highest=highest,
        time=time,
        ambiguous=time is not None and _also_swapped(time.get("format", ""), formats),
        examples=tuple(str(example) for example in examples or ()),
    )


def _also_swapped(form: str, counts: Sequence[int]) -> bool:
    """Whether day and month could as well be the other way round."""
    other = form.replace("%m/%d/", "%d/%m/")
    return other != form and counts[FORMATS.index(other)] == counts[FORMATS.index(form)]
