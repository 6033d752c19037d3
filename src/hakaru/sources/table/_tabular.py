"""A CSV or Parquet file as records with named cells and exact places.

A text file is split here rather than by DuckDB's CSV reader, which tells neither the line of a good row nor
the whole text of a bad one. A field in quotes may hold delimiters and newlines: a record that spans lines
is put together again and stands under its first line. A stray quote costs its own line only.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.errors import SourceError
from hakaru.sources._base import first_reason, head, lines
from hakaru.sources.table._mapping import Shape

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAGIC = "PAR1"
DELIMITERS = (",", ";", "\t", "|")
MAX_RECORD_LINES = 1000
MAX_TEXT_COLUMNS = 8
LOOK_CHARACTERS = 4096
MAX_GUESSED_COLUMNS = 1000


@dataclass(frozen=True)
class Tabular:
    """The columns of a file in their order, with their DuckDB types, and its records."""

    names: Sequence[str]
    types: Sequence[str]
    records: str
    cells: Sequence[str]
    reason: str = "NULL"
    text: str | None = None

    def alias(self, name: str) -> str:
        return f"r{self.names.index(name)}"

    def type(self, name: str) -> str:
        return self.types[self.names.index(name)]

    def select(self, wanted: Sequence[str]) -> str:
        """A query for `_line`, `_text`, `_reason` and the wanted columns under their aliases."""
        found = list(dict.fromkeys(wanted))
        cells = "".join(
            f", {self.cells[self.names.index(name)]} AS {self.alias(name)}" for name in found
        )
        text = self.text or _row_text([self.cells[self.names.index(name)] for name in found])
        return (
            f"SELECT _line, {text} AS _text, {self.reason} AS _reason{cells} FROM ({self.records})"
        )


def wide_advice(num_columns: int) -> str | None:
    """What to do with a table that is too wide for a mapping to be proposed."""
    if num_columns <= MAX_GUESSED_COLUMNS:
        return None
    return (
        f"It has {num_columns:,} columns; a mapping is proposed for at most {MAX_GUESSED_COLUMNS:,}. Keep "
        "those of the jobs' ids, users, times, states and sizes, or write the mapping by hand"
    )


def is_parquet(path: Path, start: str) -> bool:
    return start.startswith(MAGIC) or path.suffix in (".parquet", ".pq")


def open_table(
    con: DuckDBPyConnection, path: Path, shape: Shape, limit: int | None = None
) -> Tabular:
    """A file's columns and records; with `limit`, those of about that many first lines."""
    start = head(path)
    if is_parquet(path, start):
        return _open_parquet(con, path, limit)
    return _open_text(con, path, shape, start, limit)


def header(start: str, shape: Shape, where: str) -> tuple[list[str], str, int]:
    """The column names, the delimiter, and the line on which the records begin."""
    rows = re.split(r"\r\n|\n|\r", start)
    marks = (shape.comment,) if shape.comment else ()
    first = shape.skip
    while first < len(rows) and (not rows[first].strip() or rows[first].startswith(marks)):
        first += 1
    if first >= len(rows):
        what = "has no header line" if start.strip() else "is empty"
        raise SourceError(f"{where}: {what}; expected one with the names of the columns")
    delimiter = shape.delimiter or _sniff(rows[first:], shape)
    names, num_lines = _split(rows[first:], delimiter, shape)
    if shape.names:
        return list(shape.names), delimiter, first + 1
    return [name.strip() for name in names], delimiter, first + 1 + num_lines


def _sniff(rows: list[str], shape: Shape) -> str:
    return max(DELIMITERS, key=lambda delimiter: len(_split(rows, delimiter, shape)[0]))


def _split(rows: list[str], delimiter: str, shape: Shape) -> tuple[list[str], int]:
    """The first record, and how many lines it takes: a header may hold newlines too."""
    reader = csv.reader(
        (row + "\n" for row in rows),
        delimiter=delimiter,
        quotechar=shape.quote or None,
        quoting=csv.QUOTE_MINIMAL if shape.quote else csv.QUOTE_NONE,
    )
    try:
        return next(reader), reader.line_num
    except csv.Error:
        return rows[0].split(delimiter), 1


def _open_parquet(con: DuckDBPyConnection, path: Path, limit: int | None) -> Tabular:
    file = f"read_parquet({quote(str(path))}, file_row_number = true)"
    described = con.execute(f"DESCRIBE SELECT * EXCLUDE (file_row_number) FROM {file}").fetchall()
    columns = [(str(row[0]), str(row[1])) for row in described]
    bound = f" LIMIT {limit}" if limit else ""
    cells = ['"' + name.replace('"', '""') + '"' for name, _ in columns]
    if limit:  # a look at the first rows needs no text to its end
        cells = [
            f"left({cell}, {LOOK_CHARACTERS})" if kind == "VARCHAR" else cell
            for cell, (_, kind) in zip(cells, columns, strict=True)
        ]
    return Tabular(
        names=[name for name, _ in columns],
        types=[kind for _, kind in columns],
        records=f"SELECT file_row_number + 1 AS _line, * EXCLUDE (file_row_number) FROM {file}{bound}",
        cells=cells,
    )


def _row_text(cells: Sequence[str]) -> str:
    """A Parquet row has no text: the values of its first mapped columns stand for it."""
    values = ", ".join(
        f"left(CAST({cell} AS VARCHAR), {LOOK_CHARACTERS})" for cell in cells[:MAX_TEXT_COLUMNS]
    )
    return f"concat_ws(', ', {values})" if values else "''"


def _open_text(
    con: DuckDBPyConnection, path: Path, shape: Shape, start: str, limit: int | None
) -> Tabular:
    names, delimiter, first = header(start, shape, str(path))
    text = f"SELECT * FROM ({lines(path)}) LIMIT {first - 1 + limit}" if limit else lines(path)
    rows = f"SELECT _line, _text FROM ({text}) WHERE _line >= {first}"
    used = ""
    if shape.quote:
        mark = quote(shape.quote)
        num_quoted, num_odd = one_row(
            con,
            f"SELECT count(*), count(*) FILTER ({_num_marks(mark)} % 2 = 1) "
            f"FROM ({rows}) WHERE contains(_text, {mark})",
        )
        used = shape.quote if num_quoted else ""
        if num_odd:
            rows = _joined(rows, delimiter, shape.quote, len(names))
    return Tabular(
        names=names,
        types=["VARCHAR"] * len(names),
        records=_split_rows(f"FROM ({rows}) WHERE {_is_record(delimiter, shape)}", delimiter, used),
        cells=[_cell(i, used) for i in range(1, len(names) + 1)],
        reason=first_reason(
            [
                ("NOT whole", "'a quote is not closed, or text stands beside it'"),
                (
                    f"len(cells) <> {len(names)}",
                    f"'expected {len(names)} columns, found ' || len(cells)",
                ),
            ]
        ),
        text="_text",
    )


def _is_record(delimiter: str, shape: Shape) -> str:
    """Blank lines, lines of delimiters only (spreadsheets leave them) and comments are none."""
    blank = quote(f" \t{delimiter}")
    comment = f" AND NOT starts_with(_text, {quote(shape.comment)})" if shape.comment else ""
    return f"trim(_text, {blank}) <> ''{comment}"


def _num_marks(mark: str) -> str:
    return f"(len(_text) - len(replace(_text, {mark}, '')))"


def _joined(rows: str, delimiter: str, mark: str, num_columns: int) -> str:
    """Records from lines: one with an odd number of quotes opens or closes a field with newlines.

    What does not make a good record when put together is left as single lines.
    """
    together = f"""FROM (
        SELECT first AS _line, string_agg(_text, chr(10) ORDER BY _line) AS _text
        FROM inside GROUP BY first HAVING count(*) BETWEEN 2 AND {MAX_RECORD_LINES})"""
    return f"""
        WITH counted AS (
            SELECT _line, _text, {_num_marks(quote(mark))} % 2 AS odd FROM ({rows})
        ), placed AS MATERIALIZED (
            SELECT *, (sum(odd) OVER (ORDER BY _line) - odd) % 2 AS within FROM counted
        ), inside AS MATERIALIZED (
            SELECT _line, _text,
                   max(CASE WHEN within = 0 THEN _line END) OVER (ORDER BY _line) AS first
            FROM placed WHERE odd = 1 OR within = 1
        ), wholes AS MATERIALIZED (
            SELECT _line, _text FROM ({_split_rows(together, delimiter, mark)})
            WHERE whole AND len(cells) = {num_columns}
        )
        SELECT _line, _text FROM placed WHERE odd = 0 AND within = 0
        UNION ALL SELECT _line, _text FROM wholes
        UNION ALL SELECT _line, _text FROM inside WHERE first NOT IN (SELECT _line FROM wholes)
    """


def _split_rows(source: str, delimiter: str, mark: str) -> str:
    """Rows with their `cells`, and whether these are the `whole`: quotes amiss leave out something."""
    whole = f"array_to_string(cells, {quote(delimiter)}) = _text" if mark else "true"
    cells = f"SELECT _line, _text, {_cells(delimiter, mark)} AS cells {source}"
    return f"SELECT *, {whole} AS whole FROM ({cells})"


def _pattern(delimiter: str, mark: str) -> str:
    d, q = re.escape(delimiter), re.escape(mark)
    return quote(f"{d}({q}(?:[^{q}]|{q}{q})*{q}|[^{d}{q}][^{d}]*|)")


def _cells(delimiter: str, mark: str) -> str:
    """The list of a record's cells; each match begins with a delimiter, so that none is empty."""
    plain = f"string_split(_text, {quote(delimiter)})"
    if not mark:
        return plain
    parts = f"regexp_extract_all({quote(delimiter)} || _text, {_pattern(delimiter, mark)}, 1)"
    return f"CASE WHEN contains(_text, {quote(mark)}) THEN {parts} ELSE {plain} END"


def _cell(number: int, mark: str) -> str:
    cell = f"cells[{number}]"
    if mark:
        m, twice = quote(mark), quote(mark * 2)
        cell = f"CASE WHEN starts_with({cell}, {m}) THEN replace({cell}[2:-2], {twice}, {m}) ELSE {cell} END"
    return f"nullif(trim({cell}), '')"


def metadata(path: Path) -> Mapping[str, str]:
    """The key-value metadata in a Parquet file's footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(path).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{path}: is not a readable Parquet file: {error}") from None
    return {key.decode(): value.decode(errors="replace") for key, value in found.items()}
