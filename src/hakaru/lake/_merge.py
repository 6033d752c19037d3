"""Upsert and compaction as queries: which rows are new, which are better, which files are written anew.

Of two rows with one key the one of greater rank is kept, and rank is a total order on the rows' own
values. The greatest of a set does not depend on the order in which its members arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.duckdb import one_row, scan_files
from hakaru.lake._conflicts import Conflicts, clash_of, find_inside, same_key, summarise
from hakaru.lake._log import FILE_BYTES, File, Log, Written, write_parquet
from hakaru.schema import Table, qualified

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
    num_conflicts: int = 0  # rows that contradict another one, of this write or stored before
    num_moved: int = 0  # new rows whose id was there already, a little earlier or later
    inside: Conflicts = field(default=Conflicts(), compare=False)
    stored: Conflicts = field(default=Conflicts(), compare=False)

    @property
    def num_dropped(self) -> int:
        """Rows that are not kept because another row of the same write contradicts them."""
        return self.inside.num_rows

    def plus(self, other: Upsert) -> Upsert:
        """The counts of two writes together; which rows were in conflict is left out."""
        return Upsert(
            num_new=self.num_new + other.num_new,
            num_updated=self.num_updated + other.num_updated,
            num_unchanged=self.num_unchanged + other.num_unchanged,
            num_repeated=self.num_repeated + other.num_repeated,
            num_conflicts=self.num_conflicts + other.num_conflicts,
            num_moved=self.num_moved + other.num_moved,
        )


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
    incoming, inside = without_repeats(con, table, rows)
    num_incoming = num_rows if incoming == rows else _count(con, incoming)
    stored, num_moved = Conflicts(), 0
    near, within = _near(con, log, incoming)
    if near:
        _find_changes(con, table, incoming, near, within)
        stored = summarise(con, table, "merge_clashing")
        num_new, num_updated, num_alike = one_row(con, _TALLY.format(num_incoming=num_incoming))
        if id_column and num_new:
            fresh = "(FROM merge_changed WHERE _file IS NULL)"
            num_moved = _count_moved(con, log, fresh, id_column)
        _write_changes(con, log, near, folder)
        con.execute("DROP TABLE merge_found")
    else:
        num_new, num_updated, num_alike = num_incoming, 0, 0
        num_moved = _count_moved(con, log, incoming, id_column) if id_column else 0
        content = f"SELECT {columns_of(table)} FROM {incoming}"
        log.commit(write_parquet(con, table, content, folder / "new"), [])
    return Upsert(
        num_new=num_new,
        num_updated=num_updated,
        num_unchanged=num_alike,
        num_repeated=num_rows - num_incoming - inside.num_rows,
        num_conflicts=inside.num_rows + stored.num_rows,
        num_moved=num_moved,
        inside=inside,
        stored=stored,
    )


# each incoming row counts once: a row that contradicts the stored one is neither better nor alike
_TALLY = """
    SELECT count(*) FILTER (_file IS NULL),
           count(*) FILTER (_file IS NOT NULL AND _clash IS NULL),
           {num_incoming} - count(*)
    FROM merge_found
"""


def conflicts(con: DuckDBPyConnection, log: Log, rows: str) -> tuple[Conflicts, Conflicts]:
    """Which rows contradict one another, and which a stored one; nothing is written."""
    incoming, inside = without_repeats(con, log.table, rows)
    near, within = _near(con, log, incoming)
    if not near:
        return inside, Conflicts()
    _find_changes(con, log.table, incoming, near, within)
    return inside, summarise(con, log.table, "merge_clashing")


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


def without_repeats(con: DuckDBPyConnection, table: Table, rows: str) -> tuple[str, Conflicts]:
    """The relation itself, or a view with the best row a key where keys repeat within it.

    Rows that are the same in every column are one; the others may contradict one another.
    """
    keys = ", ".join(f'"{name}"' for name in table.key)
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE merge_repeated AS SELECT {keys} FROM {rows} "
        "GROUP BY ALL HAVING count(*) > 1"
    )
    if _count(con, "merge_repeated") == 0:
        return rows, Conflicts()
    same = same_key(table, "r", "merge_repeated")
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE merge_contents AS
        SELECT DISTINCT {columns_of(table)} FROM {rows} AS r SEMI JOIN merge_repeated ON {same}
        """
    )
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE merge_best AS SELECT {columns_of(table)} FROM merge_contents AS r
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
    return "merge_incoming", find_inside(con, table, "merge_contents", "merge_best")


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
    """Views `merge_changed`: rows to store, with the file of the row that each replaces, and
    `merge_clashing`: rows that contradict the stored one, with the columns in `_clash`."""
    paths = [file.path for file in near]
    differs = " OR ".join(
        f'incoming."{c}" IS DISTINCT FROM stored."{c}"' for c in table.names if c not in table.key
    )
    columns = ", ".join(f'incoming."{name}"' for name in table.names)
    con.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE merge_found AS
        SELECT {columns}, stored._file,
               CASE WHEN stored._file IS NULL THEN true
                    ELSE {_rank(table, "incoming")} > {_rank(table, "stored")} END AS _better,
               CASE WHEN stored._file IS NOT NULL THEN {clash_of(table, "incoming", "stored")} END AS _clash
        FROM {incoming} AS incoming LEFT JOIN (
            SELECT {columns_of(table)}, filename AS _file
            FROM {scan_files(table, paths, filename=True)} WHERE {within}
        ) AS stored ON {same_key(table, "incoming", "stored")}
        WHERE stored._file IS NULL OR {differs or "false"}
        """
    )
    con.execute("DELETE FROM merge_found WHERE NOT _better AND _clash IS NULL")
    con.execute(
        "CREATE OR REPLACE TEMP VIEW merge_changed AS "
        "SELECT * EXCLUDE (_better, _clash) FROM merge_found WHERE _better"
    )
    con.execute(
        "CREATE OR REPLACE TEMP VIEW merge_clashing AS FROM merge_found WHERE _clash IS NOT NULL"
    )


def _write_changes(con: DuckDBPyConnection, log: Log, near: Sequence[File], folder: Path) -> None:
    """The changed rows, and what stays of the files that they touch, in one commit."""
    rows = con.execute("SELECT DISTINCT _file FROM merge_changed").fetchall()
    if not rows:
        return
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
                ANTI JOIN merge_changed AS c ON {same_key(log.table, "c", "stored")})
            ) ORDER BY {_order(log.table)}
        """
    log.commit(write_parquet(con, log.table, content, folder / "new"), removed)


def _rank(table: Table, alias: str) -> str:
    """A row's place among rows with its key: `prefer`, then how much it knows, then its values."""
    wanted = [qualified(expression, table, alias) for expression in table.prefer]
    known = " + ".join(f'CAST({alias}."{c}" IS NOT NULL AS INTEGER)' for c in table.names)
    values = [f'{alias}."{c}"' for c in table.names if c not in table.key]
    parts = ", ".join(f"{part}, 'ASC NULLS FIRST'" for part in [*wanted, known, *values])
    return f"create_sort_key({parts})"


def _order(table: Table) -> str:
    """By time, so that a period lies in few row groups."""
    return ", ".join(f'"{name}"' for name in ([table.time] if table.time else table.key))


def columns_of(table: Table) -> str:
    return ", ".join(f'"{name}"' for name in table.names)


def _select(table: Table, files: Sequence[File]) -> str:
    return f"SELECT {columns_of(table)} FROM {scan_files(table, [file.path for file in files])}"


def _count(con: DuckDBPyConnection, relation: str) -> Any:
    return one_row(con, f"SELECT count(*) FROM {relation}")[0]
