"""Throughput of training over ranks, beside linear scaling and what the fitted law predicts.

After Tanaka et al., RaNNC (FLOW's 1–4 GPUs and 2–4 nodes) and MN-1's weak scaling to 1,024 GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure._curves import Curve, Law, Point
from hakaru.figures.measure.together import (
    distinct,
    ends_of,
    with_interval,
)
from hakaru.figures.theme import GREY, PALETTE, SYMBOLS, Theme
from hakaru.measure.numbers import amount, counted, share

TITLE = "Scaling of training"
QUESTION = "How much faster does training become with more ranks, and what was to be expected?"
NOTHING = "No training among ranks has a number that counts."
IDEAL = "linear scaling"
LOG_SPAN = 8  # of the ranks: beyond it few of them would stand at the left edge
SAME_IDEAL = 0.05  # two lines closer than this are drawn as one
MOST_SENTENCES = 6


def scaling_sentences(curves: Sequence[Curve]) -> list[str]:
    """Where scaling stops and what is to blame, once for each study of a model."""
    found = {
        each.verdict: f"{each.model}, {each.scaling}" for each in reversed(curves) if each.verdict
    }
    several = len(found) > 1
    told = [f"{name}: {text}" if several else text for text, name in reversed(found.items())]
    return told[:MOST_SENTENCES]


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


def _axes(theme: Theme, curves: Sequence[Curve]) -> dict[str, Any]:
    """Of powers where the ranks span many, else from 0."""
    points = [point for each in curves for point in each.points]
    laws = [law.ranks for each in curves for law in each.laws]
    ranks, unit = [*(each.ranks for each in points), *laws], points[0].rate.unit
    rates = [
        *(each.median for each in points),
        *(each.rate_of_rank * _most(each) for each in curves),
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
    laws = curve.laws
    if not laws:
        return []
    ends = [(float(each.ranks), each.low, each.high) for each in laws]
    line = [(float(each.ranks), each.rate) for each in laws]
    if laws[0].ranks > curve.last.ranks:
        line.insert(0, (float(curve.last.ranks), curve.last.median))
    marks = [
        {"value": [each.ranks, look.digits(each.rate)], "name": _law_text(curve, each)}
        for each in laws
    ]
    return [
        look.bars(curve.name, colour, ends, width=9, opacity=0.25),
        look.line(curve.name, colour, "dashed", line),
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
        ends = (each.points[0].ranks, max(_most(curve) for curve in curves))
        points = [(float(ranks), each.rate_of_rank * ranks) for ranks in ends]
        found.append(look.line(IDEAL, GREY, "dotted", points, 2))
    return found


def _most(curve: Curve) -> int:
    return max(curve.last.ranks, *(each.ranks for each in curve.laws), 1)


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


def _law_text(curve: Curve, law: Law) -> str:
    how = "fitted to it" if law.was_fitted else "not fitted to it"
    error = "" if law.error is None else f"\nit misses held-out sizes by {share(law.error)}"
    return (
        f"the law for {curve.name}, {counted(law.ranks, 'rank')}, {how}\n"
        f"{amount(law.rate)} ({amount(law.low)} to {amount(law.high)}){error}"
    )


def _notes(curves: Sequence[Curve]) -> list[str]:
    """The law's own sentence is told where no verdict has told it."""
    notes = ["Points are medians with their 95 % intervals; the dotted line is linear scaling."]
    if any(each.laws for each in curves):
        notes.append(
            "Hollow marks on dashed lines are the law's predictions, pale strokes their intervals."
        )
    verdicts = " ".join(each.verdict for each in curves)
    last = (each.laws[-1].sentence for each in curves if each.laws)
    return [*notes, *distinct((text for text in last if text not in verdicts), MOST_SENTENCES)]
