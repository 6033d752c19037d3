"""How fast a loader delivers samples from each layout of the data, cold and warm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.together import (
    Timed,
    distinct,
    ends_of,
    name_of,
    timed_of,
    with_interval,
)
from hakaru.figures.measure.view import Reading, RunView
from hakaru.figures.theme import PALETTE, Theme
from hakaru.measure.numbers import amount, counted, share
from hakaru.measure.record import shown_parameters

TITLE = "Layouts of the data"
QUESTION = "From which layout does a loader deliver samples fastest, cold and warm?"
NOTHING = "No loader has a number that counts."
COLD, CACHED = "cold", "cached"
SYMBOLS = {COLD: "rect", "warm": "circle"}
LOG_SPAN = 30  # of the rates: beyond it the slow ones would lie on the axis
SPREAD = 0.66  # of a layout's room, which its marks share
KNOWN = ("layout", "workers", "prefetch", "state", "mib", "ranks")
MOST_PATHS, MOST_SENTENCES = 3, 4
TEMPORARY = "temporary"  # instead of a path
Key = tuple[str, int, int, str]


@dataclass(frozen=True)
class Loader:
    """One state, number of workers and prefetch, over layouts."""

    name: str
    state: str
    rates: tuple[tuple[str, Reading, Timed], ...]


def loaders_of(view: RunView) -> list[Loader]:
    """Of the largest data set; cold first, then by workers."""
    found = [(each, rate) for each in timed_of(view, "loading") if (rate := each.valid("rate"))]
    largest = max((each.options.number("mib") or 0.0 for each, _ in found), default=0.0)
    groups: dict[Key, dict[str, tuple[Reading, Timed]]] = {}
    for each, rate in found:
        if (each.options.number("mib") or 0.0) == largest:
            groups.setdefault(_key(each), {})[name_of(each.options, "layout")] = (rate, each)
    varies = [len({key[at] for key in groups}) > 1 for at in range(4)]
    return [
        Loader(
            _name(key, varies),
            key[0],
            tuple((layout, *pair) for layout, pair in sorted(own.items())),
        )
        for key, own in sorted(groups.items())
    ]


def loading_sentences(loaders: Sequence[Loader]) -> list[str]:
    """Which layout is ahead, as the benchmark says it."""
    every = (timed.facts.text("verdict") for each in loaders for _, _, timed in each.rates)
    return distinct(every, MOST_SENTENCES)


def layouts(loaders: Sequence[Loader], dark: bool = False) -> Figure:
    """Marks with their intervals side by side above each layout's name."""
    theme = look.theme_of(dark)
    if not loaders:
        return look.nothing("layouts", TITLE, QUESTION, theme, NOTHING)
    names = _ordered(loaders)
    rates = [rate.median or 0.0 for each in loaders for _, rate, _ in each.rates]
    is_log = min(rates) > 0 and max(rates) > LOG_SPAN * min(rates)
    unit = loaders[0].rates[0][1].unit
    y = f"Rate ({unit})" if unit else "Rate"
    axis = (
        parts.log_axis(theme, y, **look.powers(min(rates), max(rates)))
        if is_log
        else parts.value_axis(theme, y, min=0)
    )
    hidden = {"show": False, "min": -0.5, "max": len(names) - 0.5}
    option = {
        **look.legend_above(theme, [each.name for each in loaders]),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": [
            parts.category_axis(theme, "Layout", names, axisLabel={"interval": 0, "hideOverlap": False}),
            parts.value_axis(theme, "", **hidden),
        ],
        "yAxis": parts.as_y(axis | {"axisLine": axis["axisLine"] | {"onZero": False}}),
        "series": [one for at in range(len(loaders)) for one in _series(theme, at, loaders, names)],
    }  # fmt: skip
    return look.figure("layouts", TITLE, QUESTION, option, theme, _notes(loaders))


def _key(each: Timed) -> Key:
    options = each.options
    return (
        name_of(options, "state"), options.whole("workers") or 0, options.whole("prefetch") or 0,
        shown_parameters(options.without(*KNOWN)),
    )  # fmt: skip


def _name(key: Key, varies: Sequence[bool]) -> str:
    """State and workers, and of the others what differs between the loaders."""
    state, workers, prefetch, rest = key
    words = [state, counted(workers, "worker")]
    words += [f"prefetch {prefetch:,}"] if varies[2] else []
    words += [rest] if varies[3] else []
    return ", ".join(filter(None, words))


def _ordered(loaders: Sequence[Loader]) -> list[str]:
    """The slowest layout first, by its best rate."""
    best: dict[str, float] = {}
    for loader in loaders:
        for layout, rate, _ in loader.rates:
            best[layout] = max(best.get(layout, 0.0), rate.median or 0.0)
    return sorted(best, key=lambda layout: (best[layout], layout))


def _series(
    theme: Theme, at: int, loaders: Sequence[Loader], names: Sequence[str]
) -> list[dict[str, Any]]:
    loader, colour = loaders[at], PALETTE[at % len(PALETTE)]
    aside = SPREAD * ((at + 0.5) / len(loaders) - 0.5)
    placed = [(names.index(layout) + aside, rate, timed) for layout, rate, timed in loader.rates]
    items = [
        {"value": [look.digits(x), look.digits(rate.median or 0.0)], "name": _told(loader, rate, timed)}
        | ({"itemStyle": look.hollow(theme, colour)} if _is_doubtful(timed) else {})
        for x, rate, timed in placed
    ]  # fmt: skip
    return [
        each | {"xAxisIndex": 1}
        for each in (
            parts.marks(loader.name, SYMBOLS.get(loader.state, "diamond"), 10, colour, items),
            look.bars(loader.name, colour, ends_of((x, rate) for x, rate, _ in placed), 2),
        )
    ]


def _is_doubtful(timed: Timed) -> bool:
    """Meant to be cold, but not read from the device: no speed of storage."""
    is_cold = timed.options.text("state") == COLD
    return is_cold and timed.facts.text("label") in (CACHED, f"partly {CACHED}")


def _told(loader: Loader, rate: Reading, timed: Timed) -> str:
    bandwidth, from_device = timed.value("bandwidth"), timed.value("from_device")
    label = timed.facts.text("label", 40)
    lines = [
        f"{name_of(timed.options, 'layout')}, {loader.name}",
        with_interval(rate),
        f"{amount(bandwidth, 'MB/s')} delivered" if bandwidth is not None else "",
        f"{share(from_device)} of it read from the device" if from_device is not None else "",
        label,
    ]
    return "\n".join(filter(None, lines))


def _notes(loaders: Sequence[Loader]) -> list[str]:
    every = [timed for each in loaders for _, _, timed in each.rates]
    notes = ["Marks are medians with their 95 % intervals."]
    doubtful = [f"{name_of(each.options, 'layout')}" for each in every if _is_doubtful(each)]
    if doubtful:
        named = ", ".join(distinct(doubtful, 8))
        notes.append(
            "Hollow: meant to be cold, but (partly) served from memory, so it is no speed of storage "
            f"({named})."
        )
    notes += distinct((each.facts.text("cold_problem", 300) for each in every), MOST_SENTENCES)
    sizes = sorted({each.options.number("mib") or 0.0 for each in every})
    size = f"{amount(sizes[-1], 'MiB')} of data" if sizes[-1] else ""
    where = ", ".join(distinct(map(_place, every), MOST_PATHS))
    place = " ".join(filter(None, (size, where)))
    return [*notes, *([f"Measured with {place}."] if place else [])]


def _place(timed: Timed) -> str:
    path, kind = timed.facts.text("path", 120), timed.facts.text("filesystem", 40)
    where = "in a temporary folder" if path == TEMPORARY else f"at {path}" if path else ""
    return f"{where} ({kind})" if where and kind else where
