"""Upsert and compaction as queries: which rows are new, which are better, which files are written anew.

Of two rows with one key the one of greater rank is kept, and rank is a total order on the rows' own
values. The greatest of a set does not depend on the order in which its members arrive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.duckdb import one_row, scan_files
from hakaru.lake._log import FILE_BYTES, File, Log, Written, write_parquet
from hakaru.schema import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SMALL_BYTES = 1_000_000
MANY_SMALL = 16
FAR = "INTERVAL 2 DAY"


@dataclass(frozen=True)
class Upsert:
    """What became of the rows of one write."""

    num_new: int = 0
    num_updated: int = 0
    num_unchanged: int = 0
    num_repeated: int = 0
    num_moved: int = 0  # new rows whose id was there already, a little earlier or later


def merge(
    con: DuckDBPyConnection, log: Log, rows: str, folder: Path, id_column: str | None = None
) -> Upsert:
    """Upsert the relation `rows` into the log's table; new files are made in `folder` first.

    With an `id_column` the new rows are counted whose id the table has at another time.
    """
    log.check_columns()
    table = log.table
    num_rows = _count(con, rows)
    if num_rows == 0:
        return Upsert()
    incoming = without_repeats(con, table, rows)
    num_incoming = num_rows if incoming == rows else _count(con, incoming)
    near, within = _near(con, log, incoming)
    if near:
        _find_changes(con, table, incoming, near, within)
        num_changed, num_new = one_row(
            con, "SELECT count(*), count(*) - count(_file) FROM merge_changed"
        )
        fresh = "(FROM merge_changed WHERE _file IS NULL)"
        num_moved = _count_moved(con, log, fresh, id_column) if id_column and num_new else 0
        if num_changed:
            _write_changes(con, log, near, folder)
        con.execute("DROP TABLE merge_changed")
    else:
        num_changed = num_new = num_incoming
        num_moved = _count_moved(con, log, incoming, id_column) if id_column else 0
        content = f"SELECT {columns_of(table)} FROM {incoming}"
        log.commit(write_parquet(con, table, content, folder / "new"), [])
    return Upsert(
        num_new=num_new,
        num_updated=num_changed - num_new,
        num_unchanged=num_incoming - num_changed,
        num_repeated=num_rows - num_incoming,
        num_moved=num_moved,
    )


def compact(con: DuckDBPyConnection, log: Log, folder: Path) -> None:
    """Join a cluster's small files, in order of time, and part files that hold several clusters."""
    log.check_columns()
    loose = [file for file in log.files() if file.mixed or file.num_bytes < FILE_BYTES // 2]
    if not loose:
        return
    written: list[Written] = []
    removed: dict[str, File] = {file.name: file for file in loose if file.mixed}
    for i, (cluster, files) in enumerate(_by_cluster(con, log.table, loose)):
        if len(files) > 1 or files[0].mixed:
            content = f"{_select(log.table, files)} WHERE cluster = getvariable('compact_cluster')"
            con.execute("SET VARIABLE compact_cluster = ?", [cluster])
            ordered = f"{content} ORDER BY {_order(log.table)}"
            written += write_parquet(con, log.table, ordered, folder / str(i))
            removed |= {file.name: file for file in files}
    if removed:
        log.commit(written, list(removed.values()), data_change=False)


def _by_cluster(
    con: DuckDBPyConnection, table: Table, files: Sequence[File]
) -> Iterator[tuple[str, list[File]]]:
    names = con.execute(
        f"SELECT DISTINCT cluster FROM ({_select(table, files)}) ORDER BY cluster"
    ).fetchall()
    for (name,) in names:
        yield name, [file for file in files if file.may_hold([name])]


def without_repeats(con: DuckDBPyConnection, table: Table, rows: str) -> str:
    """The relation itself, or a view with the best row a key where keys repeat within it."""
    keys = ", ".join(f'"{name}"' for name in table.key)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE merge_repeated AS SELECT {keys} FROM {rows} "
        "GROUP BY ALL HAVING count(*) > 1"
    )
    if _count(con, "merge_repeated") == 0:
        return rows
    same = _same_key(table, "r", "merge_repeated")
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE merge_best AS
        SELECT {columns_of(table)} FROM {rows} AS r SEMI JOIN merge_repeated ON {same}
        QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {_rank(table, "r")} DESC) = 1
        """
    )
    con.execute(
        f"""
        CREATE OR REPLACE TEMP VIEW merge_incoming AS
        SELECT {columns_of(table)} FROM {rows} AS r ANTI JOIN merge_repeated ON {same}
        UNION ALL FROM merge_best
        """
    )
    return "merge_incoming"


def _count_moved(con: DuckDBPyConnection, log: Log, fresh: str, id_column: str) -> int:
    """New rows whose id stands in the table within `FAR` of their period: no zone is further off."""
    time = log.table.time
    low, high = one_row(
        con, f'SELECT min("{time}") - {FAR}, max("{time}") + {FAR} FROM {fresh} AS fresh'
    )
    files = [file.path for file in log.files() if file.overlaps(time, low, high)]
    if low is None or not files:
        return 0
    con.execute("SET VARIABLE moved_low = ?", [low])
    con.execute("SET VARIABLE moved_high = ?", [high])
    (num_moved,) = one_row(
        con,
        f"""
        SELECT count(*) FROM {fresh} AS fresh SEMI JOIN (
            SELECT cluster, "{id_column}" FROM {scan_files(log.table, files)}
            WHERE "{time}" BETWEEN getvariable('moved_low') AND getvariable('moved_high')
        ) AS stored USING (cluster, "{id_column}")
        """,
    )
    return int(num_moved)


def _near(con: DuckDBPyConnection, log: Log, rows: str) -> tuple[list[File], str]:
    """The files whose cluster and time ranges may hold one of the keys, and those ranges as SQL."""
    files, within = log.files(), []
    for column in ("cluster", log.table.time):
        if files and column in log.table.key:
            low, high, complete = one_row(
                con,
                f'SELECT min("{column}"), max("{column}"), count("{column}") = count(*) FROM {rows}',
            )
            if complete:
                files = [file for file in files if file.overlaps(column, low, high)]
                con.execute(f"SET VARIABLE merge_low_{column} = ?", [low])
                con.execute(f"SET VARIABLE merge_high_{column} = ?", [high])
                ends = (f"getvariable('merge_{end}_{column}')" for end in ("low", "high"))
                within.append(f'"{column}" BETWEEN {" AND ".join(ends)}')
    return files, " AND ".join(within) or "true"


def _find_changes(
    con: DuckDBPyConnection, table: Table, incoming: str, near: Sequence[File], within: str
) -> None:
    """Table `merge_changed`: rows to store, with the file of the row that each replaces."""
    paths = [file.path for file in near]
    differs = " OR ".join(
        f'incoming."{c}" IS DISTINCT FROM stored."{c}"' for c in table.names if c not in table.key
    )
    columns = ", ".join(f'incoming."{name}"' for name in table.names)
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE merge_changed AS
        SELECT {columns}, stored._file FROM {incoming} AS incoming LEFT JOIN (
            SELECT {columns_of(table)}, filename AS _file
            FROM {scan_files(table, paths, filename=True)} WHERE {within}
        ) AS stored ON {_same_key(table, "incoming", "stored")}
        WHERE CASE WHEN stored._file IS NULL THEN true
                   WHEN {differs or "false"}
                   THEN {_rank(table, "incoming")} > {_rank(table, "stored")} ELSE false END
        """
    )


def _write_changes(con: DuckDBPyConnection, log: Log, near: Sequence[File], folder: Path) -> None:
    """The changed rows, and what stays of the files that they touch, in one commit."""
    rows = con.execute("SELECT DISTINCT _file FROM merge_changed").fetchall()
    touched = {path for (path,) in rows}
    small = [file for file in near if file.num_bytes < SMALL_BYTES]
    if len(small) >= MANY_SMALL:
        touched |= {file.path for file in small}
    removed = [file for file in near if file.path in touched]
    content = f"SELECT {columns_of(log.table)} FROM merge_changed"
    if removed:
        content = f"""
            SELECT * FROM (
                {content} UNION ALL ({_select(log.table, removed)} AS stored
                ANTI JOIN merge_changed AS c ON {_same_key(log.table, "c", "stored")})
            ) ORDER BY {_order(log.table)}
        """
    log.commit(write_parquet(con, log.table, content, folder / "new"), removed)


def _rank(table: Table, alias: str) -> str:
    """A row's place among rows with its key: `prefer`, then how much it knows, then its values."""
    wanted = [_qualified(expression, table, alias) for expression in table.prefer]
    known = " + ".join(f'CAST({alias}."{c}" IS NOT NULL AS INTEGER)' for c in table.names)
    values = [f'{alias}."{c}"' for c in table.names if c not in table.key]
    parts = ", ".join(f"{part}, 'ASC NULLS FIRST'" for part in [*wanted, known, *values])
    return f"create_sort_key({parts})"


def _qualified(expression: str, table: Table, alias: str) -> str:
    """The expression with its columns, not its quoted words, taken from `alias`."""

    def qualify(found: re.Match[str]) -> str:
        word = found.group()
        return f'{alias}."{word}"' if word in table.names else word

    return re.sub(r"'[^']*'|\w+", qualify, expression)


def _same_key(table: Table, left: str, right: str) -> str:
    return " AND ".join(
        f'{left}."{name}" IS NOT DISTINCT FROM {right}."{name}"' for name in table.key
    )


def _order(table: Table) -> str:
    """By time, so that a period lies in few row groups."""
    return ", ".join(f'"{name}"' for name in ([table.time] if table.time else table.key))


def columns_of(table: Table) -> str:
    return ", ".join(f'"{name}"' for name in table.names)


def _select(table: Table, files: Sequence[File]) -> str:
    return f"SELECT {columns_of(table)} FROM {scan_files(table, [file.path for file in files])}"


def _count(con: DuckDBPyConnection, relation: str) -> Any:
    return one_row(con, f"SELECT count(*) FROM {relation}")[0]
