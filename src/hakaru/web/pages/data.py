"""What is in the lake, the last ingests, and the records that could not be read."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from hakaru.web.filters import Nothing, RejectsQuery
from hakaru.web.pages import _address as address
from hakaru.web.pages._frame import Frame

router = APIRouter(include_in_schema=False)


@router.get("/data")
def data(request: Request) -> Response:
    frame = Frame.of(request, "data")
    address.read(Nothing, frame.own_only())
    return frame.render("data.html", found=frame.asker.lake(), title="Data")


@router.get("/data/rejects")
def rejects(request: Request) -> Response:
    """The records themselves; for operators."""
    frame = Frame.of(request, "data")
    pairs = [*address.only(frame.pairs, ("cluster",)), *frame.own_only()]
    query = address.read(RejectsQuery, [(n, v) for n, v in pairs if n != "cluster"]).model_copy(
        update={"cluster": frame.filters.cluster[0] if frame.filters.cluster else None}
    )
    return frame.render("rejects.html", found=frame.asker.rejects(query), query=query)
