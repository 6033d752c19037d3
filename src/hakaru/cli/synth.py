"""`hakaru synth`: make a synthetic cluster, fitted to AAIC, in the workspace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakaru.cli._options import create_lake, workspace_option
from hakaru.cli._progress import bar_console

if TYPE_CHECKING:
    from hakaru.lake import Lake
    from hakaru.sources.synth import Generated, Synth


@click.command(epilog="Example: hakaru synth --jobs 200000 --seed 7 --samples-days 1 -w demo")
@click.option("--jobs", "num_jobs", default=100_000, show_default=True, help="Number of jobs.")
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same rows.")
@click.option("--cluster", default="synth", show_default=True, help="Name of the cluster.")
@click.option("--days", type=float, help="Length of the period; else it follows from the load.")
@click.option("--nodes", "num_nodes", type=int, help="Nodes of 8 GPUs; else from the load, or 38.")
@click.option("--users", "num_users", default=106, show_default=True, help="Number of users.")
@click.option(
    "--samples-days",
    default=2.0,
    show_default=True,
    help="The last days of the period have one-minute GPU samples; 0 for none.",
)
@workspace_option
def command(
    num_jobs: int,
    seed: int,
    cluster: str,
    days: float | None,
    num_nodes: int | None,
    num_users: int,
    samples_days: float,
    workspace: Path,
) -> None:
    """Make a synthetic cluster: jobs, nodes and GPU samples.

    Its figures follow AAIC's published ones, and it is marked synthetic wherever it is shown. Jobs begin
    first come, first served, when enough GPUs are free: no more are busy than the machine has, and the
    waits come from the load (0.5 unless both --days and --nodes are given).
    """
    from hakaru.sources.synth import Synth

    spec = Synth(
        num_jobs=num_jobs,
        seed=seed,
        cluster=cluster,
        days=days,
        num_nodes=num_nodes,
        num_users=num_users,
        samples_days=samples_days,
    )
    print_generated(generate_with_progress(create_lake(workspace), spec), workspace)


def generate_with_progress(lake: Lake, spec: Synth) -> Generated:
    """Generate with a bar of rows, on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from hakaru.sources.synth import generate

    if not sys.stderr.isatty():
        return generate(lake, spec)
    columns = (
        TextColumn("making {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=bar_console(), transient=True) as bar:
        task = bar.add_task(spec.cluster, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return generate(lake, spec, progress=tell)


def print_generated(made: Generated, workspace: Path) -> None:
    from hakaru.sim.notation import counted

    click.echo(
        f"{made.cluster} (synthetic): made {counted(made.num_jobs)} and "
        f"{counted(made.num_samples, 'sample')} in {made.seconds:.1f} s"
    )
    click.echo(
        f"  jobs new {made.jobs.num_new:,}, updated {made.jobs.num_updated:,}, "
        f"unchanged {made.jobs.num_unchanged:,}"
    )
    click.echo(
        f"  submitted {made.since:%Y-%m-%d} to {made.until:%Y-%m-%d} (UTC) on "
        f"{counted(made.num_nodes, 'node')} with {counted(made.num_gpus, 'GPU')}"
    )
    click.echo(
        f"  workspace {workspace}; next: hakaru show walltime --cluster {made.cluster} -w {workspace}"
    )
