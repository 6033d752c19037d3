"""What a sample says of each column of an unknown log: numbers, times, durations, sizes or words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.sources._base import FIRST_DATE_S
from hakaru.sources.table._cells import MISSING, SIZE, UNLIMITED, Raw, duration_s, iso_time
from hakaru.sources.table._mapping import DURATION_UNITS, kind_of
from hakaru.sources.table._synonyms import SINGULAR, UNITS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST = 0.95  # a few bad rows do not hide what a column is
NUM_TRIED = 300
AT_LEAST_ONE = ("num_nodes", "num_cpus")
FORMATS = (
    *(
        f"{day}{clock}"
        for day in (
            *("%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y年%m月%d日"),
            *("%m/%d/%y", "%d/%m/%y", "%d-%b-%Y", "%d %b %Y", "%b %d %Y", "%Y%m%d"),
        )
        for clock in (" %H:%M:%S", " %H:%M:%S.%f", " %H:%M", " %I:%M:%S %p", " %I:%M %p", "")
    ),
    *("%Y年%m月%d日 %H時%M分%S秒", "%Y年%m月%d日 %H時%M分", "%Y年%m月%d日%H時%M分%S秒"),
    *("%a %b %d %H:%M:%S %Y", "%Y%m%d%H%M%S", "%Y%m%dT%H%M%S", "%d/%b/%Y:%H:%M:%S"),
    *("%Y-%m-%d %H:%M:%S %Z", "%Y-%m-%d-%H.%M.%S", "%Y-%m-%d %I:%M:%S %p"),
)
# seconds since 1970 from 1985 to 2128, as a multiple of each unit
EPOCHS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
FIRST_EPOCH, LAST_EPOCH = FIRST_DATE_S, 5e9
LONGEST_LOG_S = 20 * 365 * 86400.0
SPREADSHEET_DAYS = (20_000, 80_000)  # days since 1899-12-30: 1954 to 2119


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
    lowest: float
    middle: float
    highest: float
    time: dict[str, str] | None
    ambiguous: bool
    examples: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", self.name).lower()
        return re.findall(r"[^\W_]+", spaced)

    @property
    def keys(self) -> list[tuple[str, str | None]]:
        """The name as it is compared, whole and without a unit at its end, with that unit."""
        words = self.words
        keys: list[tuple[str, str | None]] = [("".join(words), None)]
        if len(words) > 1 and words[-1] in UNITS:
            keys.append(("".join(words[:-1]), UNITS[words[-1]]))
        return keys

    @property
    def is_singular(self) -> bool:
        """Whether it is called `node` or the like: how many, or which one?"""
        return "".join(self.words) in SINGULAR

    def is_index(self, canonical: str) -> bool:
        """Whether it numbers nodes or CPUs from 0; a job may have no GPUs, but has a node."""
        return self.is_singular and "0" in self.unset and canonical in AT_LEAST_ONE

    def fits(self, canonical: str) -> bool:
        kind = kind_of(canonical)
        return self.num_known > 0 and {
            "time": self.time is not None,
            "count": self.whole
            and (self.lowest >= -1 or canonical == "exit_code")
            and not self.is_index(canonical),
            "duration": self.number or self.duration,
            "memory": self.number or self.size,
            "list": not self.number,
        }.get(kind, True)

    @property
    def offset(self) -> dict[str, str] | None:
        """How a column of numbers reads as times that count from the log's own beginning."""
        if not self.number or self.lowest < -1 or self.time is not None:
            return None
        low, high = SPREADSHEET_DAYS
        if low < self.lowest and self.highest < high and not self.whole:
            return {"unit": "d", "start": "1899-12-30"}
        fitting = (u for u in EPOCHS if self.highest * DURATION_UNITS[u] <= LONGEST_LOG_S)
        return {"unit": next(fitting, "ns"), "start": "1970-01-01"}


def look_at(con: DuckDBPyConnection, raw: Raw) -> Look:
    """The shares of a column's values in the table `sample` that read as this or that."""
    number = "TRY_CAST(x AS DOUBLE)"
    epochs = ", ".join(
        f"count(*) FILTER ({number} BETWEEN {FIRST_EPOCH * scale} AND {LAST_EPOCH * scale})"
        for scale in EPOCHS.values()
    )
    row = one_row(
        con,
        f"""
        WITH {_cells(raw)}
        SELECT count(*), count(DISTINCT x), count({number}),
               count(*) FILTER ({number} = floor({number}) AND abs({number}) < 1e15),
               {epochs},
               count(*) FILTER ({number} = 0), count(*) FILTER ({number} = -1),
               coalesce(min({number}), 0), coalesce(median({number}), 0), coalesce(max({number}), 0),
               count({duration_s("x")}),
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
    known, distinct, numbers, wholes = row[:4]
    in_unit = dict(zip(EPOCHS, row[4:8], strict=True))
    zeros, minus, lowest, middle, highest, durations, sizes, isos, offsets, examples = row[8:]
    most = MOST * max(known, 1)
    unset = [word for word, count in (("0", zeros), ("-1", minus)) if count]
    units = [u for u, n in in_unit.items() if n and n + zeros + minus >= most]
    time: dict[str, str] | None = None
    ambiguous = False
    if units:
        time = {"unit": units[0]}
    elif isos >= most:
        time = {}
    elif known and durations < most and (numbers < most or (highest > 1e13 and wholes >= most)):
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
        lowest=lowest,
        middle=middle,
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
    other = form.replace("%m/%d/", "%d/%m/") if form[:2] == "%m" else form
    return {"format": form}, other != form and fits[FORMATS.index(other)] == max(fits)
