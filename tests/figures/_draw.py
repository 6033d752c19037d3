"""Draw an analysis in one line, and walk through what was drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hakaru.analyses import Result, Selection, Session, load_all
from hakaru.figures import Figure, draw
from hakaru.lake import Lake
from tests.analyses._ask import ask


def drawn(lake: Lake, id: str, params: dict[str, Any] | None = None, **selection: Any) -> Figure:
    return draw(ask(lake, id, params, **selection))


def run(session: Session, id: str, **selection: Any) -> Result:
    return session.run(load_all().get(id), Selection(**selection))


def items(figure: Figure) -> Iterator[dict[str, Any]]:
    """Every data item that is an object."""
    for series in figure.option["series"]:
        yield from (item for item in series["data"] if isinstance(item, dict))


def values(series: dict[str, Any]) -> list[Any]:
    return [item["value"] if isinstance(item, dict) else item for item in series["data"]]


def axes(figure: Figure) -> Iterator[dict[str, Any]]:
    for name in ("xAxis", "yAxis", "parallelAxis"):
        found = figure.option.get(name, [])
        yield from [found] if isinstance(found, dict) else found
