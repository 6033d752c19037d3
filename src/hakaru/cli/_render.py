"""A result on the terminal or in a file: table, CSV, JSON, Parquet or Markdown."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._output import without_nan, write_text, writing
from hakaru.cli._table import UNLIMITED, Column, Line, emit, page_width, table_lines, wrapped
from hakaru.errors import HakaruError
from hakaru.safety.text import one_line, plain, spreadsheet_table

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from hakaru.analyses import Result, Unit

FORMATS = ("table", "csv", "json", "parquet", "md")
PES = re.compile(r"(^|_)pes?(_|$)")


def write_result(
    result: Result, format: str, output: Path | None, more: Sequence[str] = ()
) -> None:
    """Write the rows to the output; what was left out, and `more`, goes with them or to stderr."""
    if format == "parquet":
        if output is None:
            raise HakaruError("parquet needs a file: add -o result.parquet")
        write_parquet(result, output, more)
    elif format == "table" and output is None:
        emit(result_lines(result, page_width(), more))
    else:
        write_text(_text(result, format, more), output)
    if format == "csv" or (more and format in ("json", "parquet")):
        for line in (*notes(result), *more):
            click.echo(plain(line), err=True)


def _text(result: Result, format: str, more: Sequence[str]) -> str:
    if format == "table":
        lines = result_lines(result, UNLIMITED, more)
        return "".join(f"{text.rstrip()}\n" for text, _ in lines)
    if format == "md":
        return to_markdown(result, more=more)
    return to_csv(result) if format == "csv" else to_json(result, more)


def notes(result: Result) -> list[str]:
    """How many jobs the figures rest on, and which were left out."""
    from hakaru.analyses import missing_remarks
    from hakaru.texts import agreeing, language

    names = ", ".join(
        f"{name} (SYNTHETIC data)" if name in result.synthetic_clusters else name
        for name in result.selection.clusters
    )
    counts = agreeing(f"{result.num_used:,} of {result.num_selected:,} jobs")
    lines = [f"{names}: {counts}"]
    if result.num_used == 0:
        lines = [f"no jobs left: {lines[0]}"]
        if result.num_selected == 0:
            lines = [f"no job of {names} is selected"]
    elif result.table.num_rows == 0:
        lines.append("  the table is empty: these jobs lack the data it needs")
    words = language("en", unit_of(result))
    lines += [f"  {line}" for line in missing_remarks(result.missing, words)]
    for entry in result.left_out:
        if entry.num_jobs:
            lines.append(f"  left out {entry.num_jobs:,}: only jobs {words.rule(entry.rule)}")
    return [*lines, *_units(result)]


def unit_of(result: Result) -> Unit:
    """What the sizes count; GPUs where clusters differ."""
    return "cpu" if set(result.units.values()) == {"cpu"} else "gpu"


def _units(result: Result) -> list[str]:
    """What a PE is in the names of columns, by cluster where that differs."""
    from hakaru.texts import language

    columns = [name for name in result.table.column_names if PES.search(name)]
    if not columns or not result.table.num_rows:
        return []
    clusters: dict[str, list[str]] = {}
    for name, unit in result.units.items():
        clusters.setdefault(language("en").texts["unit"][f"{unit}_one"], []).append(name)
    several = len(clusters) > 1
    told = [f"a {w}{' in ' + ', '.join(n) if several else ''}" for w, n in clusters.items()]
    return [f"  pe is {' and '.join(told)}: {', '.join(columns)}"] if told else []


def result_lines(result: Result, width: int, more: Sequence[str] = ()) -> Iterator[Line]:
    """Title, table and notes; without a row, the notes alone say why."""
    yield _title(result), "bold"
    yield "", ""
    if result.table.num_rows:
        yield from table_lines(as_columns(result.table), _num_keys(result.table), width)
        yield "", ""
    for note in (*notes(result), *more):
        indent = " " * (len(note) - len(note.lstrip()))
        for text in wrapped(note, width, indent + "  "):
            yield text, "dim"


def _title(result: Result) -> str:
    from hakaru.texts import language

    analysis = result.analysis
    return language("en", unit_of(result)).told("title", analysis.id, analysis.title)


def _num_keys(table: pa.Table) -> int:
    """The first column and the words after it name the row; parts of a wide table repeat them."""
    import pyarrow as pa

    words = [pa.types.is_string(field.type) for field in table.schema]
    return next((i for i, is_word in enumerate(words) if i and not is_word), len(words))


def terminal() -> Console:
    """The terminal as wide as it is; a pipe or a file as wide as the table needs."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


def as_columns(table: pa.Table) -> list[Column]:
    import pyarrow as pa

    return [
        Column(
            field.name,
            [cell(field.name, value) for value in table.column(field.name).to_pylist()],
            right=not pa.types.is_string(field.type),
        )
        for field in table.schema
    ]


def cell(name: str, value: Any) -> str:
    """A value as a person reads it; shares as percent, unknown as a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, float):
        if not math.isfinite(value):
            return "–"
        if name.startswith("share") or name.endswith("_share"):
            return f"{value:.2%}"
        return f"{value:,.3f}"
    return one_line(str(value))


def to_csv(result: Result) -> str:
    import io

    import pyarrow.csv as csv

    buffer = io.BytesIO()
    csv.write_csv(spreadsheet_table(result.table), buffer)
    return buffer.getvalue().decode("utf-8")


def to_json(result: Result, more: Sequence[str] = ()) -> str:
    document = {
        "analysis": result.analysis.id,
        "title": _title(result),
        "reproduces": result.analysis.reproduces,
        "clusters": list(result.selection.clusters),
        "synthetic": result.synthetic,
        "synthetic_clusters": list(result.synthetic_clusters),
        "units": dict(result.units),
        "params": dict(result.params),
        "num_selected": result.num_selected,
        "num_used": result.num_used,
        "missing": dict(result.missing),
        "left_out": [{"only_jobs": e.rule, "num_jobs": e.num_jobs} for e in result.left_out],
        "remarks": [line.strip() for line in more],
        "rows": result.rows,
    }
    text = json.dumps(
        without_nan(document), indent=2, ensure_ascii=False, default=_plain, allow_nan=False
    )
    return text + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def to_markdown(
    result: Result, max_rows: int | None = None, where: str = "", more: Sequence[str] = ()
) -> str:
    """A section of Markdown; `where` completes the command that shows the rows left off."""
    rows = result.rows[:max_rows]
    body = markdown_table(result.table.column_names, rows) + "\n" if result.table.num_rows else ""
    if len(rows) < result.table.num_rows:
        left_off = result.table.num_rows - len(rows)
        more_rows = "1 more row" if left_off == 1 else f"{left_off:,} more rows"
        body += f"\n{more_rows}: `hakaru show {result.analysis.id}{where}`\n"
    ends = "".join(f"\n{line}  " for line in (*notes(result), *more))
    return f"### {_title(result)}\n\n{body}{ends}\n"


def markdown_table(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        cells = (cell(name, row[name]).replace("|", "\\|") for name in names)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_parquet(result: Result, output: Path, more: Sequence[str] = ()) -> None:
    import pyarrow.parquet as pq

    from hakaru.formats.metadata import SYNTHETIC

    facts = {
        "hakaru.analysis": result.analysis.id,
        "hakaru.clusters": ",".join(result.selection.clusters),
        SYNTHETIC: str(result.synthetic).lower(),
        "hakaru.notes": "\n".join([*notes(result), *more]),
    }
    with writing(output):
        pq.write_table(result.table.replace_schema_metadata(facts), output)
