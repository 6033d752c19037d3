"""`hakaru bench import`: results of nccl-tests, HPL, SuperBench and DCGM as runs of their own."""

from __future__ import annotations

import shlex
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import cluster_option, default_cluster, workspace_lake
from hakaru.safety.text import one_line

if TYPE_CHECKING:
    from hakaru.measure.record import Run


@click.command(
    epilog="""\b
Examples:
  hakaru bench import all_reduce.txt --cluster mine
  hakaru bench import HPL.out results-summary.jsonl diag.json"""
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@workspace_option
@cluster_option
@click.option(
    "--format",
    "input_format",
    help="nccl-tests, hpl, superbench or dcgm; else recognised from the file.",
)
@click.option("--host", help="The host, where the file does not name it (HPL, DCGM).")
@click.option("--label", help="A name for the runs.")
def command(
    files: tuple[Path, ...], workspace: Path, cluster: str | None,
    input_format: str | None, host: str | None, label: str | None,
) -> None:  # fmt: skip
    """Read results of other programs; a file twice changes nothing. Exit code 0 means all is good."""
    from hakaru.measure.imports import read_run
    from hakaru.measure.store import check_label, save
    from hakaru.measure.verdict import EXIT_CODES, worst

    lake = workspace_lake(workspace)
    check_label(label)
    name = default_cluster(lake, cluster)
    runs = [read_run(path, name, input_format, label, host) for path in files]
    for path, run in zip(files, runs, strict=True):
        save(lake, run)
        _summarise(path, run, workspace)
    click.get_current_context().exit(EXIT_CODES[worst(run.verdict for run in runs)])


def _summarise(path: Path, run: Run, workspace: Path) -> None:
    """The verdict, what is not good and why, what was left out, notes, and how to see the rest."""
    from hakaru.cli._table import emit, page_width
    from hakaru.cli.bench._report import run_lines

    # the beginning of what `bench show` prints, up to its first empty line
    first, *bad = takewhile(lambda line: line[0], run_lines(run, page_width(), (), False))
    emit([(f"{one_line(str(path))}: {run.source}, run {run.id}: {first[0]}", ""), *bad])
    for each in run.left_out:
        click.echo(f"  left out: {each}")
    for each in run.notes:
        click.echo(f"  note: {each}")
    click.echo(f"  show it: hakaru bench show {run.id} -w {shlex.quote(str(workspace))}")
