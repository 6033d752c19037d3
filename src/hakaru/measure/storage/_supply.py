"""Whether storage keeps up with training: said only of bytes that came from storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakaru.measure.numbers import share
from hakaru.measure.storage._counters import OF_STORAGE

MOST_STALL = 0.05  # of the time, in which training may wait for data


@dataclass(frozen=True)
class Supply:
    """One size: the share of the time that training waits, and where the bytes of its epochs came from."""

    mib: float
    stall: float
    labels: frozenset[str]

    @property
    def is_of_storage(self) -> bool:
        return self.labels <= set(OF_STORAGE)


def waits_above(sizes: Sequence[Supply], memory_mib: float) -> bool:
    """Whether training waits for data of some size above memory."""
    return any(each.stall > MOST_STALL for each in sizes if each.mib > memory_mib)


def supply_words(sizes: Sequence[Supply], memory_mib: float) -> str:
    """How the sizes above memory are supplied, or all of them; empty where nothing is known."""
    above = [each for each in sizes if each.mib > memory_mib]
    least = min(each.stall for each in sizes)
    if least > MOST_STALL:
        return f"Training waits for data {_range(sizes)} of the time at every size{_why_always(sizes)}."
    if not above:
        return ""
    is_storage = all(each.is_of_storage for each in above)
    if max(each.stall for each in above) > MOST_STALL:
        blamed = ": storage is too slow there" if is_storage else ""
        return f"Above memory training waits for data {_range(above)} of the time{blamed}."
    if not is_storage:
        return ""
    return f"Storage keeps up with training, which waits {_range(above)} of the time above memory."


def _why_always(sizes: Sequence[Supply]) -> str:
    if all(each.is_of_storage for each in sizes):
        return ": storage is too slow at any size, or read by too few workers"
    if any(each.labels == {"cached"} for each in sizes):
        return ", also for what is cached: the loader is too slow; give it more workers"
    return ""


def _range(sizes: Sequence[Supply]) -> str:
    low, high = (share(pick(each.stall for each in sizes)) for pick in (min, max))
    return low if low == high else f"{low} to {high}"
