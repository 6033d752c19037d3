"""`hakaru bench check`: the gate of a node's epilog or of a CI; exit code 0 means good, all else does not."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import (
    Duration,
    cluster_option,
    default_cluster,
    format_option,
    launch_options,
    options_given,
)
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.measure.baseline import Baseline, Part
    from hakaru.measure.record import Run

JUDGING = ("workspace", "cluster", "baseline", "name", "tolerance", "output_format")
EPILOG = """\b
Examples:
  hakaru bench check --baseline acceptance --budget 60s --format json
  hakaru bench check --baseline acceptance --run night-12   # judge a stored run
Exit codes 10 (slow), 11 (failed) and 13 (not measured) are reasons to drain
a node, 12 (contaminated) to check it again; 1 and 2 are errors of the command
itself. docs/bring-into-service.md has the lines for Slurm.
"""


@click.command(epilog=EPILOG)
@workspace_option
@cluster_option
@click.option("--baseline", required=True, help="What to compare with.")
@click.option("--run", "name", help="Judge this stored run instead of measuring.")
@click.option(
    "--budget", type=Duration(), default="60s", show_default=True, help="Time for all of it."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 50),
    default=5.0,
    show_default=True,
    help="How much slower than the baseline is still good, in percent.",
)
@launch_options
@format_option
def command(
    workspace: Path, baseline: str, output_format: str, **asked: Any
) -> None:  # fmt: skip
    """Measure what the baseline has, and compare: exit code 0 only if all of it is good."""
    if asked["name"] is not None and (given := options_given(JUDGING)):
        raise HakaruError(f"--run judges a stored run as it is; leave out {given}")
    if math.isnan(asked["tolerance"]):
        raise click.BadParameter("nan is not a number from 0 to 50", param_hint="--tolerance")
    from hakaru.cli.bench.run import show
    from hakaru.measure.verdict import EXIT_CODES, Verdict

    try:
        run = _checked(workspace, baseline, **asked)
    except (HakaruError, OSError) as error:  # which says nothing about the node, and passes none
        if output_format != "json":
            raise
        summary = {"verdict": Verdict.NOT_MEASURED.value, "exit_code": 1, "reason": str(error)}
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False))
        click.get_current_context().exit(1)
    show(run, output_format, baseline=baseline)
    click.get_current_context().exit(EXIT_CODES[run.verdict])


def _checked(
    workspace: Path, baseline: str, name: str | None, cluster: str | None, budget: float,
    tolerance: float, **launch: Any,
) -> Run:  # fmt: skip
    from dataclasses import replace

    from hakaru.cli.bench._options import open_runs
    from hakaru.cli.bench.run import measure_and_store
    from hakaru.measure.baseline import load
    from hakaru.measure.job import Job, Plan
    from hakaru.measure.judge import judge_by
    from hakaru.measure.store import LATEST, find_run

    lake, wanted = open_runs(workspace), load(workspace, baseline)
    if name is None:
        plan = _plan(wanted, budget, tolerance / 100, **launch)
        job = Job.begin(workspace, default_cluster(lake, cluster or wanted.cluster), plan)
        return measure_and_store(lake, job)
    if name == LATEST:
        raise HakaruError("name the run to judge: the latest may be another node's")
    limits = Plan(tolerance=tolerance / 100).limits
    run = find_run(lake, name, cluster or wanted.cluster or None)
    return replace(run, measurements=tuple(judge_by(run.measurements, wanted, limits)))


def _plan(baseline: Baseline, budget: float, tolerance: float, **launch: Any) -> Any:
    """Just the points that the baseline has."""
    from dataclasses import replace

    from hakaru.cli.bench.run import make_plan
    from hakaru.measure._base import load_all
    from hakaru.measure.store import GATE

    known = load_all()
    points: dict[str, list[dict[str, Any]]] = {}
    for entry in baseline.gated:
        if entry.benchmark in known:
            own = {each.name for each in known.get(entry.benchmark).parameters}
            asked = entry.parameters if entry.item is None else entry.item
            point = {name: value for name, value in asked.items() if name in own}
            if point not in points.setdefault(entry.benchmark, []):
                points[entry.benchmark].append(point)
    if not points:
        raise HakaruError(f"the baseline {baseline.name} has no benchmark that can be run here")
    part = _part(launch["devices"])
    if not part and launch["launcher"] == "local":
        launch["devices"] = _devices_of(baseline)
    plan = make_plan(
        names=tuple(points), quick=True, budget=budget, params=(), label=None, **launch
    )
    return replace(
        plan, points=points, baseline=baseline.name, tolerance=tolerance, label=GATE + baseline.name,
        part=part,
    )  # fmt: skip


def _part(devices: Sequence[str]) -> Part:
    """Whether single devices were chosen, or kinds such as `cuda`, of which all must be there."""
    if not devices:
        return ""
    return "devices" if any(":" in name.rpartition("/")[2] for name in devices) else "kinds"


def _devices_of(baseline: Baseline) -> tuple[str, ...]:
    """This machine's devices of the models that the baseline has; all where none of them is here."""
    from hakaru.measure.devices import find_devices

    models = {entry.model for entry in baseline.gated}
    return tuple(each.id for each in find_devices() if each.model in models)
