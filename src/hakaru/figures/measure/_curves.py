"""Training over ranks: which measurements are points of one curve, and what the fitted law says of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hakaru.figures.measure.together import Timed, name_of, strategy_name, timed_of, unique
from hakaru.figures.measure.view import Reading, RunView
from hakaru.measure.documents import Document
from hakaru.measure.record import shown_parameters

SINGLE = "single"  # how one rank alone trains, from which every strategy starts
MOST_VERDICT = 1_500
KNOWN = ("model", "scaling", "strategy", "compression", "batch", "ranks", "hosts")


@dataclass(frozen=True)
class Law:
    """What the fitted law predicts for a number of ranks, as a rate."""

    ranks: int
    rate: float
    low: float
    high: float
    was_fitted: bool
    error: float | None
    sentence: str


@dataclass(frozen=True)
class Point:
    """One number of ranks."""

    ranks: int
    rate: Reading
    timed: Timed

    @property
    def median(self) -> float:
        assert self.rate.median is not None
        return self.rate.median

    @property
    def law(self) -> Law | None:
        return _law(self.timed.facts.part("law"), self.timed.options.number("batch"), self.ranks)

    @property
    def next(self) -> Law | None:
        """The law's prediction for more ranks than were there; in weak scaling they take more samples."""
        found, batch = self.timed.facts.part("next"), self.timed.options.number("batch")
        ranks = found.whole("ranks") or 0
        if batch and self.timed.options.text("scaling") != "strong":
            batch *= ranks / self.ranks
        return _law(found, batch, ranks) if ranks > self.ranks else None


@dataclass(frozen=True)
class Curve:
    """One way to train a model, over ranks; the smallest number of ranks first."""

    model: str
    scaling: str
    name: str
    points: tuple[Point, ...]

    @property
    def rate_of_rank(self) -> float:
        return self.points[0].median / self.points[0].ranks

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def laws(self) -> list[Law]:
        """Of each of its points, and beyond the last."""
        of_points = [each.law for each in self.points]
        return [each for each in (*of_points, self.last.next) if each is not None]

    @property
    def verdict(self) -> str:
        """Of the most ranks that say one."""
        told = (each.timed.facts.text("verdict", MOST_VERDICT) for each in reversed(self.points))
        return next((text for text in told if text), "")


Key = tuple[str, str, str, str, str]


def curves_of(view: RunView) -> list[Curve]:
    """Every way that has a number that counts; each begins with the one rank that has no strategy."""
    groups: dict[Key, list[Point]] = {}
    for timed in timed_of(view, "scaling"):
        rate = timed.valid("throughput")
        if rate is not None:
            groups.setdefault(_key(timed), []).append(Point(timed.ranks, rate, timed))
    keys = sorted(_joined(groups))
    names = _names(keys)
    return [
        Curve(key[0], key[2], name, tuple(sorted(groups[key], key=lambda each: each.ranks)))
        for key, name in zip(keys, names, strict=True)
    ]


def _joined(groups: dict[Key, list[Point]]) -> list[Key]:
    """One rank alone becomes the first point of every strategy that has none; alone it stays itself."""
    alone = {key: groups[key] for key in groups if key[1] == SINGLE}
    used = set()
    for key, points in groups.items():
        base = (key[0], SINGLE, *key[2:])
        if base in alone and key not in alone:
            used.add(base)
            if min(each.ranks for each in points) > 1:
                points += alone[base]
    return [key for key in groups if key not in used]


def _key(timed: Timed) -> Key:
    """Model, strategy, scaling, then what is the same along a curve; in strong scaling the batch is."""
    options = timed.options
    scaling, batch = name_of(options, "scaling"), options.whole("batch")
    whole = batch is not None and scaling != "strong" and batch % timed.ranks == 0
    size = "" if batch is None else f"batch {batch // timed.ranks if whole else batch:,}"
    rest = shown_parameters(options.without(*KNOWN))
    return timed.model, strategy_name(options), scaling, f"{size}{' a rank' if whole else ''}", rest


def _names(keys: Sequence[Key]) -> list[str]:
    """Strategy and scaling, and of a model's curves what else differs between them."""
    found = [""] * len(keys)
    for model in {key[0] for key in keys}:
        own = [at for at, key in enumerate(keys) if key[0] == model]
        short = [", ".join(keys[at][1:3]) for at in own]
        with_batch = [
            name if short.count(name) == 1 else f"{name}, {keys[at][3]}"
            for at, name in zip(own, short, strict=True)
        ]
        whole = [
            name if with_batch.count(name) == 1 else f"{name}, {keys[at][4]}"
            for at, name in zip(own, with_batch, strict=True)
        ]
        for at, name in zip(own, unique(whole), strict=True):
            found[at] = name
    return found


def _law(law: Document, batch: float | None, ranks: int) -> Law | None:
    """From times of a step to rates: the longest time is the lowest rate."""
    step = law.number("predicted_step_ms", 1e-9)
    if step is None or not batch:
        return None
    times = [step, law.number("high_ms", 1e-9) or step, law.number("low_ms", 1e-9) or step]
    rate, low, high = (batch / each * 1e3 for each in times)
    fitted = ranks in law.numbers("fitted_on")
    error = law.number("held_out_error")
    return Law(ranks, rate, min(low, high), max(low, high), fitted, error, law.text("sentence"))
