"""The machine that a log is replayed on: a flat pool, or nodes in groups as they come and go."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from hakaru.errors import HakaruError
from hakaru.settings import toml_table

if TYPE_CHECKING:
    from hakaru.settings import Capacity, Cluster

Kind = Literal["up", "drain", "down"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # each worse than the one before
MOST_NODES = 1_000_000
MOST_PES = 2**31 - 1


class UnknownSize(HakaruError):
    """Nobody says which nodes the machine has, but perhaps their total; `with_way` adds how one can where it
    was asked for."""

    def __init__(self, name: str, cluster: Cluster, unit: str, way: str = "") -> None:
        self.name, self.cluster, self.unit = name, cluster, unit
        total = cluster.gpus if unit == "gpu" else cluster.cpus
        settings = (
            f"in the workspace's hakaru.toml under {toml_table(name)}: nodes = COUNT and "
            f"{unit}s_per_node = SIZE" + (f", without {unit}s" if total else "")
        )
        how = f"{way}; or write {settings}" if way else f"Write {settings}"
        super().__init__(f"{_unknown(name, cluster, unit, total)}. {how}")

    def with_way(self, way: str) -> UnknownSize:
        return UnknownSize(self.name, self.cluster, self.unit, way)


def _unknown(name: str, cluster: Cluster, unit: str, total: Sequence[Capacity]) -> str:
    if not total:
        return f"the size of {name} is not known: neither its log nor hakaru.toml has its nodes"
    noun = "GPUs" if unit == "gpu" else "processors"
    if cluster.nodes and cluster.per_node(unit):
        return (
            f"the nodes of {name} are not all known: nodes × {unit}s_per_node is not the number of its "
            f"{noun} that its log or hakaru.toml has"
        )
    changes = ", which changes over time, and one pool cannot" if len(total) > 1 else ""
    return (
        f"the nodes of {name} are not known: its log or hakaru.toml has the number of its {noun} "
        f"only{changes}"
    )


@dataclass(frozen=True)
class Group:
    """Nodes of one kind; `model` is what a job may ask for (none: only jobs that ask for none run there,
    unless no group has a model)."""

    count: int
    size: int  # PEs in a node
    model: str | None = None


@dataclass(frozen=True)
class Change:
    """From a moment (in seconds) on, a node is up, takes no new jobs (drain), or is lost (down)."""

    time: int
    node: int
    kind: Kind


@dataclass(frozen=True)
class Outage:
    """A node is lost or drained from one moment until another; it is not there again before all of its
    outages are over, and not at all if it does not belong to the machine by then."""

    node: int
    begin: int
    end: int
    kind: Literal["drain", "down"]


@dataclass(frozen=True)
class Placement:
    """Where jobs go: the fullest node that fits or the emptiest (of equals the first), jobs of several
    nodes only to nodes wholly free, and whether such a job should or must stay under one switch: the one
    with the fewest fitting nodes that are enough; else, if it only should, those with the most first."""

    packing: Literal["best-fit", "spread"] = "best-fit"
    whole_nodes: bool = True
    locality: Literal["anywhere", "preferred", "required"] = "anywhere"


@dataclass(frozen=True)
class Machine:
    groups: tuple[Group, ...]
    is_flat: bool = False
    switch_size: int | None = None  # nodes under a switch, counted in order
    changes: tuple[Change, ...] = ()
    closed: tuple[int, ...] = ()  # nodes that are not there at the beginning
    placement: Placement = Placement()
    names: tuple[str, ...] = ()  # of the nodes, where they are known

    def __post_init__(self) -> None:
        if not self.groups or any(group.count < 1 or group.size < 1 for group in self.groups):
            raise HakaruError("a machine needs at least one node with at least one PE")
        if self.num_nodes > MOST_NODES or self.num_pes > MOST_PES:
            raise HakaruError(
                f"a machine of {self.num_nodes:,} nodes with {self.num_pes:,} GPUs or processors is more "
                f"than can be simulated: {MOST_NODES:,} nodes and {MOST_PES:,} at most"
            )
        last = self.num_nodes - 1
        named = [*(change.node for change in self.changes), *self.closed]
        wrong = [node for node in named if not 0 <= node <= last]
        if wrong:
            raise HakaruError(f"a change names node {wrong[0]}, but the nodes are 0 to {last}")
        kinds = [change.kind for change in self.changes if change.kind not in get_args(Kind)]
        if kinds:
            raise HakaruError(f"a node goes {', '.join(get_args(Kind))}, not {kinds[0]!r}")
        if self.names and len(self.names) != self.num_nodes:
            raise HakaruError(
                f"{len(self.names)} names for {self.num_nodes} nodes: give each node one"
            )
        if self.switch_size is not None and self.switch_size < 1:
            raise HakaruError(f"a switch has at least one node, not {self.switch_size}")

    @classmethod
    def flat(cls, processors: int) -> Machine:
        """One pool: a job fits wherever as many processors are free."""
        return cls((Group(1, processors),), is_flat=True)

    @classmethod
    def of_nodes(cls, count: int, size: int, **options: Any) -> Machine:
        return cls((Group(count, size),), **options)

    @classmethod
    def of_cluster(cls, name: str, cluster: Cluster, unit: str, **options: Any) -> Machine:
        """As `hakaru.toml` describes it, with the number of nodes over time."""
        size = cluster.per_node(unit)
        if not size or not cluster.is_of_equal_nodes(unit):
            raise UnknownSize(name, cluster, unit)
        periods = [
            (int(each.since.timestamp()) if each.since else 0, each.count) for each in cluster.nodes
        ]
        return cls.over_time(sorted(periods), size, **options)

    @classmethod
    def over_time(cls, periods: Sequence[tuple[int, int]], size: int, **options: Any) -> Machine:
        """So many nodes from each moment on; nodes that go are drained, the highest first."""
        if not periods:
            raise HakaruError("a machine over time needs at least one (moment, number of nodes)")
        counts = [count for _, count in periods]
        most = max(counts)
        closed = tuple(range(counts[0], most))
        changes = []
        for (_, before), (since, count) in itertools.pairwise(periods):
            kind: Kind = "up" if count > before else "drain"
            changes += [
                Change(since, node, kind) for node in range(min(before, count), max(before, count))
            ]
        return cls((Group(most, size),), changes=tuple(changes), closed=closed, **options)

    def with_outages(self, outages: Sequence[Outage]) -> Machine:
        """The machine, with changes made anew for the nodes that have outages."""
        beyond = [outage.node for outage in outages if outage.node >= self.num_nodes]
        if beyond:
            raise HakaruError(
                f"an outage names node {max(beyond)}, but the machine has {self.num_nodes:,} nodes, "
                f"counted from 0 to {self.num_nodes - 1:,}"
            )
        changes = list(self.changes)
        by_node: dict[int, list[Outage]] = {}
        for outage in outages:
            by_node.setdefault(outage.node, []).append(outage)
        for node, own in by_node.items():
            planned = sorted((c for c in changes if c.node == node), key=lambda c: c.time)
            changes = [change for change in changes if change.node != node]
            changes += _merged(planned, own, KINDS[int(node in self.closed)])
        return replace(self, changes=tuple(sorted(changes, key=lambda change: change.time)))

    def without(self, names: Collection[str]) -> Machine:
        """Without the nodes of these names, as `node_names` has them."""
        kept = [node for node, name in enumerate(self.node_names) if name not in names]
        place = {node: number for number, node in enumerate(kept)}
        groups = np.repeat(np.arange(len(self.groups)), [group.count for group in self.groups])
        counts = np.bincount(groups[kept], minlength=len(self.groups)).tolist()
        return replace(
            self,
            groups=tuple(
                replace(group, count=count)
                for group, count in zip(self.groups, counts, strict=True)
                if count
            ),
            changes=tuple(
                replace(each, node=place[each.node]) for each in self.changes if each.node in place
            ),
            closed=tuple(place[node] for node in self.closed if node in place),
            names=tuple(self.names[node] for node in kept) if self.names else (),
        )

    def seconds_up(self, begin: int, end: int) -> Any:
        """For how long of a span each node takes jobs."""
        is_up = np.ones(self.num_nodes, bool)
        is_up[list(self.closed)] = False
        # one that is up has what is left of the span, which it gives back when it goes
        seconds = np.where(is_up, end - begin, 0)
        for change in sorted(self.changes, key=lambda change: change.time):
            if is_up[change.node] != (change.kind == "up"):
                left = end - min(max(change.time, begin), end)
                seconds[change.node] += left if change.kind == "up" else -left
                is_up[change.node] = change.kind == "up"
        return seconds

    @property
    def num_nodes(self) -> int:
        return sum(group.count for group in self.groups)

    @property
    def num_pes(self) -> int:
        return sum(group.count * group.size for group in self.groups)

    @property
    def sizes(self) -> Any:
        return np.repeat(
            [group.size for group in self.groups], [group.count for group in self.groups]
        )

    @property
    def models(self) -> tuple[str | None, ...]:
        return tuple(group.model for group in self.groups for _ in range(group.count))

    @property
    def node_names(self) -> tuple[str, ...]:
        width = len(str(self.num_nodes - 1))
        return self.names or tuple(f"node-{number:0{width}}" for number in range(self.num_nodes))

    @property
    def switches(self) -> Any:
        return np.arange(self.num_nodes) // (self.switch_size or self.num_nodes)

    def codes(self, names: Mapping[str, tuple[str, ...]]) -> Any:
        """The nodes' models in the workload's codes; -2 for one that no job asks for."""
        known = {name: code for code, name in enumerate(names["gpu_model"])}
        return np.array([-2 if model is None else known.get(model, -2) for model in self.models])


def _merged(planned: Sequence[Change], outages: Sequence[Outage], at_first: Kind) -> list[Change]:
    """The changes of one node: at each moment the worst of what is planned and of what covers it."""
    (node,) = {outage.node for outage in outages}
    bounds = {moment for outage in outages for moment in (outage.begin, outage.end)}
    merged, before = [], KINDS.index(at_first)
    for moment in sorted(bounds | {change.time for change in planned}):
        plan = [at_first, *(change.kind for change in planned if change.time <= moment)][-1]
        covering = [each.kind for each in outages if each.begin <= moment < each.end]
        now = max(KINDS.index(kind) for kind in (plan, *covering))
        if now > before or now == 0 < before:
            merged.append(Change(moment, node, KINDS[now]))
        before = now if now == 0 else max(now, before)
    return merged
