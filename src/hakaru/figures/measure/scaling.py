"""Throughput of training over ranks, beside linear scaling and what the fitted law predicts.

After Tanaka et al., RaNNC (FLOW's 1–4 GPUs and 2–4 nodes) and MN-1's weak scaling to 1,024 GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.documents import Document
from hakaru.figures.measure.together import (
    Timed,
    distinct,
    ends_of,
    name_of,
    strategy_name,
    timed_of,
    unique,
    with_interval,
)
from hakaru.figures.measure.view import Reading, RunView
from hakaru.figures.measure.words import amount, counted, share
from hakaru.figures.theme import GREY, PALETTE, SYMBOLS, Theme
from hakaru.measure.record import shown_parameters

TITLE = "Scaling of training"
QUESTION = "How much faster does training become with more ranks, and what was to be expected?"
NOTHING = "No training among ranks has a number that counts."
IDEAL = "linear scaling"
LOG_SPAN = 8  # of the ranks: beyond it few of them would stand at the left edge
SAME_IDEAL = 0.05  # two lines closer than this are drawn as one
MOST_SENTENCES = 6
KNOWN = ("model", "scaling", "strategy", "compression", "batch", "ranks", "hosts")


@dataclass(frozen=True)
class Law:
    """What the fitted law predicts for a point, as a rate."""

    rate: float
    low: float
    high: float
    was_fitted: bool
    error: float | None


@dataclass(frozen=True)
class Point:
    """One number of ranks."""

    ranks: int
    rate: Reading
    timed: Timed
    law: Law | None

    @property
    def median(self) -> float:
        assert self.rate.median is not None
        return self.rate.median


@dataclass(frozen=True)
class Curve:
    """One way to train a model, over ranks; the smallest number of ranks first."""

    model: str
    name: str
    points: tuple[Point, ...]

    @property
    def rate_of_rank(self) -> float:
        return self.points[0].median / self.points[0].ranks

    @property
    def last(self) -> Point:
        return self.points[-1]

    def sentence(self, *path: str) -> str:
        """What the largest number of ranks says that has a word for it."""
        for point in reversed(self.points):
            *parts_of, name = path
            found = point.timed.facts
            for each in parts_of:
                found = found.part(each)
            if text := found.text(name):
                return text
        return ""


def curves_of(view: RunView) -> list[Curve]:
    """Every way that has a number that counts."""
    groups: dict[tuple[str, ...], list[Point]] = {}
    for timed in timed_of(view, "scaling"):
        rate = timed.valid("throughput")
        if rate is not None:
            groups.setdefault(_key(timed), []).append(_point(timed, rate))
    keys = sorted(groups)
    names = _names(keys)
    return [
        Curve(key[0], names[key], tuple(sorted(groups[key], key=lambda each: each.ranks)))
        for key in keys
    ]


def models_of(view: RunView) -> list[str]:
    return list(dict.fromkeys(sorted(each.model for each in timed_of(view, "scaling"))))


def scaling_sentences(curves: Sequence[Curve]) -> list[str]:
    """Where scaling stops and what is to blame, a sentence for each way to train."""
    found = [(f"{each.model}, {each.name}", each.sentence("verdict")) for each in curves]
    several = len({text for _, text in found}) > 1
    return distinct(
        (f"{name}: {text}" if several and text else text for name, text in found), MOST_SENTENCES
    )


def scaling(curves: Sequence[Curve], model: str = "", dark: bool = False) -> Figure:
    """Medians with their intervals, linear scaling as a dotted line, the law's predictions dashed."""
    theme = look.theme_of(dark)
    own = [each for each in curves if not model or each.model == model]
    title = f"{TITLE}: {model}" if model else TITLE
    if not own:
        return look.nothing("scaling", title, QUESTION, theme, NOTHING)
    series = [one for at, each in enumerate(own) for one in _series(theme, at, each)]
    names = [*(each.name for each in own), IDEAL]
    option = {
        **look.legend_above(theme, names),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        **_axes(theme, own),
        "series": [*_ideals(own), *series],
    }
    return look.figure("scaling", title, QUESTION, option, theme, _notes(own))


def _key(timed: Timed) -> tuple[str, ...]:
    """Model, strategy, scaling, then what is the same along a curve; in strong scaling the batch is."""
    options = timed.options
    scaling, batch = name_of(options, "scaling"), options.whole("batch")
    whole = batch is not None and scaling != "strong" and batch % timed.ranks == 0
    size = "" if batch is None else f"batch {batch // timed.ranks if whole else batch:,}"
    rest = shown_parameters(options.without(*KNOWN))
    return timed.model, strategy_name(options), scaling, f"{size}{' a rank' if whole else ''}", rest


def _names(keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """The batch is named where two curves of a model differ in it alone."""
    short = [(model, ", ".join(filter(None, (strategy, scaling, rest))))
             for model, strategy, scaling, _, rest in keys]  # fmt: skip
    long = [name if short.count((model, name)) == 1 else f"{name}, {key[3]}"
            for key, (model, name) in zip(keys, short, strict=True)]  # fmt: skip
    models = {key[0] for key in keys}
    found: dict[tuple[str, ...], str] = {}
    for model in models:
        own = [at for at, key in enumerate(keys) if key[0] == model]
        found |= dict(zip([keys[at] for at in own], unique([long[at] for at in own]), strict=True))
    return found


def _point(timed: Timed, rate: Reading) -> Point:
    law = timed.facts.part("law")
    return Point(timed.ranks, rate, timed, _law(law, timed.options.number("batch"), timed.ranks))


def _law(law: Document, batch: float | None, ranks: int) -> Law | None:
    """From times of a step to rates: the longest time is the lowest rate."""
    step = law.number("predicted_step_ms")
    if not step or not batch:
        return None
    low, high = law.number("high_ms") or step, law.number("low_ms") or step
    rate, slowest, fastest = (batch / each * 1e3 for each in (step, low, high))
    if slowest > fastest:
        slowest, fastest = fastest, slowest
    fitted = ranks in law.numbers("fitted_on")
    return Law(rate, slowest, fastest, fitted, law.number("held_out_error"))


def _axes(theme: Theme, curves: Sequence[Curve]) -> dict[str, Any]:
    """Of powers where the ranks span many, else from 0."""
    points = [point for each in curves for point in each.points]
    ranks, unit = [each.ranks for each in points], points[0].rate.unit
    rates = [
        *(each.median for each in points),
        *(each.rate_of_rank * each.last.ranks for each in curves),
    ]
    y = f"Throughput ({unit})" if unit else "Throughput"
    if max(ranks) > LOG_SPAN * min(ranks) and min(rates) > 0:
        low, high = min(rates), max(rates)
        ticks = sorted(set(ranks))
        return {
            "xAxis": parts.log_axis(theme, "Ranks", **look.at_values(ticks, ticks[0], ticks[-1])),
            "yAxis": parts.as_y(parts.log_axis(theme, y, **look.powers(low, high))),
        }
    last = max(ranks) + max(0.4, max(ranks) / 20)
    return {
        "xAxis": parts.value_axis(
            theme, "Ranks", min=0, max=last, minInterval=1, axisLabel={"showMaxLabel": False}
        ),
        "yAxis": parts.as_y(parts.value_axis(theme, y, min=0)),
    }


def _series(theme: Theme, at: int, curve: Curve) -> list[dict[str, Any]]:
    colour, symbol = PALETTE[at % len(PALETTE)], SYMBOLS[at % len(SYMBOLS)]
    measured = [(float(each.ranks), each.median) for each in curve.points]
    ends = ends_of((float(each.ranks), each.rate) for each in curve.points)
    return [
        parts.marks(curve.name, symbol, 9, colour, [_item(curve, each) for each in curve.points]),
        look.line(curve.name, colour, "solid", measured),
        look.bars(curve.name, colour, ends),
        *_predicted(theme, curve, colour, symbol),
    ]


def _predicted(theme: Theme, curve: Curve, colour: str, symbol: str) -> list[dict[str, Any]]:
    """Hollow marks, wide pale strokes for the intervals, and a dashed line."""
    known = [(float(each.ranks), each.law) for each in curve.points if each.law]
    if not known:
        return []
    ends = [(ranks, law.low, law.high) for ranks, law in known]
    marks = [{"value": [ranks, look.digits(law.rate)], "name": _law_text(curve, ranks, law)}
             for ranks, law in known]  # fmt: skip
    return [
        look.bars(curve.name, colour, ends, width=9, opacity=0.25),
        look.line(curve.name, colour, "dashed", [(ranks, law.rate) for ranks, law in known]),
        parts.marks(curve.name, symbol, 8, colour, marks)
        | {"itemStyle": look.hollow(theme, colour), "z": 4},
    ]


def _ideals(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """From the fewest ranks of each curve; those that would lie on one another are one."""
    drawn: list[float] = []
    found = []
    for each in sorted(curves, key=lambda curve: -curve.rate_of_rank):
        if any(abs(each.rate_of_rank / rate - 1) < SAME_IDEAL for rate in drawn):
            continue
        drawn.append(each.rate_of_rank)
        ends = (each.points[0].ranks, max(curve.last.ranks for curve in curves))
        points = [(float(ranks), each.rate_of_rank * ranks) for ranks in ends]
        found.append(look.line(IDEAL, GREY, "dotted", points, 2))
    return found


def _item(curve: Curve, point: Point) -> dict[str, Any]:
    timed = point.timed
    step, exposed = timed.value("step"), timed.value("exposed")
    hosts = timed.options.whole("hosts") or 1
    lines = [
        f"{curve.name}, {counted(point.ranks, 'rank')} on {counted(hosts, 'host')}",
        with_interval(point.rate),
        f"efficiency {share(_efficiency(curve, point))}",
        f"step {amount(step, 'ms')}" if step is not None else "",
        f"exposed communication {amount(exposed, 'ms')}" if exposed is not None else "",
        f"the law predicts {amount(point.law.rate)}" if point.law else "",
    ]
    value = [point.ranks, look.digits(point.median)]
    return {"value": value, "name": "\n".join(filter(None, lines))}


def _efficiency(curve: Curve, point: Point) -> float:
    """Of linear scaling: as it was measured or, where it was not, from the fewest ranks."""
    measured = point.timed.value("efficiency")
    return measured if measured is not None else point.median / point.ranks / curve.rate_of_rank


def _law_text(curve: Curve, ranks: float, law: Law) -> str:
    how = "fitted to it" if law.was_fitted else "not fitted to it"
    error = "" if law.error is None else f"\nit misses held-out sizes by {share(law.error)}"
    return (
        f"the law for {curve.name}, {counted(int(ranks), 'rank')}, {how}\n"
        f"{amount(law.rate)} ({amount(law.low)} to {amount(law.high)}){error}"
    )


def _notes(curves: Sequence[Curve]) -> list[str]:
    notes = ["Points are medians with their 95 % intervals; the dotted line is linear scaling."]
    if any(point.law for each in curves for point in each.points):
        notes.append(
            "Hollow marks on dashed lines are the law's predictions, pale strokes their intervals."
        )
        notes += distinct((each.sentence("law", "sentence") for each in curves), MOST_SENTENCES)
    return notes
