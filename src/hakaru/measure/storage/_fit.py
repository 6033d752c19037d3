"""Training time against data size: the slopes below and above memory, and the knee if there is one.

TSUBAME's Fig. 1 compares the growth below memory with the growth above it. A knee is a bend of the line that
chance makes in less than 1 % of such measurements and that adds a tenth to the longest epoch. The chance is
found by simulation of straight lines with the same sizes, because the place of the bend is searched too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hakaru.measure.statistics import student_quantile

Floats = NDArray[np.float64]
State = Literal["knee", "none", "unsure", "below"]

MIB_PER_GIB = 1024.0
MOST_CHANCE = 0.01  # of a straight line that looks bent
LEAST_EXCESS = 0.10  # of the longest epoch, before a bend is worth a word
MOST_EXCESS = 0.25  # that may hide in the noise where we say that there is no knee
NUM_SIMULATED = 4_000
NUM_PLACES = 33  # between two sizes where a bend is looked for


@dataclass(frozen=True)
class Slope:
    """Seconds of an epoch for each GiB more, with a 95 % interval."""

    s_per_gib: float
    low: float
    high: float

    def to_json(self) -> dict[str, float]:
        return {name: round(getattr(self, name), 6) for name in ("s_per_gib", "low", "high")}


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


def fit_sizes(epochs: Mapping[float, Sequence[float]], memory_mib: float | None) -> SizeFit:
    """Seconds of the steady epochs by data size in MiB; `memory_mib` is None where it is unknown."""
    known = {size: times for size, times in sorted(epochs.items()) if len(times)}
    table = _Table.of(known)
    split = table.sizes[-1] if memory_mib is None else memory_mib
    straight = _slope(table, table.x <= split)
    if table.sizes[-1] <= split or len(table.sizes) < 3:
        return SizeFit(
            "below", straight, None, None, None, None, None, _below_words(table, split, straight)
        )
    bend = _find_bend(table)
    if bend is None:
        words = (
            "Too few epochs to tell whether there is a knee: measure more, with a larger --budget."
        )
        return SizeFit("unsure", straight, _above(table, split), None, None, None, None, words)
    if _slope_before(table, bend) <= 0:
        words = "Smaller data sets took as long as larger ones: choose larger sizes, whose epochs are longer."
        return SizeFit("unsure", straight, _above(table, split), None, None, None, None, words)
    if bend.chance < MOST_CHANCE and bend.excess >= LEAST_EXCESS:
        return _with_knee(table, bend, memory_mib)
    state: State = "none" if bend.most_excess <= MOST_EXCESS else "unsure"
    above = _above(table, split)
    words = _straight_words(state, straight, above, split, bend)
    return SizeFit(state, straight, above, None, None, bend.chance, bend.excess, words)


@dataclass(frozen=True)
class _Table:
    """An epoch a row; times weigh by their size, because their noise grows with them."""

    sizes: list[float]
    x: Floats
    y: Floats
    weight: Floats  # one over the usual time at that size

    @classmethod
    def of(cls, epochs: Mapping[float, Sequence[float]]) -> _Table:
        x = np.array([size for size, times in epochs.items() for _ in times], dtype=np.float64)
        y = np.array([seconds for times in epochs.values() for seconds in times], dtype=np.float64)
        usual = np.array([float(np.median(times)) for times in epochs.values() for _ in times])
        if len(epochs) > 2:  # a median of few epochs is itself noisy; a line through all is less so
            start, slope = _line(x, y, 1 / usual)
            usual = np.clip(start + slope * x, usual / 2, usual * 2)
        return cls(list(epochs), x, y, 1 / usual)

    def only(self, chosen: NDArray[np.bool_]) -> _Table:
        kept = self.x[chosen]
        return _Table(sorted(set(kept.tolist())), kept, self.y[chosen], self.weight[chosen])


@dataclass(frozen=True)
class _Bend:
    place: float
    chance: float
    excess: float
    most_excess: float  # its upper 95 % bound


def _find_bend(table: _Table) -> _Bend | None:
    """The best place of a bend upwards, and how often a straight line seems to bend as much."""
    if len(table.y) < 5:
        return None
    places = _places(table.sizes)
    line = np.stack([table.weight, table.weight * table.x], axis=1)
    basis, _ = np.linalg.qr(line)
    hinges = np.maximum(table.x - places[:, None], 0) * table.weight
    hinges -= (hinges @ basis) @ basis.T
    lengths = np.linalg.norm(hinges, axis=1)
    units = hinges / lengths[:, None]
    rest = table.y * table.weight
    rest = rest - basis @ (basis.T @ rest)
    freedom = len(rest) - 3
    found = _student(rest[None, :], units, freedom)[0]
    best = int(np.argmax(found))
    noise = np.random.default_rng(len(rest)).standard_normal((NUM_SIMULATED, len(rest)))
    noise -= (noise @ basis) @ basis.T
    seen = _student(noise, units, freedom).max(axis=1)
    chance = float((1 + (seen >= found[best]).sum()) / (1 + NUM_SIMULATED))
    rise = float(units[best] @ rest / lengths[best])
    error = abs(rise / found[best]) if found[best] else 0.0
    return _sized(table, float(places[best]), chance, rise, error, freedom)


def _slope_before(table: _Table, bend: _Bend) -> float:
    """Where epochs do not grow below the bend, something else than data takes their time."""
    chosen = table.only(table.x <= bend.place)
    return _line(chosen.x, chosen.y, chosen.weight)[1]


def _student(rests: Floats, units: Floats, freedom: int) -> Floats:
    """How many standard errors each place's bend is above zero, for each row of what a line leaves."""
    along = rests @ units.T
    squares = np.einsum("ij,ij->i", rests, rests)[:, None] - along**2
    floor = 1e-18 * np.maximum(np.einsum("ij,ij->i", rests, rests)[:, None], 1e-12)
    ratios: Floats = along / np.sqrt(np.maximum(squares, floor) / freedom)
    return ratios


def _sized(
    table: _Table, place: float, chance: float, rise: float, error: float, freedom: int
) -> _Bend:
    """What the bend adds to the longest epoch, as a share of what the line below would give there."""
    largest = table.sizes[-1]
    added = np.maximum(table.x - place, 0) * rise
    start, slope = _line(table.x, table.y - added, table.weight)
    straight = max(start + slope * largest, 1e-12)
    reach = (largest - place) / straight
    width = float(student_quantile(0.95, np.array([max(freedom, 1)], dtype=float))[0]) * error
    return _Bend(place, chance, rise * reach, (rise + width) * reach)


def _places(sizes: Sequence[float]) -> Floats:
    """Where a bend may be: from the second size, as a slope below needs two, to short of the largest."""
    steps = [
        np.linspace(low, high, NUM_PLACES, endpoint=False) for low, high in pairwise(sizes[1:])
    ]
    return np.concatenate(steps)


def _line(x: Floats, y: Floats, weight: Floats) -> tuple[float, float]:
    design = np.stack([weight, weight * x], axis=1)
    (start, slope), *_ = np.linalg.lstsq(design, y * weight, rcond=None)
    return float(start), float(slope)


def _slope(table: _Table, chosen: NDArray[np.bool_]) -> Slope | None:
    """Through some of the epochs, which must be of two sizes or more."""
    part = table.only(chosen)
    if len(part.sizes) < 2:
        return None
    start, slope = _line(part.x, part.y, part.weight)
    rest = (part.y - start - slope * part.x) * part.weight
    centre = np.average(part.x, weights=part.weight**2)
    spread = float(((part.x - centre) ** 2 * part.weight**2).sum())
    freedom = len(part.y) - 2
    if freedom < 1:
        return Slope(slope * MIB_PER_GIB, float("-inf"), float("inf"))
    error = sqrt(float(rest @ rest) / freedom / spread)
    width = float(student_quantile(0.975, np.array([freedom], dtype=float))[0]) * error
    return Slope(*(each * MIB_PER_GIB for each in (slope, slope - width, slope + width)))


def _above(table: _Table, split: float) -> Slope | None:
    """From the sizes above; a single one counts from the largest below it."""
    above = table.x > split
    if len(set(table.x[above].tolist())) < 2:
        last = max((size for size in table.sizes if size <= split), default=None)
        above |= table.x == last if last is not None else above
    return _slope(table, above)


def _with_knee(table: _Table, bend: _Bend, memory_mib: float | None) -> SizeFit:
    last = max(size for size in table.sizes if size <= bend.place)
    following = min(size for size in table.sizes if size > bend.place)
    # a jump between two sizes shows as a bend at the lower one; where between them it is, nobody knows
    is_jump = bend.place == last
    knee = round(sqrt(last * following) if is_jump else bend.place, 1)
    below, above = _slope(table, table.x <= last), _above(table, last)
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
        return f"{slope.s_per_gib:.3g} s a GiB"
    return f"{slope.s_per_gib:.3g} s a GiB ({slope.low:.3g} to {slope.high:.3g})"


def _straight_words(
    state: State, below: Slope | None, above: Slope | None, split: float, bend: _Bend
) -> str:
    told = f"{_words(below)} below memory ({split:,.0f} MiB) and {_words(above)} above it"
    if state == "none":
        return f"No knee: an epoch takes {told}. Storage keeps up with training."
    return (
        f"No sure knee: an epoch takes {told}. Epochs above memory may take up to "
        f"{max(bend.most_excess, 0):.0%} longer without showing in this noise: measure more epochs, with a "
        "larger --budget."
    )


def _below_words(table: _Table, split: float, slope: Slope | None) -> str:
    told = f"An epoch takes {_words(slope)} up to {table.sizes[-1]:,.0f} MiB."
    if table.sizes[-1] > split:
        return f"{told} Too few sizes to look for a knee: three or more are needed."
    return f"{told} All sizes fit into memory: nothing is known of larger ones."
