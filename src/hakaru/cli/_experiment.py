"""`hakaru reproduce flow|mn1|tsubame3`: a paper's experiment on this machine, published against measured."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
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
    open_runs,
    options_given,
    workspace_lake,
)
from hakaru.errors import HakaruError
from hakaru.safety.text import plain

if TYPE_CHECKING:
    from hakaru.lake import Lake
    from hakaru.measure.job import Plan
    from hakaru.measure.record import Run
    from hakaru.measure.reproduce import Compared, Paper

JUDGING = ("workspace", "cluster", "stored", "output_format")
LEAST_TEXT = 20
EPILOG = """\b
Examples:
  hakaru reproduce {id} --quick
  hakaru reproduce {id} --run "reproduce {id}"   # judge the stored run again
  {cluster}
Verdicts: agrees, differs, not comparable (other hardware or size), not measured.
Exit code 0 if the experiment ran and its numbers could be compared, whether they
agree or not; 1 if a number that it needs is missing, failed or contaminated.
docs/reproduce/{id}.md lists what differs from the paper's set-up.
"""
ON_A_CLUSTER = {
    "flow": "hakaru reproduce flow --launcher slurm --nodes 4 --slurm gpus_per_node=4",
    "mn1": "hakaru reproduce mn1 --launcher slurm --nodes 128 --slurm gpus_per_node=8",
    "tsubame3": "hakaru reproduce tsubame3 --launcher slurm --slurm gpus_per_node=4",
}


def experiment_command(id: str) -> click.Command:
    """The command of one paper."""
    from hakaru.measure.reproduce import find_paper

    paper = find_paper(id)

    @click.command(
        id,
        help=f"{paper.title}: measured here, beside the paper's numbers.\n\n"
        f"The paper: {paper.cites}. Its machine: {paper.hardware}.",
        short_help=f"{paper.title}, measured on this machine.",
        epilog=EPILOG.format(id=id, cluster=ON_A_CLUSTER[id]),
    )
    @workspace_option
    @cluster_option
    @click.option(
        "--run", "stored", metavar="RUN", help="Judge this stored run instead of measuring."
    )
    @click.option("--quick", is_flag=True, help="A shorter sweep: two minutes.")
    @click.option(
        "--budget", type=Duration(), help="Time for all of it; else 10m, with --quick 2m."
    )
    @click.option(
        "--param",
        "params",
        multiple=True,
        metavar="NAME=VALUE[,VALUE]",
        help="Values of a parameter in place of the experiment's; repeat for more.",
    )
    @launch_options
    @format_option
    def command(**asked: Any) -> None:
        reproduce(paper, **asked)

    return command


def reproduce(
    paper: Paper, workspace: Path, cluster: str | None, stored: str | None, output_format: str, **asked: Any
) -> None:  # fmt: skip
    """Measure and store, or take a stored run; then compare, and say it."""
    from hakaru.measure.reproduce import compare, exit_code

    if stored is None:
        run = _measured(workspace_lake(workspace), paper, cluster, asked)
    else:
        if given := options_given(JUDGING):
            raise HakaruError(f"--run judges a stored run as it is; leave out {given}")
        from hakaru.measure.store import find_run

        run = find_run(open_runs(workspace), stored, cluster)
    found = compare(paper, run)
    _print_json(paper, run, found) if output_format == "json" else _print_table(paper, run, found)
    click.get_current_context().exit(exit_code(found))


def _measured(lake: Lake, paper: Paper, cluster: str | None, asked: dict[str, Any]) -> Run:
    from hakaru.cli.bench.run import measure_and_store
    from hakaru.measure.job import Job

    plan = plan_of(paper, **asked)
    job = Job.begin(lake.workspace, default_cluster(lake, cluster), plan)
    try:
        return measure_and_store(lake, job)
    except KeyboardInterrupt:  # how it is resumed has been said
        where = shlex.quote(str(lake.workspace))
        click.echo(f"then: hakaru reproduce {paper.id} --run {job.id} -w {where}", err=True)
        raise click.exceptions.Exit(130) from None


def plan_of(paper: Paper, **asked: Any) -> Plan:
    """What `hakaru bench run` would measure with these options, with the experiment's benchmarks."""
    from hakaru.cli.bench.run import make_plan
    from hakaru.measure.reproduce import Size

    names = paper.experiment(Size()).names
    plan = make_plan(names=names, label=paper.label, **asked)
    wanted = paper.experiment(Size(plan.quick, plan.on_gpu, plan.num_hosts))
    chosen = {
        name: {key: list(values) for key, values in wanted.chosen[name].items()}
        | plan.chosen.get(name, {})
        for name in wanted.names
    }
    ranks = plan.ranks_per_host or wanted.ranks_per_host
    return replace(plan, chosen=chosen, ranks_per_host=ranks)


def _print_table(paper: Paper, run: Run, found: Sequence[Compared]) -> None:
    from hakaru.cli._table import Column, emit, page_width, table_lines, wrapped

    width = page_width()
    for text in (paper.cites, f"There: {paper.hardware}.", f"Here: {_here(run)}."):
        emit((line, "") for line in wrapped(text, width))
    emit([("", "")])
    verdicts = [each.answer.verdict.value for each in found]
    room = max(LEAST_TEXT, (width - max(map(len, verdicts)) - 6) // 3)

    def column(name: str, cells: Sequence[str]) -> Column:
        texts = ["\n".join(wrapped(plain(cell), room)) for cell in cells]
        return Column(name, texts, right=False)

    columns = [
        Column("verdict", verdicts, right=False),
        column("what", [f"{each.finding.where}: {each.finding.says}" for each in found]),
        column("published", [each.finding.published for each in found]),
        column("measured here", [_measured_text(each) for each in found]),
    ]
    emit(table_lines(columns, 1, width))
    emit([("", ""), (_summary(found), "bold")])
    for text in _next_steps(run):
        emit((line, "dim") for line in wrapped(text, width))


def _measured_text(each: Compared) -> str:
    """What was measured, and in brackets why it is not compared."""
    answer = each.answer
    if answer.measured and answer.why:
        return f"{answer.measured} ({answer.why})"
    return answer.measured or answer.why or "–"


def _here(run: Run) -> str:
    """As `run 20261118-0512 of n1, EPYC, 2 cores`."""
    from hakaru.measure.documents import Document

    known = (each.place.get("hardware") for each in run.measurements)
    hardware = Document(next((each for each in known if isinstance(each, dict)), {}))
    gpus = Counter(hardware.texts("gpus"))
    cards = [f"{name} × {num}" for name, num in gpus.items()]
    cores = hardware.whole("num_usable")
    told = [*cards, hardware.text("cpu"), f"{cores:,} cores" if cores else ""]
    return ", ".join([f"run {run.id} of {run.cluster}", *filter(None, told)])


def _summary(found: Sequence[Compared]) -> str:
    from hakaru.measure.reproduce import Verdict

    counts = Counter(each.answer.verdict for each in found)
    return ", ".join(f"{each.value}: {counts[each]}" for each in Verdict)


def _next_steps(run: Run) -> list[str]:
    from hakaru.cli.bench.run import where_option
    from hakaru.measure.verdict import Verdict

    again = "Somebody else used the machine: measure again when it is idle."
    others = [again] if run.verdict is Verdict.CONTAMINATED else []
    return [*others, f"Every number: hakaru bench show {run.id} --all{where_option()}"]


def _print_json(paper: Paper, run: Run, found: Sequence[Compared]) -> None:
    from hakaru.cli._output import without_nan
    from hakaru.measure.reproduce import exit_code

    told = {
        "paper": paper.id,
        "cites": paper.cites,
        "hardware": paper.hardware,
        "run": run.id,
        "cluster": run.cluster,
        "exit_code": exit_code(found),
        "findings": [each.to_json() for each in found],
    }
    click.echo(json.dumps(without_nan(told), indent=2, ensure_ascii=False))
