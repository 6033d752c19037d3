"""A comparison on the terminal or in a file: metrics as rows, clusters as columns, notes under it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._contrast import contrasts, shown, shown_published
from hakaru.reference.metrics import load_metrics

if TYPE_CHECKING:
    from hakaru.cli._comparison import Comparison, Line
    from hakaru.reference.metrics import Cell
    from hakaru.reference.published import Published

LONG_PLACES = 90
MOST_NAMED = 3
CSV_COLUMNS = (
    *("metric", "label", "unit", "counting", "cluster", "kind", "bound", "value", "low", "high"),
    *("note", "source", "where"),
)


def write(comparison: Comparison, format: str, output: Path | None) -> None:
    if format == "table" and output is None:
        _print(comparison)
        return
    makers = {"json": to_json, "csv": to_csv, "md": to_markdown, "table": to_markdown}
    text = makers[format](comparison)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")


@dataclass
class Notes:
    """Numbered citations and lettered reasons, each once, in the order of their first use."""

    sources: dict[str, dict[Published, None]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)

    def cite(self, figure: Published) -> str:
        self.sources.setdefault(figure.source, {})[figure] = None
        return f"[{list(self.sources).index(figure.source) + 1}]"

    def reason(self, cluster: str, cell: Cell) -> str:
        clusters = self.reasons.setdefault(cell.reason, [])
        if cluster not in clusters:
            clusters.append(cluster)
        return _letter(list(self.reasons).index(cell.reason))

    def lines(self) -> Iterator[str]:
        for index, (reason, clusters) in enumerate(self.reasons.items()):
            yield f"({_letter(index)}) {', '.join(clusters)}: {reason}"
        for number, (source, figures) in enumerate(self.sources.items(), 1):
            places = "; ".join(dict.fromkeys(figure.where for figure in figures))
            yield f"[{number}] {source}" + (f": {places}" if len(places) <= LONG_PLACES else "")
            yield from _caveats(list(figures))


def _caveats(figures: Sequence[Published]) -> Iterator[str]:
    """What a source says of its figures: of which ones, where it is not all of them."""
    labels = {id: metric.label for id, metric in load_metrics().items()}
    for note in dict.fromkeys(figure.note for figure in figures if figure.note):
        meant = list(dict.fromkeys(labels[f.metric] for f in figures if f.note == note))
        more = f" and {len(meant) - MOST_NAMED} more" if len(meant) > MOST_NAMED else ""
        yield f"    {'; '.join(meant[:MOST_NAMED])}{more}: {note}"


def _letter(index: int) -> str:
    """a to z, then aa, ab …"""
    prefix = _letter(index // 26 - 1) if index >= 26 else ""
    return prefix + chr(ord("a") + index % 26)


def _columns(comparison: Comparison) -> list[str]:
    names = [comparison.name(cluster) for cluster in comparison.clusters]
    return [*names, *(["published"] if comparison.published is None else comparison.published)]


def _row(comparison: Comparison, line: Line, notes: Notes) -> list[str]:
    unit = line.metric.unit
    cells = [_cell(notes, name, line.cells[name], unit) for name in comparison.clusters]
    if comparison.published is None:
        listed = [f"{name} {_figure(figure, notes)}" for name, figure in line.published.items()]
        return [*cells, "; ".join(listed)]
    beside = [line.published.get(name) for name in comparison.published]
    return [*cells, *("" if figure is None else _figure(figure, notes) for figure in beside)]


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


def _print(comparison: Comparison) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from hakaru.cli._render import terminal

    notes = Notes()
    table = Table(header_style="bold", box=SIMPLE_HEAD)
    table.add_column("metric", min_width=24)
    for name in _columns(comparison):
        table.add_column(name, justify="left" if name == "published" else "right", overflow="fold")
    subject = ""
    for line in comparison.lines:
        if line.metric.subject != subject:
            subject = line.metric.subject
            table.add_row(f"[bold]{subject}[/bold]")
        table.add_row(
            *(_plain(text) for text in ("  " + _label(line), *_row(comparison, line, notes)))
        )
    told = list(_told(comparison, notes))
    console = terminal()
    console.print(table)
    for sentence in told:
        console.print(f"• {sentence}", highlight=False, markup=False)
    for text in (*([""] if told else []), *notes.lines(), *_left_out(comparison)):
        console.print(text, style="dim", highlight=False, markup=False)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _left_out(comparison: Comparison) -> list[str]:
    return (
        ["Jobs counted:", *(f"  {line}" for line in comparison.left_out)]
        if comparison.left_out
        else []
    )


def to_markdown(comparison: Comparison) -> str:
    notes = Notes()
    names = ["metric", *_columns(comparison)]
    lines = [_piped(names), "|" + "---|" * len(names)]
    lines += [_piped([_label(line), *_row(comparison, line, notes)]) for line in comparison.lines]
    told = [f"- {sentence}" for sentence in _told(comparison, notes)]
    ends = [f"{text}  " for text in (*notes.lines(), *_left_out(comparison))]
    return "\n".join([*lines, "", *told, "", *ends]).rstrip() + "\n"


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
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


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
