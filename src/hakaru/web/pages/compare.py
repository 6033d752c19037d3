"""Clusters and published figures side by side, each published one with its citation."""

from __future__ import annotations

from math import log10
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from hakaru.texts import language
from hakaru.web.filters import CompareQuery
from hakaru.web.models import Comparison
from hakaru.web.pages import _address as address
from hakaru.web.pages._frame import Frame

router = APIRouter(include_in_schema=False)
TAKES = ("cluster", "since", "until")
FEW = 3  # a drawing of fewer says nothing


@router.get("/compare")
def compare(request: Request) -> Response:
    frame = Frame.of(request, "compare")
    if frame.hint:
        return frame.empty()
    asked = [*address.only(frame.pairs, TAKES), *frame.own_only()]
    query = address.read(CompareQuery, asked)
    found = frame.asker.compare(query)
    sources: dict[str, int] = {}
    return frame.render(
        "compare.html",
        found=found,
        query=query,
        lines=[_line(found, metric, sources) for metric in found.metrics],
        sources=sources,
        unused=[name for name, _ in frame.pairs if name not in TAKES],
        choices=_choices(frame, [each["name"] for each in found.clusters]),
        switches=[
            ("headline", frame.at(metrics=None)),
            ("all", frame.at(metrics="all")),
        ],
    )


def _choices(frame: Frame, shown: list[str]) -> list[tuple[str, str, bool]]:
    """Each cluster, the address with it or without it, and whether it is here; one always stays."""
    rest = [*address.without(frame.pairs, "cluster"), *frame.own]
    choices = []
    for each in frame.clusters if len(frame.clusters) > 1 else []:
        is_here = each.name in shown
        names = [name for name in shown if name != each.name] if is_here else [*shown, each.name]
        chosen = [("cluster", name) for name in names or shown]
        choices.append((each.name, address.written("/compare", [*chosen, *rest]), is_here))
    return choices


def _line(found: Comparison, metric: dict[str, Any], sources: dict[str, int]) -> dict[str, Any]:
    """A metric: ours, theirs, and where each lies between the least and the greatest."""
    unit = found.clusters[0]["unit"] if found.clusters else "gpu"
    words = language("en", unit)
    own = [
        {
            "cluster": name,
            "text": "–" if cell["value"] is None else words.of_unit(cell["value"], metric["unit"]),
            "reason": cell.get("reason"),
        }
        for name, cell in metric["computed"].items()
    ]
    others = [
        {
            "cluster": name,
            "text": f"{each['bound'] or ''}{words.of_unit(each['value'], metric['unit'])}",
            "number": sources.setdefault(each["source"], len(sources) + 1),
            "title": each["where"] + (f": {each['note']}" if each["note"] else ""),
        }
        for name, each in metric["published"].items()
    ]
    label = metric["label"] + (f" ({metric['counting']})" if metric["counting"] else "")
    return {"id": metric["id"], "label": label, "own": own, "others": others,
            "analysis": metric["analysis"], "strip": _strip(metric)}  # fmt: skip


def _strip(metric: dict[str, Any]) -> dict[str, list[float]] | None:
    """Places between 0 and 100 for a small drawing; on a log scale where the values span decades."""
    own = [c["value"] for c in metric["computed"].values() if c["value"] is not None]
    names = {name.lower() for name in metric["computed"]}
    others = [e["value"] for name, e in metric["published"].items() if name.lower() not in names]
    values = [*own, *others]
    if not own or len(others) < FEW or min(values) == max(values):
        return None
    wide = min(values) > 0 and max(values) / min(values) > 50
    low, high = min(values), max(values)

    def place(value: float) -> float:
        if wide:
            return 100 * log10(value / low) / log10(high / low)
        return float(100 * (value - low) / (high - low))

    return {"own": [place(v) for v in own], "others": [place(v) for v in others]}
