"""Pairs: how fast each link between two hosts is, in a number of rounds that grows with log n.

In a round every host has one partner at most, and all pairs transfer at once, each between the first ranks of
its hosts. The first rounds walk the ring that all-reduce uses; later ones pair hosts 2, 4, 8… apart, so
that each has several partners. Ranks of one host then do the same among themselves.
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
    """Rounds between the first ranks of the hosts, then rounds inside the hosts, all hosts at once."""
    ranks: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        ranks.setdefault(host, []).append(rank)
    between = _placed([own[0] for own in ranks.values()])
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
        # a transfer must take long beside its answer, also over NVLink
        Parameter("bytes", (8 << 20,), "Bytes sent each way.", quick=(4 << 20,), on_gpu=(1 << 30,)),
    ],
    quantities=[Quantity("bandwidth", "GB/s", "higher", "Bandwidth")],
    check="Every byte that arrives is the one that was sent; the bytes change from time to time.",
    judged="Against the median of the hosts' best links; a host is blamed if all its links are slow.",
)
def pairs(context: Context, bytes: int) -> Procedure:
    """Sends one way once the other is ready, and waits for a short answer; then the other way. All pairs of a
    round at once."""
    if context.ranks.size < 2:
        raise NotApplicable("a pair needs two ranks")
    import torch.distributed as dist

    ranks: Any = context.ranks
    device = context.torch_device
    sent = torch().zeros(bytes, dtype=torch().uint8, device=device)
    got = torch().zeros(bytes, dtype=torch().uint8, device=device)
    token = torch().zeros(1, dtype=torch().uint8, device=device)
    sync = synchroniser(device)
    wrong: list[str] = []

    def send(peer: int, mark: int) -> float:
        sent.fill_(mark)
        dist.recv(token, peer)  # the peer may still be checking what it got last
        sync()
        begin = time.perf_counter()
        dist.send(sent, peer)
        dist.recv(token, peer)
        sync()
        return time.perf_counter() - begin

    def receive(peer: int, mark: int) -> None:
        dist.send(token, peer)
        dist.recv(got, peer)
        sync()
        dist.send(token, peer)
        if not bool((got == mark).all()):
            wrong.append(f"rank {ranks.rank} received wrong bytes from rank {peer}")

    def run(budget_s: float) -> Mapping[str, Mapping[str, Sequence[float]]]:
        own: dict[str, list[float]] = {}
        for listed in all_rounds(ranks.share(host_name())):
            ranks.barrier()
            for first, second in [pair for pair in listed if ranks.rank in pair]:
                _exchange(ranks.rank, first, second, send, receive, own, bytes)
        merged = {name: values for each in ranks.share(own) for name, values in each.items()}
        return {name: {"bandwidth": values} for name, values in merged.items()}

    def check() -> None:
        if wrong:
            raise WrongResult(wrong[0])

    return Procedure(run, check)


def _exchange(
    rank: int,
    first: int,
    second: int,
    send: Any,
    receive: Any,
    own: dict[str, list[float]],
    num: int,
) -> None:
    """Both directions in turn; the first transfer of each warms the connection up and does not count."""
    for source, target in ((first, second), (second, first)):
        for repetition in range(REPETITIONS + 1):
            mark = (source * 7 + repetition * 31 + 1) % 251  # other bytes each time
            if rank == target:
                receive(source, mark)
                continue
            seconds = send(target, mark)
            if repetition:
                own.setdefault(f"{source}{ARROW}{target}", []).append(num / seconds / 1e9)
