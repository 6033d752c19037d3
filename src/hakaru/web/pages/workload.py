"""Every registered analysis as a card, in the order of the paper; and one analysis with everything."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from hakaru.web.filters import AnalysisQuery, FigureQuery, Group
from hakaru.web.models import AnalysisInfo, Table
from hakaru.web.pages import _address as address
from hakaru.web.pages._cards import Card, card
from hakaru.web.pages._frame import Frame
from hakaru.web.privacy import GROUPS
from hakaru.web.problems import Unknown

router = APIRouter(include_in_schema=False)
MAX_SHOWN = 100
SUBJECTS = {
    "overview": "The log at a glance",
    "parallelism": "Parallelism",
    "requests": "Requests and what was used",
    "walltime": "Run time",
    "arrivals": "Arrivals",
    "waits": "Waiting",
    "behaviour": "Behaviour of users",
    "load": "Load of the machine",
    "people": "People",
    "shapes": "Shapes of jobs",
}


@router.get("/workload")
def workload(request: Request) -> Response:
    frame = Frame.of(request, "workload")
    if frame.hint:
        return frame.empty()
    address.read(AnalysisQuery, [*address.pairs_of(frame.filters), *frame.own]).params()
    frame.filters.check()
    frame.check_clusters()
    infos = [each for each in frame.asker.analyses().analyses if each.figure != "table"]
    groups = [
        (subject, SUBJECTS.get(subject, subject.capitalize()), [card(frame, i) for i in found])
        for subject, found in groupby(infos, key=lambda each: each.subject)
    ]
    return frame.render("workload.html", groups=groups)


@router.get("/workload/{id}")
def one(request: Request, id: Annotated[str, Path(max_length=64)]) -> Response:
    frame = Frame.of(request, "workload")
    if frame.hint:
        return frame.empty()
    info = _info(frame, id)
    shown = card(frame, info, own=frame.own)
    query = _query(shown)
    table = None if shown.refused else frame.asker.table(id, query)
    drawing = None if shown.refused else frame.asker.figure(id, _figure(query))
    return frame.render(
        "analysis.html",
        card=shown,
        table=table,
        notes=[] if drawing is None else drawing.notes,
        shown=[] if table is None else table.rows[:MAX_SHOWN],
        behind=shown.jobs if drawing is None else _behind(shown, drawing.where),
        num_rows=0 if table is None else len(table.rows),
        groups=_groups(frame, info),
        params=[each for each in info.params if _sees_all(frame)],
        has_times=table is not None and _has_times(table),
        by=query.by,
        values=query.params(),
    )


def _info(frame: Frame, id: str) -> AnalysisInfo:
    for info in frame.asker.analyses().analyses:
        if info.id == id:
            return info
    raise Unknown(f"there is no analysis {id!r}", "The workload page lists them.")


def _query(shown: Card) -> AnalysisQuery:
    """What the card's own data link asks."""
    return address.read(AnalysisQuery, parse_qsl(urlsplit(shown.json).query))


def _figure(query: AnalysisQuery) -> FigureQuery:
    return FigureQuery(**query.model_dump(exclude_none=True))


def _groups(frame: Frame, info: AnalysisInfo) -> list[str]:
    if not info.groups:
        return []
    names: tuple[str, ...] = Group.__args__  # type: ignore[attr-defined]
    return [name for name in names if _sees_all(frame) or name in GROUPS]


def _sees_all(frame: Frame) -> bool:
    """Whether all the selected jobs are the viewer's to see."""
    return frame.me.role != "user" or frame.filters.user == frame.me.user


def _has_times(table: Table) -> bool:
    return bool(table.rows) and any(isinstance(each, datetime) for each in table.rows[0].values())


def _behind(shown: Card, rules: str | None) -> str:
    """The jobs that the analysis counted: those that pass its rules too."""
    parts = [f"({shown.where})" if rules and shown.where else shown.where, rules]
    where = " AND ".join(part for part in parts if part)
    pairs = parse_qsl(urlsplit(shown.jobs).query)
    return address.written("/jobs", pairs, where=where or None)
