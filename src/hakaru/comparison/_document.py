"""A comparison as a document: plain data for JSON, one row a number for CSV, or Markdown."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

from hakaru.comparison._citations import Notes
from hakaru.comparison._contrast import contrasts
from hakaru.comparison._texts import cells_of, column_names, jobs_counted, label_of, sentences
from hakaru.safety.text import spreadsheet_cell

if TYPE_CHECKING:
    from hakaru.comparison._compare import Comparison, Line
    from hakaru.reference.metrics import Cell
    from hakaru.reference.published import Published

CSV_COLUMNS = (
    *("metric", "label", "unit", "counting", "cluster", "kind", "bound", "value", "low", "high"),
    *("note", "source", "where"),
)


def to_document(comparison: Comparison) -> dict[str, Any]:
    """Plain data that JSON can hold: numbers that are not known are null, with the reason."""
    return {
        "clusters": [
            {
                "name": name,
                "unit": comparison.units[name],
                "synthetic": name in comparison.synthetic,
                "missing": comparison.missing.get(name),
            }
            for name in comparison.clusters
        ],
        "metrics": [_json_line(line) for line in comparison.lines],
        "contrasts": [
            {
                "subject": contrast.subject.name,
                "differs": contrast.differs,
                "sentences": contrast.sentences,
            }
            for contrast in contrasts(comparison)
        ],
        "left_out": comparison.left_out,
    }


def to_csv(comparison: Comparison) -> str:
    """One row a number, so that its citation or the reason for its absence stands with it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()

    def write(row: dict[str, Any]) -> None:
        writer.writerow(
            {k: spreadsheet_cell(v) if isinstance(v, str) else v for k, v in row.items()}
        )

    for line in comparison.lines:
        metric = line.metric
        head = {"metric": metric.id, "label": metric.label, "unit": metric.unit}
        for name, cell in line.cells.items():
            kind = "synthetic" if name in comparison.synthetic else "computed"
            values: dict[str, Any] = {"value": cell.value, "low": cell.low, "high": cell.high}
            values["note"] = cell.reason or cell.caveat
            write(head | {"counting": line.counting, "cluster": name, "kind": kind} | values)
        for figure in line.published.values():
            write(head | {"kind": "published"} | _csv_figure(figure))
    return text.getvalue()


def to_markdown(comparison: Comparison) -> str:
    notes = Notes()
    told = [f"- {sentence}" for sentence in sentences(comparison, notes)]
    names = ["metric", *column_names(comparison)]
    lines = [*told, *([""] if told else []), _piped(names), "|" + "---|" * len(names)]
    lines += [
        _piped([label_of(line), *cells_of(comparison, line, notes)]) for line in comparison.lines
    ]
    ends = [f"{text}  " for text in (*notes.lines(), *jobs_counted(comparison))]
    return "\n".join([*lines, "", *ends]).rstrip() + "\n"


def _piped(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


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
    interval = {} if cell.low is None else {"low": _known(cell.low), "high": _known(cell.high)}
    caveat = {"caveat": cell.caveat} if cell.caveat else {}
    return {"value": cell.value, **interval, **caveat}


def _known(value: float | None) -> float | None:
    """JSON has no NaN and no infinity: null stands for both."""
    return value if value is not None and math.isfinite(value) else None


def _csv_figure(figure: Published) -> dict[str, Any]:
    return {
        "cluster": figure.cluster,
        "bound": figure.bound,
        "value": figure.value,
        "note": figure.note,
        "source": figure.source,
        "where": figure.where,
    }
