"""A what-if on the terminal and as Markdown: the runs side by side, then who gains and who loses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hakaru.cli._table import Column, Line, table_lines, wrapped

if TYPE_CHECKING:
    from hakaru.sim.whatif import Outcome

MOST_WIDE = 100  # of sentences, where a line has no end


def lines(outcome: Outcome, width: int) -> Iterator[Line]:
    columns = _columns(outcome)
    yield from table_lines(columns, 1, width)
    for mark in _marks(columns):
        yield mark, "dim"
    for title, texts in _parts(outcome):
        yield "", ""
        yield title, "bold"
        for text in texts:
            for line in wrapped(text, min(width, MOST_WIDE)):
                yield line, "dim" if title == "Notes" else ""


def markdown(outcome: Outcome, cluster: str) -> str:
    columns = _columns(outcome)
    rows = [[column.name for column in columns], ["---"] * len(columns)]
    rows += [list(row) for row in zip(*(column.cells for column in columns), strict=True)]
    table = "\n".join("| " + " | ".join(map(_escaped, row)) + " |" for row in rows)
    parts = [
        f"## {title}\n\n" + "\n".join(f"- {_escaped(text)}" for text in texts)
        for title, texts in _parts(outcome)
    ]
    marks = "; ".join(_marks(columns))
    return "\n\n".join([f"# What if: {cluster}", table, *([marks] if marks else []), *parts]) + "\n"


def _marks(columns: list[Column]) -> list[str]:
    """What the marks mean that stand in the table."""
    from hakaru.sim.whatif.table import MARKS

    seen = {cell[-1:] for column in columns for cell in column.cells}
    return [mark for mark in MARKS if mark[0] in seen]


def _columns(outcome: Outcome) -> list[Column]:
    from hakaru.sim.whatif.table import heading, rows

    cells = rows(outcome)
    return [
        Column(name, [row[at] for row in cells], right=at > 0, wraps=at == 0)
        for at, name in enumerate(heading(outcome))
    ]


def _parts(outcome: Outcome) -> Iterator[tuple[str, list[str]]]:
    yield "In short", list(outcome.headlines)
    yield "Who gains, who loses", list(outcome.sentences)
    yield "Known error", [outcome.known_error]
    notes = [f"{run.name}: {note}" for run in outcome.runs for note in run.notes]
    yield "Notes", [*outcome.notes, *notes]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
