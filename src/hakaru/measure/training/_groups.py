"""The process groups of a strategy among some ranks of the world."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from hakaru.measure.training._strategy import DATA, Strategy


@dataclass(frozen=True)
class Layout:
    """This rank's place in the grid of a strategy's parts, the outermost part first."""

    sizes: dict[str, int]
    place: dict[str, int]  # this rank's index in each part; empty outside
    groups: dict[str, Any]  # of each part with more than one rank
    lines: dict[str, list[int]]  # the ranks of each of these groups, in the order of their places
    everyone: Any
    control: Any  # the same ranks over gloo, for what must not wait in a card's queue

    @property
    def idle(self) -> bool:
        return not self.place

    @property
    def data_ranks(self) -> int:
        return math.prod(size for name, size in self.sizes.items() if name in DATA)

    @property
    def data_index(self) -> int:
        """Which share of the batch this rank has."""
        index = 0
        for name, size in self.sizes.items():
            if name in DATA:
                index = index * size + self.place[name]
        return index

    def close(self) -> None:
        own = {
            id(each): each for each in (*self.groups.values(), self.everyone, self.control) if each
        }
        for group in own.values():
            dist.destroy_process_group(group)


def lay_out(strategy: Strategy, ranks: Sequence[int], me: int, device: str) -> Layout:
    """Make the groups, which all ranks of the world must do in the same order."""
    sizes = strategy.sizes(len(ranks))
    grid = torch.tensor(list(ranks)).reshape(tuple(sizes.values()))
    place: dict[str, int] = {}
    if me in ranks:
        where = (grid == me).nonzero()[0].tolist()
        place = dict(zip(sizes, where, strict=True))
    if len(ranks) == 1:
        return Layout(sizes, place, {}, {}, None, None)
    backend = "nccl" if device.startswith("cuda") else "gloo"
    everyone = _group(list(ranks), me, backend)
    control = everyone if backend == "gloo" else _group(list(ranks), me, "gloo")
    groups: dict[str, Any] = {}
    own: dict[str, list[int]] = {}
    for at, (name, size) in enumerate(sizes.items()):
        lines = grid.movedim(at, -1).reshape(-1, size).tolist() if size > 1 else []
        for line in lines:
            group = everyone if size == len(ranks) else _group(line, me, backend)
            if me in line:
                groups[name], own[name] = group, line
    return Layout(sizes, place, groups, own, everyone, control)


def _group(ranks: list[int], me: int, backend: str) -> Any:
    """The group if this rank is in it."""
    made = dist.new_group(ranks, backend=backend)
    return made if me in ranks else None


def sum_over(control: Any, value: float) -> float:
    """The sum of one number over the ranks of a group; of this rank alone without one."""
    held = torch.tensor([value], dtype=torch.float64)
    if control:
        dist.all_reduce(held, group=control)
    return float(held.item())
