"""What leaves a table: all rows of a cluster, or the rows that a newer reading of a file replaces.

A removal is one commit. The files stay on the disk until compaction, for the readers that hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.duckdb import one_row, scan_files, select_files
from hakaru.lake._log import File, Log, write_parquet
from hakaru.lake._merge import columns_of, without_repeats

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def count(con: DuckDBPyConnection, log: Log, cluster: str) -> int:
    """The cluster's rows; only files that hold several clusters are read for it."""
    files = [file for file in log.named_files() if file.may_hold([cluster])]
    mixed = [file.path for file in files if file.mixed]
    con.execute("SET VARIABLE remove_cluster = ?", [cluster])
    (found,) = one_row(
        con,
        f"SELECT count(*) FROM ({select_files(log.table, mixed)}) "
        "WHERE cluster = getvariable('remove_cluster')",
    )
    return int(found) + sum(file.num_rows for file in files if not file.mixed)


def forget(con: DuckDBPyConnection, log: Log, cluster: str, folder: Path) -> int:
    """Remove the cluster's rows; a file that holds others too is written anew without them."""
    log.check_columns()
    num_rows = count(con, log, cluster)
    if num_rows:
        removed = [file for file in log.named_files() if file.may_hold([cluster])]
        mixed = [file.path for file in removed if file.mixed]
        content = (
            f"SELECT * FROM ({select_files(log.table, mixed)}) "
            "WHERE cluster IS DISTINCT FROM getvariable('remove_cluster')"
        )
        log.commit(write_parquet(con, log.table, content, folder), removed)
    return num_rows


def rejects_by_file(con: DuckDBPyConnection, log: Log, cluster: str) -> dict[str, int]:
    """How many rejects each file of a cluster has."""
    files = [file.path for file in log.files() if file.may_hold([cluster])]
    con.execute("SET VARIABLE remove_cluster = ?", [cluster])
    rows = con.execute(
        f"SELECT file, count(*) FROM ({select_files(log.table, files)}) "
        "WHERE cluster = getvariable('remove_cluster') GROUP BY file ORDER BY file"
    ).fetchall()
    return dict(rows)


def take_off(
    con: DuckDBPyConnection, log: Log, ingest: Mapping[str, Any], num_rejects: int, folder: Path
) -> None:
    """Count an ingest as if some rows that it rejected had not been there."""
    import pyarrow as pa

    counts = {name: max(ingest[name] - num_rejects, 0) for name in ("num_read", "num_rejected")}
    row = pa.Table.from_pylist([{**ingest, **counts}], schema=log.table.arrow())
    con.register("changed_ingest", row)
    replace(con, log, "changed_ingest", "changed_ingest", ("ingest_id",), folder)
    con.unregister("changed_ingest")


def replace(
    con: DuckDBPyConnection, log: Log, rows: str, scope: str, by: Sequence[str], folder: Path
) -> None:
    """Put `rows` in the place of all stored rows whose columns `by` stand in the relation `scope`."""
    log.check_columns()
    table, files = log.table, log.files()
    incoming, _ = without_repeats(con, table, rows)
    same = " AND ".join(f'stored."{c}" IS NOT DISTINCT FROM scope."{c}"' for c in by)
    touched = _touched(con, log, files, scope, same)
    stored = select_files(table, [file.path for file in touched])
    fresh = f"SELECT {columns_of(table)} FROM {incoming}"
    old = f"SELECT stored.* FROM ({stored}) AS stored SEMI JOIN {scope} AS scope ON {same}"
    if _are_alike(con, fresh, old):
        return
    rest = f"SELECT stored.* FROM ({stored}) AS stored ANTI JOIN {scope} AS scope ON {same}"
    log.commit(write_parquet(con, table, f"{fresh} UNION ALL {rest}", folder), touched)


def _touched(
    con: DuckDBPyConnection, log: Log, files: Sequence[File], scope: str, same: str
) -> list[File]:
    if not files:
        return []
    scan = scan_files(log.table, [file.path for file in files], filename=True)
    found = con.execute(
        f"SELECT DISTINCT filename FROM {scan} AS stored SEMI JOIN {scope} AS scope ON {same}"
    ).fetchall()
    paths = {path for (path,) in found}
    return [file for file in files if file.path in paths]


def _are_alike(con: DuckDBPyConnection, one: str, other: str) -> bool:
    """Whether two queries give the same rows, in any order."""
    (num_odd,) = one_row(
        con,
        f"SELECT count(*) FROM ((({one}) EXCEPT ALL ({other})) "
        f"UNION ALL (({other}) EXCEPT ALL ({one})))",
    )
    return int(num_odd) == 0
