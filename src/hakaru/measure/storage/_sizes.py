"""Which data sets are swept, and how many epochs fit the time: fewer epochs first, then fewer sizes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hakaru.errors import HakaruError

MOST_EPOCHS, LEAST_EPOCHS = 8, 2  # steady ones of each size
LEAST_MIB = 1
START_S = 0.5  # of a size: its files and workers
UNITS = {"MiB": 1, "GiB": 1024}


def parse_sizes(text: str, memory_mib: int) -> list[int]:
    """`1/4+1/2+1+2` of the memory, or `64MiB+1GiB`; in MiB, in order."""
    found = {_parse(word.strip(), memory_mib) for word in text.split("+")}
    return sorted(found)


def has_shares(text: str) -> bool:
    """Whether some of the sizes are shares of the memory."""
    return any(not word.strip().endswith(tuple(UNITS)) for word in text.split("+"))


def _parse(word: str, memory_mib: int) -> int:
    if match := re.fullmatch(r"(\d{1,9})\s*(MiB|GiB)", word):
        mib = int(match[1]) * UNITS[match[2]]
    elif match := re.fullmatch(r"(\d{1,4})(?:/([1-9]\d{0,3}))?", word):
        mib = round(memory_mib * Fraction(int(match[1]), int(match[2] or 1)))
    else:
        raise HakaruError(
            f"sizes: {word[:40]!r} is no size; expected shares of the memory such as 1/4+1/2+1+2, or sizes "
            "such as 64MiB+1GiB"
        )
    if mib < LEAST_MIB:
        raise HakaruError(f"sizes: {word!r} is {mib} MiB; expected {LEAST_MIB} MiB or more")
    return mib


@dataclass(frozen=True)
class Speed:
    """What an epoch is expected to take."""

    compute_s_per_mib: float
    cold_s_per_mib: float  # of the loader alone, from the device
    memory_mib: float
    write_s_per_mib: float = 0.0

    def cold_s(self, mib: float) -> float:
        return mib * max(self.compute_s_per_mib, self.cold_s_per_mib)

    def steady_s(self, mib: float) -> float:
        return mib * self.compute_s_per_mib if mib <= self.memory_mib else self.cold_s(mib)


@dataclass(frozen=True)
class Schedule:
    """The sizes that fit the time, the steady epochs of each, and the sizes left out."""

    sizes: tuple[int, ...]
    num_epochs: int
    left_out: tuple[int, ...] = ()

    @property
    def note(self) -> str:
        if not self.left_out:
            return ""
        listed = ", ".join(f"{mib:,}" for mib in self.left_out)
        return f"{listed} MiB did not fit the time: measure them with a larger --budget."


def schedule(
    sizes: Sequence[int], speed: Speed, budget_s: float, made: Collection[int] = ()
) -> Schedule:
    """As much as the time allows; the smallest size alone is always measured. `made` need not be written."""
    kept, left_out = list(sizes), list[int]()
    while True:
        for num in range(MOST_EPOCHS, LEAST_EPOCHS - 1, -1):
            if _cost_s(kept, num, speed, made) <= budget_s:
                return Schedule(tuple(kept), num, tuple(sorted(left_out)))
        if len(kept) == 1:
            return Schedule(tuple(kept), LEAST_EPOCHS, tuple(sorted(left_out)))
        left_out.append(_least_needed(kept, speed.memory_mib))
        kept.remove(left_out[-1])


def _cost_s(sizes: Sequence[int], num: int, speed: Speed, made: Collection[int]) -> float:
    """Of all epochs, of the loader alone on the largest, and of writing what is not there."""
    each = sum(START_S + speed.cold_s(mib) + num * speed.steady_s(mib) for mib in sizes)
    written = sum(mib for mib in sizes if mib not in made)
    return each + speed.cold_s(max(sizes)) + speed.write_s_per_mib * written


def _least_needed(sizes: Sequence[int], memory_mib: float) -> int:
    """A line below memory and one size above tell most: what is between them goes first, then the largest."""
    if len(sizes) > 3:
        return min(sizes[2:-1], key=lambda mib: abs(mib - memory_mib))
    return max(sizes)
