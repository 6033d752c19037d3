"""From files to the lake: read, check, tell the bad rows from the good ones, and upsert.

Everything is staged first; the lake changes in one commit a table at the end, or not at all.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hakaru.engine.dialect import DUCKDB_TYPES, quote
from hakaru.engine.duckdb import connect, one_row
from hakaru.errors import SourceError
from hakaru.lake import Lake, Upsert
from hakaru.schema import CLUSTERS, INGESTS, JOBS, REJECTS, STATES
from hakaru.settings import Engine as EngineSettings
from hakaru.settings import check_cluster_name
from hakaru.sources._base import (
    Records,
    Source,
    check_gzip,
    detect,
    first_reason,
    is_not_utf8,
    utf8_copy,
    without_replaced,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NUM_READERS = 2
# bytes read, bytes in all, rows read, rows rejected
Progress = Callable[[int, int, int, int], None]

# What no source may let through. A time that runs backwards is a fault of the row, not a short job.
# A null state is let through: it means unknown (SWF logs such as NASA's have none at all).
CHECKS: tuple[tuple[str, str], ...] = (
    ("job_id IS NULL", "'the job has no id'"),
    ("submitted_at IS NULL", "'the time of submission is missing'"),
    (f"state NOT IN {STATES}", "'unknown state ' || state"),
    ("started_at < submitted_at", "'it starts before it is submitted'"),
    ("ended_at < started_at", "'it ends before it starts'"),
    ("run_s < 0", "'the run time is negative'"),
    ("wait_s < 0", "'the wait is negative'"),
    ("num_gpus < 0 OR num_nodes < 0 OR num_cpus < 0", "'a negative number of resources'"),
    ("requested_s <= 0", "'the requested walltime is not above 0'"),
)


@dataclass(frozen=True)
class Summary:
    """What an ingest did, for the last lines on the terminal."""

    cluster: str
    sources: list[str]
    num_files: int
    num_read: int
    upsert: Upsert
    num_rejected: int
    rejected_by_reason: dict[str, int]
    first_rejects: list[tuple[str, int, str]]
    since: datetime | None
    until: datetime | None
    num_users: int
    num_gpus: int | None
    seconds: float


@dataclass
class _Batch:
    """What is staged in one DuckDB connection before it is committed."""

    con: DuckDBPyConnection
    cluster: str
    strict: bool
    folder: Path
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    synthetic: bool = False


def ingest(
    lake: Lake,
    paths: Sequence[Path],
    cluster: str,
    *,
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
    strict: bool = False,
    engine: EngineSettings | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Read log files into the lake as one cluster's jobs."""
    from hakaru.sources._base import load_all

    check_cluster_name(cluster)
    if not paths:
        raise SourceError("no file to read")
    started_at = datetime.now(UTC)
    chosen = [
        (path, load_all().get(format) if format else detect(path)) for path in dict.fromkeys(paths)
    ]
    for source in {source.id: source for _, source in chosen}.values():
        source.check([path for path, s in chosen if s is source])
    with lake.staging() as folder:
        con = connect(engine or EngineSettings(), spill_to=str(folder))
        try:
            batch = _Batch(con, cluster, strict, folder)
            _create_staged(con)
            _read_all(batch, chosen, options or {}, progress)
            _check_rejecting(con)
            return _store(lake, batch, chosen, started_at)
        finally:
            con.close()


def _create_staged(con: DuckDBPyConnection) -> None:
    columns = ", ".join(f'"{c.name}" {DUCKDB_TYPES[c.type]}' for c in JOBS.columns)
    con.execute(f"CREATE TABLE staged ({columns})")
    columns = ", ".join(f'"{c.name}" {DUCKDB_TYPES[c.type]}' for c in REJECTS.columns)
    con.execute(f"CREATE TABLE staged_rejects ({columns})")


def _read_all(
    batch: _Batch,
    chosen: Sequence[tuple[Path, Source]],
    options: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    """Read the files side by side, telling `progress` how far they are."""
    total = sum(path.stat().st_size for path, _ in chosen)
    done = 0
    with ThreadPoolExecutor(NUM_READERS) as pool:
        cursors = [batch.con.cursor() for _ in chosen]
        futures = [
            pool.submit(_read_one, batch, cursor, path, source, options)
            for cursor, (path, source) in zip(cursors, chosen, strict=True)
        ]
        said = []
        for future, (path, source) in zip(futures, chosen, strict=True):
            said.append((path, source.id, future.result()))
            done += path.stat().st_size
            if progress:
                progress(done, total, *_counts(batch.con))
    # in the order of the files' names, so that neither timing nor the caller's order decides
    for _, name, records in sorted(said, key=lambda entry: entry[:2]):
        batch.facts.setdefault(name, {}).update(records.facts)
        batch.synthetic |= records.synthetic


def _check_rejecting(con: DuckDBPyConnection) -> None:
    """A packed file with rejects may be a damaged one, whose other lines are not to be trusted."""
    for (file,) in con.execute("SELECT DISTINCT file FROM staged_rejects ORDER BY file").fetchall():
        if file.endswith(".gz"):
            check_gzip(Path(file))


def _counts(con: DuckDBPyConnection) -> tuple[int, int]:
    good, bad = one_row(
        con, "SELECT (SELECT count(*) FROM staged), (SELECT count(*) FROM staged_rejects)"
    )
    return good + bad, bad


def _read_one(
    batch: _Batch,
    con: DuckDBPyConnection,
    path: Path,
    source: Source,
    options: Mapping[str, Any],
) -> Records:
    try:
        try:
            records = source.read(con, path, batch.cluster, options)
            _stage(batch, con, path, source, records)
        except duckdb.Error as error:
            if not is_not_utf8(error):
                raise
            copy = utf8_copy(path, batch.folder / uuid.uuid4().hex)
            records = without_replaced(source.read(con, copy, batch.cluster, options))
            _stage(batch, con, path, source, records)
    except duckdb.Error as error:
        raise SourceError(f"{path}: cannot be read as {source.id}: {_said(error)}") from None
    return records


def _said(error: duckdb.Error) -> str:
    """What matters of DuckDB's message: the line, not its text, then what is wrong with it."""
    told = str(error).strip().splitlines()
    more = told[2:3] if told[1:2] and told[1].startswith("Original Line") else []
    return "; ".join([told[0], *more])


def _stage(
    batch: _Batch, con: DuckDBPyConnection, path: Path, source: Source, records: Records
) -> None:
    """Split one file's records into good rows and rejects."""
    described = con.execute(f"DESCRIBE {records.sql}").fetchall()
    given = {row[0] for row in described}
    columns = ", ".join(_column(name, given, batch.cluster) for name in JOBS.names)
    table = f"raw_{uuid.uuid4().hex}"
    con.execute(
        f"""
        CREATE TEMP TABLE {table} AS
        SELECT *, coalesce(_source_reason, {first_reason(CHECKS)}) AS _reason
        FROM (SELECT _line, _text, _reason AS _source_reason, {columns} FROM ({records.sql}))
        """
    )
    names = ", ".join(f'"{name}"' for name in JOBS.names)
    file = quote(str(path.resolve()))
    con.execute(
        f"""
        INSERT INTO staged_rejects
        SELECT {quote(batch.cluster)}, {file}, _line, {quote(source.id)}, _reason, left(_text, 500)
        FROM {table} WHERE _reason IS NOT NULL
        """
    )
    if batch.strict:
        _refuse_first(con, table, path)
    con.execute(f"INSERT INTO staged SELECT {names} FROM {table} WHERE _reason IS NULL")
    con.execute(f"DROP TABLE {table}")


def _column(name: str, given: set[str], cluster: str) -> str:
    """A canonical column from what the source gives, or derived, or null."""
    kind = DUCKDB_TYPES[JOBS.column(name).type]
    if name == "cluster":
        return f"{quote(cluster)} AS cluster"
    if name in given:
        return f'CAST("{name}" AS {kind}) AS "{name}"'
    if name == "wait_s" and {"started_at", "submitted_at"} <= given:
        return "epoch(started_at) - epoch(submitted_at) AS wait_s"
    if name == "run_s" and {"started_at", "ended_at"} <= given:
        return "epoch(ended_at) - epoch(started_at) AS run_s"
    return f'CAST(NULL AS {kind}) AS "{name}"'


def _refuse_first(con: DuckDBPyConnection, table: str, path: Path) -> None:
    bad = con.execute(
        f"SELECT _line, _reason, left(_text, 120) FROM {table} WHERE _reason IS NOT NULL "
        "ORDER BY _line LIMIT 1"
    ).fetchall()
    for row in bad:
        raise SourceError(
            f"{path}, line {row[0]}: {row[1]}: {row[2]!r}; nothing was stored (--strict)"
        )


def _store(
    lake: Lake, batch: _Batch, chosen: Sequence[tuple[Path, Source]], started_at: datetime
) -> Summary:
    con = batch.con
    num_read, num_rejected = _counts(con)
    sources = sorted({source.id for _, source in chosen})
    if num_read == 0:
        raise SourceError(
            f"no job in {', '.join(str(path) for path, _ in chosen)}; nothing was stored"
        )
    upsert = lake.upsert(con, JOBS, "staged")
    if num_rejected:
        lake.upsert(con, REJECTS, "staged_rejects")
    for source, facts in batch.facts.items():
        put_facts(lake, con, batch.cluster, source, facts)
    log_ingest(
        lake,
        con,
        batch.cluster,
        source=", ".join(sources),
        inputs=[str(path.resolve()) for path, _ in chosen],
        started_at=started_at,
        num_read=num_read,
        num_rejected=num_rejected,
        upsert=upsert,
        synthetic=batch.synthetic,
    )
    return _summary(batch, sources, len(chosen), num_read, num_rejected, upsert, started_at)


def log_ingest(
    lake: Lake,
    con: DuckDBPyConnection,
    cluster: str,
    *,
    source: str,
    inputs: Sequence[str],
    started_at: datetime,
    num_read: int,
    num_rejected: int,
    upsert: Upsert,
    synthetic: bool = False,
) -> None:
    """Note in the lake that an ingest has ended, and what became of its records."""
    row = {
        "ingest_id": uuid.uuid4().hex,
        "cluster": cluster,
        "source": source,
        "inputs": list(inputs),
        "synthetic": synthetic,
        "started_at": started_at,
        "ended_at": datetime.now(UTC),
        "num_read": num_read,
        "num_rejected": num_rejected,
        **asdict(upsert),
    }
    lake.put_rows(con, INGESTS, [row])


def put_facts(
    lake: Lake, con: DuckDBPyConnection, cluster: str, source: str, facts: Mapping[str, Any]
) -> None:
    """Keep what a source's header says of a cluster."""
    if facts:
        text = json.dumps(facts, sort_keys=True)
        lake.put_rows(con, CLUSTERS, [{"cluster": cluster, "source": source, "facts": text}])


def _summary(
    batch: _Batch,
    sources: list[str],
    num_files: int,
    num_read: int,
    num_rejected: int,
    upsert: Upsert,
    started_at: datetime,
) -> Summary:
    con = batch.con
    since, until, users, gpus = one_row(
        con,
        'SELECT min(submitted_at), max(submitted_at), count(DISTINCT "user"), max(num_gpus) '
        "FROM staged",
    )
    reasons = con.execute(
        "SELECT reason, count(*) FROM staged_rejects GROUP BY reason ORDER BY count(*) DESC, reason"
    ).fetchall()
    first = con.execute(
        "SELECT file, line, reason FROM staged_rejects ORDER BY file, line LIMIT 5"
    ).fetchall()
    return Summary(
        cluster=batch.cluster,
        sources=sources,
        num_files=num_files,
        num_read=num_read,
        upsert=upsert,
        num_rejected=num_rejected,
        rejected_by_reason=dict(reasons),
        first_rejects=first,
        since=since,
        until=until,
        num_users=users,
        num_gpus=gpus,
        seconds=(datetime.now(UTC) - started_at).total_seconds(),
    )
