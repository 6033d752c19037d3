"""A comparison on the terminal or in a file: metrics as rows, clusters as columns, notes under it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.cli._citations import Notes
from hakaru.cli._contrast import contrasts, shown, shown_published
from hakaru.cli._output import without_nan, write_text
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

if TYPE_CHECKING:
    from hakaru.cli._comparison import Comparison, Line
    from hakaru.reference.metrics import Cell
    from hakaru.reference.published import Published

CSV_COLUMNS = (
    *("metric", "label", "unit", "counting", "cluster", "kind", "bound", "value", "low", "high"),
    *("note", "source", "where"),
)


def write(comparison: Comparison, format: str, output: Path | None, sources: bool = False) -> None:
    """Sentences, table and notes to the terminal or a file; `sources` for whole citations."""
    if format == "table" and output is None:
        emit(page_lines(comparison, page_width(), sources))
        return
    if format == "table":
        lines = page_lines(comparison, UNLIMITED, sources)
        write_text("".join(f"{text.rstrip()}\n" for text, _ in lines), output)
        return
    makers = {"json": to_json, "csv": to_csv, "md": to_markdown}
    write_text(makers[format](comparison), output)


def _columns(comparison: Comparison) -> list[str]:
    names = [comparison.name(cluster) for cluster in comparison.clusters]
    return [*names, *(["published"] if comparison.published is None else comparison.published)]


def _row(comparison: Comparison, line: Line, notes: Notes) -> list[str]:
    unit = line.metric.unit
    cells = [_cell(notes, name, line.cells[name], unit) for name in comparison.clusters]
    if comparison.published is None:
        return [*cells, "; ".join(_listed(line, notes))]
    beside = [line.published.get(name) for name in comparison.published]
    return [*cells, *("" if figure is None else _figure(figure, notes) for figure in beside)]


def _listed(line: Line, notes: Notes) -> list[str]:
    return [f"{name} {_figure(figure, notes)}" for name, figure in line.published.items()]


def _cell(notes: Notes, cluster: str, cell: Cell, unit: str) -> str:
    if cell.value is None:
        return f"– ({notes.reason(cluster, cell)})"
    if cell.low is None or cell.high is None:
        return shown(cell.value, unit)
    return f"{shown(cell.value, unit)} [{shown(cell.low, unit)}, {shown(cell.high, unit)}]"


def _figure(figure: Published, notes: Notes) -> str:
    return f"{shown_published(figure)} {notes.cite(figure)}"


def _label(line: Line) -> str:
    return f"{line.metric.label} ({line.counting})" if line.counting else line.metric.label


def _told(comparison: Comparison, notes: Notes) -> Iterator[str]:
    """The contrasts, each with the published figures of its subject."""
    for contrast in contrasts(comparison):
        *others, last = contrast.sentences
        yield from others
        listed = [f"{contrast.subject.published(f)} {notes.cite(f)}" for f in contrast.published]
        yield f"{last} Published: {'; '.join(listed)}." if listed else last


def page_lines(comparison: Comparison, width: int, sources: bool = False) -> Iterator[Styled]:
    """Sentences first, then the table, then the notes."""
    notes = Notes()
    told = list(_told(comparison, notes))
    for sentence in told:
        yield from ((text, "") for text in wrapped(f"• {sentence}", width))
    if told:
        yield "", ""
    yield from _table(comparison, width, notes)
    yield "", ""
    for note in (*notes.lines(sources), *_left_out(comparison)):
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
    rows = [_row(comparison, line, notes) for line in comparison.lines]
    labels = [f"  {_label(line)}" for line in comparison.lines]
    beside = [
        Column(name, [row[place] for row in rows], name != "published")
        for place, name in enumerate(_columns(comparison))
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
            listed = "; ".join(each.replace(" ", NO_BREAK) for each in _listed(line, notes))
            yield from ((text, "dim") for text in wrapped(f"    {listed}", width, "    "))


def _left_out(comparison: Comparison) -> list[str]:
    return (
        ["Jobs counted:", *(f"  {line}" for line in comparison.left_out)]
        if comparison.left_out
        else []
    )


def to_markdown(comparison: Comparison) -> str:
    notes = Notes()
    told = [f"- {sentence}" for sentence in _told(comparison, notes)]
    names = ["metric", *_columns(comparison)]
    lines = [*told, *([""] if told else []), _piped(names), "|" + "---|" * len(names)]
    lines += [_piped([_label(line), *_row(comparison, line, notes)]) for line in comparison.lines]
    ends = [f"{text}  " for text in (*notes.lines(), *_left_out(comparison))]
    return "\n".join([*lines, "", *ends]).rstrip() + "\n"


def _piped(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def to_json(comparison: Comparison) -> str:
    document = {
        "clusters": [
            {
                "name": name,
                "unit": comparison.units[name],
                "synthetic": name in comparison.synthetic,
            }
            for name in comparison.clusters
        ],
        "metrics": [_json_line(line) for line in comparison.lines],
        "contrasts": [
            {"subject": contrast.subject.name, "sentences": contrast.sentences}
            for contrast in contrasts(comparison)
        ],
        "left_out": comparison.left_out,
    }
    text = json.dumps(without_nan(document), indent=2, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def _json_line(line: Line) -> dict[str, Any]:
    return {
        "id": line.metric.id,
        "label": line.metric.label,
        "unit": line.metric.unit,
        "analysis": line.metric.analysis or None,
        "counting": line.counting or None,
        "computed": {name: _json_cell(cell) for name, cell in line.cells.items()},
        "published": {
            name: {
                "value": figure.value,
                "bound": figure.bound or None,
                "note": figure.note or None,
                "source": figure.source,
                "where": figure.where,
            }
            for name, figure in line.published.items()
        },
    }


def _json_cell(cell: Cell) -> dict[str, Any]:
    if cell.value is None:
        return {"value": None, "reason": cell.reason}
    interval = {} if cell.low is None else {"low": cell.low, "high": cell.high}
    return {"value": cell.value, **interval}


def to_csv(comparison: Comparison) -> str:
    """One row a number, so that its citation or the reason for its absence stands with it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for line in comparison.lines:
        metric = line.metric
        head = {"metric": metric.id, "label": metric.label, "unit": metric.unit}
        for name, cell in line.cells.items():
            kind = "synthetic" if name in comparison.synthetic else "computed"
            values = {"value": cell.value, "low": cell.low, "high": cell.high, "note": cell.reason}
            writer.writerow(
                head | {"counting": line.counting, "cluster": name, "kind": kind} | values
            )
        for figure in line.published.values():
            writer.writerow(head | {"kind": "published"} | _csv_figure(figure))
    return text.getvalue()


def _csv_figure(figure: Published) -> dict[str, Any]:
    return {
        "cluster": figure.cluster,
        "bound": figure.bound,
        "value": figure.value,
        "note": figure.note,
        "source": figure.source,
        "where": figure.where,
    }
