"""SQL for one canonical column: the value of a source cell, and when and why it cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hakaru.engine.dialect import DUCKDB_TYPES, quote
from hakaru.schema import JOBS, STATES
from hakaru.sources.table._mapping import DURATION_UNITS, MEMORY_UNITS, Cell

# Words for unknown in cells of numbers and times; a text may well be called one of these.
MISSING = (
    *("-", "--", "-/-", "?", "na", "n/a", "nan", "nil", "none", "null"),
    *("undefined", "unknown", "unset"),
)
UNLIMITED = ("unlimited", "infinite", "infinity", "partition_limit")

TEXT = "VARCHAR"
ISO = r"\d{4}-\d{2}-\d{2}([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[+-]\d{2}(:?\d{2})?)?)?"
OFFSET = r"\d:\d.*(Z|[+-]\d{2}(:?\d{2})?)$"
DURATION = r"^(?:(\d+)(?:-| days?,? ))?(\d+):([0-5]?\d):([0-5]?\d(?:\.\d+)?)$"
SIZE = r"^(\d+(?:\.\d+)?) ?([KMGT])i?B?[nc]?$"  # ReqMem of older Slurms: 4Gn a node, 4Gc a CPU
Check = tuple[str, str]
NO_OFFSET = "has no offset: add --zone Asia/Tokyo (the site's time zone)"
LAST_EPOCH_S = 2e10  # the year 2603: milliseconds taken for seconds are found


@dataclass(frozen=True)
class Raw:
    """A source column as it stands in the query."""

    name: str
    sql: str
    type: str


@dataclass(frozen=True)
class Value:
    """SQL of a canonical value (null where unknown or unreadable), and of what may be wrong.

    `number`, if any, is computed first, as `n_NAME`: the value and the checks then use it.
    """

    sql: str
    checks: tuple[Check, ...] = ()
    number: str | None = None


def value(name: str, cell: Cell, raws: Sequence[Raw], zone: str | None) -> Value:
    """The canonical column `name` from its source columns; a last one for `times` may follow.

    Without a `zone`, a time that says no offset cannot be read.
    """
    kind = DUCKDB_TYPES[JOBS.column(name).type]
    if cell.value is not None:
        constant = quote(cell.value) if isinstance(cell.value, str) else repr(cell.value)
        return Value(f"CAST({constant} AS {kind})")
    known = [_without(raw, cell.missing) for raw in raws]
    if cell.kind in ("count", "duration", "memory"):
        return _number(name, cell, known)
    raw = _join(known, cell) if len(known) > 1 else known[0]
    if cell.kind == "time":
        read = _time(name, raw, cell, zone or "UTC")
        return read if zone else replace(read, checks=(*_no_offset(name, raw, cell), *read.checks))
    if cell.kind == "state":
        return _state(raw, cell)
    if cell.kind == "list":
        return Value(_list(raw, cell.separator))
    return Value(_translated(_as_text(raw), cell))


def duration_s(text: str) -> str:
    """Seconds of `[D-]HH:MM:SS[.f]`, and of `D days, HH:MM:SS`; else null."""
    parts = f"regexp_extract({text}, {quote(DURATION)}, ['d', 'h', 'm', 's'])"
    days, hours, minutes, seconds = (f"TRY_CAST({parts}.{part} AS DOUBLE)" for part in "dhms")
    return f"(coalesce({days}, 0) * 86400 + {hours} * 3600 + {minutes} * 60 + {seconds})"


def iso_time(text: str, zone: str) -> str:
    """A time in ISO 8601, in `zone` if it says no offset; the pattern bars words like `infinity`."""
    return f"""CASE WHEN NOT regexp_full_match({text}, {quote(ISO)}) THEN NULL
        WHEN regexp_matches({text}, {quote(OFFSET)})
        THEN TRY_CAST(replace({text}, ' Z', 'Z') AS TIMESTAMPTZ)
        ELSE TRY_CAST({text} AS TIMESTAMP) AT TIME ZONE {quote(zone)} END"""


def number(raw: Raw) -> str:
    """A number, or null; a text may give infinity and NaN, which the caller must refuse."""
    if raw.type == TEXT:
        return f"TRY_CAST({raw.sql} AS DOUBLE)"
    if raw.type in ("INTERVAL", "TIME"):
        return f"epoch({raw.sql})"
    return f"CAST({raw.sql} AS DOUBLE)"


def _without(raw: Raw, missing: Sequence[str]) -> Raw:
    """The column with the mapping's own words for unknown made null."""
    sql = raw.sql
    if raw.type in ("DOUBLE", "FLOAT"):
        sql = f"CASE WHEN NOT isnan({raw.sql}) THEN {raw.sql} END"
    numbers = [word for word in missing if _is_number(word)]
    if raw.type in _NUMBERS and numbers:
        sql = f"CASE WHEN {raw.sql} NOT IN ({', '.join(numbers)}) THEN {sql} END"
    if raw.type == TEXT and missing:
        listed = ", ".join(sorted({quote(word.lower()) for word in missing}))
        sql = f"CASE WHEN lower(trim({raw.sql})) NOT IN ({listed}) THEN {raw.sql} END"
    return Raw(raw.name, sql, raw.type)


_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "UTINYINT",
            "USMALLINT", "UINTEGER", "UBIGINT")  # fmt: skip


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _join(raws: Sequence[Raw], cell: Cell) -> Raw:
    if cell.kind == "time":
        raws = [_without(raw, MISSING) for raw in raws]
    texts = ", ".join(_as_text(raw) for raw in raws)
    name = " and ".join(raw.name for raw in raws)
    return Raw(name, f"nullif(concat_ws({quote(cell.join)}, {texts}), '')", TEXT)


def _unread(raw: Raw, unread: str, expected: str, words: Sequence[str] = MISSING) -> Check:
    """The check of a cell: it says something, not that it is unknown, and it was not read."""
    reason = f"{quote(raw.name + ': ')} || {_shown(raw)} || {quote(' is not ' + expected)}"
    said = f"{raw.sql} IS NOT NULL AND ({unread})"
    if raw.type == TEXT:
        listed = ", ".join(quote(word) for word in words)
        said += f" AND lower(trim({raw.sql})) NOT IN ({listed})"
    return said, reason


def _shown(raw: Raw) -> str:
    return f"chr(39) || left(CAST({raw.sql} AS VARCHAR), 60) || chr(39)"


def _number(name: str, cell: Cell, raws: Sequence[Raw]) -> Value:
    first, *rest = raws
    read, expected = _reading(cell)
    words = (*MISSING, *(UNLIMITED if cell.kind == "duration" else ()))
    factors = [read(first), *(number(raw) for raw in rest)]
    checks = [_unread(raw, f"{number(raw)} IS NULL", "a number") for raw in rest]
    # with `times`, the first cell is to blame only if the other one is known
    others = "".join(f" AND {factor} IS NOT NULL" for factor in factors[1:])
    checks.append(_unread(first, f'"{name}" IS NULL{others}', expected, words))
    if isinstance(cell.times, int | float):
        factors.append(repr(cell.times))
    n = f"n_{name}"
    sql = f"CASE WHEN isfinite({n}) THEN {n} END"
    if cell.kind == "count":
        sql = f"CASE WHEN abs({n}) < 1e15 AND {n} = floor({n}) THEN CAST({n} AS BIGINT) END"
    elif cell.kind == "memory":
        sql = f"CASE WHEN isfinite({n}) AND {n} >= 0 THEN {n} END"
    return Value(sql, tuple(checks), " * ".join(f"({factor})" for factor in factors))


def _reading(cell: Cell) -> tuple[Callable[[Raw], str], str]:
    """How a cell of numbers is read, and what it is expected to be."""
    if cell.kind == "count":
        return number, "a whole number"
    if cell.unit == "duration":
        return _duration, "a duration (expected [D-]HH:MM:SS)"
    if cell.unit == "size":
        return lambda raw: _size(_as_text(raw)), "a size (expected e.g. 64G or 512MiB)"
    if cell.kind == "memory":
        unit = cell.unit or "MiB"
        return lambda raw: _scaled(number(raw), MEMORY_UNITS[unit]), (
            f"an amount of memory (expected a number in {unit})"
        )
    unit = cell.unit or "s"
    return lambda raw: _scaled(number(raw), DURATION_UNITS[unit]), (
        f"a number (expected a duration in {unit})"
    )


def _duration(raw: Raw) -> str:
    return duration_s(f"trim({raw.sql})") if raw.type == TEXT else number(raw)


def _size(text: str) -> str:
    """MiB of a size such as 64G; like schedulers, in steps of 1024 whatever the letter's dress."""
    parts = f"regexp_extract(trim({text}), {quote('(?i)' + SIZE)}, ['n', 'u'])"
    return (
        f"TRY_CAST({parts}.n AS DOUBLE) * CASE upper({parts}.u) WHEN 'K' THEN 1 / 1024e0 "
        "WHEN 'M' THEN 1 WHEN 'G' THEN 1024 ELSE 1048576 END"
    )


def _scaled(sql: str, factor: float) -> str:
    return sql if factor == 1 else f"({sql}) * {factor!r}"


def _time(name: str, raw: Raw, cell: Cell, zone: str) -> Value:
    check = _unread(raw, f'"{name}" IS NULL', _expected_time(raw, cell))
    if raw.type == "TIMESTAMP WITH TIME ZONE":
        return Value(raw.sql)
    if _is_date(raw):
        return Value(f"CAST({raw.sql} AS TIMESTAMP) AT TIME ZONE {quote(zone)}")
    if cell.unit or raw.type != TEXT:
        n = f"n_{name}"
        seconds = _scaled(number(raw), DURATION_UNITS[cell.unit or "s"])
        since = f" + epoch({_moment(cell.start, zone)})" if cell.start else ""
        sql = f"CASE WHEN {n} BETWEEN 0 AND {LAST_EPOCH_S} THEN to_timestamp({n}{since}) END"
        return Value(sql, (check,), seconds)
    if cell.format:
        read = f"try_strptime(trim({raw.sql}), {quote(cell.format)})"
        local = f"{read} AT TIME ZONE {quote(zone)}"
        return Value(read if _has_offset(cell.format) else local, (check,))
    return Value(iso_time(f"trim({raw.sql})", zone), (check,))


def _no_offset(name: str, raw: Raw, cell: Cell) -> list[Check]:
    """The check for a local time, whose zone nobody knows."""
    has_offset = raw.type == "TIMESTAMP WITH TIME ZONE" or _has_offset(cell.format or "")
    if has_offset or (not _is_date(raw) and (cell.unit or raw.type != TEXT)):
        return []
    is_local = f'"{name}" IS NOT NULL'
    if raw.type == TEXT and not cell.format:
        is_local += f" AND NOT regexp_matches(trim({raw.sql}), {quote(OFFSET)})"
    return [(is_local, f"{quote(raw.name + ': ')} || {_shown(raw)} || {quote(' ' + NO_OFFSET)}")]


def _is_date(raw: Raw) -> bool:
    return raw.type.startswith("TIMESTAMP") or raw.type == "DATE"


def _has_offset(form: str) -> bool:
    return "%z" in form or "%Z" in form


def _moment(text: str, zone: str) -> str:
    """The SQL of a moment in ISO 8601 that was checked before."""
    if datetime.fromisoformat(text).tzinfo:
        return f"TIMESTAMPTZ {quote(text)}"
    return f"(TIMESTAMP {quote(text)} AT TIME ZONE {quote(zone)})"


def _expected_time(raw: Raw, cell: Cell) -> str:
    if cell.unit or raw.type != TEXT:
        return f"a time (expected {cell.unit or 's'} since {cell.start or '1970-01-01'})"
    if cell.format:
        return f"a time (expected {cell.format})"
    return "a time (expected ISO 8601 such as 2018-04-01 09:00:00; else give a format or a unit)"


def _state(raw: Raw, cell: Cell) -> Value:
    """The log's words in ours; a word that ends in * stands for all that begin so."""
    words = {word: word for word in STATES} if not cell.words else dict(cell.words)
    text = f"lower(trim({_as_text(raw)}))"
    exact = [f"WHEN {text} = {quote(w)} THEN {quote(s)}" for w, s in words.items() if w[-1:] != "*"]
    begins = sorted(((w[:-1], s) for w, s in words.items() if w[-1:] == "*"), reverse=True)
    rest = [f"WHEN starts_with({text}, {quote(w)}) THEN {quote(s)}" for w, s in begins]
    reason = (
        f"{quote(raw.name + ': ')} || {_shown(raw)} || "
        f"{quote(' is an unknown state; map it under [states], e.g. ')} || chr(34) || "
        f"left({_as_text(raw)}, 60) || chr(34) || {quote(' = ')} || chr(34) || 'failed' || chr(34)"
    )
    sql = f"CASE WHEN {text} = '' THEN NULL {' '.join([*exact, *rest])} END"
    return Value(sql, ((f"""{text} <> '' AND "state" IS NULL""", reason),))


def _list(raw: Raw, separator: str) -> str:
    """A list as it is, or a text cut at the separator, without brackets, quotes and spaces."""
    if raw.type == "VARCHAR[]":
        return raw.sql
    inner = f"trim({_as_text(raw)}, ' []')"
    parts = f"list_transform(string_split({inner}, {quote(separator)}), lambda part: trim(part, ' \"'''))"
    return f"CASE WHEN {inner} <> '' THEN list_filter({parts}, lambda part: part <> '') END"


def _as_text(raw: Raw) -> str:
    if raw.type == TEXT:
        return raw.sql
    if raw.type in ("DOUBLE", "FLOAT"):  # whole numbers with gaps become floats in pandas
        whole = f"{raw.sql} = floor({raw.sql}) AND abs({raw.sql}) < 1e15"
        return (
            f"CASE WHEN {whole} THEN CAST(CAST({raw.sql} AS BIGINT) AS VARCHAR) "
            f"ELSE CAST({raw.sql} AS VARCHAR) END"
        )
    return f"CAST({raw.sql} AS VARCHAR)"


def _translated(text: str, cell: Cell) -> str:
    if not cell.words:
        return text
    cases = " ".join(f"WHEN {quote(word)} THEN {quote(ours)}" for word, ours in cell.words.items())
    return f"CASE {text} {cases} ELSE {text} END"
