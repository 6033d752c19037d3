"""A comparison on the terminal or in a file: metrics as rows, clusters as columns, notes under it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hakaru.cli._output import write_text
from hakaru.cli._table import (
    NO_BREAK,
    UNLIMITED,
    Column,
    Laid,
    emit,
    lay_out,
    page_width,
    table_lines,
    wrapped,
)
from hakaru.cli._table import Line as Styled
from hakaru.comparison import (
    Notes,
    cells_of,
    column_names,
    jobs_counted,
    label_of,
    published_of,
    sentences,
    to_csv,
    to_document,
    to_markdown,
)

if TYPE_CHECKING:
    from hakaru.comparison import Comparison

WHOLE = "Whole citations, and what they say of their figures: --sources"


def write(comparison: Comparison, format: str, output: Path | None, sources: bool = False) -> None:
    """Sentences, table and notes to the terminal or a file; `sources` for whole citations."""
    if format == "table" and output is None:
        emit(page_lines(comparison, page_width(), sources))
        return
    if format == "table":
        lines = page_lines(comparison, UNLIMITED, sources)
        write_text("".join(f"{text.rstrip()}\n" for text, _ in lines), output)
        return
    makers = {"json": _to_json, "csv": to_csv, "md": to_markdown}
    write_text(makers[format](comparison), output)


def _to_json(comparison: Comparison) -> str:
    document = to_document(comparison)
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def page_lines(comparison: Comparison, width: int, sources: bool = False) -> Iterator[Styled]:
    """Sentences first, then the table, then the notes."""
    notes = Notes()
    told = list(sentences(comparison, notes))
    for sentence in told:
        yield from ((text, "") for text in wrapped(f"• {sentence}", width))
    if told:
        yield "", ""
    yield from _table(comparison, width, notes)
    yield "", ""
    more = [WHOLE] if notes.sources and not sources else []
    for note in (*notes.lines(sources), *more, *jobs_counted(comparison)):
        indent = " " * (len(note) - len(note.lstrip()) + 4)
        yield from ((text, "dim") for text in wrapped(note, width, indent))


def _table(comparison: Comparison, width: int, notes: Notes) -> Iterator[Styled]:
    """Published figures as columns where they are few and fit, else in lines under each metric."""
    columns = _as_columns(comparison, notes)
    own = columns[: 1 + len(comparison.clusters)]
    parts = [] if comparison.published is None else lay_out(columns, 1, width)
    under = len(parts) != 1
    parts = lay_out(own, 1, width) if under else parts
    if not parts:
        yield from table_lines(columns, 1, width)
    for number, part in enumerate(parts):
        yield from (("", ""),) if number else ()
        yield from part.top()
        yield from _metrics(comparison, part, notes if under and not number else None, width)


def _as_columns(comparison: Comparison, notes: Notes) -> list[Column]:
    rows = [cells_of(comparison, line, notes) for line in comparison.lines]
    labels = [f"  {label_of(line)}" for line in comparison.lines]
    beside = [
        Column(name, [row[place] for row in rows], name != "published")
        for place, name in enumerate(column_names(comparison))
    ]
    return [Column("metric", labels, False, wraps=True), *beside]


def _metrics(
    comparison: Comparison, part: Laid, notes: Notes | None, width: int
) -> Iterator[Styled]:
    """The rows under their subjects; with `notes`, each has its published figures under it."""
    subject = ""
    for line, row in zip(comparison.lines, part.rows, strict=True):
        if line.metric.subject != subject:
            subject = line.metric.subject
            yield subject, "bold"
        yield from ((text, "") for text in row)
        if notes and line.published:
            listed = "; ".join(each.replace(" ", NO_BREAK) for each in published_of(line, notes))
            yield from ((text, "dim") for text in wrapped(f"    {listed}", width, "    "))
