"""Name slow cards: a few repetitions everywhere, then rounds of more on the suspects.

Only a card whose deficit is above 3 % beyond doubt is named; a doubtful one is *undecided*. Cards
are compared with each other, so a fleet of which most is slow needs a baseline, not this. A drift
that is slow against a sitting looks like a lasting difference: spread the rounds over sittings.

`inspect` is the whole procedure, for real cards and for simulated ones. `assess` is what it rests on: the
same repetitions always give the same verdicts, in whichever rounds they were made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hakaru.measure.statistics import (
    FLAKY_LEVEL,
    MAD_TO_DEVIATION,
    MEDIAN_FACTOR,
    Floats,
    Ints,
    Noise,
    Rows,
    chi_quantile,
    effective_number,
    known_rates,
    median_of_others,
    middle,
    normal_quantile,
    pool_noise,
    pooled_correlation,
    row_variances,
    student_quantile,
    summarise_rows,
    usual_deviation,
)
from hakaru.measure.verdict import Verdict

Flags = NDArray[np.bool_]

# of every bound, one-sided
CONFIDENCE = 0.999
# repetitions of every card before any is suspected: six give a 95 % interval of a median
FIRST_REPETITIONS = 6
# repetitions of one card, whatever its noise asks for
MOST_REPETITIONS = 400
# one round has at most this many times the repetitions made before it
GROWTH = 4


@dataclass(frozen=True, slots=True)
class Limits:
    """A card that surely lacks more than `tolerance` is slow; one that surely lacks less than
    `must_find` is good."""

    tolerance: float = 0.03
    must_find: float = 0.05

    @property
    def target_error(self) -> float:
        """Of a suspect's deficit: two bounds of 3.09 errors are then narrower than the gap."""
        return 0.15 * (self.must_find - self.tolerance)

    @property
    def reference_error(self) -> float:
        """A reference that is less sure is measured again, with all the cards it comes from."""
        return 0.1 * (self.must_find - self.tolerance)


STANDARD = Limits()
QUICK = Limits(tolerance=0.05, must_find=0.15)


class State(StrEnum):
    """The verdict on a card; undecided is neither good nor slow."""

    GOOD = "good"
    SLOW = "slow"
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"

    @property
    def verdict(self) -> Verdict:
        return Verdict.NOT_MEASURED if self is State.UNDECIDED else Verdict(self.value)


@dataclass(frozen=True, slots=True)
class Cards:
    """What the repetitions say of each card by itself; not a number where it was not measured."""

    medians: Floats
    errors: Floats  # standard errors of the medians, as shares
    noises: Floats  # the pooled deviation, or a flaky card's own larger one
    freedom: Floats
    counts: Ints  # repetitions


@dataclass(frozen=True, slots=True)
class Screening:
    """Each card's deficit against the other cards, its bounds, and what must be measured again."""

    cards: Cards
    noise: Noise
    references: Floats
    reference_errors: Floats
    deficits: Floats
    errors: Floats  # standard errors of the deficits
    low: Floats
    high: Floats
    again: Flags  # the suspects; with few cards all of them, as they are each other's reference
    repetitions: Ints  # that a card needs in all; those it has where it needs no more
    limits: Limits = STANDARD

    @property
    def next_round(self) -> Ints:
        """Repetitions to add now: most suspects turn out good before they have them all."""
        bounded = np.minimum(self.repetitions, GROWTH * self.cards.counts) - self.cards.counts
        more: Ints = np.where(self.again, np.maximum(bounded, 0), 0)
        return more

    @property
    def suspects(self) -> Flags:
        """Cards that may be as slow as must be found."""
        return np.isfinite(self.deficits) & ~(self.high < self.limits.must_find)

    @property
    def slow(self) -> Flags:
        return self.low > self.limits.tolerance

    @property
    def undecided(self) -> Flags:
        return self.suspects & ~self.slow

    @property
    def states(self) -> list[State]:
        measured = np.isfinite(self.deficits)
        chosen = np.select([~measured, self.slow, self.suspects], [0, 1, 2], 3)
        order = (State.NOT_MEASURED, State.SLOW, State.UNDECIDED, State.GOOD)
        return [order[int(place)] for place in chosen]


@dataclass(frozen=True, slots=True)
class Named:
    """One card: its deficit against the other cards, the bounds of it, and what follows."""

    card: int
    state: State
    deficit: float
    low: float
    high: float
    repetitions: int
    needed: int  # repetitions in all to measure it to; those it has where it needs no more

    @property
    def is_slow(self) -> bool:
        return self.state is State.SLOW


Measure = Callable[[Ints], Sequence[ArrayLike]]


def inspect(
    num_cards: int,
    measure: Measure,
    limits: Limits = STANDARD,
    most: int = MOST_REPETITIONS,
    is_over: Callable[[], bool] = lambda: False,
) -> Screening:
    """Measure everyone, then the suspects in rounds until each card is decided or time is over.

    `measure` takes so many more repetitions of each card, and gives all that there are, a row a card.
    """
    rows = measure(np.full(num_cards, FIRST_REPETITIONS))
    found = assess(rows, limits, most)
    while found.next_round.any() and not is_over():
        rows = measure(found.next_round)
        found = assess(rows, limits, most)
    return found


def assess(
    rows: Sequence[ArrayLike], limits: Limits = STANDARD, most: int = MOST_REPETITIONS
) -> Screening:
    """Judge every card (a row; higher is better) by its first repetitions, those measured again by all."""
    padded = _padded(rows)
    found = screen(padded[:, :FIRST_REPETITIONS], limits, most)
    which = np.flatnonzero(np.isfinite(padded).sum(axis=1) > FIRST_REPETITIONS)
    return judge(found, which, padded[which], most) if len(which) else found


def name_slow(
    rows: Sequence[ArrayLike], limits: Limits = STANDARD, most: int = MOST_REPETITIONS
) -> list[Named]:
    """`assess`, a card at a time."""
    found = assess(rows, limits, most)
    return [_named(found, card, state) for card, state in enumerate(found.states)]


def screen(
    samples: ArrayLike, limits: Limits = STANDARD, most: int = MOST_REPETITIONS
) -> Screening:
    """Stage one: compare every card (a row; a column a repetition; higher is better) with the others."""
    rows = summarise_rows(samples)
    noise = pool_noise(rows)
    cards = _describe(rows, noise)
    references = median_of_others(cards.medians)
    found = _compare(cards, noise, references, _reference_errors(cards), limits)
    again = found.suspects
    everyone = bool(again.any()) and not (
        np.nanmax(found.reference_errors) <= limits.reference_error
    )
    if everyone:
        again = np.isfinite(cards.medians)
    planned = _plan(rows, cards, noise)
    allowed = _allowed(found, everyone, normal_quantile(CONFIDENCE))
    needed = _needed(planned, noise.planned_correlation, allowed, most)
    again = again & (cards.counts < most)
    return replace(found, again=again, repetitions=np.where(again, needed, cards.counts))


def judge(
    first: Screening, which: Ints, samples: Floats, most: int = MOST_REPETITIONS
) -> Screening:
    """Stage two: judge these cards, a row each, by all their repetitions, stage one's included.

    Stage one of all the cards stays the reference: the suspects were chosen for being slow there, so
    their better values would move it. Only where every card was measured again do all count.
    """
    rows = summarise_rows(samples)
    everyone = bool(np.isin(np.flatnonzero(np.isfinite(first.deficits)), which).all())
    noise = pool_noise(rows) if everyone else _revise(first.noise, rows)
    cards = _merge(first.cards, which, _describe(rows, noise))
    references, errors = first.references, first.reference_errors
    if everyone:
        references, errors = median_of_others(cards.medians), _reference_errors(cards)
    found = _compare(cards, noise, references, errors, first.limits)
    allowed = _allowed(found, everyone, _quantiles(cards.freedom))
    needed = _needed(cards, noise.safe_correlation, allowed, most)
    again = found.undecided
    if everyone and again.any():
        again = np.isfinite(found.deficits)
    again = again & (cards.counts < most)
    return replace(found, again=again, repetitions=np.where(again, needed, cards.counts))


def cost_of_slowest(rates: ArrayLike, hours: float = 730) -> float:
    """GPU-hours that a synchronous job on all the measured cards loses; 730 hours are a month."""
    known = known_rates(rates).ravel()
    known = known[np.isfinite(known)]
    if not known.size:
        return float("nan")
    return float(known.size * hours * (1 - known.min() / np.median(known)))


def _padded(rows: Sequence[ArrayLike]) -> Floats:
    arrays = [np.asarray(row, dtype=np.float64).ravel() for row in rows]
    padded = np.full((len(arrays), max(len(row) for row in arrays)), np.nan)
    for line, row in zip(padded, arrays, strict=True):
        line[: len(row)] = row
    return padded


def _plan(rows: Rows, cards: Cards, noise: Noise) -> Cards:
    """The cards with the usual noise: few repetitions cannot tell a flaky one's, later rounds do."""
    deviation = noise.deviation
    if not noise.is_sure:
        deviation, _ = usual_deviation(rows, noise.planned_correlation)
    return replace(cards, noises=np.full(len(cards.noises), deviation))


def _revise(noise: Noise, rows: Rows) -> Noise:
    """A drift that is slower than stage one's few repetitions shows only in longer rows."""
    value, error = pooled_correlation(rows)
    return replace(noise, correlation=max(noise.correlation, value - error))


def _describe(rows: Rows, noise: Noise) -> Cards:
    variances, freedom = row_variances(rows, noise.safe_correlation)
    flaky = variances > noise.deviation**2 * chi_quantile(FLAKY_LEVEL, freedom)
    noises = np.where(flaky, np.sqrt(variances), noise.deviation)
    effective = effective_number(np.maximum(rows.counts, 1.0), noise.safe_correlation)
    errors = np.where(np.isnan(rows.medians), np.nan, MEDIAN_FACTOR * noises / np.sqrt(effective))
    freedom = np.where(flaky, freedom, noise.freedom)
    return Cards(rows.medians, errors, noises, freedom, rows.counts)


def _merge(cards: Cards, which: Ints, better: Cards) -> Cards:
    merged = {}
    for field in fields(Cards):
        values = getattr(cards, field.name).copy()
        values[which] = getattr(better, field.name)
        merged[field.name] = values
    return Cards(**merged)


def _compare(
    cards: Cards, noise: Noise, references: Floats, reference_errors: Floats, limits: Limits
) -> Screening:
    deficits = 1 - cards.medians / references
    errors = np.hypot(cards.errors, reference_errors)
    reach = _quantiles(cards.freedom) * errors
    none = np.zeros(len(deficits), dtype=np.bool_)
    return Screening(
        cards, noise, references, reference_errors, deficits, errors,
        deficits - reach, deficits + reach, none, cards.counts, limits,
    )  # fmt: skip


def _quantiles(freedom: Floats) -> Floats:
    return student_quantile(CONFIDENCE, np.maximum(freedom, 1.0))


def _reference_errors(base: Cards) -> Floats:
    """The error of the median of the other cards; it is at most that of one of them."""
    one = median_of_others(base.errors)
    known = base.medians[np.isfinite(base.medians)]
    if len(known) < 2:
        return one
    typical = middle(known)
    between = MAD_TO_DEVIATION * middle(np.abs(known - typical)) / typical
    many = MEDIAN_FACTOR * np.maximum(one, between) / np.sqrt(len(known) - 1)
    errors: Floats = np.minimum(one, many)
    return errors


def _allowed(found: Screening, everyone: bool, quantile: float | Floats) -> Floats:
    """The standard error that each card's own median may have."""
    target = found.limits.target_error * normal_quantile(CONFIDENCE) / quantile
    if everyone:  # the reference gets better as its cards do
        others = max(int(np.isfinite(found.deficits).sum()) - 1, 1)
        share = 1 + min(MEDIAN_FACTOR**2 / others, 1.0)
        return np.full(len(found.deficits), target / np.sqrt(share))
    return np.sqrt(np.maximum(target**2 - found.reference_errors**2, (target / 3) ** 2))


def _needed(cards: Cards, correlation: float, allowed: Floats, most: int) -> Ints:
    """Repetitions in all for that standard error; a quarter more than were made, or up to `most`."""
    effective = (MEDIAN_FACTOR * cards.noises / allowed) ** 2
    needed = np.ceil(effective * (1 + correlation) / (1 - correlation))
    grown = np.maximum(needed, cards.counts * 5 // 4 + 1)
    bounded = np.maximum(np.minimum(grown, most), cards.counts)
    return np.where(np.isfinite(bounded), bounded, cards.counts).astype(np.int_)


def _named(found: Screening, card: int, state: State) -> Named:
    return Named(
        card,
        state,
        float(found.deficits[card]),
        float(found.low[card]),
        float(found.high[card]),
        int(found.cards.counts[card]),
        int(found.repetitions[card]),
    )
