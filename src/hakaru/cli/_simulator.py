"""What the verbs that simulate share: the workload, the machine, and word of the first compilation."""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hakaru.cli._options import Data, _unpiped, group_logs
from hakaru.errors import HakaruError, MissingExtraError

if TYPE_CHECKING:
    from hakaru.analyses import Selection, Session
    from hakaru.lake import Lake
    from hakaru.settings import Cluster
    from hakaru.sim import Machine, Outage, Policy, Workload
    from hakaru.sources.swf import Header

F = TypeVar("F", bound=Callable[..., Any])
SLOW_S = 3.0
MAX_REASONS = 5
REASON = """regexp_replace(reason, '''[^'']*''|"[^"]*"', '…', 'g')"""  # without the values that it quotes
COMPILING = "compiling the simulator, once (about half a minute)"


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


def load_kernel(policy: Policy) -> None:
    """Import what plays the policy, which is compiled the first time; say so if it takes long."""
    names = ["_queueing", *(["_conservative"] if policy.backfill == "conservative" else [])]
    with saying(COMPILING):
        for name in names:
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
    columns: Sequence[str] | None = None,
    no_request: str | None = None,
) -> Workload:
    """The chosen jobs of one cluster, with more columns than are simulated where they are asked for.

    Of a log in the Standard Workload Format, jobs without a request know their run time: there is often
    one queue for all, and the longest request in it says little.
    """
    from hakaru.sim import COLUMNS, ORDER, Workload

    listed = ", ".join(f'"{name}"' if name == "user" else name for name in columns or COLUMNS)
    table = session.ask(f"SELECT {listed} FROM jobs ORDER BY {ORDER}", selection)
    (cluster,) = selection.clusters
    queues = session.settings.cluster(cluster).queues
    walltimes = {
        name: each.max_walltime_h * 3600 for name, each in queues.items() if each.max_walltime_h
    }
    known = "run" if _sources(session.lake, cluster) == {"swf"} else "queue-limit"
    workload = Workload.of(table, no_request or known, walltimes)  # type: ignore[arg-type]
    rejected = _rejected(session.lake, cluster)
    workload = replace(workload, left_out=rejected | dict(workload.left_out))
    if not len(workload):
        why = "; ".join(f"{number:,}: {reason}" for reason, number in workload.left_out.items())
        raise HakaruError(
            f"no job of {selection.clusters[0]} can be simulated"
            + (f": {why}" if table.num_rows else ": none is selected")
        )
    return workload


def _rejected(lake: Lake, cluster: str) -> dict[str, int]:
    """The records of the log that could not be read, and so are no jobs at all, by reason."""
    from hakaru.engine.duckdb import connect, select_files
    from hakaru.schema import REJECTS
    from hakaru.settings import Engine

    with closing(connect(Engine())) as con:
        found = con.execute(
            f"SELECT {REASON} AS why, count(*) FROM ({select_files(REJECTS, lake.files(REJECTS))}) "
            "WHERE cluster = ? GROUP BY why ORDER BY count(*) DESC, why",
            [cluster],
        ).fetchall()
    kept, others = found[:MAX_REASONS], sum(number for _, number in found[MAX_REASONS:])
    told = {f"rejected when the log was read: {why}": number for why, number in kept}
    return told | ({"rejected when the log was read, for other reasons": others} if others else {})


def machine_of(
    session: Session, cluster: str, asked: MachineOptions, header: Header | None = None
) -> Machine:
    """As asked; else as the settings or the log's header describe it."""
    from hakaru.sim import Machine, Placement
    from hakaru.sim.notation import parse_nodes

    given = {name: getattr(asked, name) for name in ("packing", "whole_nodes", "locality")}
    placement = Placement(**{name: value for name, value in given.items() if value is not None})
    site = session.settings.cluster(cluster)
    if asked.locality in ("preferred", "required") and asked.switch_size is None:
        raise HakaruError(
            f"--locality {asked.locality} needs to know the switches: say --switch-size N, the number of "
            "nodes under each"
        )
    options = {"placement": placement, "switch_size": asked.switch_size}
    if asked.processors is not None:
        _refuse_with_a_pool(asked)
        return Machine.flat(asked.processors)
    outages = _outages(asked, site.zone)
    if asked.nodes:
        groups = tuple(parse_nodes(text) for text in asked.nodes)
        return Machine(groups, **options).with_outages(outages)  # type: ignore[arg-type]
    unit = session.unit(cluster)
    machine = (
        Machine.of_cluster(cluster, site, unit, **options) if _knows_size(site, unit) else None
    )
    pool = _pool(session.lake, cluster, machine, header)
    if pool and not _node_options(asked):
        return Machine.flat(pool)
    if machine is None:
        machine = Machine.of_cluster(cluster, site, unit, **options)  # says what is missing
    return machine.with_outages(outages)


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


def _outages(asked: MachineOptions, zone: str) -> list[Outage]:
    from hakaru.sim.notation import parse_outage

    failed = [outage for text in asked.fail for outage in parse_outage(text, "down", zone)]
    drained = [outage for text in asked.drain for outage in parse_outage(text, "drain", zone)]
    return [*failed, *drained]


def _knows_size(site: Cluster, unit: str) -> bool:
    return bool(site.nodes and (site.gpus_per_node if unit == "gpu" else site.cpus_per_node))


def _pool(lake: Lake, cluster: str, machine: Machine | None, header: Header | None) -> int | None:
    """The processors of a log in the standard format, which knows no nodes; None for other logs."""
    if _sources(lake, cluster) != {"swf"}:
        return None
    if header and header.max_procs:
        return header.max_procs
    return machine.num_pes if machine and not machine.changes else None


def _sources(lake: Lake, cluster: str) -> set[str]:
    return {row["source"] for row in lake.ingests() if row["cluster"] == cluster}


def _node_options(asked: MachineOptions) -> list[str]:
    others = ("nodes", "packing", "whole_nodes", "locality", "switch_size", "fail", "drain")
    return [name for name in others if getattr(asked, name) not in (None, ())]


def _refuse_with_a_pool(asked: MachineOptions) -> None:
    wrong = _node_options(asked)
    if wrong:
        raise HakaruError(
            f"--{wrong[0].replace('_', '-')} is for a machine of nodes, and --processors is one pool: "
            "say --nodes COUNTxSIZE instead"
        )
