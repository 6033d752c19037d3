"""`hakaru bench baseline`: keep a good run under a name, or list the names."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakaru.cli._options import workspace_option
from hakaru.errors import HakaruError
from hakaru.safety.text import plain

if TYPE_CHECKING:
    from hakaru.measure.baseline import Baseline


@click.command(
    epilog="""\b
Examples:
  hakaru bench baseline acceptance                 # of the latest run
  hakaru bench baseline acceptance --run 20261118-0512
  hakaru bench baseline acceptance --run cards --run cards-n7  # n7 measured again
  hakaru bench baseline                            # list them"""
)
@click.argument("name", required=False)
@workspace_option
@click.option(
    "--run",
    "runs",
    multiple=True,
    default=["latest"],
    show_default=True,
    help="The run to keep; repeat for later runs that measured some of it again.",
)
@click.option("--cluster", help="Only runs of this cluster.")
def command(
    name: str | None, workspace: Path, runs: tuple[str, ...], cluster: str | None
) -> None:  # fmt: skip
    """Keep the medians of a good run, for `hakaru bench check --baseline NAME`."""
    from hakaru.cli.bench._options import open_runs
    from hakaru.measure import baseline
    from hakaru.measure.record import OWN
    from hakaru.measure.store import find_run

    lake = open_runs(workspace)
    if name is None:
        for each in baseline.names(workspace):
            try:
                found = baseline.load(workspace, each)
            except HakaruError as error:
                click.echo(plain(str(error)), err=True)
                continue
            click.echo(_summary(found))
        if not baseline.names(workspace):
            click.echo("no baselines yet; make one of a good run: hakaru bench baseline NAME")
        return
    kept = [find_run(lake, run, cluster) for run in runs]
    made = baseline.make_baseline(name, *kept)
    before = None
    with suppress(HakaruError):  # none yet, or one that cannot be read and is made anew
        before = baseline.load(workspace, name)
    baseline.save(workspace, made)
    click.echo(_summary(made))
    if before is not None:
        click.echo(f"It replaces the one of run {before.run_id}, made {before.made_at}.")
    if all(run.source == OWN for run in kept):
        click.echo(f"Check a node against it: hakaru bench check --baseline {name}")
    else:
        click.echo(f"Compare own runs with it: hakaru bench run BENCHMARK --baseline {name}")


def _summary(found: Baseline) -> str:
    from hakaru.measure.record import shown_parameters
    from hakaru.registry import listed

    noisy = sorted({f"{each.benchmark} {shown_parameters(each.parameters)}"
                    for each in found.entries if each.is_noisy})  # fmt: skip
    left = f"; left out, as their repetitions tell too little: {listed(noisy, 4)}" if noisy else ""
    return f"{found.name}: {len(found.gated)} quantities of run {found.run_id}{left}"
