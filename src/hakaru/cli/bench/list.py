"""`hakaru bench list`: the benchmarks and the question that each answers, or the runs of the workspace."""

from __future__ import annotations

from pathlib import Path

import click

from hakaru.cli._options import workspace_option


@click.command(
    epilog="""\b
Examples:
  hakaru bench list
  hakaru bench list gemm       # its parameters, its check, how it is judged
  hakaru bench list --runs"""
)
@click.argument("names", nargs=-1, metavar="[BENCHMARK]...")
@click.option("--runs", is_flag=True, help="List the stored runs instead.")
@workspace_option
def command(names: tuple[str, ...], runs: bool, workspace: Path) -> None:
    """List the benchmarks, or describe some of them."""
    from hakaru.measure._base import find_benchmarks

    if runs:
        _print_runs(workspace)
        return
    found = find_benchmarks(names)
    if names and not set(names) & {each.family for each in found}:
        for each in found:
            _describe(each)
        return
    from hakaru.cli._table import Column, emit, page_width, table_lines

    columns = [
        Column("benchmark", [each.id for each in found], right=False),
        Column("family", [each.family for each in found], right=False),
        Column("answers", [each.answers for each in found], right=False, wraps=True),
        Column("reproduces", [each.reproduces or "–" for each in found], right=False, wraps=True),
    ]
    emit(table_lines(columns, 1, page_width()))
    click.echo("\nMeasure them: hakaru bench run [BENCHMARK or FAMILY]... --quick")


def _describe(each: object) -> None:
    from hakaru.measure._base import Benchmark

    assert isinstance(each, Benchmark)
    click.secho(f"{each.id}: {each.title}", bold=True)
    click.echo(f"  {each.answers}\n  {each.description}")
    if each.reproduces:
        click.echo(f"  Reproduces: {each.reproduces}")
    for param in each.parameters:
        values = ", ".join(str(value) for value in param.values)
        quick = f" (quick: {', '.join(map(str, param.quick))})" if param.quick else ""
        quick += f" (on GPUs: {', '.join(map(str, param.on_gpu))})" if param.on_gpu else ""
        click.echo(f"  --param {param.name}={values}{quick}: {param.help}")
    for quantity in each.quantities:
        click.echo(f"  Measures {quantity.name} in {quantity.unit}; {quantity.better} is better.")
    click.echo(f"  Checked: {each.check}\n  Judged: {each.judged}")


def _print_runs(workspace: Path) -> None:
    from hakaru.cli._table import Column, emit, page_width, table_lines
    from hakaru.cli.bench._options import open_runs
    from hakaru.measure.job import unfinished
    from hakaru.measure.store import list_runs
    from hakaru.measure.verdict import worst

    rows = list_runs(open_runs(workspace))
    columns = [
        Column("run", [row["run_id"] for row in rows], right=False),
        Column("label", [row["label"] or "–" for row in rows], right=False),
        Column("cluster", [row["cluster"] for row in rows], right=False),
        Column("began (UTC)", [f"{row['started_at']:%Y-%m-%d %H:%M}" for row in rows], right=False),
        Column("verdict", [str(worst(row["verdicts"])) for row in rows], right=False),
        Column("good", [f"{row['num_good']:,} of {row['num_measurements']:,}" for row in rows]),
        Column("benchmarks", [", ".join(row["benchmarks"]) for row in rows], right=False, wraps=True),
    ]  # fmt: skip
    if rows:
        emit(table_lines(columns, 1, page_width()))
    else:
        click.echo("no runs yet; measure with: hakaru bench run --quick")
    for name in unfinished(workspace):
        click.echo(f"interrupted: {name}; go on with: hakaru bench run --resume {name}")
