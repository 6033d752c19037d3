"""`hakaru bench history`: one quantity over the runs, with the steps in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import format_option
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.lake import Lake
    from hakaru.measure.series import DeviceSeries


@click.command(
    epilog="""\b
Examples:
  hakaru bench history gemm                # the median of all devices, and those that changed
  hakaru bench history gemm --param dtype=fp64 --device n1/cuda:0
  hakaru bench history all-reduce --quantity busbw --format json"""
)
@click.argument("benchmark")
@workspace_option
@click.option("--cluster", help="Only runs of this cluster.")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="Only this setting.")
@click.option("--device", help="Only this HOST/DEVICE, DEVICE or UUID, changed or not.")
@click.option("--quantity", help="Which quantity; else the benchmark's first.")
@format_option
def command(
    benchmark: str, workspace: Path, output_format: str, **asked: Any
) -> None:  # fmt: skip
    """Show a quantity from run to run; a step is confirmed once four later runs show it.

    Of several devices it shows the median, then each device; of more than eight, those that changed on
    their own.
    """
    from hakaru.cli._options import parse_params
    from hakaru.cli._output import without_nan
    from hakaru.cli.bench._options import open_runs
    from hakaru.measure.series import find_series
    from hakaru.measure.store import load_runs

    params = parse_params(asked.pop("params"))
    lake, cluster = open_runs(workspace), asked.pop("cluster")
    runs = load_runs(lake, cluster, benchmark=benchmark)
    if not runs:
        raise HakaruError(_none_of(lake, benchmark))
    found = find_series(runs, benchmark, params=params, **asked)
    if output_format == "json":
        document = without_nan([each.to_json() for each in found])
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for each in found:
            _print(each)


def _none_of(lake: Lake, benchmark: str) -> str:
    """Why there is no history: the name is wrong, or it was not measured yet."""
    from hakaru.measure._base import load_all
    from hakaru.measure.store import list_runs
    from hakaru.registry import hint, listed

    measured = sorted({name for row in list_runs(lake) for name in row["benchmarks"]})
    if benchmark in load_all() or benchmark in measured:
        return f"no run has {benchmark} with this choice; measured were: {listed(measured, 8)}"
    known = dict.fromkeys([*measured, *load_all().ids()])
    return f"there is no benchmark {benchmark!r}; {hint(benchmark, known, 8)}"


def _print(found: DeviceSeries) -> None:
    from hakaru.cli._table import Column, emit, page_width, table_lines, wrapped
    from hakaru.figures.measure.words import amount

    click.secho(found.title, bold=True)
    series = found.series
    columns = [
        Column("run", [point.run for point in series.points], right=False),
        Column("when (UTC)", [f"{point.at:%Y-%m-%d %H:%M}" for point in series.points], right=False),
        Column("median", [amount(point.median, found.unit) for point in series.points]),
        Column("", [series.mark(point) for point in series.points], right=False),
    ]  # fmt: skip
    if found.num_devices > 1:
        columns.insert(3, Column("devices", [f"{point.num_devices:,}" for point in series.points]))
    width = page_width()
    emit(table_lines(columns, 1, width))
    lines = [series.sentence, *(found.others.lines if found.others else ())]
    emit((line, "") for text in lines for line in wrapped(text, width))
    click.echo()
