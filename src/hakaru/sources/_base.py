"""What a source is: how it knows its format, and the query that turns a file into canonical jobs."""

from __future__ import annotations

import bz2
import codecs
import gzip
import importlib
import io
import pkgutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.errors import SourceError
from hakaru.registry import Registry

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HEAD_BYTES = 65536
BLOCK_BYTES = 1 << 20
RELATIVE = "relative_dates"  # the fact that a log's dates count from no known day
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
    takes: tuple[str, ...] = ()  # options of its own, besides the zone


def source(id: str, title: str) -> Callable[[type], type]:
    """Register a class with `recognises`, `read` and perhaps `check` as static methods, and `takes`."""

    def register(cls: Any) -> type:
        optional = {name: getattr(cls, name) for name in ("check", "takes") if hasattr(cls, name)}
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
    """The source that recognises a file by its beginning."""
    start = head(path)
    found = [source for source in load_all() if source.recognises(path, start)]
    if len(found) == 1:
        return found[0]
    if not found:
        first = start.splitlines()[0][:120] if start.strip() else "(empty)"
        raise SourceError(
            f"{path}: the format is not known. It begins: {first!r}\n"
            f"Name it with --format ({', '.join(SOURCES.ids())}); for a log of your own make, "
            f"start with: hakaru ingest {path} --format table --guess"
        )
    names = " and ".join(source.id for source in found)
    raise SourceError(f"{path}: looks like {names}; choose one with --format")


def head(path: Path, size: int = HEAD_BYTES) -> str:
    """The beginning of a file, unpacked, as text."""
    try:
        with open_bytes(path) as file:
            return file.read(size).decode("utf-8", errors="replace").removeprefix("\ufeff")
    except FileNotFoundError:
        raise SourceError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise SourceError(f"{path}: is a folder; name the files in it, e.g. {path}/*") from None
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read: {error}") from None


def open_bytes(path: Path) -> io.BufferedIOBase | gzip.GzipFile | bz2.BZ2File:
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix == ".bz2":
        return bz2.open(path)
    return open(path, "rb")


def lines(path: Path) -> str:
    """A query for the lines of a text file (.gz too): `_line`, from 1, and `_text`."""
    return f"""
        SELECT row_number() OVER () AS _line,
               CASE WHEN suffix(line, chr(13)) THEN rtrim(line, chr(13)) ELSE coalesce(line, '') END AS _text
        FROM read_csv({quote(str(path))}, columns = {{'line': 'VARCHAR'}}, auto_detect = false,
                      delim = '\x01\x02\x03', quote = '', escape = '', header = false,
                      strict_mode = false, max_line_size = 16777216)
    """


def is_not_utf8(error: Exception) -> bool:
    return "not utf-8 encoded" in str(error)


def utf8_copy(path: Path, folder: Path) -> Path:
    """The file unpacked into `folder`, with U+FFFD where its bytes are not UTF-8; lines stay lines."""
    folder.mkdir(parents=True)
    copy = folder / path.name.removesuffix(".gz").removesuffix(".bz2")
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with open_bytes(path) as file, open(copy, "wb") as out:
        while block := file.read(BLOCK_BYTES):
            out.write(decoder.decode(block).encode())
        out.write(decoder.decode(b"", final=True).encode())
    return copy


def without_replaced(records: Records) -> Records:
    """The records of a `utf8_copy`: those that lost bytes to U+FFFD are rejected."""
    reason = "CASE WHEN contains(_text, chr(65533)) THEN 'not valid UTF-8' ELSE _reason END"
    return replace(records, sql=f"SELECT * REPLACE ({reason} AS _reason) FROM ({records.sql})")


def check_gzip(path: Path, is_wanted: Callable[[], bool] = lambda: True) -> None:
    """DuckDB does not look at a .gz file's checksum, so a damaged one reads as odd or wrong lines."""
    try:
        with open(path, "rb") as file:
            member = None  # zlib alone takes a quarter less time than the module gzip
            while is_wanted() and (block := file.read(HEAD_BYTES)):
                while block := block if member else block.lstrip(b"\0"):
                    member = member or zlib.decompressobj(wbits=31)
                    member.decompress(block)
                    block = member.unused_data
                    member = None if member.eof else member
            if member and is_wanted():
                raise EOFError("it ends too early")
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: the file is damaged: {error}; fetch it again") from None


def stem(path: Path) -> str:
    """The file's name without its endings: `a/b.swf.gz` is `b`."""
    name = path.name
    for ending in (".gz", ".bz2", ".csv", ".swf", ".txt", ".parquet", ".log"):
        name = name.removesuffix(ending)
    return name


def first_reason(checks: Sequence[tuple[str, str]]) -> str:
    """SQL for the first check that holds: pairs of a condition and the SQL of its reason."""
    cases = " ".join(f"WHEN {condition} THEN {reason}" for condition, reason in checks)
    return f"CASE {cases} END"
