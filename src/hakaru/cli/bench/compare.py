"""`hakaru bench compare`: two runs side by side, with what has surely changed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import format_option

if TYPE_CHECKING:
    from hakaru.measure.compare import Row
    from hakaru.measure.record import Run

MOST_NAMED = 5


@click.command(
    epilog="""\b
Examples:
  hakaru bench compare before after
  hakaru bench compare 20261101 latest --format json"""
)
@click.argument("before")
@click.argument("after", default="latest", metavar="[AFTER]")
@workspace_option
@click.option("--cluster", help="Only runs of this cluster.")
@format_option
def command(
    before: str, after: str, workspace: Path, cluster: str | None, output_format: str
) -> None:  # fmt: skip
    """Compare two stored runs; a change counts where the two intervals are apart and by 1 % or more."""
    from hakaru.cli._output import without_nan
    from hakaru.cli.bench._options import open_runs
    from hakaru.measure.compare import compare_runs
    from hakaru.measure.store import find_run

    lake = open_runs(workspace)
    first, second = find_run(lake, before, cluster), find_run(lake, after, cluster)
    rows = compare_runs(first, second)
    if output_format == "json":
        document = {
            "before": first.id,
            "after": second.id,
            "rows": [each.to_json() for each in rows],
        }
        click.echo(json.dumps(without_nan(document), indent=2, ensure_ascii=False))
        return
    _print(rows, _head(first), _head(second))


def _head(run: Run) -> str:
    """Its label, where it has one, and its id."""
    return f"{run.label} ({run.id})" if run.label else run.id


def _print(rows: list[Row], before: str, after: str) -> None:
    from hakaru.cli._table import Column, emit, page_width, table_lines
    from hakaru.figures.measure.words import amount
    from hakaru.measure.compare import (
        BETTER,
        COMPARED,
        ONLY_AFTER,
        ONLY_BEFORE,
        TOO_FEW,
        WORSE,
        rank,
        signed_share,
    )
    from hakaru.measure.record import shown_parameters

    num = Counter(each.change for each in rows)
    counted = f"{num[WORSE]} worse, {num[BETTER]} better, of {sum(num[each] for each in COMPARED)} compared"
    unknown = f"; {num[TOO_FEW]} with {TOO_FEW}" if num[TOO_FEW] else ""
    click.secho(counted + unknown, bold=True)
    only = {ONLY_BEFORE: before, ONLY_AFTER: after}
    alone = [each for each in rows if each.change in only]
    rows = [each for each in rows if each.change not in only]
    rows.sort(key=lambda each: (each.before is None and each.after is None, rank(each.change)))
    columns = [
        Column("benchmark", [each.benchmark for each in rows], right=False),
        Column("parameters", [shown_parameters(each.parameters) for each in rows], right=False,
               wraps=True),
        Column("device", [each.where for each in rows], right=False),
        Column("quantity", [each.quantity for each in rows], right=False),
        Column(before, [amount(each.before, each.unit) for each in rows]),
        Column(after, [amount(each.after, each.unit) for each in rows]),
        Column("change", ["–" if each.ratio is None else signed_share(each.ratio - 1) for each in rows]),
        Column("", [each.change for each in rows], right=False),
    ]  # fmt: skip
    if rows:
        emit(table_lines(columns, 4, page_width()))
    for change, run in only.items():
        if own := [each for each in alone if each.change == change]:
            click.echo(f"only in {run}: {_some(own)}")


def _some(rows: list[Row]) -> str:
    """How many, and the first of them by name."""
    from hakaru.measure.record import shown_parameters
    from hakaru.registry import listed

    names = dict.fromkeys(
        f"{each.benchmark} {shown_parameters(each.parameters)} on {each.where}" for each in rows
    )
    return f"{len(rows):,}: {listed(names, MOST_NAMED)}"
