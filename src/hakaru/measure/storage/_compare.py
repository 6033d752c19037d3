"""Which layout is fastest, and what one file a sample costs against an archive: said only if it is sure.

Layouts are measured in rounds, so that their rates of one round are compared: drift from round to round
cancels in the ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from hakaru.measure.numbers import share
from hakaru.measure.statistics import LEAST_LEVEL, Interval, median_interval
from hakaru.registry import listed

FILES = "files"
ARCHIVES = ("packed", "tar")  # MN-1's archive with fseek first
MATTERS = 0.02  # a smaller difference is none


def answer(rates: Mapping[str, Sequence[float]], state: str) -> str:
    """In words, from each layout's rates, a value a round."""
    if len(rates) < 2:
        return ""
    words = [_fastest(rates, state)]
    archive = next((name for name in ARCHIVES if name in rates), None)
    if FILES in rates and archive is not None:
        words.append(_cost_of_files(rates, archive))
    return " ".join(words)


def ratio(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """How many times as fast the first is, round by round; None where the rounds are too few."""
    pairs = [one / two for one, two in zip(first, second, strict=True) if two > 0]
    if not pairs:
        return None
    found = median_interval(pairs)
    return found if found.level >= LEAST_LEVEL else None


def _fastest(rates: Mapping[str, Sequence[float]], state: str) -> str:
    order = sorted(rates, key=lambda name: -median(rates[name]))
    first, second = order[0], order[1]
    against = {name: ratio(rates[first], rates[name]) for name in order[1:]}
    if any(found is None for found in against.values()):
        return f"{state.capitalize()}: too few rounds to tell which layout is fastest; use a larger --budget."
    near = [name for name, found in against.items() if found is not None and found.low <= 1]
    if not near:
        found = against[second]
        assert found is not None
        return (
            f"{state.capitalize()}: {first} is the fastest layout, {share(found.median - 1)} faster than "
            f"{second} ({share(found.low - 1)} to {share(found.high - 1)})."
        )
    return f"{state.capitalize()}: {first} is ahead, but not surely faster than {listed(near)}."


def _cost_of_files(rates: Mapping[str, Sequence[float]], archive: str) -> str:
    """The share of the archive's rate that is lost with one file a sample."""
    found = ratio(rates[FILES], rates[archive])
    if found is None:
        return ""
    if found.high < 1 - MATTERS:
        return (
            f"One file a sample loads {share(1 - found.median)} slower than {archive} "
            f"({share(1 - found.high)} to {share(1 - found.low)})."
        )
    if found.low > 1 + MATTERS:
        return (
            f"One file a sample loads {share(found.median - 1)} faster than {archive} "
            f"({share(found.low - 1)} to {share(found.high - 1)})."
        )
    if found.low > 1 - MATTERS:
        return f"One file a sample costs nothing against {archive} here."
    return f"No sure difference between one file a sample and {archive}: {_signed(found)}."


def _signed(found: Interval) -> str:
    return f"{_with_sign(found.low - 1)} to {_with_sign(found.high - 1)}"


def _with_sign(change: float) -> str:
    return f"{'+' if change > 0 else ''}{share(change)}"
