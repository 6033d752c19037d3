"""`hakaru bench preflight`: check every node for what stops large runs, before they start."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from hakaru.cli._options import workspace_option
from hakaru.cli.bench._options import (
    Duration,
    cluster_option,
    default_cluster,
    format_option,
    open_runs,
    parse_slurm,
)
from hakaru.errors import HakaruError
from hakaru.safety.text import plain

if TYPE_CHECKING:
    from hakaru.measure.preflight import Preflight

EPILOG = """\b
Examples:
  hakaru bench preflight                                       # this machine
  hakaru bench preflight --ranks 1024 --launcher slurm --nodes 128 --slurm partition=gpu
  hakaru bench preflight --hosts n1,n2 --launcher mpirun --gpus-per-node 8 --format json
"""
PER_NODE = 8


@dataclass(frozen=True)
class Size:
    """Of the run: ranks in all, ranks on each node, and nodes."""

    num_ranks: int
    ranks_per_node: int
    num_nodes: int


def _num_bytes(context: click.Context, parameter: click.Parameter, value: str) -> int:
    from hakaru._values import num_bytes

    try:
        return num_bytes(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


@click.command(epilog=EPILOG)
@workspace_option
@cluster_option
@click.option(
    "--ranks",
    type=click.IntRange(min=1),
    help="Ranks of the run in all; default: ranks per node times nodes.",
)
@click.option(
    "--ranks-per-node",
    type=click.IntRange(min=1),
    help="Ranks on each node; default: --ranks divided by the nodes, else --gpus-per-node, "
    "else 8, and on a machine without GPUs its cores.",
)
@click.option(
    "--gpus-per-node",
    type=click.IntRange(min=0),
    help="GPUs that the run uses on each node; 0 for a run without GPUs; default: all on the PCI bus.",
)
@click.option(
    "--memory-per-rank",
    "memory_per_rank_bytes",
    callback=_num_bytes,
    metavar="SIZE",
    default="2GiB",
    show_default=True,
    help="Memory that each rank needs.",
)
@click.option(
    "--all-to-all",
    is_flag=True,
    help="Every rank sends to every other: too few open files or ports then fail instead of warn.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port of rank 0; default: MASTER_PORT, else 29500.",
)
@click.option(
    "--launcher",
    type=click.Choice(["local", "mpirun", "slurm"]),
    default="local",
    show_default=True,
    help="How to reach the nodes; local checks this machine only.",
)
@click.option("--hosts", help="Names of the nodes, e.g. n1,n2 (mpirun, slurm).")
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Number of nodes (slurm); default: as many as the ranks need.",
)
@click.option(
    "--slurm",
    "slurm_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of sbatch as submitit names it, e.g. partition=gpu.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default="24h",
    show_default=True,
    help="Cancel the Slurm job after this time, the queue included.",
)
@click.option("--all", "every", is_flag=True, help="Also list checks that passed or do not apply.")
@format_option
def command(
    workspace: Path, cluster: str | None, every: bool, output_format: str, **asked: Any
) -> None:
    """Check limits, links, clocks, names, memory and versions on every node; each problem with its fix."""
    cluster = _cluster(workspace, cluster)
    found = _judged(workspace, **asked)
    document = found.to_json()
    try:
        if cluster is not None:
            _keep(workspace, cluster, document | {"launcher": asked["launcher"]})
    except (OSError, HakaruError) as error:
        why = plain(getattr(error, "strerror", None) or str(error))
        click.echo(f"warning: not saved for the page Measure: {why}", err=True)
    if output_format == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(found, every, is_local=asked["launcher"] == "local")
        if cluster is None:
            _say_not_saved(workspace)
    click.get_current_context().exit(found.exit_code)


def _cluster(workspace: Path, given: str | None) -> str | None:
    """Whose preflight it is; without a workspace nothing is saved, and it belongs to none."""
    if not (workspace / "lake").is_dir():
        return None
    return default_cluster(open_runs(workspace), given)


def _say_not_saved(workspace: Path) -> None:
    """Where somebody named the workspace: a preflight alone needs none."""
    if click.get_current_context().get_parameter_source("workspace") is ParameterSource.DEFAULT:
        return
    click.echo(
        f"not saved for the page Measure: there is no workspace at {plain(str(workspace))} yet; "
        f"hakaru bench run --quick -w {shlex.quote(str(workspace))} makes one",
        err=True,
    )


def _judged(
    workspace: Path, ranks: int | None, ranks_per_node: int | None, gpus_per_node: int | None,
    launcher: str, hosts: str | None, nodes: int | None, slurm_options: tuple[str, ...],
    timeout: float, **needs: Any,
) -> Preflight:  # fmt: skip
    from hakaru.measure.launch import split_hosts
    from hakaru.measure.preflight import Ask, judge

    names = split_hosts(hosts)
    _check_nodes(launcher, names, nodes, slurm_options)
    find_size(ranks, ranks_per_node, len(names) or nodes, gpus_per_node)  # before any node is asked
    here = _ask_here() if launcher == "local" else []
    usual = _usual_here(here, gpus_per_node) if here else PER_NODE
    size = find_size(ranks, ranks_per_node, len(names) or nodes, gpus_per_node, usual)
    ask = Ask(
        size.num_ranks, size.ranks_per_node, gpus_per_node=gpus_per_node, node_names=names, **needs
    )
    answers = here or _answers(workspace, launcher, names, size, slurm_options, timeout)
    return judge(answers, ask)


def _ask_here() -> list[dict[str, Any]]:
    from hakaru.measure.preflight.ask_nodes import ask_here

    return ask_here()


def _usual_here(answers: Sequence[Mapping[str, Any]], gpus_per_node: int | None) -> int:
    """Ranks on this machine where none are given: as many as it has cores, if the run uses no GPU."""
    from hakaru.measure.devices import cores
    from hakaru.measure.preflight import has_gpus

    uses_gpus = gpus_per_node != 0 and any(has_gpus(answer) for answer in answers)
    return PER_NODE if uses_gpus else max(1, len(cores()))


def find_size(
    ranks: int | None, ranks_per_node: int | None, nodes: int | None, gpus_per_node: int | None,
    usual: int = PER_NODE,
) -> Size:  # fmt: skip
    """What was not given follows from the rest; numbers that contradict each other are an error."""
    if ranks and ranks_per_node and ranks_per_node > ranks:
        raise HakaruError(f"--ranks-per-node {ranks_per_node} is more than --ranks {ranks}")
    usual = gpus_per_node or usual
    per_node = ranks_per_node or (
        -(-ranks // nodes) if ranks and nodes else min(ranks or usual, usual)
    )
    num_ranks = ranks or per_node * (nodes or 1)
    needed = -(-num_ranks // per_node)
    if nodes and needed > nodes:
        raise HakaruError(
            f"{num_ranks} ranks with {per_node} on each node need {needed} nodes, found {nodes}: "
            "change --ranks, --ranks-per-node, --nodes or --hosts"
        )
    return Size(num_ranks, per_node, nodes or needed)


def _check_nodes(
    launcher: str, hosts: tuple[str, ...], nodes: int | None, slurm_options: tuple[str, ...]
) -> None:
    if slurm_options and launcher != "slurm":
        raise HakaruError("--slurm is for --launcher slurm")
    if launcher == "mpirun" and not hosts:
        raise HakaruError("--launcher mpirun needs the names of the hosts: --hosts a,b")
    if launcher == "local" and (hosts or (nodes or 1) > 1):
        raise HakaruError("for other nodes use --launcher mpirun --hosts a,b, or slurm --nodes N")
    if hosts and nodes and nodes != len(hosts):
        raise HakaruError(f"--nodes {nodes}, but --hosts lists {len(hosts)}: give one of them")


def _answers(
    workspace: Path, launcher: str, hosts: tuple[str, ...], size: Size,
    slurm_options: tuple[str, ...], timeout_s: float,
) -> list[dict[str, Any]]:  # fmt: skip
    from hakaru.measure.folders import own_bench_folder
    from hakaru.measure.launch import Layout
    from hakaru.measure.preflight.ask_nodes import ask_hosts, ask_slurm

    if launcher == "mpirun":
        return ask_hosts(hosts)
    folder = own_bench_folder(workspace, "preflight")
    layout = Layout(hosts, 1, size.num_nodes)
    return ask_slurm(layout, folder, parse_slurm(slurm_options), timeout_s)


def _keep(workspace: Path, cluster: str, document: dict[str, Any]) -> None:
    """Save the result for the page Measure and the report."""
    from datetime import UTC, datetime

    from hakaru.measure.folders import own_bench_folder, preflight_file
    from hakaru.safety.files import replace_file

    own_bench_folder(workspace)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    replace_file(preflight_file(workspace, cluster), json.dumps(document | {"made_at": made_at}))


def _print(found: Preflight, every: bool, is_local: bool) -> None:
    from hakaru.cli._table import Column, emit, page_width, table_lines

    click.secho(f"{found.verdict.upper()}: {found.summary}", bold=True)
    rows = [row for row in found.rows if every or row.finding.status not in ("pass", "n/a")]
    order = ("fail", "not measured", "warn", "pass", "n/a")
    rows.sort(key=lambda row: order.index(row.finding.status))
    if rows:
        columns = [
            Column("", [row.finding.status for row in rows], right=False),
            Column("check", [row.check.title for row in rows], right=False, wraps=True),
            Column("node", [row.node for row in rows], right=False),
            Column("found", [row.finding.found for row in rows], right=False, wraps=True),
            Column("wanted", [row.finding.wanted or "–" for row in rows], right=False, wraps=True),
            Column("fix", [row.finding.fix or "–" for row in rows], right=False, wraps=True),
        ]  # fmt: skip
        emit(table_lines(columns, 2, page_width()))
    if is_local and found.ask.num_nodes > 1:
        click.echo(
            "Only this machine was asked; ask the others with --launcher slurm, "
            "or --launcher mpirun --hosts a,b."
        )
    counts = ", ".join(f"{count} {name}" for name, count in found.counts.items() if count)
    click.echo(f"{counts}." if every else f"{counts}. To list every check: --all")
