"""The words of a comparison's table: its columns, cells, labels and sentences, with their notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hakaru.analyses import missing_remarks
from hakaru.comparison._citations import Notes
from hakaru.comparison._contrast import contrasts, shown, shown_published
from hakaru.texts import language

if TYPE_CHECKING:
    from hakaru.comparison._compare import Comparison, Line
    from hakaru.reference.metrics import Cell
    from hakaru.reference.published import Published


def column_names(comparison: Comparison) -> list[str]:
    names = [comparison.name(cluster) for cluster in comparison.clusters]
    return [*names, *(["published"] if comparison.published is None else comparison.published)]


def cells_of(comparison: Comparison, line: Line, notes: Notes) -> list[str]:
    unit = line.metric.unit
    cells = [_cell(notes, name, line.cells[name], unit) for name in comparison.clusters]
    if comparison.published is None:
        return [*cells, "; ".join(published_of(line, notes))]
    beside = [line.published.get(name) for name in comparison.published]
    return [*cells, *("" if figure is None else _figure(figure, notes) for figure in beside)]


def published_of(line: Line, notes: Notes) -> list[str]:
    return [f"{name} {_figure(figure, notes)}" for name, figure in line.published.items()]


def label_of(line: Line) -> str:
    return f"{line.metric.label} ({line.counting})" if line.counting else line.metric.label


def sentences(comparison: Comparison, notes: Notes) -> Iterator[str]:
    """The contrasts, each with the published figures of its subject."""
    for contrast in contrasts(comparison):
        *others, last = contrast.sentences
        yield from others
        listed = [f"{contrast.subject.published(f)} {notes.cite(f)}" for f in contrast.published]
        yield f"{last} Published: {'; '.join(listed)}." if listed else last


def jobs_counted(comparison: Comparison) -> list[str]:
    """The rows that could not be read, and the jobs that the rules left out."""
    lines = [*missing_remarks(comparison.missing, language("en")), *comparison.left_out]
    return ["Jobs counted:", *(f"  {line}" for line in lines)] if lines else []


def _cell(notes: Notes, cluster: str, cell: Cell, unit: str) -> str:
    if cell.value is None:
        return f"– ({notes.reason(cluster, cell)})"
    mark = f" ({notes.reason(cluster, cell)})" if cell.caveat else ""
    if cell.low is None or cell.high is None:
        return shown(cell.value, unit) + mark
    return f"{shown(cell.value, unit)} [{shown(cell.low, unit)}, {shown(cell.high, unit)}]{mark}"


def _figure(figure: Published, notes: Notes) -> str:
    return f"{shown_published(figure)} {notes.cite(figure)}"
