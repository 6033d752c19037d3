"""What the verbs that simulate share: the workload, the machine, and word of the first compilation."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hakaru.cli._options import Data, _unpiped, data_options, group_logs
from hakaru.cli._selection import cluster_option, filter_options
from hakaru.errors import HakaruError, MissingExtraError

if TYPE_CHECKING:
    from hakaru.analyses import Selection, Session
    from hakaru.lake import Lake
    from hakaru.sim import Machine, Outage, Policy, Workload
    from hakaru.sim.idle import IdleRule
    from hakaru.sim.site import Site, Taken
    from hakaru.sources.swf import Header

F = TypeVar("F", bound=Callable[..., Any])
SLOW_S = 3.0
COMPILING = "compiling the simulator, once (about 30 s)"
BY_OPTIONS = "Add --nodes COUNTxSIZE, e.g. --nodes 38x8, or --processors N for one pool"


@dataclass(frozen=True)
class MachineOptions:
    """The machine as it was asked for; nothing asked means the cluster's own."""

    processors: int | None = None
    nodes: tuple[str, ...] = ()
    packing: str | None = None
    whole_nodes: bool | None = None
    locality: str | None = None
    switch_size: int | None = None
    fail: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()


def machine_options(function: F) -> F:
    """The options of the machine; the command gets them as `asked`."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        names = [field.name for field in fields(MachineOptions)]
        asked = MachineOptions(**{name: options.pop(name) for name in names})
        return function(*arguments, asked=asked, **options)

    outage = "NODES@FROM..TO"
    for option in (
        click.option(
            "--drain", multiple=True, metavar=outage, help="As --fail, but running jobs may end."
        ),
        click.option(
            "--fail",
            multiple=True,
            metavar=outage,
            help="Nodes are lost, with their jobs, e.g. 0-3@2018-04-01..2018-04-02.",
        ),
        click.option(
            "--switch-size", type=click.IntRange(min=1), metavar="N", help="Nodes under a switch."
        ),
        click.option(
            "--locality",
            type=click.Choice(["anywhere", "preferred", "required"]),
            help="Whether a job of several nodes stays under one switch.",
        ),
        click.option(
            "--whole-nodes/--share-nodes",
            default=None,
            help="Whether jobs of several nodes get whole ones (the default).",
        ),
        click.option(
            "--packing",
            type=click.Choice(["best-fit", "spread"]),
            help="The fullest node that fits (the default), or the emptiest.",
        ),
        click.option(
            "--nodes",
            multiple=True,
            metavar="COUNTxSIZE[:MODEL]",
            help="A machine of nodes, e.g. 38x8; repeat for other sizes or models.",
        ),
        click.option(
            "--processors",
            type=click.IntRange(min=1),
            metavar="N",
            help="One pool of processors or GPUs, without nodes.",
        ),
    ):
        call = option(call)
    return cast(F, call)


def complete_policies(ctx: click.Context, param: click.Parameter, start: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from hakaru.sim.policies import POLICIES

    return [CompletionItem(p.id, help=p.title) for p in POLICIES if p.id.startswith(start)]


def replay_options(policy: str, limit: str) -> Callable[[F], F]:
    """What verbs that replay a log share: whose, which jobs, on what, and by which rules.

    `policy` and `limit` say what those are for; the rest means the same everywhere.
    """

    def decorate(function: F) -> F:
        for option in (
            machine_options,
            filter_options,
            cluster_option,
            data_options,
            click.option("--limit", "limits", multiple=True, metavar="LIMIT", help=limit),
            click.option(
                "--policy",
                "policy_id",
                default="easy",
                show_default=True,
                metavar="ID",
                shell_complete=complete_policies,
                help=policy,
            ),
        ):
            function = option(function)
        return function

    return decorate


def load_kernel(policy: Policy) -> None:
    """Import what plays the policy, which is compiled the first time; say so if it takes long."""
    name = "_conservative" if policy.backfill == "conservative" else "_queueing"
    with saying(COMPILING):
        try:
            importlib.import_module(f"hakaru.sim.{name}")
        except ModuleNotFoundError as error:
            if error.name == "numba":
                raise MissingExtraError("numba, which runs the simulator,", "sim") from None
            raise


@contextmanager
def saying(text: str, after_s: float = SLOW_S) -> Iterator[None]:
    """Say on stderr what is being done, if it is not done soon."""
    timer = threading.Timer(after_s, click.echo, [text], {"err": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def one_cluster(session: Session, selection: Selection) -> Selection:
    """The selection with the name of the one cluster that it is of."""
    names = selection.clusters or session.known_clusters
    if len(names) != 1:
        held = ", ".join(session.known_clusters) or "no jobs yet"
        raise HakaruError(
            f"one cluster is simulated at a time, and {session.lake.workspace} holds {held}: "
            "choose with --cluster NAME"
        )
    return replace(selection, clusters=tuple(names))


def workload_of(
    session: Session,
    selection: Selection,
    site: Site,
    columns: Sequence[str] | None = None,
    no_request: str | None = None,
    idle_rules: Sequence[IdleRule] = (),
    least_run_s: int | None = None,
) -> Workload:
    """The chosen jobs of one cluster, with more columns than are simulated where they are asked for."""
    from hakaru.sim.idle import with_idleness
    from hakaru.sim.site import jobs_of
    from hakaru.sim.workload import LEAST_RUN_S

    jobs = jobs_of(session, selection, columns)
    jobs = with_idleness(session, site.name, jobs, idle_rules)
    return site.workload(
        jobs, cast(Any, no_request), LEAST_RUN_S if least_run_s is None else least_run_s
    )


def site_of(session: Session, data: Data, cluster: str) -> tuple[Site, Header | None]:
    """The cluster, and the header of its log where that was given with --from and is an SWF."""
    from hakaru.sim.site import Site

    header = swf_header(session.lake, data, cluster)
    return Site.of(session, cluster, header.max_procs if header else None), header


def machine_of(site: Site, asked: MachineOptions, workload: Workload) -> Taken:
    """As asked; else as the lake, the settings or the log's header describe it."""
    from hakaru.sim.machine import UnknownSize
    from hakaru.sim.notation import parse_nodes
    from hakaru.sim.site import MachineSpec

    if asked.locality in ("preferred", "required") and asked.switch_size is None:
        raise HakaruError(
            f"--locality {asked.locality} needs to know the switches: say --switch-size N, the number of "
            "nodes under each"
        )
    if asked.processors is not None:
        _refuse_with_a_pool(asked)
    same = ("processors", "packing", "whole_nodes", "locality", "switch_size")
    said = MachineSpec(
        **{name: getattr(asked, name) for name in same},
        groups=tuple(parse_nodes(text) for text in asked.nodes),
        on_nodes=bool(asked.fail or asked.drain),
    )
    try:
        taken = site.machine(said, workload)
    except UnknownSize as error:
        raise error.with_way(BY_OPTIONS) from None
    if asked.nodes:
        check_models(taken.machine, workload)
    outages = _outages(asked, site.cluster.zone, taken.machine.names)
    return replace(taken, machine=taken.machine.with_outages(outages)) if outages else taken


def check_models(machine: Machine, workload: Workload) -> None:
    """A model that no job asks for is a slip of the pen: only jobs that ask for none would run there."""
    from hakaru.registry import hint

    asked = workload.names["gpu_model"]
    for model in (group.model for group in machine.groups if group.model):
        if model not in asked:
            raise HakaruError(
                f"--nodes COUNTxSIZE:{model}: no job asks for the model {model!r}; {hint(model, asked)}"
            )


def swf_header(lake: Lake, data: Data, cluster: str) -> Header | None:
    """The header of the log that was given with --from, where it is an SWF."""
    from hakaru.sources._base import head
    from hakaru.sources.swf import parse_header

    if not data.logs or _sources(lake, cluster) != {"swf"}:
        return None
    path: Path = group_logs(data.logs)[cluster][0]
    return parse_header(head(_unpiped(path, lake.workspace.parent)))


def _outages(asked: MachineOptions, zone: str, names: Sequence[str]) -> list[Outage]:
    from hakaru.sim.notation import parse_outage

    failed = [each for text in asked.fail for each in parse_outage(text, "down", zone, names)]
    drained = [each for text in asked.drain for each in parse_outage(text, "drain", zone, names)]
    return [*failed, *drained]


def _sources(lake: Lake, cluster: str) -> set[str]:
    return {row["source"] for row in lake.ingests() if row["cluster"] == cluster}


def _node_options(asked: MachineOptions) -> list[str]:
    others = ("nodes", "packing", "whole_nodes", "locality", "switch_size", "fail", "drain")
    return [name for name in others if getattr(asked, name) not in (None, ())]


def _refuse_with_a_pool(asked: MachineOptions) -> None:
    wrong = _node_options(asked)
    if "nodes" in wrong:
        raise HakaruError(
            f"--nodes {' '.join(asked.nodes)} and --processors {asked.processors} each say what the machine "
            "is, nodes or one pool: keep one of them"
        )
    if wrong:
        raise HakaruError(
            f"--{wrong[0].replace('_', '-')} is for a machine of nodes, and --processors is one pool: "
            "say --nodes COUNTxSIZE instead"
        )
