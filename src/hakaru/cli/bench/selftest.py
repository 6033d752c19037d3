"""`hakaru bench selftest`: the meter measures things of known truth and reports its own error."""

from __future__ import annotations

from pathlib import Path

import click

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import (
    cluster_option,
    default_cluster,
    format_option,
    progress_bar,
    workspace_lake,
)


@click.command(
    epilog="Example: hakaru bench selftest    # with root, so that a core and a link can be throttled"
)
@workspace_option
@cluster_option
@format_option
def command(workspace: Path, cluster: str | None, output_format: str) -> None:
    """Measure a sleep, a core under a quota and a shaped link; later verdicts carry the error found."""
    from hakaru.measure.selftest import self_test
    from hakaru.measure.store import save
    from hakaru.measure.verdict import EXIT_CODES

    lake = workspace_lake(workspace)
    with progress_bar("testing the meter, about 20 s", 20.0) as progress:
        run = self_test(default_cluster(lake, cluster), progress)
    save(lake, run)
    if output_format == "json":
        from hakaru.cli.bench.run import show

        show(run, "json")
    else:
        from hakaru.cli.bench._report import headline

        click.secho(headline(run), bold=True)
        for each in run.measurements:
            click.echo(f"  {each.parameters['truth']}: {each.verdict}: {each.reason}")
    click.get_current_context().exit(EXIT_CODES[run.verdict])
