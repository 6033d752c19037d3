"""Find steps in the history of one quantity: a CUSUM suspects, and later measurements confirm.

A suspicion only asks for measurements. It becomes a step, which is reported, when four values that
had no part in raising it show the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hakaru.errors import HakaruError
from hakaru.measure.statistics import (
    MAD_TO_DEVIATION,
    MEDIAN_FACTOR,
    Floats,
    Ints,
    row_medians,
    student_quantile,
)

# fewer runs show neither a level nor a noise
LEAST_RUNS = 8
# level and noise are learned from this many runs, from the eighth on, and then kept: a drift adds up
LEARNING_RUNS = 90
# the CUSUM, in deviations of one run: what is forgiven in each run, and the sum that is suspect
SLACK = 1.0
LIMIT = 2.0
# the step to find; a confirming measurement must show at least half of it
STEP = 0.05
# and must differ from the reference with this confidence, one-sided
CONFIDENCE = 0.9995
# values after a suspicion that settle it, all of them together: a look after each of them would
# raise several times the false alarms, and fewer would miss true steps
CONFIRMING_RUNS = 4
# eight equal values are a coarse clock, not a quantity without noise
LEAST_NOISE = STEP / 5
_OUTLIER = 4.0


class Outcome(StrEnum):
    OPEN = "waits for new measurements"
    CONFIRMED = "confirmed"
    DISMISSED = "not confirmed"


@dataclass(frozen=True, slots=True)
class Level:
    """Where a quantity stood before something happened to it."""

    reference: float
    noise: float  # of one run, as a share of the reference
    learned_from: int  # runs


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A run by which the values had moved too far."""

    run: int
    began: int  # the first run that moved
    size: float  # a share of the reference, with its sign; rather too large, as it was chosen
    before: Level
    outcome: Outcome = Outcome.OPEN
    missing: int = CONFIRMING_RUNS  # values that would settle it


@dataclass(frozen=True, slots=True)
class Step:
    """A change that later, independent measurements confirmed."""

    began: int  # the first run on the new level
    confirmed: int
    size: float  # by the confirming values alone, a share of the reference, with its sign
    is_worse: bool


@dataclass(frozen=True, slots=True)
class History:
    """What is known of one quantity over its runs; a run is its index in the values."""

    num_runs: int  # on the level that holds now
    suspicions: tuple[Suspicion, ...]
    steps: tuple[Step, ...]

    @property
    def open_suspicion(self) -> Suspicion | None:
        last = self.suspicions[-1] if self.suspicions else None
        return last if last and last.outcome is Outcome.OPEN else None

    @property
    def is_short(self) -> bool:
        """Whether the runs on this level are too few to show a change."""
        return self.num_runs < LEAST_RUNS


def find_steps(
    values: ArrayLike, better: str = "higher", again: Mapping[int, ArrayLike] | None = None
) -> History:
    """Go through the runs in order; `again` holds what was measured again right after a run.

    The first four values after a suspicion settle it, whether they were measured for it or are later
    runs. Values that are not positive numbers are missing.
    """
    if better not in ("higher", "lower"):
        raise HakaruError(f'"better" must be "higher" or "lower", found {better[:40]!r}.')
    everything = np.asarray(values, dtype=np.float64).ravel()
    runs = np.flatnonzero(_is_known(everything))
    suspicions: list[Suspicion] = []
    steps: list[Step] = []
    while True:  # a level a round
        settled = list(_watch(everything, runs, _learn(everything[runs]), again or {}))
        suspicions += [each.suspicion for each in settled]
        if not settled or settled[-1].suspicion.outcome is not Outcome.CONFIRMED:
            break
        steps.append(_step(settled[-1], better))
        runs = runs[runs >= steps[-1].began]
    return History(len(runs), tuple(suspicions), tuple(steps))


@dataclass(frozen=True, slots=True)
class _Settled:
    suspicion: Suspicion
    samples: Floats  # that settled it
    run: int  # by which it was settled


@dataclass(frozen=True, slots=True)
class _Learned:
    """Level and noise as known before each run, and after the last; not a number before the eighth."""

    references: Floats
    noises: Floats

    def level(self, place: int) -> Level:
        known_from = min(place, LEARNING_RUNS)
        return Level(float(self.references[place]), float(self.noises[place]), known_from)


def _learn(values: Floats) -> _Learned:
    """From the first 8, 9, 10… values of a level, each time anew, up to `LEARNING_RUNS`."""
    counts = np.arange(LEAST_RUNS, min(len(values), LEARNING_RUNS) + 1)
    references, noises = np.full((2, len(values) + 1), np.nan)
    if len(counts):
        first = values[: counts[-1]]
        rows = np.where(np.arange(len(first)) < counts[:, None], first, np.nan)
        medians = row_medians(rows)[:, None]
        apart = rows / medians - 1
        steady = (_variance(apart) + _variance(np.diff(apart, axis=1)) / 2) / 2
        deviations = np.maximum(np.sqrt(steady), LEAST_NOISE)
        limit = 3 * deviations[:, None]
        means = medians[:, 0] * (1 + np.nanmean(np.clip(apart, -limit, limit), axis=1))
        references[counts], noises[counts] = means, deviations
        references[counts[-1] :], noises[counts[-1] :] = means[-1], deviations[-1]
    return _Learned(references, noises)


def _variance(rows: Floats) -> Floats:
    """About zero, with outliers pulled in; one step is one outlier among the differences."""
    limits = _OUTLIER * MAD_TO_DEVIATION * row_medians(np.abs(rows))[:, None]
    limits[limits == 0] = np.inf  # most are equal: there is no scale to go by
    known = np.isfinite(rows).sum(axis=1)
    variances: Floats = np.nansum(np.clip(rows, -limits, limits) ** 2, axis=1) / known
    return variances


def _watch(
    everything: Floats, runs: Ints, learned: _Learned, again: Mapping[int, ArrayLike]
) -> Iterator[_Settled]:
    """The suspicions on one level, up to the one that ends it or the last run."""
    values, place = everything[runs], LEAST_RUNS
    scores = (values / learned.references[:-1] - 1) / learned.noises[:-1]
    while (moved := _first_move(scores[place:])) is not None:
        began, last = place + moved[0], place + moved[1]
        before = learned.level(began)
        size = float(np.mean(values[began : last + 1])) / before.reference - 1
        suspicion = Suspicion(int(runs[last]), int(runs[began]), size, before)
        samples, later = _after(everything, suspicion.run, again)
        settled = _settle(suspicion, samples)
        place = last + 1 + later
        yield _Settled(settled, samples, int(runs[place - 1]))
        if settled.outcome is not Outcome.DISMISSED:
            return


def _first_move(scores: Floats) -> tuple[int, int] | None:
    """Where the first sum to pass the limit began and where it passed, up or down."""
    moves = []
    for sign in (1, -1):
        path = np.concatenate([[0.0], np.cumsum(sign * scores - SLACK)])
        lowest = np.minimum.accumulate(path)
        over = np.flatnonzero(path - lowest > LIMIT)
        if len(over):
            began = int(np.flatnonzero(path[: over[0]] == lowest[over[0]])[-1])
            moves.append((int(over[0]) - 1, began))
    if not moves:
        return None
    last, began = min(moves)
    return began, last


def _after(everything: Floats, run: int, again: Mapping[int, ArrayLike]) -> tuple[Floats, int]:
    """The first four values that were measured after a run, and how many of them are later runs."""
    values, num_later = list(_known(again.get(run, ()))), 0
    for later in range(run + 1, len(everything)):
        if len(values) >= CONFIRMING_RUNS:
            break
        own = _known(everything[later])
        num_later += len(own)
        values += [*own, *_known(again.get(later, ()))]
    return np.array(values[:CONFIRMING_RUNS]), num_later


def _settle(suspicion: Suspicion, samples: Floats) -> Suspicion:
    missing = CONFIRMING_RUNS - len(samples)
    if missing:
        return replace(suspicion, missing=missing)
    outcome = Outcome.CONFIRMED if _shows(suspicion, samples) else Outcome.DISMISSED
    return replace(suspicion, outcome=outcome, missing=0)


def _shows(suspicion: Suspicion, samples: Floats) -> bool:
    """Whether the samples moved the same way, by half the step, and by more than chance moves them."""
    before, num = suspicion.before, len(samples)
    own = MEDIAN_FACTOR**2 / (num + MEDIAN_FACTOR**2 - 1)  # the variance of a median of few
    error = before.noise * np.sqrt(own + 1 / before.learned_from)
    bound = float(student_quantile(CONFIDENCE, np.array(before.learned_from - 1.0))) * error
    moved = np.sign(suspicion.size) * (np.median(samples) / before.reference - 1)
    return bool(moved >= max(STEP / 2, bound))


def _step(settled: _Settled, better: str) -> Step:
    suspicion = settled.suspicion
    size = float(np.median(settled.samples)) / suspicion.before.reference - 1
    is_worse = (size < 0) == (better == "higher")
    return Step(suspicion.began, settled.run, size, is_worse)


def _known(samples: ArrayLike) -> Floats:
    values = np.asarray(samples, dtype=np.float64).ravel()
    return values[_is_known(values)]


def _is_known(values: Floats) -> NDArray[np.bool_]:
    return np.isfinite(values) & (values > 0)
