"""How far the clocks of the ranks are apart, by the exchange of messages that NTP (RFC 5905) uses.

A rank's clock is read between the sending and the receiving of rank 0. The exchange with the shortest round
trip counts, and it is wrong by half of that trip at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hakaru.measure import validity
from hakaru.measure.context import torch

if TYPE_CHECKING:
    from hakaru.measure.collective._ranks import TorchRanks

NUM_EXCHANGES = 24
Clock = Callable[[], float]


class Messages(Protocol):
    """Numbers between rank 0 and another rank, in the order in which they were sent."""

    def send(self, value: float, to: int) -> None: ...

    def receive(self, source: int) -> float: ...


@dataclass(frozen=True)
class Offset:
    """A rank's clock less rank 0's, and by how much that may be wrong."""

    offset_s: float = 0.0
    uncertainty_s: float = 0.0


@dataclass(frozen=True)
class TorchMessages:
    """Over a process group of torch; gloo's, so that numbers wait in no card's queue."""

    group: Any

    def send(self, value: float, to: int) -> None:
        import torch.distributed as dist

        dist.send(torch().tensor([value], dtype=torch().float64), to, group=self.group)

    def receive(self, source: int) -> float:
        import torch.distributed as dist

        found = torch().zeros(1, dtype=torch().float64)
        dist.recv(found, source, group=self.group)
        return float(found.item())


def clock_offsets(ranks: TorchRanks) -> list[Offset]:
    """Each rank's offset, the same list on every rank; all ranks call this together."""
    machines = ranks.share(validity.machine_id())
    messages = TorchMessages(ranks.control)
    found = offsets_by(messages, ranks.rank, machines)
    every: list[list[Offset]] = ranks.share(found)
    return every[0]


def offsets_by(
    messages: Messages,
    rank: int,
    machines: Sequence[str],
    clock: Clock = time.monotonic,
    num: int = NUM_EXCHANGES,
) -> list[Offset]:
    """On rank 0 every rank's offset; the processes of a machine share its clock, so that one speaks for it.

    The other ranks answer, and know nothing afterwards.
    """
    first = {machine: machines.index(machine) for machine in machines}
    if rank:
        if first[machines[rank]] == rank:
            answer(messages, clock, num)
        return []
    known = {
        machine: ask(messages, at, clock, num) if at else Offset() for machine, at in first.items()
    }
    return [known[machine] for machine in machines]


def ask(
    messages: Messages, other: int, clock: Clock = time.monotonic, num: int = NUM_EXCHANGES
) -> Offset:
    """Rank 0's part of the exchanges with another rank."""
    trips = []
    for _ in range(num):
        sent = clock()
        messages.send(sent, other)
        theirs = messages.receive(other)
        received = clock()
        trips.append(Offset(theirs - (sent + received) / 2, (received - sent) / 2))
    return min(trips, key=lambda each: each.uncertainty_s)


def answer(messages: Messages, clock: Clock = time.monotonic, num: int = NUM_EXCHANGES) -> None:
    """The other rank's part: its clock as soon as it is asked."""
    for _ in range(num):
        messages.receive(0)
        messages.send(clock(), 0)
