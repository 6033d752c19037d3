"""What a source is: how it knows its format, and the query that turns a file into canonical jobs."""

from __future__ import annotations

import importlib
import pkgutil
import secrets
import shlex
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.errors import HakaruError, SourceError
from hakaru.registry import Registry
from hakaru.sources._encoding import utf8_advice
from hakaru.sources._packing import ENDINGS, HEAD_BYTES, encoding_of, is_gzip, open_bytes
from hakaru.sources._strangers import refuse_stranger

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from hakaru.sources._inputs import Input

LONGEST_NAME = 1024  # where Slurm cuts a job's name
# without NUL, tab and the ends of lines and pages
CONTROLS = "".join(map(chr, (*range(1, 9), *range(14, 32), 127)))
RELATIVE = "relative_dates"  # the fact that a log's dates count from no known day
# No log is older than 1985: one whose first jobs are counts from a day that nobody knows.
FIRST_DATE_S = 5e8
SOURCES: Registry[Source] = Registry("source")


@dataclass(frozen=True)
class Records:
    """A query over one input, and what its header says of the cluster.

    The query gives canonical columns of `jobs` (those it leaves out are null), and `_line` (from 1),
    `_text` (the record as it stands) and `_reason` (null, or why the record cannot be read). It may give
    `_folded`: how many further lines were joined to the record as parts of its text.
    """

    sql: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    synthetic: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """A format. `read(con, path, cluster, options)` gives the records of one file."""

    id: str
    title: str
    recognises: Callable[[Path, str], bool]
    read: Callable[[DuckDBPyConnection, Path, str, Mapping[str, Any]], Records]
    check: Callable[[Sequence[Path]], None] = lambda paths: None
    # what to do about the rejects of a file that was read, as warnings
    advise: Callable[[DuckDBPyConnection, Input], list[str]] = lambda con, log: []
    takes: tuple[str, ...] = ()  # options of its own, besides the zone
    ending: str = ""  # of its files' names, for those whose beginning does not settle it


def source(id: str, title: str) -> Callable[[type], type]:
    """Register a class with `recognises`, `read` and perhaps `check`, `advise`, `takes` and `ending`."""

    def register(cls: Any) -> type:
        names = ("check", "advise", "takes", "ending")
        optional = {name: getattr(cls, name) for name in names if hasattr(cls, name)}
        SOURCES.add(
            Source(id=id, title=title, recognises=cls.recognises, read=cls.read, **optional)
        )
        return cls  # type: ignore[no-any-return]

    return register


def load_all() -> Registry[Source]:
    """Import every adapter of this folder, so that each has registered itself."""
    import hakaru.sources as package

    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_") and module.name != "ingest":
            importlib.import_module(f"hakaru.sources.{module.name}")
    return SOURCES


def detect(path: Path) -> Source:
    """The source that recognises a file by its beginning; the ending of its name only settles a tie."""
    refuse_stranger(path)
    start = head(path)
    found = [source for source in load_all() if source.recognises(path, start)]
    if len(found) != 1:
        found = [each for each in found or SOURCES if _ends(path, each)] or found
    if len(found) == 1:
        return found[0]
    if not found and not start.strip():
        raise SourceError(f"{path}: is empty. Check the command that wrote it.")
    if not found:
        first = start.strip().splitlines()[0][:120]
        raise SourceError(
            f"{path}: the format is not known. It begins: {first!r}\n{_next_step(path, start)}"
        )
    names = " and ".join(source.id for source in found)
    raise SourceError(f"{path}: looks like {names}; choose one with --format")


def _ends(path: Path, source: Source) -> bool:
    name = path.name
    for packed in ENDINGS:
        name = name.removesuffix(packed)
    return bool(source.ending) and name.endswith(source.ending)


def _next_step(path: Path, start: str) -> str:
    """What leads on from a file that no source recognises."""
    if "\0" in start:
        return (
            f"This is not a text file. Export the jobs as CSV with a header line; known: {_known()}"
        )
    return f"If it is one of these, name it with --format: {_known()}.\n{table_advice(path)}"


def table_advice(path: Path) -> str:
    """How to have a mapping proposed; for a file that is not a table, how to make one first."""
    if advice := utf8_advice(path) or _too_wide(path):
        return advice
    name = shlex.quote(str(path))
    if _is_table(path):
        return f"For any other table, begin with:\n  hakaru ingest {name} --format table --guess"
    return (
        "This is not a table with commas, semicolons, tabs or bars between its columns. To make one of "
        "words between blanks (if it has no line of names at the top, add one first):\n"
        f"  awk -v OFS=, '!/^;/ {{$1 = $1; print}}' {name} > jobs.csv\n"
        "  hakaru ingest jobs.csv --format table --guess"
    )


def _too_wide(path: Path) -> str | None:
    from hakaru.sources.table._mapping import Shape
    from hakaru.sources.table._tabular import header, is_parquet, wide_advice

    start = head(path)
    if is_parquet(path, start) or not start.strip():
        return None
    return wide_advice(len(header(start, Shape(), str(path))[0]))


def _is_table(path: Path) -> bool:
    """Whether `--guess` would find columns in it: no advice may lead to another refusal."""
    from hakaru.sources.table import guess
    from hakaru.sources.table._mapping import Shape
    from hakaru.sources.table._tabular import header, is_parquet

    start = head(path)
    try:
        guess(path)
        return is_parquet(path, start) or len(header(start, Shape(), str(path))[0]) > 1
    except HakaruError:
        return False


def _known() -> str:
    return "; ".join(f"{each.id} ({each.title})" for each in SOURCES if each.id != "synth")


def head(path: Path, size: int = HEAD_BYTES) -> str:
    """The beginning of a file, unpacked, as text."""
    with open_bytes(path) as file:
        start = file.read(size)
    return start.decode(encoding_of(start) or "utf-8", errors="replace").removeprefix("\ufeff")


def lines(path: Path) -> str:
    """A query for the lines of a text file, gz too: `_line`, from 1, and `_text`.

    DuckDB cuts a line at its delimiter and must have one: each query draws another, so that no file can
    hold it on purpose.
    """
    compression = "gzip" if is_gzip(path) else "none"
    return f"""
        SELECT row_number() OVER () AS _line,
               CASE WHEN suffix(line, chr(13)) THEN rtrim(line, chr(13)) ELSE coalesce(line, '') END AS _text
        FROM read_csv({quote(str(path))}, columns = {{'line': 'VARCHAR'}}, auto_detect = false,
                      compression = '{compression}',
                      delim = {quote(_delimiter())}, quote = '', escape = '', header = false,
                      strict_mode = false, max_line_size = 16777216)
    """


def _delimiter() -> str:
    """Four bytes, as many as DuckDB takes: one of some 20 million.

    The first is a control character that no text has, so that plain text cannot hold it by chance either.
    """
    others = [secrets.choice(CONTROLS + string.ascii_letters + string.digits) for _ in range(3)]
    return "".join([secrets.choice(CONTROLS), *others])


def with_dates(facts: Mapping[str, Any], first_s: float | None) -> dict[str, Any]:
    """A file's facts, and whether its dates are relative, by a time among its first jobs."""
    others = {name: fact for name, fact in facts.items() if name != RELATIVE}
    return others | ({RELATIVE: True} if is_relative(first_s) else {})


def is_relative(first_s: float | None) -> bool:
    return first_s is not None and first_s < FIRST_DATE_S


def is_not_utf8(error: Exception) -> bool:
    return "not utf-8 encoded" in str(error)


def without_replaced(records: Records) -> Records:
    """The records of a `utf8_copy`: those that lost bytes to U+FFFD are rejected."""
    reason = "CASE WHEN contains(_text, chr(65533)) THEN 'not valid UTF-8' ELSE _reason END"
    return replace(records, sql=f"SELECT * REPLACE ({reason} AS _reason) FROM ({records.sql})")


def stem(path: Path) -> str:
    """The file's name without its endings: `a/b.swf.gz` is `b`."""
    name = path.name
    for ending in (*ENDINGS, ".csv", ".swf", ".txt", ".parquet", ".log"):
        name = name.removesuffix(ending)
    return name


def first_reason(checks: Sequence[tuple[str, str]]) -> str:
    """SQL for the first check that holds: pairs of a condition and the SQL of its reason."""
    cases = " ".join(f"WHEN {condition} THEN {reason}" for condition, reason in checks)
    return f"CASE {cases} END"
