"""The API of what-if: start a run, see how far it is, and what came of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from hakaru.web.access.sign_in import check_same_site
from hakaru.web.answers import json_response
from hakaru.web.api import PREFIX, PROBLEMS
from hakaru.web.filters import Nothing
from hakaru.web.models import Drawing
from hakaru.web.what_if import models
from hakaru.web.what_if.service import Desk

RunId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", description="A run's id.")]
Figure = Annotated[models.FigureId, Path(description="Which figure.")]

router = APIRouter(prefix=f"{PREFIX}/what-if", responses=PROBLEMS, tags=["what-if"])
OWN_SITE = [Depends(check_same_site)]


def desk_of(request: Request) -> Desk:
    """What-if as this viewer may ask it; the role user may not."""
    state = request.app.state
    return Desk(state.runs, state.service.readers, request.state.viewer)


At = Annotated[Desk, Depends(desk_of)]


@router.get("", response_model=models.WhatIf)
def what_if(desk: At, query: Annotated[Nothing, Query()]) -> Response:
    """The policies, the limits of this server, and the last runs; for operators, as all of what-if."""
    return json_response(desk.about())


@router.post("", response_model=models.Run, status_code=202, dependencies=OWN_SITE)
def start(desk: At, wanted: models.Wanted, query: Annotated[Nothing, Query()]) -> Response:
    """Start a run: it is played when those before it have ended."""
    answer = json_response(desk.start(wanted))
    answer.status_code = 202
    return answer


@router.get("/{run}", response_model=models.RunResult)
def run(desk: At, run: RunId, query: Annotated[Nothing, Query()]) -> Response:
    """How far a run is and, once it is done, what came of it."""
    return json_response(desk.find(run))


@router.delete("/{run}", response_model=models.Run, dependencies=OWN_SITE)
def cancel(desk: At, run: RunId, query: Annotated[Nothing, Query()]) -> Response:
    """Stop a run that waits or is played; one that has ended stays as it is."""
    return json_response(desk.cancel(run))


@router.get("/{run}/nodes", response_model=models.NodesOfDay)
def nodes(desk: At, run: RunId, query: Annotated[models.DayQuery, Query()]) -> Response:
    """What ran on which node on a day, at most 3,000 bars."""
    return json_response(desk.nodes(run, query))


@router.get("/{run}/figures/{figure}", response_model=Drawing)
def figure(
    desk: At, run: RunId, figure: Figure, query: Annotated[models.FigureQuery, Query()]
) -> Response:
    """A figure of the comparison: an ECharts option."""
    return json_response(desk.figure(run, figure, query))
