"""What was asked of a benchmark's measurements; an error names the part that is wrong, and what there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hakaru.errors import HakaruError
from hakaru.measure._base import load_all
from hakaru.measure.compare import Cards, Seen, short_uuid
from hakaru.measure.record import Measurement, Run
from hakaru.registry import listed

MOST_NAMED = 12


class Own(NamedTuple):
    """A measurement, the run that it is of, and the key of its card."""

    run: Run
    each: Measurement
    card: str


def measured_by(runs: Sequence[Run], benchmark: str) -> tuple[list[Own], Cards]:
    """All that the runs have of a benchmark, but for the steps of a search."""
    found = [
        (run, each)
        for run in runs
        for each in run.measurements
        if each.benchmark == benchmark and not each.is_trial
    ]
    if not found:
        raise HakaruError(f"no run has {benchmark}")
    if len(clusters := sorted({run.cluster for run, _ in found})) > 1:
        raise HakaruError(
            f"several clusters have runs of {benchmark}: choose one with --cluster: {', '.join(clusters)}"
        )
    cards = Cards(Seen.of(run, each) for run, each in found)
    return [Own(run, each, cards.key(Seen.of(run, each))) for run, each in found], cards


def with_parameters(
    own: Sequence[Own], benchmark: str, params: Mapping[str, str] | None
) -> list[Own]:
    kept = list(own)
    for name, value in (params or {}).items():
        names = dict.fromkeys(name for pair in own for name in pair.each.parameters)
        if name not in names:
            what = f"its parameters: {listed(names)}" if names else "it has none"
            raise HakaruError(f"--param {name}={value}: {benchmark} has no {name!r}; {what}")
        there = {pair.each.parameters[name] for pair in kept if name in pair.each.parameters}
        kept = [pair for pair in kept if str(pair.each.parameters.get(name)) == value]
        if not kept:
            beside = _beside(params or {}, name)
            raise HakaruError(
                f"--param {name}={value}: no run has {benchmark} with it{beside}; "
                f"there is: {_values(there)}"
            )
    return kept


def on_device(own: Sequence[Own], cards: Cards, benchmark: str, device: str | None) -> list[Own]:
    """By HOST/DEVICE or DEVICE, as it is called now, or by its UUID."""
    if device is None:
        return list(own)
    known = dict.fromkeys(pair.card for pair in own)
    named = {card for card in known if device in _names(cards, card)}
    if not named:
        there = listed(sorted(map(cards.name, known)), MOST_NAMED)
        raise HakaruError(f"--device {device}: no run has {benchmark} on it; there is: {there}")
    return [pair for pair in own if pair.card in named]


def of_quantity(own: Sequence[Own], benchmark: str, quantity: str | None) -> list[Own]:
    """Of the quantity that was asked for, else of the benchmark's first."""
    has = list(dict.fromkeys(pair.each.quantity for pair in own))
    if quantity is not None and quantity not in has:
        raise HakaruError(
            f"--quantity {quantity}: {benchmark} has no such quantity; there is: {listed(has)}"
        )
    benchmarks = load_all()
    first = benchmarks.get(benchmark).quantities[0].name if benchmark in benchmarks else ""
    chosen = quantity or (first if first in has else next(iter(has), ""))
    return [pair for pair in own if pair.each.quantity == chosen]


def settings_of(own: Iterable[Own]) -> str:
    """As `dtype=bf16, fp64; size=1024, 2048`: the parameters that leave something to choose."""
    values: dict[str, set[Any]] = {}
    for pair in own:
        for name, value in pair.each.parameters.items():
            values.setdefault(name, set()).add(value)
    return "; ".join(f"{name}={_values(found)}" for name, found in values.items() if len(found) > 1)


def _names(cards: Cards, card: str) -> tuple[str, ...]:
    place = cards.place(card)
    return (place, place.rpartition("/")[2], card, short_uuid(card))


def _beside(params: Mapping[str, str], name: str) -> str:
    """The choices before this one, which leave fewer of its values."""
    before = list(params)[: list(params).index(name)]
    return f" and {', '.join(f'{each}={params[each]}' for each in before)}" if before else ""


def _values(found: Iterable[Any]) -> str:
    """Numbers by size, then words."""
    order = sorted(found, key=lambda each: _in_order(each))
    return listed((str(each) for each in order), MOST_NAMED)


def _in_order(value: Any) -> tuple[bool, float, str]:
    is_number = isinstance(value, int | float)
    return (not is_number, value if is_number else 0, str(value))
