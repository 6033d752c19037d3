"""`hakaru bench compare`: two runs side by side, with what has surely changed."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import format_option

if TYPE_CHECKING:
    from hakaru.cli._table import Column
    from hakaru.measure.compare import Row
    from hakaru.measure.record import Run

MOST_NAMED = 5
MOST_ROWS = 40  # of more, those that differ


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
@click.option(
    "--all", "every", is_flag=True, help="Every row, also of large runs: else those that differ."
)
@format_option
def command(
    before: str, after: str, workspace: Path, cluster: str | None, every: bool, output_format: str
) -> None:  # fmt: skip
    """Compare two stored runs; a change counts where the two intervals are apart and by 1 % or more."""
    from hakaru.cli._output import without_nan
    from hakaru.cli.bench._options import open_runs
    from hakaru.errors import HakaruError
    from hakaru.measure.compare import compare_runs
    from hakaru.measure.store import find_run

    lake = open_runs(workspace)
    first, second = find_run(lake, before, cluster), find_run(lake, after, cluster)
    if (first.cluster, first.id) == (second.cluster, second.id):
        raise HakaruError(
            f"{before!r} and {after!r} are both run {first.id}; hakaru bench list --runs lists the others"
        )
    rows = compare_runs(first, second)
    if output_format == "json":
        document = {
            "before": first.id,
            "after": second.id,
            "rows": [each.to_json() for each in rows],
        }
        click.echo(json.dumps(without_nan(document), indent=2, ensure_ascii=False))
        return
    _print(rows, _head(first), _head(second), every)


def _head(run: Run) -> str:
    """Its label, where it has one, and its id."""
    return f"{run.label} ({run.id})" if run.label else run.id


def _print(rows: list[Row], before: str, after: str, every: bool) -> None:
    from hakaru.cli._table import emit, page_width, table_lines, wrapped
    from hakaru.measure.compare import ONLY_AFTER, ONLY_BEFORE

    width = page_width()
    click.secho(_headline(rows), bold=True)
    only = {ONLY_BEFORE: before, ONLY_AFTER: after}
    both = sorted((each for each in rows if each.change not in only), key=_in_order)
    shown = both if every or len(both) <= MOST_ROWS else _differing(both)[:MOST_ROWS]
    if shown:
        emit(table_lines(_columns(shown, before, after), 4, width))
    if left := _left(both, shown):
        emit((line, "") for line in wrapped(left, width))
    for change, run in only.items():
        if own := [each for each in rows if each.change == change]:
            click.echo(f"only in {run}: {_some(own)}")


def _headline(rows: Sequence[Row]) -> str:
    from hakaru.measure.compare import BETTER, COMPARED, TOO_FEW, WORSE

    num = Counter(each.change for each in rows)
    compared = sum(num[each] for each in COMPARED)
    counted = f"{num[WORSE]:,} worse, {num[BETTER]:,} better, of {compared:,} compared"
    return counted + (f"; {num[TOO_FEW]:,} with {TOO_FEW}" if num[TOO_FEW] else "")


def _in_order(each: Row) -> tuple[bool, int, float]:
    """What differs first, there the largest change first; what neither run has a number of comes last."""
    from hakaru.measure.compare import BETTER, WORSE, rank

    differs = each.change in (WORSE, BETTER) and each.ratio is not None
    size = abs(math.log(each.ratio)) if differs and each.ratio else 0.0
    return each.before is None and each.after is None, rank(each.change), -size


def _differing(rows: Sequence[Row]) -> list[Row]:
    from hakaru.measure.compare import SAME, TOO_FEW, UNSURE

    return [
        each for each in rows
        if each.change not in (SAME, TOO_FEW, UNSURE) and (each.before, each.after) != (None, None)
    ]  # fmt: skip


def _left(rows: Sequence[Row], shown: Sequence[Row]) -> str:
    """As `Not listed: 1,018 no sure change, 3 the same; --all lists every row.`"""
    left = Counter(each.change for each in rows) - Counter(each.change for each in shown)
    parts = ", ".join(f"{num:,} {change}" for change, num in left.items())
    return f"Not listed: {parts}; --all lists every row." if parts else ""


def _columns(rows: Sequence[Row], before: str, after: str) -> list[Column]:
    from hakaru.cli._table import Column
    from hakaru.figures.measure.words import amount
    from hakaru.measure.compare import signed_share
    from hakaru.measure.record import shown_parameters

    return [
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


def _some(rows: list[Row]) -> str:
    """How many settings of devices, and the first of them by name; each may have several quantities."""
    from hakaru.measure.record import shown_parameters
    from hakaru.registry import listed

    names = dict.fromkeys(
        f"{each.benchmark} {shown_parameters(each.parameters)} on {each.where}" for each in rows
    )
    return f"{len(names):,}: {listed(names, MOST_NAMED)}"
