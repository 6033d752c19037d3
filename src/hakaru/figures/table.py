"""The table itself, for a result that no chart says better; ECharts' matrix draws it."""

from __future__ import annotations

from typing import Any

from hakaru.figures import _labels as labels
from hakaru.figures._base import Drawn, kind
from hakaru.figures._frame import Frame
from hakaru.figures.theme import Theme
from hakaru.texts import VOCABULARIES

MAX_ROWS, MAX_COLUMNS = 24, 10
ROW_PX, FIRST_PX = 28, 130


@kind("table")
def table(frame: Frame, theme: Theme) -> Drawn:
    """The first rows as they are, units in the head."""
    rows = frame.rows[:MAX_ROWS]
    columns = frame.columns[:MAX_COLUMNS]
    cells = [
        {"coord": [column, at], "value": _text(frame, name, row[name])}
        for at, row in enumerate(rows)
        for column, name in enumerate(columns)
    ]
    head = {"color": theme.text, "fontSize": theme.small, "fontWeight": "bold"}
    option = {
        "matrix": {
            "left": 8,
            "right": 8,
            "top": 8,
            "height": ROW_PX * (len(rows) + 2),
            "x": {
                "data": [
                    {"value": frame.label(name)} | ({} if at else {"size": FIRST_PX})
                    for at, name in enumerate(columns)
                ],
                "levelSize": 2 * ROW_PX,
                "label": head | {"overflow": "break"},
                "itemStyle": _cell(theme),
                "dividerLineStyle": {"color": theme.muted},
            },
            "y": {"data": [{"value": str(at)} for at in range(len(rows))], "show": False},
            "body": {
                "data": cells,
                "label": {"color": theme.text, "fontSize": theme.small},
                "itemStyle": _cell(theme),
            },
            "backgroundStyle": _cell(theme),
        },
        "series": [],
    }
    return Drawn(option, ROW_PX * (len(rows) + 3), _notes(frame))


def _text(frame: Frame, column: str, value: Any) -> str:
    if column in VOCABULARIES and value is not None:
        return frame.key_name(column, value)
    return labels.text(column, value, frame.words)


def _cell(theme: Theme) -> dict[str, Any]:
    return {"color": "none", "borderColor": theme.line, "borderWidth": 1}


def _notes(frame: Frame) -> tuple[str, ...]:
    cuts = [
        (MAX_ROWS, len(frame.rows), "rows"),
        (MAX_COLUMNS, len(frame.columns), "columns"),
    ]
    return tuple(frame.cut(what, most, total) for most, total, what in cuts if total > most)
