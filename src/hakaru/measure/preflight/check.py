"""Checks: each is declared once with why it matters, and returns a finding with its fix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hakaru.errors import HakaruError, list_problems
from hakaru.measure.preflight.facts import Node
from hakaru.registry import Registry

Status = Literal["pass", "warn", "fail", "not measured", "n/a"]
STATUSES: tuple[Status, ...] = ("pass", "warn", "fail", "not measured", "n/a")
GIB = 1 << 30
LOOK = "python -m hakaru.measure.preflight  # run it on that node: it prints one line of JSON"
ONE_NODE = "the run uses one node only"


@dataclass(frozen=True)
class Ask:
    """The run that is about to start."""

    num_ranks: int
    ranks_per_node: int
    port: int | None = None  # of the master; without it MASTER_PORT, else torch's 29500
    gpus_per_node: int | None = None  # 0: the run uses none; None: all that a node has
    memory_per_rank_bytes: int = 2 * GIB  # Python, torch and a CUDA context
    all_to_all: bool = False  # every rank sends to every other: too few files or ports then fail
    node_names: tuple[str, ...] = ()  # nodes that must answer; empty: those that did

    def __post_init__(self) -> None:
        problems = [
            f"{name} must be at least 1, found {value}"
            for name, value in (
                ("num_ranks", self.num_ranks),
                ("ranks_per_node", self.ranks_per_node),
                ("memory_per_rank_bytes", self.memory_per_rank_bytes),
            )
            if value < 1
        ]
        if self.port is not None and not 1 <= self.port <= 65535:
            problems.append(f"port must be 1 to 65535, found {self.port}")
        if problems:
            raise HakaruError(list_problems("preflight", problems))

    @property
    def num_nodes(self) -> int:
        return -(-self.num_ranks // self.ranks_per_node)

    @property
    def local_ranks(self) -> int:
        """Ranks on one node: never more than the run has in all."""
        return min(self.num_ranks, self.ranks_per_node)

    @property
    def alone(self) -> bool:
        """Whether the run uses one node, so that nothing has to match between nodes."""
        return self.num_nodes == 1 and len(self.node_names) <= 1


@dataclass(frozen=True)
class Finding:
    """What a check found; `fix` is a command or the line of a file."""

    status: Status
    found: str
    wanted: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Check:
    """`scope`: one node at a time, or all of them together."""

    id: str
    title: str
    why: str
    scope: Literal["node", "all"]
    essential: bool  # if it is not measured, neither is the verdict
    run: Callable[[Any, Ask], Finding]
    by_hand: str = LOOK  # how to look where it cannot be read


CHECKS: Registry[Check] = Registry("preflight check")

Judged = Callable[[str, str, str], Finding]  # found, wanted, fix: `warned` or `failed`
NodeCheck = Callable[[Node, Ask], Finding]
FleetCheck = Callable[[Sequence[Node], Ask], Finding]


def node_check(
    id: str, *, title: str, why: str, essential: bool = True, by_hand: str = LOOK
) -> Callable[[NodeCheck], NodeCheck]:
    """Declare a check of one node's facts; a missing fact that it reads makes it not measured or n/a."""

    def declare(run: NodeCheck) -> NodeCheck:
        CHECKS.add(Check(id, title, why, "node", essential, run, by_hand))
        return run

    return declare


def fleet_check(
    id: str, *, title: str, why: str, essential: bool = True, by_hand: str = LOOK
) -> Callable[[FleetCheck], FleetCheck]:
    """Declare a check of the facts of all nodes that answered."""

    def declare(run: FleetCheck) -> FleetCheck:
        CHECKS.add(Check(id, title, why, "all", essential, run, by_hand))
        return run

    return declare


def passed(found: str, wanted: str = "") -> Finding:
    return Finding("pass", found, wanted)


def warned(found: str, wanted: str, fix: str) -> Finding:
    return Finding("warn", found, wanted, fix)


def failed(found: str, wanted: str, fix: str) -> Finding:
    return Finding("fail", found, wanted, fix)


def count(value: float) -> str:
    """`1,024`, or `unlimited`."""
    return "unlimited" if value == float("inf") else f"{value:,.0f}"


def size(num_bytes: float) -> str:
    """`8.0 MiB`, in the largest unit in which it is at least 1."""
    if num_bytes == float("inf"):
        return "unlimited"
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if abs(num_bytes) >= 1 << power:
            return f"{num_bytes / (1 << power):,.1f} {unit}"
    return f"{num_bytes:,.0f} B"


def power_of_two(least: float) -> int:
    """The next power of two."""
    return 1 << max(0, int(least) - 1).bit_length()
