"""Lines through the times of epochs, and the bend that fits them best.

The chance of a bend is found by simulation of straight lines with the same sizes, because the place of the
bend is searched too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from hakaru.measure.statistics import student_quantile

Floats = NDArray[np.float64]

MIB_PER_GIB = 1024.0
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
class Table:
    """An epoch a row; times weigh by their size, because their noise grows with them."""

    sizes: list[float]
    x: Floats
    y: Floats
    weight: Floats  # one over the usual time at that size

    @classmethod
    def of(cls, epochs: Mapping[float, Sequence[float]]) -> Table:
        x = np.array([size for size, times in epochs.items() for _ in times], dtype=np.float64)
        y = np.array([seconds for times in epochs.values() for seconds in times], dtype=np.float64)
        usual = np.array([float(np.median(times)) for times in epochs.values() for _ in times])
        if len(epochs) > 2:  # a median of few epochs is itself noisy; a line through all is less so
            start, slope = _line(x, y, 1 / usual)
            usual = np.clip(start + slope * x, usual / 2, usual * 2)
        return cls(list(epochs), x, y, 1 / usual)

    def only(self, chosen: NDArray[np.bool_]) -> Table:
        kept = self.x[chosen]
        return Table(sorted(set(kept.tolist())), kept, self.y[chosen], self.weight[chosen])


@dataclass(frozen=True)
class Bend:
    place: float
    chance: float
    excess: float
    most_excess: float  # its upper 95 % bound


def find_bend(table: Table) -> Bend | None:
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


def slope_before(table: Table, bend: Bend) -> float:
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
    table: Table, place: float, chance: float, rise: float, error: float, freedom: int
) -> Bend:
    """What the bend adds to the longest epoch, as a share of what the line below would give there."""
    largest = table.sizes[-1]
    added = np.maximum(table.x - place, 0) * rise
    start, slope = _line(table.x, table.y - added, table.weight)
    straight = max(start + slope * largest, 1e-12)
    reach = (largest - place) / straight
    width = float(student_quantile(0.95, np.array([max(freedom, 1)], dtype=float))[0]) * error
    return Bend(place, chance, rise * reach, (rise + width) * reach)


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


def slope_through(table: Table, chosen: NDArray[np.bool_]) -> Slope | None:
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


def slope_above(table: Table, split: float) -> Slope | None:
    """From the sizes above; a single one counts from the largest below it."""
    above = table.x > split
    if len(set(table.x[above].tolist())) < 2:
        last = max((size for size in table.sizes if size <= split), default=None)
        above |= table.x == last if last is not None else above
    return slope_through(table, above)
