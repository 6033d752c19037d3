"""`hakaru analyses`: the list, with the question that each answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hakaru.cli._table import Column, Line, emit, page_width, table_lines, wrapped

if TYPE_CHECKING:
    from hakaru.analyses import Analysis


@click.command(epilog="Example: hakaru analyses --verbose")
@click.option("-v", "--verbose", is_flag=True, help="Also what each reproduces, and parameters.")
def command(verbose: bool) -> None:
    """List the analyses and the question that each answers."""
    from hakaru.analyses import load_all

    width = page_width()
    if verbose:
        for analysis in load_all():
            emit(_told(analysis, width))
    else:
        ids, questions = zip(*((each.id, each.answers) for each in load_all()), strict=True)
        columns = [Column("id", ids, False), Column("question", questions, False, wraps=True)]
        emit([*table_lines(columns, 1, width), ("", "")])
    emit([("Show one with: hakaru show ID --from LOGFILE", "dim")])


def _told(analysis: Analysis, width: int) -> Iterator[Line]:
    yield analysis.id, "bold"
    texts = [analysis.answers, *analysis.description.split("\n\n")]
    texts += [f"Reproduces {analysis.reproduces}"] if analysis.reproduces else []
    texts += [f"--param {param.name}={param.default}: {param.help}" for param in analysis.params]
    for text in texts:
        joined = " ".join(text.split())
        yield from ((line, "") for line in wrapped(f"  {joined}", width, "    "))
    yield "", ""
