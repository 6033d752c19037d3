"""The API of measurements: the runs, their measurements and figures, histories, and the preflight."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from hakaru.web.answers import json_response
from hakaru.web.api import PREFIX, PROBLEMS
from hakaru.web.measure import models
from hakaru.web.measure.service import Bench
from hakaru.web.models import Drawing

RunId = Annotated[str, Path(pattern=models.RUN_ID, description="A run's id, or `latest`.")]
Figure = Annotated[models.FigureId, Path(description="Which figure.")]

router = APIRouter(prefix=f"{PREFIX}/measure", responses=PROBLEMS, tags=["measure"])


def bench_of(request: Request) -> Bench:
    """Measurements as this viewer may ask for them; the role user may not."""
    return Bench(request.app.state.service.readers, request.state.viewer)


At = Annotated[Bench, Depends(bench_of)]


@router.get("", response_model=models.Runs)
def runs(bench: At, query: Annotated[models.RunsQuery, Query()]) -> Response:
    """The runs, the newest first; for operators, as all of measure."""
    return json_response(bench.listed(query))


@router.get("/history", response_model=models.History)
def history(bench: At, query: Annotated[models.SubjectQuery, Query()]) -> Response:
    """One quantity over the runs of a cluster, with the steps in it."""
    return json_response(bench.history(query))


@router.get("/preflight", response_model=models.Preflight)
def preflight(bench: At, query: Annotated[models.RunsQuery, Query()]) -> Response:
    """The last preflight of a cluster: what is not a pass first."""
    return json_response(bench.preflight(query.cluster))


@router.get("/{run}", response_model=models.RunResult)
def run(bench: At, run: RunId, query: Annotated[models.RunQuery, Query()]) -> Response:
    """A run: its verdict in words, and its measurements, paged."""
    return json_response(bench.result(run, query))


@router.get("/{run}/beside/{other}", response_model=models.Beside)
def beside(
    bench: At, run: RunId, other: RunId, query: Annotated[models.RunsQuery, Query()]
) -> Response:
    """Two runs side by side, the earlier first: medians over devices, and which of these have changed."""
    return json_response(bench.beside(run, other, query))


@router.get("/{run}/figures/{figure}", response_model=Drawing)
def figure(
    bench: At, run: RunId, figure: Figure, query: Annotated[models.FigureQuery, Query()]
) -> Response:
    """A figure of a run: an ECharts option."""
    return json_response(bench.figure(run, figure, query))
