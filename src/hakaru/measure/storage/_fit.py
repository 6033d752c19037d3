"""Training time against data size: the slopes below and above memory, and the knee if there is one.

TSUBAME's Fig. 1 compares the growth below memory with the growth above it. A knee is a bend of the line that
chance makes in less than 1 % of such measurements and that adds a tenth to the longest epoch. Above memory,
no knee is only told of epochs whose bytes came from storage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, Literal

import numpy as np

from hakaru.measure.numbers import amount, share
from hakaru.measure.storage._bend import (
    Bend,
    Slope,
    Table,
    find_bend,
    slope_above,
    slope_before,
    slope_through,
)
from hakaru.measure.storage._counters import OF_STORAGE

State = Literal["knee", "none", "unsure", "below", "few"]

MOST_CHANCE = 0.01  # of a straight line that looks bent
LEAST_EXCESS = 0.10  # of the longest epoch, before a bend is worth a word
MOST_EXCESS = 0.25  # that may hide in the noise where we say that there is no knee
LEAST_SIZES = 3


@dataclass(frozen=True)
class SizeFit:
    """What the sizes say. `between` are the two sizes that the knee lies between."""

    state: State
    below: Slope | None
    above: Slope | None
    knee_mib: float | None
    between: tuple[float, float] | None
    chance: float | None  # of such a bend on a straight line
    excess: float | None  # of the longest epoch over the straight line, as a share
    sentence: str

    def to_json(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "slope_below_s_per_gib": self.below.s_per_gib if self.below else None,
            "slope_below": self.below.to_json() if self.below else None,
            "slope_above_s_per_gib": self.above.s_per_gib if self.above else None,
            "slope_above": self.above.to_json() if self.above else None,
            "knee_mib": self.knee_mib,
            "between_mib": list(self.between) if self.between else None,
            "chance": self.chance,
            "sentence": self.sentence,
        }


def fit_sizes(
    epochs: Mapping[float, Sequence[float]],
    memory_mib: float | None,
    labels: Mapping[float, Sequence[str]] | None = None,
) -> SizeFit:
    """Seconds of the steady epochs by data size in MiB; `memory_mib` is None where it is unknown.

    `labels` say where the bytes of each epoch came from; without them they count as storage's.
    """
    known = {size: times for size, times in sorted(epochs.items()) if len(times)}
    table = Table.of(known)
    split = table.sizes[-1] if memory_mib is None else memory_mib
    found = _fitted(table, split, memory_mib)
    seen = {label for size in known if size > split for label in (labels or {}).get(size, ())}
    is_memory_s = found.state == "knee" and seen == {"cached"}
    if is_memory_s or (found.state == "none" and not seen <= set(OF_STORAGE)):
        return replace(
            found, state="unsure", knee_mib=None, between=None, sentence=_not_storage(found, seen)
        )
    return found


def without_waiting(fit: SizeFit) -> SizeFit:
    """A bend where training does not wait for data is none of storage: reading takes processor time too."""
    if fit.state != "knee" or fit.below is None or fit.above is None:
        return fit
    rates = f"{amount(fit.above.s_per_gib)} s a GiB above memory and {amount(fit.below.s_per_gib)} below it"
    words = (
        f"No knee of storage: an epoch takes {rates}, but training does not wait for data. Reading takes "
        "processor time from it."
    )
    return replace(fit, state="none", knee_mib=None, between=None, sentence=words)


def _fitted(table: Table, split: float, memory_mib: float | None) -> SizeFit:
    straight, above = slope_through(table, table.x <= split), slope_above(table, split)
    if table.sizes[-1] <= split:
        words = f"{_told_of_all(table, straight)} All sizes fit into memory: nothing is known of larger ones."
        return _without_bend("below", straight, None, words)
    if len(table.sizes) < LEAST_SIZES:
        through = slope_through(table, table.x > 0)
        words = f"{_told_of_all(table, through)} Too few sizes to look for a knee: three or more are needed."
        return _without_bend("few", straight, None, words)
    bend = find_bend(table)
    if bend is None:
        words = (
            "Too few epochs to tell whether there is a knee: measure more, with a larger --budget."
        )
        return _without_bend("unsure", straight, above, words)
    if slope_before(table, bend) <= 0:
        words = "Smaller data sets took as long as larger ones: choose larger sizes, whose epochs are longer."
        return _without_bend("unsure", straight, above, words)
    if bend.chance < MOST_CHANCE and bend.excess >= LEAST_EXCESS:
        return _with_knee(table, bend, memory_mib)
    state: State = "none" if bend.most_excess <= MOST_EXCESS else "unsure"
    words = _straight_words(state, straight, above, split, bend)
    return SizeFit(state, straight, above, None, None, bend.chance, bend.excess, words)


def _without_bend(state: State, below: Slope | None, above: Slope | None, words: str) -> SizeFit:
    return SizeFit(state, below, above, None, None, None, None, words)


def _with_knee(table: Table, bend: Bend, memory_mib: float | None) -> SizeFit:
    last = max(size for size in table.sizes if size <= bend.place)
    following = min(size for size in table.sizes if size > bend.place)
    # a jump between two sizes shows as a bend at the lower one; where between them it is, nobody knows
    is_jump = bend.place == last
    knee = round(sqrt(last * following) if is_jump else bend.place, 1)
    below, above = slope_through(table, table.x <= last), slope_above(table, last)
    words = (
        f"An epoch takes {_words(above)} above a knee between {last:,.0f} and {following:,.0f} MiB"
        f", and {_words(below)} below it"
    )
    if memory_mib is not None:
        words += f"; memory holds {memory_mib:,.0f} MiB of files"
    return SizeFit(
        "knee", below, above, knee, (last, following), bend.chance, bend.excess, f"{words}."
    )


def _words(slope: Slope | None) -> str:
    if slope is None:
        return "an unknown time"
    if not np.isfinite(slope.high):
        return f"{amount(slope.s_per_gib)} s a GiB"
    return f"{amount(slope.s_per_gib)} s a GiB ({amount(slope.low)} to {amount(slope.high)})"


def _straight_words(
    state: State, below: Slope | None, above: Slope | None, split: float, bend: Bend
) -> str:
    told = f"{_words(below)} below memory ({split:,.0f} MiB) and {_words(above)} above it"
    if state == "none":
        return f"No knee: an epoch takes {told}."
    return (
        f"No sure knee: an epoch takes {told}. Epochs above memory may take up to "
        f"{share(max(bend.most_excess, 0))} longer without showing in this noise: measure more epochs, with "
        "a larger --budget."
    )


def _told_of_all(table: Table, slope: Slope | None) -> str:
    largest = table.sizes[-1]
    if slope is None:
        usual = float(np.median(table.y[table.x == largest]))
        return f"An epoch of {largest:,.0f} MiB takes {amount(usual, 's')}."
    return f"An epoch takes {_words(slope)} up to {largest:,.0f} MiB."


def _not_storage(found: SizeFit, labels: set[str]) -> str:
    """Why epochs of sizes above memory tell nothing of storage."""
    told = {"unknown": "unknown where from"}
    named = ", ".join(sorted(told.get(each, each) for each in labels - set(OF_STORAGE)))
    bend = "There is a bend" if found.state == "knee" else "There is no bend"
    return (
        f"{bend}, but the bytes above memory are not known to come from storage ({named}): this says nothing "
        "of a knee. Choose larger sizes, or a smaller memory."
    )
