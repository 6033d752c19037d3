"""Any CSV or Parquet file with a small mapping in TOML, for logs of a site's own make.

A file whose columns already have the canonical names, such as Hakaru's own Parquet export, maps itself.
The mapping is explained in `docs/table-mapping.md`; `guess` proposes one.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.engine.where import parse_moment
from hakaru.errors import SourceError
from hakaru.formats.metadata import FACTS, SYNTHETIC
from hakaru.schema import JOBS
from hakaru.sources._base import Records, first_reason, is_relative, source, stem, with_dates
from hakaru.sources.table._cells import NO_OFFSET, Raw, Value, value
from hakaru.sources.table._mapping import (
    Cell,
    Shape,
    TableMapping,
    identity,
    parse,
    parse_shape,
    read_toml,
)
from hakaru.sources.table._tabular import Tabular, header, is_parquet, metadata, open_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


NUM_LOOKED_AT = 1000


@source("table", title="Any CSV or Parquet file, with a mapping (.csv, .csv.gz, .parquet)")
class Table:
    takes = ("mapping", "start")

    @staticmethod
    def recognises(path: Path, head: str) -> bool:
        """Only what maps itself: the canonical columns, in Parquet or as a CSV of nothing else."""
        if not is_parquet(path, head):
            return _is_canonical_csv(head)
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return identity(pq.read_schema(path).names) is not None
        except (OSError, pa.ArrowException):
            return True  # a broken Parquet file is ours to explain

    @staticmethod
    def read(
        con: DuckDBPyConnection, path: Path, cluster: str, options: Mapping[str, Any]
    ) -> Records:
        facts, synthetic = _footer(path)
        chosen = options.get("mapping")
        if chosen is None:
            table, mapping = _map_itself(con, path)
        else:
            table, mapping = _map_by(con, path, Path(chosen))
        own = mapping.zone if "zone" in mapping.facts else options.get("site_zone")
        zone = options.get("zone") or own
        sql = query(path, table, mapping, zone)
        first_s = _first_time(con, path, sql)
        if start := options.get("start"):
            _refuse_dates(path, mapping, first_s)
            mapping = mapping.begun(datetime.fromisoformat(start).isoformat(" "))
            sql = query(path, table, mapping, zone)
            first_s, before_s = _first_time(con, path, sql), first_s
            _refuse_unmoved(path, start, before_s, first_s)
        return Records(
            sql=sql, facts=with_dates({**facts, **mapping.facts}, first_s), synthetic=synthetic
        )


def _first_time(con: DuckDBPyConnection, path: Path, sql: str) -> float | None:
    """The middle of the first submit times, since some may be 0 for unknown; local times need a zone."""
    first_s, num_local = one_row(
        con,
        f"""
        SELECT median(epoch(submitted_at)) FILTER (_reason IS NULL),
               count_if(contains(_reason, {quote(NO_OFFSET)}))
        FROM (SELECT submitted_at, _reason FROM ({sql}) LIMIT {NUM_LOOKED_AT})
        """,
    )
    if num_local:
        raise SourceError(
            f'{path}: a time in it {NO_OFFSET}, or to the mapping:\n  [time]\n  zone = "Asia/Tokyo"'
        )
    return first_s  # type: ignore[no-any-return]


def _refuse_dates(path: Path, mapping: TableMapping, first_s: float | None) -> None:
    if mapping.start is None and first_s is not None and not is_relative(first_s):
        first = datetime.fromtimestamp(first_s, UTC)
        raise SourceError(
            f"{path}: --start is for relative times, and these are dates ({first:%Y-%m-%d}): leave it out"
        )


def _refuse_unmoved(path: Path, start: str, before_s: float | None, after_s: float | None) -> None:
    """Relative times may be written as dates of 1970, which have no start."""
    start_s = parse_moment(start, "UTC").timestamp()
    if is_relative(after_s) and before_s == after_s and not is_relative(start_s):
        raise SourceError(
            f"{path}: --start is for times that are numbers, and these are dates of 1970. Read the log "
            "that they were made from, with --start"
        )


def guess(path: Path) -> str:
    """A mapping proposed from a file's column names and its first 10,000 rows, as TOML text."""
    from hakaru.sources.table._guess import propose

    return propose(path)


def _is_canonical_csv(start: str) -> bool:
    if not start.strip():
        return False
    names, _, _ = header(start, Shape(), "")
    return identity(names) is not None and set(names) <= set(JOBS.names)


def _footer(path: Path) -> tuple[dict[str, Any], bool]:
    """What Hakaru's own export says of the cluster and of where its jobs come from."""
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1" and path.suffix not in (".parquet", ".pq"):
            return {}, False
    found = metadata(path)
    try:
        facts = json.loads(found.get(FACTS, "{}"))
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise SourceError(
            f"{path}: its metadata {FACTS} is not a JSON object: {found[FACTS][:120]!r}"
        )
    return facts, found.get(SYNTHETIC) == "true"


def _map_itself(con: DuckDBPyConnection, path: Path) -> tuple[Tabular, TableMapping]:
    table = open_table(con, path, Shape())
    mapping = identity(table.names)
    if mapping is None:
        raise SourceError(
            f"{path}: needs a mapping, since its columns are not Hakaru's: {', '.join(table.names)}\n"
            f"Have one proposed with:\n  hakaru ingest {shlex.quote(str(path))} --format table --guess"
        )
    _refuse_mixed(con, path, table)
    return table, mapping


def _map_by(con: DuckDBPyConnection, path: Path, chosen: Path) -> tuple[Tabular, TableMapping]:
    raw = read_toml(chosen)
    problems: list[str] = []
    table = open_table(con, path, parse_shape(raw, problems))
    return table, parse(raw, table.names, f"{chosen} (for {path.name})", problems)


def _refuse_mixed(con: DuckDBPyConnection, path: Path, table: Tabular) -> None:
    """Jobs of two clusters may share their ids; read as one cluster, some would be lost."""
    if "cluster" not in table.names:
        return
    cluster = table.alias("cluster")
    found = con.execute(
        f"SELECT DISTINCT {cluster} FROM ({table.select(['cluster'])}) "
        f"WHERE {cluster} IS NOT NULL ORDER BY 1 LIMIT 4"
    ).fetchall()
    if len(found) > 1:
        names = ", ".join(str(name) for (name,) in found)
        raise SourceError(
            f"{path}: holds jobs of several clusters ({names}); export and read them one by one"
        )


def query(path: Path, table: Tabular, mapping: TableMapping, zone: str | None) -> str:
    """The file's records as canonical columns, each with its line, its text and what is wrong with it."""
    cells = mapping.cells
    values = {name: _value(path, table, name, cell, zone) for name, cell in cells.items()}
    wanted = [column for cell in cells.values() for column in cell.sources]
    parsed = "".join(f', {v.sql} AS "{name}"' for name, v in values.items())
    numbers = "".join(f", {v.number} AS n_{name}" for name, v in values.items() if v.number)
    checks = [check for v in values.values() for check in v.checks]
    final = {name: f'"{name}"' for name in cells}
    if not mapping.identity:
        final = _derived(final)
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in final.items())
    reason = f"coalesce(_reason, {first_reason(checks)})" if checks else "_reason"
    return f"""
        SELECT _line, _text, {reason} AS _reason, {columns}
        FROM (SELECT *{parsed} FROM (SELECT *{numbers} FROM ({table.select(wanted)})))
    """


def _value(path: Path, table: Tabular, name: str, cell: Cell, zone: str | None) -> Value:
    if cell.line:
        return Value(f"{quote(stem(path) + '/')} || _line")
    raws = [Raw(column, table.alias(column), table.type(column)) for column in cell.sources]
    return value(name, cell, raws, zone)


def _derived(columns: dict[str, str]) -> dict[str, str]:
    """Times that follow from others. Without a time of submission the start stands for it, and the
    wait stays unknown."""
    final = dict(columns)
    wait, run = columns.get("wait_s"), columns.get("run_s")
    if "submitted_at" not in final:
        final["submitted_at"] = _shifted('"started_at"', "-", f"coalesce({wait or 'NULL'}, 0)")
        final.setdefault("wait_s", "CAST(NULL AS DOUBLE)")
    if "started_at" not in final and wait:
        final["started_at"] = _shifted('"submitted_at"', "+", wait)
    elif "started_at" not in final and run and "ended_at" in columns:
        final["started_at"] = _shifted('"ended_at"', "-", run)
    start = final.get("started_at")
    if "ended_at" not in final and run and start:
        ended = _shifted(start, "+", run)
        going = "state IN ('pending', 'running')" if "state" in columns else "false"
        final["ended_at"] = f"CASE WHEN {going} THEN NULL ELSE {ended} END"
    if wait and start and "submitted_at" in columns:
        final["wait_s"] = f'coalesce({wait}, epoch({start}) - epoch("submitted_at"))'
    if run and start and "ended_at" in columns:
        final["run_s"] = f'coalesce({run}, epoch("ended_at") - epoch({start}))'
    return final


def _shifted(moment: str, sign: str, seconds: str) -> str:
    return f"to_timestamp(epoch({moment}) {sign} {seconds})"
