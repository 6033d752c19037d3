"""`hakaru bench show`: a stored run on the terminal, as JSON, or as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import format_option


@click.command(
    epilog="""\b
Examples:
  hakaru bench show                      # the latest run
  hakaru bench show 20261118-0512 --all
  hakaru bench show acceptance -o acceptance.html"""
)
@click.argument("run", default="latest", metavar="[RUN]")
@workspace_option
@click.option("--cluster", help="Only runs of this cluster.")
@click.option("--all", "every", is_flag=True, help="Every quantity and every device.")
@format_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write one HTML file with figures instead.",
)
def command(
    run: str, workspace: Path, cluster: str | None, every: bool, output_format: str,
    output: Path | None,
) -> None:  # fmt: skip
    """Show a stored run: by its id, the beginning of it, its label, or the latest."""
    from hakaru.cli.bench._options import open_runs
    from hakaru.cli.bench.run import show
    from hakaru.measure.store import find_run, load_runs

    lake = open_runs(workspace)
    found = find_run(lake, run, cluster)
    if output is None:
        show(found, output_format, every)
        return
    from hakaru.cli._output import writing
    from hakaru.errors import HakaruError
    from hakaru.figures.measure.preflight import read_preflight
    from hakaru.report import measure_to_html

    if output.suffix.lower() not in (".html", ".htm"):
        raise HakaruError(f"{output}: the page is HTML; end its name in .html")
    runs, preflight = load_runs(lake, found.cluster), read_preflight(lake.workspace, found.cluster)
    text = measure_to_html(found, runs, preflight=preflight)
    with writing(output):
        output.write_text(text, encoding="utf-8")
    click.echo(f"{output} ({len(text) / 1e6:.1f} MB)")
