"""`hakaru bench list`: the benchmarks and the question that each answers, or the runs of the workspace."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import format_option
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.measure._base import Benchmark
    from hakaru.measure.job import Interrupted


@click.command(
    epilog="""\b
Examples:
  hakaru bench list
  hakaru bench list gemm       # its parameters, its check, how it is judged
  hakaru bench list --runs
  hakaru bench list gemm --runs --format json"""
)
@click.argument("names", nargs=-1, metavar="[BENCHMARK]...")
@click.option(
    "--runs", is_flag=True, help="List the runs instead: those stored, and those interrupted."
)
@workspace_option
@click.option("--cluster", help="Only runs of this cluster.")
@format_option
def command(
    names: tuple[str, ...], runs: bool, workspace: Path, cluster: str | None, output_format: str
) -> None:  # fmt: skip
    """List the benchmarks, or describe some of them."""
    if runs:
        _list_runs(workspace, names, cluster, output_format)
        return
    if cluster is not None:
        raise HakaruError("--cluster is for the list of runs: add --runs")
    _list_benchmarks(names, output_format)


def _list_benchmarks(names: Sequence[str], output_format: str) -> None:
    from hakaru.measure._base import find_benchmarks

    found = find_benchmarks(names)
    if output_format == "json":
        click.echo(json.dumps(list(map(_as_json, found)), indent=2, ensure_ascii=False))
        return
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


def _as_json(each: Benchmark) -> dict[str, Any]:
    texts = ("id", "title", "family", "answers", "description", "reproduces", "check", "judged")
    return {name: getattr(each, name) for name in texts} | {
        "parameters": [{"name": param.name, "values": list(param.values), "help": param.help}
                       for param in each.parameters],
        "quantities": [{"name": one.name, "unit": one.unit, "better": one.better}
                       for one in each.quantities],
    }  # fmt: skip


def _describe(each: Benchmark) -> None:
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


def _list_runs(
    workspace: Path, names: Sequence[str], cluster: str | None, output_format: str
) -> None:  # fmt: skip
    from hakaru.cli.bench._options import open_runs
    from hakaru.measure.job import interrupted
    from hakaru.measure.store import list_runs

    rows = list_runs(open_runs(workspace))
    stopped = interrupted(workspace)
    if cluster is not None:
        _check_cluster(cluster, rows, stopped)
        rows = [row for row in rows if row["cluster"] == cluster]
        stopped = [each for each in stopped if each.job is None or each.job.cluster == cluster]
    if names:
        wanted = _ids(names, {name for row in rows for name in row["benchmarks"]})
        rows = [row for row in rows if wanted & set(row["benchmarks"])]
        stopped = [each for each in stopped if _has_planned(each, wanted)]
    if output_format == "json":
        document = {
            "runs": list(map(_run_as_json, rows)),
            "interrupted": [_interrupted_as_json(each, workspace) for each in stopped],
        }
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    _print_runs(rows, workspace, bool(names or cluster))
    _print_interrupted(stopped, workspace)


def _check_cluster(cluster: str, rows: list[dict[str, Any]], stopped: list[Interrupted]) -> None:
    from hakaru.registry import listed

    known = {row["cluster"] for row in rows} | {each.job.cluster for each in stopped if each.job}
    if known and cluster not in known:
        raise HakaruError(
            f"no run is of the cluster {cluster!r}; there is: {listed(sorted(known))}"
        )


def _ids(names: Sequence[str], measured: set[str]) -> set[str]:
    """The benchmarks of these names and families, also those that only an import has."""
    from hakaru.measure._base import find_benchmarks

    own = [name for name in names if name not in measured]
    return {*names, *(each.id for each in (find_benchmarks(own) if own else ()))}


def _has_planned(each: Interrupted, wanted: set[str]) -> bool:
    """A damaged plan does not say what it is of, so that it is always listed."""
    if each.job is None:
        return True
    try:
        return bool(wanted & {planned.id for planned in each.job.plan.benchmarks})
    except HakaruError:  # of another version, whose benchmarks had other names
        return bool(wanted & set(each.job.plan.names))


def _print_runs(rows: list[dict[str, Any]], workspace: Path, chosen: bool) -> None:
    from hakaru.cli._table import Column, emit, page_width, table_lines
    from hakaru.measure.verdict import worst

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
    elif chosen:
        click.echo("no run has this choice")
    else:
        click.echo(f"no runs yet; measure with: hakaru bench run --quick -w {_quoted(workspace)}")


def _print_interrupted(found: Sequence[Interrupted], workspace: Path) -> None:
    """When each was begun, and the command that goes on with it; a damaged one is named too."""
    from hakaru.cli._table import emit
    from hakaru.measure.store import resume_command

    if found:
        click.echo()
        click.secho("Interrupted, not stored yet", bold=True)
    for each in found:
        if each.job is None:
            emit([(f"  {each.id}: its plan is damaged; delete {each.folder}", "")])
            continue
        label = f", label {each.label}" if each.label else ""
        where = f" on {each.host}" if each.is_elsewhere else ""
        began = f"begun {each.job.started_at:%Y-%m-%d %H:%M} UTC{where}{label}"
        emit(
            [
                (f"  {each.id}: {began}", ""),
                (f"    go on with: {resume_command(each.id, workspace)}", ""),
            ]
        )


def _quoted(workspace: Path) -> str:
    return shlex.quote(str(workspace))


def _run_as_json(row: dict[str, Any]) -> dict[str, Any]:
    from hakaru.measure.verdict import worst

    kept = (
        "label",
        "cluster",
        "source",
        "num_devices",
        "num_measurements",
        "num_good",
        "benchmarks",
    )
    return {
        "run": row["run_id"],
        "started_at": row["started_at"].isoformat(),
        "verdict": worst(row["verdicts"]).value,
        **{name: row[name] for name in kept},
    }


def _interrupted_as_json(each: Interrupted, workspace: Path) -> dict[str, Any]:
    from hakaru.measure.store import resume_command

    return {
        "run": each.id,
        "started_at": each.job.started_at.isoformat() if each.job else None,
        "label": each.label,
        "cluster": each.job.cluster if each.job else None,
        "host": each.host or None,
        "resume": resume_command(each.id, workspace) if each.job else None,
    }
