"""The machine that a log is replayed on: a flat pool, or nodes in groups as they come and go."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from hakaru.errors import HakaruError

if TYPE_CHECKING:
    from hakaru.settings import Cluster

Kind = Literal["up", "drain", "down"]


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

    def __post_init__(self) -> None:
        if not self.groups or any(group.count < 1 or group.size < 1 for group in self.groups):
            raise HakaruError("a machine needs at least one node with at least one PE")
        last = self.num_nodes - 1
        named = [*(change.node for change in self.changes), *self.closed]
        wrong = [node for node in named if not 0 <= node <= last]
        if wrong:
            raise HakaruError(f"a change names node {wrong[0]}, but the nodes are 0 to {last}")
        kinds = [change.kind for change in self.changes if change.kind not in get_args(Kind)]
        if kinds:
            raise HakaruError(f"a node goes {', '.join(get_args(Kind))}, not {kinds[0]!r}")
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
        size = cluster.gpus_per_node if unit == "gpu" else cluster.cpus_per_node
        if not cluster.nodes or not size:
            raise HakaruError(
                f"the size of {name} is not known: set clusters.{name}.nodes and "
                f"clusters.{name}.{unit}s_per_node in hakaru.toml, or say --nodes COUNTxSIZE "
                "or --processors N"
            )
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
    def switches(self) -> Any:
        return np.arange(self.num_nodes) // (self.switch_size or self.num_nodes)

    def codes(self, names: Mapping[str, tuple[str, ...]]) -> Any:
        """The nodes' models in the workload's codes; -2 for one that no job asks for."""
        known = {name: code for code, name in enumerate(names["gpu_model"])}
        return np.array([-2 if model is None else known.get(model, -2) for model in self.models])
