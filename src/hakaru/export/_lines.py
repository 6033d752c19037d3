"""Text files of numbers: DuckDB sorts, formats and packs, slice by slice, in little memory."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.export._base import seconds

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Rows that are sorted at once, some hundred MB: a sort of 46 million rows does not do with 2 GB.
SLICE_ROWS = 2_000_000
SUBMITTED = seconds("submitted_at")


@dataclass(frozen=True)
class Lines:
    """Lines of `cells` (SQL), one for each row of `rows` (what follows FROM), sorted by `order`.

    The first of `order` is a whole number, by which rows are sliced. With `number_from`, a running
    number stands before the cells.
    """

    rows: str
    cells: Sequence[str]
    separator: str
    order: tuple[str, str]
    number_from: int | None = None


def write_lines(con: DuckDBPyConnection, path: Path, header: Sequence[str], lines: Lines) -> int:
    """Write header and lines; gives the number of lines. A .gz has a member a slice, as gzip allows."""
    packed = path.suffix == ".gz"
    text = "".join(f"{line}\n" for line in header).encode()
    count = 0
    with open(path, "wb") as out:
        out.write(gzip.compress(text, mtime=0) if packed else text)
        for within in _slices(con, lines):
            part = path.with_name(path.name + ".part")
            count += _copy(con, part, lines, within, count, packed)
            with open(part, "rb") as written:
                shutil.copyfileobj(written, out, 1 << 20)
            part.unlink()
    return count


def _copy(
    con: DuckDBPyConnection, path: Path, lines: Lines, within: str, done: int, packed: bool
) -> int:
    """Write one slice. Lines are formatted after the sort, through which only numbers go."""
    cells = ", ".join(f"{cell} AS c{i}" for i, cell in enumerate(lines.cells))
    texts = [f"c{i}" for i in range(len(lines.cells))]
    if lines.number_from is not None:
        texts.insert(0, f"row_number() OVER () + {done + lines.number_from - 1}")
    (count,) = one_row(
        con,
        f"COPY (SELECT concat_ws({quote(lines.separator)}, {', '.join(texts)}) FROM (SELECT {cells} "
        f"FROM {lines.rows} WHERE {within} ORDER BY {', '.join(lines.order)})) TO {quote(str(path))} "
        "(FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\x01', "
        f"COMPRESSION {'gzip' if packed else 'none'})",
    )
    return int(count)


def _slices(con: DuckDBPyConnection, lines: Lines) -> list[str]:
    """Conditions that part the rows into slices of about `SLICE_ROWS`, in rising order."""
    (count,) = one_row(con, f"SELECT count(*) FROM {lines.rows}")
    num = -(-count // SLICE_ROWS)
    if num <= 1:
        return ["true"]
    shares = [i / num for i in range(1, num)]
    (found,) = one_row(con, f"SELECT approx_quantile({lines.order[0]}, {shares}) FROM {lines.rows}")
    bounds = sorted(set(found))
    return [
        " AND ".join(
            [
                *([_bound(lines.order[0], ">=", low)] if low is not None else []),
                *([_bound(lines.order[0], "<", high)] if high is not None else []),
            ]
        )
        for low, high in pairwise([None, *bounds, None])
    ]


def _bound(column: str, sign: str, value: int) -> str:
    """A condition on a time names the stored column, so that whole row groups are passed over."""
    if column == SUBMITTED:
        return f"submitted_at {sign} to_timestamp({value})"
    return f"{column} {sign} {value}"
