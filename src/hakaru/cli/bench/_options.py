"""Options and small helpers that the verbs of `hakaru bench` share."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from hakaru.cli._options import parse_params
from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.lake import Lake
    from hakaru.measure._base import Benchmark, Value

F = TypeVar("F", bound=Callable[..., Any])
SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


class Duration(click.ParamType[float]):
    """`300`, `90s`, `5m` or `1h`, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|)", str(value).strip())
        if found is None or not 0 < float(found[1]) * SECONDS[found[2]] <= 7 * 86400:
            self.fail(f"{value!r} is not a duration such as 90s, 5m or 1h", param, ctx)
        return float(found[1]) * SECONDS[found[2]]


class Size(click.ParamType[int]):
    """`512MiB`, `1GB`, in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from hakaru._values import num_bytes

        if isinstance(value, int):
            return value
        try:
            return num_bytes(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def options_given(besides: Sequence[str]) -> str:
    """The options on the command line besides these: where they would be ignored, they are refused."""
    ctx = click.get_current_context()
    return ", ".join(
        str(param.opts[0])
        for param in ctx.command.params
        if param.name not in besides
        and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
    )


def cluster_option(function: F) -> F:
    return click.option(
        "--cluster",
        envvar="HAKARU_CLUSTER",
        help="Cluster that the run belongs to (or set HAKARU_CLUSTER); else the only one of the workspace, "
        "or this host's name.",
    )(function)


def format_option(function: F) -> F:
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How the result is written.",
    )(function)


def launch_options(function: F) -> F:
    """Where the workers run."""
    options = (
        click.option("--device", "devices", multiple=True, metavar="NAME",
                     help="Only these devices, e.g. cuda:3, cpu:0 or cpu; repeat for more."),
        click.option("--launcher", type=click.Choice(["local", "torchrun", "mpirun", "slurm"]),
                     default="local", show_default=True, help="How the workers are started."),
        click.option("--hosts", help="Hosts, e.g. n1,n2 (mpirun, slurm)."),
        click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True,
                     help="Number of nodes (slurm)."),
        click.option("--timeout", type=Duration(), default=None,
                     help="Stop workers that take longer; else 4 times the budget and 2 minutes."),
        click.option("--ranks-per-host", type=click.IntRange(min=1), default=None,
                     help="Ranks of a collective on each host; else one for each GPU that Slurm gives or "
                     "this machine has; without GPUs one for each core, and one on each of several hosts."),
        click.option("--slurm", "slurm_options", multiple=True, metavar="NAME=VALUE",
                     help="An option of sbatch as submitit calls it, e.g. partition=gpu."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def default_cluster(lake: Lake, given: str | None) -> str:
    """The cluster asked for, else the only one with jobs, else the only one measured, else this host."""
    from hakaru.measure.store import list_runs
    from hakaru.settings import check_cluster_name

    if given:
        return check_cluster_name(given)
    clusters, measured = set(lake.clusters()), {str(row["cluster"]) for row in list_runs(lake)}
    for names in (clusters, measured):
        if len(names) == 1:
            return names.pop()
    if known := clusters | measured:
        raise HakaruError(f"name the cluster with --cluster: {', '.join(sorted(known))}")
    return host_cluster()


def host_cluster() -> str:
    """This host's name as a cluster's."""
    from hakaru.measure.place import host_name

    return re.sub(r"[^A-Za-z0-9._-]", "-", host_name()).strip(".-_")[:64] or "here"


def choose_parameters(
    benchmarks: Sequence[Benchmark], pairs: Sequence[str]
) -> dict[str, dict[str, list[Value]]]:
    """`--param size=1024` for each benchmark that has such a parameter; one that none has is an error."""
    given = parse_params(pairs, repeated="join")
    known = {param.name for each in benchmarks for param in each.parameters}
    for name in given:
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            raise HakaruError(f"--param {name}: none of the benchmarks has it; they have {listed}")
    chosen = {}
    for each in benchmarks:
        own = {p.name for p in each.parameters} & given.keys()
        if own:
            found = each.parse({name: given[name] for name in own})
            chosen[each.id] = {name: list(dict.fromkeys(values)) for name, values in found.items()}
    return chosen


def parse_slurm(pairs: Sequence[str]) -> dict[str, str | int | bool]:
    """`NAME=VALUE` as submitit takes it: true and false are flags, digits are numbers."""
    from hakaru.measure.launch import check_options

    return {
        name: _typed(value)
        for name, value in check_options(parse_params(pairs, "--slurm", "refuse")).items()
    }


def _typed(value: str) -> str | int | bool:
    words = {"true": True, "false": False}
    if value.lower() in words:
        return words[value.lower()]
    return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else value


@contextmanager
def progress_bar(text: str, budget_s: float) -> Iterator[Callable[[float, str], None]]:
    """A bar with the time that is left of the budget, on a terminal only."""
    import sys

    from hakaru.cli._progress import bar_console

    if not sys.stderr.isatty():
        click.echo(text, err=True)
        yield lambda share, step: None
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(time_left(budget_s - (task.elapsed or 0.0)))

    columns = (
        TextColumn("measuring {task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        Left(),
    )
    with Progress(*columns, console=bar_console(), transient=True) as bar:
        task, began = bar.add_task("", total=1.0), time.monotonic()

        def show(share: float, step: str) -> None:
            """What is done, or the part of the budget that is spent: one setting may take all of it."""
            spent = min(0.99, (time.monotonic() - began) / budget_s)
            bar.update(task, completed=max(share, spent), description=step)

        yield show


def time_left(seconds: float) -> str:
    """As `about 2:05 left`; what takes longer than planned says so."""
    if seconds <= 0:
        return "a little longer than planned"
    whole = round(seconds)
    return f"about {whole // 60}:{whole % 60:02} left"


def open_runs(workspace: Path) -> Lake:
    """The workspace's lake; where there is none, how to make one by measuring."""
    from hakaru.lake import Lake

    if not (workspace / "lake").is_dir():
        raise HakaruError(
            f"{workspace} holds no runs yet. Measure first: hakaru bench run --quick -w {workspace}"
        )
    return Lake.open(workspace)


def workspace_lake(workspace: Path) -> Lake:
    from hakaru.cli._options import create_lake

    return create_lake(workspace)
