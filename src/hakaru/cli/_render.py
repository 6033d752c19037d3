"""A result on the terminal or in a file: rich table, CSV, JSON, Parquet or Markdown."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.errors import HakaruError

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console

    from hakaru.analyses import Result

FORMATS = ("table", "csv", "json", "parquet", "md")


def write_result(result: Result, format: str, output: Path | None) -> None:
    """Write the rows to the output; what was left out goes with them or to stderr."""
    if format == "parquet":
        if output is None:
            raise HakaruError("parquet needs a file: add -o result.parquet")
        write_parquet(result, output)
    elif format == "table" and output is None:
        print_table(result)
    else:
        text = {"csv": to_csv, "json": to_json, "md": to_markdown, "table": to_markdown}[format](
            result
        )
        if output is None:
            click.echo(text, nl=False)
        else:
            output.write_text(text, encoding="utf-8")
        if format == "csv":
            for line in notes(result):
                click.echo(line, err=True)


def notes(result: Result) -> list[str]:
    """How many jobs the figures rest on, and which were left out."""
    names = ", ".join(result.selection.clusters)
    synthetic = " (SYNTHETIC data)" if result.synthetic else ""
    lines = [f"{names}{synthetic}: {result.num_used:,} of {result.num_selected:,} jobs"]
    for entry in result.left_out:
        if entry.num_jobs:
            lines.append(f"  left out {entry.num_jobs:,}: only jobs {entry.rule}")
    return lines


def print_table(result: Result) -> None:
    console = terminal()
    console.print(rich_table(result.table, title=result.analysis.title))
    for line in notes(result):
        console.print(line, style="dim", highlight=False)


def terminal() -> Console:
    """The terminal as wide as it is; a pipe or a file as wide as the table needs."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200)


def rich_table(table: pa.Table, title: str | None = None) -> Any:
    import pyarrow as pa
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    shown = RichTable(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD)
    for field in table.schema:
        text = pa.types.is_string(field.type)
        shown.add_column(field.name, justify="left" if text else "right", overflow="fold")
    for row in table.to_pylist():
        shown.add_row(*(cell(name, value) for name, value in row.items()))
    return shown


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
        if name.startswith("share") or name.endswith("_share"):
            return f"{value:.2%}"
        return f"{value:,.3f}"
    return str(value)


def to_csv(result: Result) -> str:
    import io

    import pyarrow.csv as csv

    buffer = io.BytesIO()
    csv.write_csv(result.table, buffer)
    return buffer.getvalue().decode("utf-8")


def to_json(result: Result) -> str:
    document = {
        "analysis": result.analysis.id,
        "title": result.analysis.title,
        "reproduces": result.analysis.reproduces,
        "clusters": list(result.selection.clusters),
        "synthetic": result.synthetic,
        "params": dict(result.params),
        "num_selected": result.num_selected,
        "num_used": result.num_used,
        "left_out": [{"only_jobs": e.rule, "num_jobs": e.num_jobs} for e in result.left_out],
        "rows": result.rows,
    }
    return json.dumps(document, indent=2, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def to_markdown(result: Result, max_rows: int | None = None) -> str:
    rows = result.rows[:max_rows]
    body = markdown_table(result.table.column_names, rows)
    if len(rows) < result.table.num_rows:
        body += f"\n\n{result.table.num_rows - len(rows):,} more rows: `hakaru show {result.analysis.id}`"
    left_out = "".join(f"\n{line}  " for line in notes(result))
    return f"### {result.analysis.title}\n\n{body}\n{left_out}\n"


def markdown_table(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for row in rows:
        cells = (cell(name, row[name]).replace("|", "\\|") for name in names)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_parquet(result: Result, output: Path) -> None:
    import pyarrow.parquet as pq

    facts = {
        "hakaru.analysis": result.analysis.id,
        "hakaru.clusters": ",".join(result.selection.clusters),
        "hakaru.synthetic": str(result.synthetic).lower(),
        "hakaru.notes": "\n".join(notes(result)),
    }
    pq.write_table(result.table.replace_schema_metadata(facts), output)
