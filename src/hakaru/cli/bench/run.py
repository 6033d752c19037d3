"""`hakaru bench run`: measure, judge, store, and say the verdict first."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import (
    Duration,
    choose_parameters,
    cluster_option,
    default_cluster,
    format_option,
    launch_options,
    options_given,
    parse_slurm,
    progress_bar,
    workspace_lake,
)
from hakaru.errors import HakaruError
from hakaru.safety.text import plain

if TYPE_CHECKING:
    from hakaru.lake import Lake
    from hakaru.measure.job import Job, Plan
    from hakaru.measure.record import Run

RESUMING = ("workspace", "resume", "output_format", "every")
EPILOG = """\b
Examples:
  hakaru bench run --quick                     # everything, two minutes
  hakaru bench run device --label acceptance   # every card of this node
  hakaru bench run gemm --param dtype=fp64 --param size=4096
  hakaru bench run collective --launcher mpirun --hosts n1,n2 --ranks-per-host 8
  hakaru bench run device --launcher slurm --nodes 128 --slurm partition=gpu
  hakaru bench run --resume                    # go on with an interrupted run
"""


@click.command(epilog=EPILOG)
@click.argument("names", nargs=-1, metavar="[BENCHMARK or FAMILY]...")
@workspace_option
@cluster_option
@click.option(
    "--quick",
    is_flag=True,
    help="A shorter sweep: two minutes, or one without training and storage.",
)
@click.option(
    "--budget",
    type=Duration(),
    help="Time for all of it; else 10m, with --quick 2m; without training and storage 5m and 1m.",
)
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE[,VALUE]",
    help="Values of a parameter in place of its sweep; repeat for more.",
)
@launch_options
@click.option("--label", help="A name for the run.")
@click.option("--baseline", help="Compare with this baseline too.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[RUN]",
    help="Go on with an interrupted run: the last, or the one named.",
)
@format_option
@click.option("--all", "every", is_flag=True, help="Every quantity and every device.")
def command(
    workspace: Path, cluster: str | None, resume: str | None,
    baseline: str | None, output_format: str, every: bool, **asked: Any,
) -> None:  # fmt: skip
    """Measure devices, collectives, LINPACK, training and storage; exit code 0 only if everything is good."""
    from hakaru.measure.baseline import load
    from hakaru.measure.job import Job

    lake = workspace_lake(workspace)
    if baseline:
        load(workspace, baseline)  # a wrong name is an error before anything is measured
    if resume is None:
        plan = replace(make_plan(**asked), baseline=baseline, part="measured")
        job = Job.begin(workspace, default_cluster(lake, cluster), plan)
    else:
        if given := options_given(RESUMING):
            raise HakaruError(f"--resume goes on with the options of the run; leave out {given}")
        job = Job.resume(workspace, resume or None)
    run = measure_and_store(lake, job)
    show(run, output_format, every)
    from hakaru.measure.verdict import EXIT_CODES

    click.get_current_context().exit(EXIT_CODES[run.verdict])


def make_plan(
    names: tuple[str, ...], quick: bool, budget: float | None, params: tuple[str, ...],
    devices: tuple[str, ...], launcher: str, hosts: str | None, nodes: int,
    ranks_per_host: int | None, slurm_options: tuple[str, ...], label: str | None,
    timeout: float | None,
) -> Plan:  # fmt: skip
    """What the options ask for; wrong names are an error before anything is measured."""
    from hakaru.measure._base import find_benchmarks
    from hakaru.measure.devices import find_devices
    from hakaru.measure.job import Plan, uses_gpus, usual_budget_s
    from hakaru.measure.launch import LAUNCHERS, Layout, load_all, split_hosts
    from hakaru.measure.store import check_label

    chosen = choose_parameters(find_benchmarks(names), params)
    listed = split_hosts(hosts or "")
    if slurm_options and launcher != "slurm":
        raise HakaruError("--slurm is for --launcher slurm")
    if launcher == "local" and devices and find_spec("torch"):
        find_devices(devices)
    load_all()
    LAUNCHERS.get(launcher).check(Layout(listed, ranks_per_host or 1, nodes))
    options = parse_slurm(slurm_options)
    return Plan(
        names=names,
        chosen=chosen,
        quick=quick,
        budget_s=budget or usual_budget_s(names, quick),
        devices=devices,
        hosts=listed,
        num_hosts=max(nodes, len(listed)),
        ranks_per_host=ranks_per_host or 0,
        launcher=launcher,
        launcher_options=options,
        on_gpu=uses_gpus(launcher, devices, options),
        label=check_label(label),
        timeout_s=timeout,
    )


def measure_and_store(lake: Lake, job: Job) -> Run:
    """Measure with a progress bar; an interrupted run says how it is resumed."""
    from hakaru.measure.baseline import load
    from hakaru.measure.judge import judge_by
    from hakaru.measure.run import measure
    from hakaru.measure.selftest import last_tests
    from hakaru.measure.store import resume_command, save
    from hakaru.measure.verdict import Verdict
    from hakaru.texts import language

    plan = job.plan
    count = sum(len(plan.items(family)) for family in plan.families)
    settings = "1 setting" if count == 1 else f"{count} settings"
    text = f"measuring {settings} within about {language('en').duration(plan.budget_s)}"
    try:
        with progress_bar(text, plan.budget_s) as progress:
            run = measure(job, progress=progress, tested=last_tests(lake))
    except KeyboardInterrupt:
        click.echo(f"go on with: {resume_command(job.id, lake.workspace)}", err=True)
        raise
    if plan.baseline is not None:
        baseline = load(lake.workspace, plan.baseline)
        compared = judge_by(run.measurements, baseline, plan.limits, plan.part)
        run = replace(run, measurements=tuple(compared))
    try:
        if run.measurements:  # also where nothing was measured: else an older run would pass for it
            save(lake, run)
        job.finish(keep=run.verdict is Verdict.FAILED)
    except (HakaruError, OSError) as error:
        if run.verdict is Verdict.GOOD:
            raise
        click.echo(f"warning: the run is not stored: {plain(str(error))}", err=True)
    return run  # a bad verdict is worth knowing also where it cannot be stored


def show(run: Run, output_format: str, every: bool = False, **more: Any) -> None:
    from hakaru.cli._output import without_nan
    from hakaru.cli.bench._report import print_run, to_json

    if output_format == "json":
        click.echo(json.dumps(without_nan(to_json(run, **more)), indent=2, ensure_ascii=False))
        return
    print_run(run, _next_steps(run, is_gate="baseline" in more), every)


def _next_steps(run: Run, is_gate: bool) -> list[str]:
    from hakaru.measure.baseline import can_be_repeated
    from hakaru.measure.verdict import Verdict

    if run.verdict is Verdict.GOOD:
        if is_gate or not any(can_be_repeated(each) for each in run.measurements):
            return []
        return [f"Make it a baseline: hakaru bench baseline NAME --run {run.id}{where_option()}"]
    closer = f"Look closer: hakaru bench show {run.id} --all{where_option()}"
    if run.verdict is Verdict.CONTAMINATED:
        return ["Somebody else used the machine: measure again when it is idle.", closer]
    return [closer] if any(each.samples for each in run.measurements) else []


def where_option() -> str:
    """The option that leads to the same workspace, where it was given."""
    ctx = click.get_current_context()
    if ctx.get_parameter_source("workspace") is not ParameterSource.COMMANDLINE:
        return ""
    return f" -w {shlex.quote(str(ctx.params['workspace']))}"
