"""The settings that a search tries on a scale, and which of them earlier scales have ruled out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hakaru.measure.hpl.dat import SHARED, Batch, Config, default_for, grids
from hakaru.measure.hpl.history import Scale, Trial

BLOCKS = (32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 320, 384, 512, 768, 1024)
LARGE_BLOCKS_FROM_N = 20_000  # blocks above 384 are for GPUs and their matrices
MOST_SKEW = 8  # Q / P; HPL's own advice is a grid near to square, P not above Q
TALL_FROM = 8  # ranks; GPU clusters with more are sometimes faster with P above Q
MOST_GRIDS = 6
# what matters most on most machines comes first: it is varied first where a batch is small
ORDER = ("nb", "depth", "grid", "rfact", "pfact", "nbmin", "bcast", "ndiv", "swap", "pmap")
# settings whose values have an order that the sampler may use
ORDERED = ("nb", "nbmin", "ndiv", "depth")
# a value whose best result is this far behind the best of its scale is not tried on the next
HOPELESS = 0.75
LEAST_TRIALS = 4  # of a value, before it is ruled out: a disturbed run is slow, never fast
# a larger matrix likes larger blocks: up to so many times the best one's they stay
BLOCKS_AHEAD = 3


@dataclass(frozen=True)
class Space:
    """Values of each setting; a point of it is a configuration on this scale."""

    scale: Scale
    values: Mapping[str, tuple[Any, ...]]

    def config(self, point: Mapping[str, Any]) -> Config:
        chosen = {name: value for name, value in point.items() if name != "grid"}
        p, q = point["grid"]
        return replace(default_for(self.scale.ranks, self.scale.n), p=p, q=q, **chosen)

    def point(self, config: Config) -> dict[str, Any] | None:
        """The configuration as a point; None where the space does not have it."""
        point = {name: getattr(config, name) for name in self.values}
        inside = all(value in self.values[name] for name, value in point.items())
        return point if inside and self.config(point) == config else None

    def moved(self, config: Config) -> Config:
        """The settings of another scale here; a grid of another number of ranks becomes the squarest."""
        grid = config.grid if config.grid in self.values["grid"] else self.values["grid"][0]
        kept = {name: getattr(config, name) for name in self.values if name != "grid"}
        inside = {
            name: v if v in self.values[name] else self.values[name][0] for name, v in kept.items()
        }
        return self.config({"grid": grid} | inside)

    def without(self, ruled_out: Iterable[tuple[str, Any]]) -> Space:
        gone = set(ruled_out)
        kept = {
            name: tuple(v for v in values if (name, v) not in gone) or values
            for name, values in self.values.items()
        }
        return Space(self.scale, kept)


def new_space(scale: Scale) -> Space:
    """All values that can matter on a scale; a setting that cannot change anything has its default."""
    default = default_for(scale.ranks, scale.n)
    is_wide, is_tall = scale.ranks > 2, scale.ranks > 3
    values = {
        "nb": _blocks(scale),
        "depth": (1, 0),
        "grid": _grids(scale.ranks),
        "rfact": (1, 0, 2),
        "pfact": (2, 0, 1),
        "nbmin": (4, 2, 8),
        "bcast": (1, 0, 2, 3, 4, 5) if is_wide else (1, 0) if scale.ranks > 1 else (1,),
        "ndiv": (2, 3),
        "swap": (2, 0, 1) if is_tall else (2,),
        "pmap": (0, 1) if is_tall else (0,),
    }
    # the default is always a point, so that the search can say that nothing is better
    return Space(
        scale,
        {name: tuple(dict.fromkeys((getattr(default, name), *values[name]))) for name in ORDER},
    )


def ruled_out(trials: Sequence[Trial]) -> list[tuple[str, Any, float]]:
    """Values that were hopeless on a scale, with their share of the best rate."""
    passed = [trial for trial in trials if trial.passed and trial.gflops]
    if not passed:
        return []
    best = max(passed, key=lambda trial: trial.gflops or 0.0)
    found = []
    for name in ORDER:
        rates: dict[Any, list[float]] = {}
        for trial in passed:
            rates.setdefault(getattr(trial.config, name), []).append(trial.gflops or 0.0)
        for value, listed in rates.items():
            share = max(listed) / (best.gflops or 1.0)
            if share < HOPELESS and len(listed) >= LEAST_TRIALS and not _stays(name, value, best):
                found.append((name, value, share))
    return found


def _stays(name: str, value: Any, best: Trial) -> bool:
    """Whether a value may be better on a larger scale; the default's stay to be compared with."""
    if name == "nb" and best.config.nb < value <= BLOCKS_AHEAD * best.config.nb:
        return True
    return bool(value == getattr(default_for(best.ranks), name))


def together(wanted: Sequence[Config], most: int) -> Batch:
    """A batch of at most so many that has the first one and as many of the others as fit."""
    chosen = [wanted[0]]
    for other in wanted[1:]:
        fits = all(getattr(other, name) == getattr(wanted[0], name) for name in SHARED)
        if fits and len(Batch.of([*chosen, other])) <= most:
            chosen.append(other)
    return Batch.of(chosen)


def cover(wanted: Sequence[Config], most: int) -> Batch:
    """A batch of at most so many: half of it for whole configurations, then values of the others.

    Each setting gets one further value before any gets a second.
    """
    batch = together(wanted, max(most // 2, min(most, 2)))
    names = [name for name in ORDER if name in batch.listed]
    others: dict[str, list[Any]] = {
        name: list(dict.fromkeys(getattr(each, name) for each in wanted)) for name in names
    }
    for turn in range(max(map(len, others.values()))):
        for name in names:
            for value in others[name][turn : turn + 1]:
                batch = _with_value(batch, name, value, most)
    return batch


def _with_value(batch: Batch, name: str, value: Any, most: int) -> Batch:
    if value in batch.listed[name]:
        return batch
    larger = Batch(batch.shared, batch.listed | {name: (*batch.listed[name], value)})
    return larger if len(larger) <= most else batch


def _blocks(scale: Scale) -> tuple[int, ...]:
    most = 1024 if scale.n >= LARGE_BLOCKS_FROM_N else 384
    return tuple(nb for nb in BLOCKS if nb <= min(most, scale.n // 4)) or (BLOCKS[0],)


def _grids(ranks: int) -> tuple[tuple[int, int], ...]:
    flat = [(p, q) for p, q in grids(ranks) if p <= q or ranks >= TALL_FROM]
    near = [(p, q) for p, q in flat if max(p, q) <= MOST_SKEW * min(p, q)]
    return tuple((near or flat)[:MOST_GRIDS])
