"""`hakaru demo`: the whole path in a minute, from a synthetic log to figures, a report and a measurement."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hakaru.analyses import Session

CLUSTER = "demo"
TASTE_S = 15.0
HEADLINE = (
    "num_jobs",
    "num_users",
    "share_single_pe",
    "share_multi_node",
    "wra_mean",
    "wra_median",
    "share_at_max",
    "run_mean_completed_s",
    "run_median_completed_s",
    "share_completed",
    "spearman_size_run",
    "logpearson_size_run",
)


@click.command(epilog="Example: hakaru demo --jobs 200000 --folder my-demo")
@click.option("--jobs", "num_jobs", default=100_000, show_default=True, help="Jobs in the sample.")
@click.option(
    "--folder",
    default="hakaru-demo",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the workspace and the report go.",
)
@click.option("--measure/--no-measure", default=True, help="Whether to measure this machine too.")
@click.option("--serve", is_flag=True, help="Then start the web app on the sample.")
@click.pass_context
def command(ctx: click.Context, num_jobs: int, folder: Path, measure: bool, serve: bool) -> None:
    """Make a synthetic cluster, set it beside the one that it imitates, and write its report."""
    from hakaru.analyses import open_session
    from hakaru.cli.report import write_report
    from hakaru.cli.synth import generate_with_progress, print_generated
    from hakaru.lake import Lake
    from hakaru.sources.synth import Synth

    lake = Lake.create(folder)
    spec = Synth(num_jobs=num_jobs, cluster=CLUSTER, samples_days=1)
    print_generated(generate_with_progress(lake, spec), folder)
    with open_session(lake) as session:
        _print_headline(session)
    if measure:
        _taste_of_bench(folder)
    with open_session(lake) as session:
        write_report(session, folder / "report.html")
    for line in _next_steps(folder):
        click.echo(line)
    where = (folder / "report.html").resolve()
    click.echo(f"The report, {num_jobs:,} synthetic jobs, to open in a browser: {where}")
    if serve:
        _serve(ctx, folder)


def _taste_of_bench(folder: Path) -> None:
    """Measure this machine for some seconds: the meter itself and, where torch is there, cards or cores."""
    from importlib.util import find_spec

    from hakaru.cli.bench._options import host_cluster
    from hakaru.cli.bench._report import headline
    from hakaru.cli.bench.run import measure_and_store, show
    from hakaru.lake import Lake
    from hakaru.measure.job import Job, Plan
    from hakaru.measure.selftest import self_test
    from hakaru.measure.store import save

    lake, cluster = Lake.open(folder), host_cluster()  # which is not the synthetic one
    click.secho("\nThis machine, measured", bold=True)
    run = self_test(cluster)
    save(lake, run)
    click.echo(f"the meter itself: {headline(run)}")
    for each in run.measurements:
        click.echo(f"  {each.parameters['truth']}: {each.verdict}: {each.reason}")
    if find_spec("torch") is None:
        click.echo(
            "cards, links and LINPACK: pip install 'hakaru[measure]', then hakaru bench run --quick"
        )
        return
    plan = Plan(("gemm", "memory"), quick=True, budget_s=TASTE_S, label="demo")
    show(measure_and_store(lake, Job.begin(folder, cluster, plan)), "table")


def _serve(ctx: click.Context, folder: Path) -> None:
    from hakaru.cli.serve import command as serve_command

    ctx.invoke(serve_command, workspace=folder)


def _next_steps(folder: Path) -> list[str]:
    """Commands that work as they stand: first the way to `hakaru` where it is not on the PATH."""
    from hakaru.cli.bench._options import host_cluster

    activate = Path(sys.executable).with_name("activate")
    near = activate.relative_to(Path.cwd()) if activate.is_relative_to(Path.cwd()) else activate
    lost = shutil.which("hakaru") is None
    return [
        *([f"First, so that the shell finds hakaru:  . {near}"] if lost and near.exists() else []),
        f"Next, more of this one:  hakaru show states --by queue -w {folder}",
        f"          the web app:  hakaru serve -w {folder}",
        f"         this machine:  hakaru bench run --quick --cluster {host_cluster()} -w {folder}",
        "         your own log:  hakaru report --from LOGFILE",
        "                   or:  hakaru ingest LOGFILE --cluster NAME && hakaru compare NAME",
    ]


def _print_headline(session: Session) -> None:
    from hakaru.analyses import Selection
    from hakaru.cli._side_by_side import write
    from hakaru.comparison import compare
    from hakaru.reference.metrics import find_metrics
    from hakaru.reference.published import find_clusters

    comparison = compare(
        session, [CLUSTER], find_metrics(HEADLINE), find_clusters(["AAIC"]), Selection()
    )
    write(comparison, "table", None)
