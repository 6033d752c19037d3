"""Shares of a whole beside one another: what the heaviest one, three, ten and tenth of the users take."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures import _parts as parts
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import Frame
from hakaru.figures.theme import PALETTE, Theme

NAMED = ("share_top1", "share_top3", "share_top10", "share_top_tenth", "share_unknown")
MAX_ROWS = 8


@kind("shares")
def shares(frame: Frame, theme: Theme) -> Drawn:
    """A cluster of bars for each share, a bar in it for each row of the table."""
    columns = [each for each in frame.columns if labels.is_share(each)]
    rows = frame.rows[:MAX_ROWS]
    series = [_bars(frame, theme, row, columns, at) for at, row in enumerate(rows)]
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, [each["name"] for each in series]),
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}},
        "xAxis": parts.category_axis(theme, "", [_share(frame, each) for each in columns]),
        "yAxis": parts.as_y(parts.percent_axis(theme, _share_of(frame))),
        "series": series,
    }
    more = len(frame.rows) > MAX_ROWS
    notes = [frame.cut("rows", MAX_ROWS, len(frame.rows))] if more else []
    notes += [
        frame.say("gini", whose=_name(frame, row), value=f"{row['gini']:.3f}")
        for row in rows
        if row["gini"]
    ]
    return Drawn(option, notes=tuple(notes))


def _bars(
    frame: Frame, theme: Theme, row: dict[str, Any], columns: list[str], at: int
) -> dict[str, Any]:
    return {
        "type": "bar",
        "name": _name(frame, row),
        "color": PALETTE[at % len(PALETTE)],
        "barMaxWidth": 48,
        "label": {
            "show": len(frame.rows) <= 2,
            "position": "top",
            "formatter": frame.words.in_unit("percent", "{c}"),
            "color": theme.text,
            "fontSize": theme.small,
        },
        "data": [_percent(row[each]) for each in columns],
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 1)


def _name(frame: Frame, row: dict[str, Any]) -> str:
    count = frame.words.cell("num_holders", row["num_holders"])
    own = frame.say(f"{row['holder']}s", count=count)
    return f"{frame.name(row[frame.group])}: {own}" if frame.group else own


def _share_of(frame: Frame) -> str:
    if frame.measure == "num_jobs":
        return frame.say("share_of_jobs")
    return frame.say("share_of_hours", hours=frame.label("pe_hours"))


def _share(frame: Frame, column: str) -> str:
    return frame.say(column) if column in NAMED else frame.label(column)
