"""Pairs: how fast each link between two hosts is, in a number of rounds that grows with log n.

In a round every host has one partner at most, and all pairs transfer at once. The first rounds walk the ring
that all-reduce uses; later ones pair hosts 2, 4, 8… apart, so that each has several partners. Each rank of a
host may have an adapter of its own: the first ranks of all hosts do this, then the second ones, and so on, so
that a shared adapter never carries two transfers. Ranks of one host then do the same among themselves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from hakaru.measure._base import (
    NotApplicable,
    Parameter,
    Procedure,
    Quantity,
    WrongResult,
    benchmark,
)
from hakaru.measure.context import Context, torch
from hakaru.measure.device.gemm import synchroniser
from hakaru.measure.place import host_name

Pair = tuple[int, int]
ARROW = ">"
NUMBER = "#"  # before the rank
REPETITIONS = 5
TURN_S, MOST_TURN_S = (
    2.0,
    10.0,
)  # for one direction; other pairs wait in a barrier, and not for ever


def rounds(size: int) -> list[list[Pair]]:
    """Pairs of ranks, a list a round; no rank is twice in one round."""
    if size < 2:
        return []
    ring = [(at, (at + 1) % size) for at in range(size)] if size > 2 else [(0, 1)]
    wanted = [tuple(sorted(pair)) for pair in ring]
    distance = 2
    while distance < size:
        wanted += [tuple(sorted((at, (at + distance) % size))) for at in range(size)
                   if (at // distance) % 2 == 0]  # fmt: skip
        distance *= 2
    return _packed([(low, high) for low, high in dict.fromkeys(wanted)])


def _packed(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Each pair in the first round where both of its ranks are free."""
    found: list[list[Pair]] = []
    busy: list[set[int]] = []
    for pair in pairs:
        at = next((at for at, ranks in enumerate(busy) if not ranks & set(pair)), len(found))
        if at == len(found):
            found.append([])
            busy.append(set())
        found[at].append(pair)
        busy[at] |= set(pair)
    return found


def all_rounds(hosts: Sequence[str]) -> list[list[Pair]]:
    """Rounds between the hosts, for each local rank in turn; then rounds inside all hosts at once."""
    ranks: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        ranks.setdefault(host, []).append(rank)
    between = [
        listed
        for at in range(max(map(len, ranks.values()), default=0))
        for listed in _placed([own[at] for own in ranks.values() if at < len(own)])
    ]
    inside = [_placed(own) for own in ranks.values()]
    most = max((len(listed) for listed in inside), default=0)
    joined = [
        [pair for own in inside for pair in (own[at] if at < len(own) else [])]
        for at in range(most)
    ]
    return [*between, *joined]


def _placed(ranks: Sequence[int]) -> list[list[Pair]]:
    return [[(ranks[a], ranks[b]) for a, b in listed] for listed in rounds(len(ranks))]


@benchmark(
    "pairs",
    title="Links between pairs",
    answers="Which host or link is slow, and what bounds the ring?",
    family="collective",
    scope="ranks",
    reproduces="MN-1 §4.2 (the explicit ring)",
    parameters=[
        Parameter(
            "bytes",
            (8 << 20,),
            "Bytes sent each way.",
            quick=(4 << 20,),
            # long beside its answer over NVLink, and short enough where a host fell back to 1 Gbit/s
            on_gpu=(256 << 20,),
            quick_on_gpu=(64 << 20,),
        ),
    ],
    quantities=[Quantity("bandwidth", "GB/s", "higher", "Bandwidth")],
    check="Every byte that arrives is the one that was sent; the bytes change from time to time.",
    judged="Against the median of the hosts' best links; a rank or host is blamed if all its links are slow.",
)
def pairs(context: Context, bytes: int) -> Procedure:
    """Sends one way once the other is ready, and waits for a short answer; then the other way. All pairs of a
    round at once."""
    if context.ranks.size < 2:
        raise NotApplicable("a pair needs two ranks")
    import torch.distributed as dist

    ranks: Any = context.ranks
    wire = _Wire(dist, ranks.rank, context.torch_device, bytes)

    def run(budget_s: float) -> Mapping[str, Mapping[str, Sequence[float]]]:
        own: dict[str, list[float]] = {}
        planned = all_rounds(ranks.share(host_name()))
        turn_s = min(MOST_TURN_S, max(TURN_S, budget_s / (2 * len(planned))))
        for listed in planned:
            ranks.barrier()
            for pair in [pair for pair in listed if ranks.rank in pair]:
                own |= _exchange(ranks.rank, pair, wire, turn_s)
        merged = {name: values for each in ranks.share(own) for name, values in each.items()}
        return {
            name: {"bandwidth": [bytes / seconds / 1e9 for seconds in values]}
            for name, values in merged.items()
        }

    def check() -> None:
        if wire.wrong:
            raise WrongResult(wire.wrong[0])

    return Procedure(run, check)


class _Wire:
    """What two ranks exchange: data that is timed and checked, its short answers, and a number."""

    def __init__(self, dist: Any, rank: int, device: str, num: int) -> None:
        def buffer(size: int) -> Any:
            return torch().zeros(size, dtype=torch().uint8, device=device)

        self.dist, self.rank, self.sync = dist, rank, synchroniser(device)
        self.sent, self.got, self.token = buffer(num), buffer(num), buffer(1)
        self.wrong: list[str] = []

    def send(self, peer: int, mark: int) -> float:
        self.sent.fill_(mark)
        self.dist.recv(self.token, peer)  # the peer may still be checking what it got last
        self.sync()
        begin = time.perf_counter()
        self.dist.send(self.sent, peer)
        self.dist.recv(self.token, peer)
        self.sync()
        return time.perf_counter() - begin

    def receive(self, peer: int, mark: int) -> None:
        self.dist.send(self.token, peer)
        self.dist.recv(self.got, peer)
        self.sync()
        self.dist.send(self.token, peer)
        if not bool((self.got == mark).all()):
            self.wrong.append(f"rank {self.rank} received wrong bytes from rank {peer}")

    def send_number(self, peer: int, number: int) -> None:
        self.dist.send(self.token.fill_(number), peer)

    def receive_number(self, peer: int) -> int:
        self.dist.recv(self.token, peer)
        return int(self.token)


def _exchange(rank: int, pair: Pair, wire: Any, turn_s: float) -> dict[str, list[float]]:
    """Seconds of what this rank sent, by the link; both directions in turn.

    The first transfer warms the connection up, and the sender lets the other know how many more its turn has
    time for. The first counts only where it alone took the turn, when warming up is a small part of it.
    """
    taken = {}
    for source, target in (pair, pair[::-1]):
        if rank == target:
            wire.receive(source, _mark(source, 0))
            for repetition in range(wire.receive_number(source)):
                wire.receive(source, _mark(source, repetition + 1))
            continue
        first = wire.send(target, _mark(source, 0))
        num = min(REPETITIONS, int(turn_s / first))
        wire.send_number(target, num)
        more = [wire.send(target, _mark(source, at + 1)) for at in range(num)]
        taken[f"{source}{ARROW}{target}"] = more or [first]
    return taken


def _mark(source: int, repetition: int) -> int:
    """Other bytes each time."""
    return (source * 7 + repetition * 31 + 1) % 251
