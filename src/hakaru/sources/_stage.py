"""Where an ingest gathers what it reads before anything is committed: good rows, and rejects.

Every record is staged once, in one table of a DuckDB connection that spills beside the lake. A good
row carries nulls where a reject carries its place, its reason and its text.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hakaru.engine.dialect import DUCKDB_TYPES, quote
from hakaru.engine.duckdb import one_row
from hakaru.errors import SourceError
from hakaru.schema import JOBS, REJECTS, STATES, Column
from hakaru.settings import Ingest
from hakaru.sources._base import (
    LONGEST_NAME,
    RELATIVE,
    Records,
    Source,
    first_reason,
    is_not_utf8,
    without_replaced,
)
from hakaru.sources._inputs import Input
from hakaru.sources._packing import Meter, check_gzip, is_gzip, utf8_copy
from hakaru.sources._parquet import check_texts, check_values, has_parquet
from hakaru.sources._reading import Reading, rows_a_byte

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NUM_READERS = 2
LOOK_EVERY_S = 0.1
# bytes read, bytes in all, rows read, rows rejected
Progress = Callable[[int, int, int, int], None]


def _text_checks(column: Column) -> list[tuple[str, str]]:
    """A text that never ends or has a NUL in it is damage: no page, terminal or export can show it."""
    if "string" not in column.type:
        return []
    faults = [
        ("len({x}) > " + str(LONGEST_NAME), f"is longer than {LONGEST_NAME:,} characters"),
        ("contains({x}, chr(0))", "has a NUL byte in it"),
    ]
    inside = (
        "len(list_filter({x}, lambda each: {fault})) > 0" if "list" in column.type else "{fault}"
    )
    each = "each" if "list" in column.type else f'"{column.name}"'
    return [
        (inside.format(x=f'"{column.name}"', fault=fault.format(x=each)), f"'{column.name} {what}'")
        for fault, what in faults
    ]


# What no source may let through. A time that runs backwards is a fault of the row, not a short job.
# A null state is let through: it means unknown (SWF logs such as NASA's have none at all).
CHECKS: tuple[tuple[str, str], ...] = (
    *(check for column in JOBS.columns for check in _text_checks(column)),
    ("job_id IS NULL", "'the job has no id'"),
    ("submitted_at IS NULL", "'the time of submission is missing'"),
    (f"state NOT IN {STATES}", "'unknown state ' || state"),
    ("started_at < submitted_at", "'it starts before it is submitted'"),
    ("ended_at < started_at", "'it ends before it starts'"),
    (
        "greatest(submitted_at, started_at, ended_at) >= TIMESTAMPTZ '2200-01-01 00:00:00+00'",
        "'a time after the year 2199'",
    ),
    (  # the year before 1 could not even be stored
        "least(submitted_at, started_at, ended_at) < TIMESTAMPTZ '1900-01-01 00:00:00+00'",
        "'a time before the year 1900'",
    ),
    ("run_s < 0", "'the run time is negative'"),
    ("wait_s < 0", "'the wait is negative'"),
    ("num_gpus < 0 OR num_nodes < 0 OR num_cpus < 0", "'a negative number of resources'"),
    (
        "greatest(num_gpus, num_nodes, num_cpus) > 1000000000",
        "'more than a billion GPUs, nodes or processors'",
    ),
    ("requested_s <= 0", "'the requested walltime is not above 0'"),
)
# durations that a source does not give, between two times that it does
DERIVED = {"wait_s": ("submitted_at", "started_at"), "run_s": ("started_at", "ended_at")}
PLACE = {
    "file": "_file",
    "line": "_line",
    "source": "_source",
    "reason": "_reason",
    "text": "_text",
}


@dataclass
class Batch:
    """Views `staged` (rows of `jobs`) and `staged_rejects` over what was read so far."""

    con: DuckDBPyConnection
    cluster: str
    strict: bool
    folder: Path
    limits: Ingest
    inputs: Mapping[Path, Input]
    facts: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    synthetic: bool = False
    warnings: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        jobs = ", ".join(f'"{c.name}" {DUCKDB_TYPES[c.type]}' for c in JOBS.columns)
        place = ", ".join(
            f"{own} {DUCKDB_TYPES[REJECTS.column(name).type]}" for name, own in PLACE.items()
        )
        self.con.execute(f"CREATE TABLE staged_all ({jobs}, {place}, _folded BIGINT)")
        names = ", ".join(f'"{name}"' for name in JOBS.names)
        self.con.execute(
            f"CREATE VIEW staged AS SELECT {names} FROM staged_all WHERE _reason IS NULL"
        )
        rejects = ", ".join(f"{own} AS {name}" for name, own in PLACE.items())
        self.con.execute(
            f"CREATE VIEW staged_rejects AS SELECT cluster, {rejects} FROM staged_all "
            "WHERE _reason IS NOT NULL"
        )

    def name(self, path: Path) -> str:
        """What the lake calls a file."""
        return self.inputs[path].name

    def rename(self, path: Path, log: Input) -> None:
        """Give a file, and what was staged of it, another name."""
        self.con.execute(
            "UPDATE staged_all SET _file = ? WHERE _file = ?", [log.name, self.name(path)]
        )
        self.inputs = {**self.inputs, path: log}

    def place(self, path: Path) -> str:
        """Where a file comes from: what its header says holds until the next one from there."""
        return self.inputs[path].place

    def shown(self, path: Path) -> str:
        """What a message calls a file: as the caller did."""
        return self.inputs[path].shown

    def counts(self) -> tuple[int, int]:
        """Rows read, and how many of them were rejected."""
        read, rejected = one_row(self.con, "SELECT count(*), count(_reason) FROM staged_all")
        return read, rejected

    def folded(self) -> tuple[int, int]:
        """Lines that were joined to the jobs above them, and how many jobs those are."""
        lines, jobs = one_row(
            self.con,
            "SELECT coalesce(sum(_folded), 0), count(_folded) FROM staged_all WHERE _reason IS NULL",
        )
        return int(lines), jobs


def read_all(
    batch: Batch,
    chosen: Sequence[tuple[Path, Source]],
    options: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    """Read the files side by side; the first fault, or Ctrl-C, stops them all."""
    chosen = sorted(
        chosen, key=lambda entry: -entry[0].stat().st_size
    )  # the longest must not be last
    cursors = [_cursor(batch) for _ in chosen]
    with ThreadPoolExecutor(NUM_READERS) as pool:
        futures = [
            pool.submit(_read_one, batch, cursor, path, source, options)
            for cursor, (path, source) in zip(cursors, chosen, strict=True)
        ]
        try:
            _watch(batch, futures, cursors, [path for path, _ in chosen], progress)
        except BaseException:
            _stop(batch, futures, cursors)
            raise
    for (path, source), future in zip(chosen, futures, strict=True):
        records = future.result()
        batch.facts[source.id, batch.place(path)] = records.facts
        batch.synthetic |= records.synthetic
        told = [*records.warnings, *([_RELATIVE_DATES] if records.facts.get(RELATIVE) else [])]
        batch.warnings += [f"{batch.shown(path)}: {warning}" for warning in told]
        batch.warnings += source.advise(batch.con, batch.inputs[path])


_RELATIVE_DATES = (
    "the log does not say when it began: its dates are relative and count from 1970-01-01. Waits and run "
    "times hold. To set the dates, run this again with the log's first day added, e.g. --start 2014-03-01"
)


def _cursor(batch: Batch) -> DuckDBPyConnection:
    cursor = batch.con.cursor()
    cursor.execute("SET enable_progress_bar = true")
    cursor.execute("SET enable_progress_bar_print = false")
    cursor.execute("SET progress_bar_time = 0")
    return cursor


def _watch(
    batch: Batch,
    futures: Sequence[Future[Records]],
    cursors: Sequence[DuckDBPyConnection],
    paths: Sequence[Path],
    progress: Progress | None,
) -> None:
    """Wait for the readers, telling how far they are within the files that they read."""
    reading = Reading(
        [path.stat().st_size for path in paths], rows_a_byte(paths[0]) if progress else 0.0
    )
    num_done = 0
    while True:
        waiting = wait(futures, timeout=LOOK_EVERY_S).not_done
        done = [future.done() for future in futures]
        for future, is_done in zip(futures, done, strict=True):
            if is_done:
                future.result()
        if sum(done) > num_done:
            num_done = sum(done)
            reading.ended(done, *batch.counts())
        if progress:
            shares = [
                1.0 if is_done else max(cursor.query_progress(), 0.0) / 100
                for is_done, cursor in zip(done, cursors, strict=True)
            ]
            progress(*reading.step(shares))
        if not waiting:
            return


def _stop(
    batch: Batch, futures: Sequence[Future[Records]], cursors: Sequence[DuckDBPyConnection]
) -> None:
    batch.stopped.set()
    for future in futures:
        future.cancel()
    while wait(futures, timeout=LOOK_EVERY_S / 10).not_done:
        for cursor in cursors:
            cursor.interrupt()


def _read_one(
    batch: Batch,
    con: DuckDBPyConnection,
    path: Path,
    source: Source,
    options: Mapping[str, Any],
) -> Records:
    if is_gzip(path):
        check_gzip(path, _meter(batch, path), is_wanted=lambda: not batch.stopped.is_set())
    try:
        try:
            records = _read(batch, con, path, source, options)
            _stage(batch, con, path, source, records)
        except duckdb.Error as error:
            if not is_not_utf8(error):
                raise
            copy = utf8_copy(path, batch.folder / uuid.uuid4().hex, batch.limits)
            records = without_replaced(source.read(con, copy, batch.cluster, options))
            _stage(batch, con, path, source, records)
    except duckdb.OutOfMemoryException as error:
        raise SourceError(
            f"{batch.shown(path)}: reading it needs more memory or disk than it may use: {_said(error)}\n"
            "Give it more with engine.memory in hakaru.toml, or make room beside the lake."
        ) from None
    except duckdb.Error as error:
        raise SourceError(
            f"{batch.shown(path)}: cannot be read as {source.id}: {_said(error)}"
        ) from None
    return records


def _read(
    batch: Batch,
    con: DuckDBPyConnection,
    path: Path,
    source: Source,
    options: Mapping[str, Any],
) -> Records:
    if not has_parquet(path):
        return source.read(con, path, batch.cluster, options)
    meter = _meter(batch, path)
    check_values(path, meter)
    records = source.read(con, path, batch.cluster, options)
    check_texts(con, records, meter)
    return records


def _meter(batch: Batch, path: Path) -> Meter:
    size = batch.inputs[path].packed_bytes
    return Meter(path, batch.folder, batch.limits, packed_bytes=size, is_written=False)


def _said(error: duckdb.Error) -> str:
    """What matters of DuckDB's message: the line, not its text, then what is wrong with it."""
    told = str(error).strip().splitlines()
    more = told[2:3] if told[1:2] and told[1].startswith("Original Line") else []
    return "; ".join([told[0], *more])


def _stage(
    batch: Batch, con: DuckDBPyConnection, path: Path, source: Source, records: Records
) -> None:
    """Add one file's records, each with the reason for which it cannot be used, if there is one."""
    if batch.stopped.is_set():
        raise SourceError(f"{batch.shown(path)}: stopped")
    given = {row[0] for row in con.execute(f"DESCRIBE {records.sql}").fetchall()}
    # of a rejected row no view shows more than its place: a text without end would fill the disk
    kept = ", ".join(
        f'CASE WHEN _reason IS NULL THEN "{c.name}" END'
        if "string" in c.type and c.name != "cluster"
        else f'"{c.name}"'
        for c in JOBS.columns
    )
    file, kind = quote(batch.name(path)), quote(source.id)
    place = ", ".join(
        f"CASE WHEN _reason IS NOT NULL THEN {value} END"
        for value in (file, "_line", kind, "_reason", "left(_text, 500)")
    )
    folded = "_folded" if "_folded" in given else "NULL AS _folded"
    con.execute(
        f"""
        INSERT INTO staged_all SELECT {kept}, {place}, _folded
        FROM ({staged(records.sql, given, batch.cluster, folded)})
        """
    )
    if batch.strict:
        _refuse_first(con, file, batch.shown(path))


def staged(records: str, given: Collection[str], cluster: str, *more: str) -> str:
    """A query for the records with all canonical columns, each with the reason that no source may let by."""
    columns = ", ".join(_column(name, given, cluster) for name in JOBS.names)
    others = "".join(f", {each}" for each in more)
    return f"""
        SELECT * REPLACE (coalesce(_reason, {first_reason(CHECKS)}) AS _reason)
        FROM (SELECT _line, _text, _reason{others}, {columns} FROM ({records}))
    """


def _column(name: str, given: Collection[str], cluster: str) -> str:
    """A canonical column from what the source gives, or derived, or null."""
    kind = DUCKDB_TYPES[JOBS.column(name).type]
    if name == "cluster":
        return f"{quote(cluster)} AS cluster"
    if name in given:
        return f'CAST("{name}" AS {kind}) AS "{name}"'
    if name in DERIVED and {*DERIVED[name]} <= {*given}:
        earlier, later = DERIVED[name]
        return f"epoch({later}) - epoch({earlier}) AS {name}"
    return f'CAST(NULL AS {kind}) AS "{name}"'


def _refuse_first(con: DuckDBPyConnection, file: str, shown: str) -> None:
    bad = con.execute(
        "SELECT line, reason, left(text, 120) FROM staged_rejects "
        f"WHERE file = {file} ORDER BY line LIMIT 1"
    ).fetchall()
    for line, reason, text in bad:
        raise SourceError(
            f"{shown}, line {line}: {reason}: {text!r}; nothing was stored (--strict)"
        )
