"""The JSON API under /api/v1: thin routes over the service, each with its parameters as one model."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from hakaru.web import filters as asked
from hakaru.web import models
from hakaru.web.answers import FILES, file_response, json_response
from hakaru.web.problems import MEDIA_TYPE, Problem
from hakaru.web.service import Asker, Service

PREFIX = "/api/v1"
MEANINGS = {
    400: "The request cannot be read.",
    401: "The caller is not known.",
    403: "The role user may not see this.",
    404: "There is no such cluster, analysis or job, or the lake is empty.",
    422: "A parameter is unknown or wrong.",
    429: "Too many wrong tokens.",
    503: "All sessions are busy.",
    504: "The query took too long and was stopped.",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": meaning, "model": Problem, "content": {MEDIA_TYPE: {}}}
    for status, meaning in MEANINGS.items()
}
FILE_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {media_type.split(";")[0]: {} for _, media_type in FILES.values()}}
}
Id = Annotated[str, Path(max_length=64, pattern=r"^[a-z0-9-]+$", description="An analysis' id.")]

router = APIRouter(prefix=PREFIX, responses=PROBLEMS)


def asker_of(request: Request) -> Asker:
    """The service as this viewer may use it; for a route of the API or of a page."""
    service: Service = request.app.state.service
    return service.of(request.state.viewer)


As = Annotated[Asker, Depends(asker_of)]


@router.get("/me", response_model=models.Me, tags=["lake"])
def me(asker: As, query: Annotated[asked.Nothing, Query()]) -> Response:
    """Who asks, and in which role."""
    return json_response(asker.me())


@router.get("/clusters", response_model=models.Clusters, tags=["lake"])
def clusters(asker: As, query: Annotated[asked.Nothing, Query()]) -> Response:
    """The clusters of the lake, with what can be chosen of each."""
    return json_response(asker.clusters())


@router.get("/overview", response_model=models.Overview, tags=["workload"])
def overview(asker: As, query: Annotated[asked.Filters, Query()]) -> Response:
    """Each cluster now, over the period, and against the period before."""
    return json_response(asker.overview(query))


@router.get("/findings", response_model=models.Findings, tags=["workload"])
def findings(asker: As, query: Annotated[asked.Filters, Query()]) -> Response:
    """What stands out in each cluster's jobs, in sentences computed from the numbers."""
    return json_response(asker.findings(query))


@router.get("/analyses", response_model=models.Analyses, tags=["workload"])
def analyses(asker: As, query: Annotated[asked.Nothing, Query()]) -> Response:
    """Every registered analysis: its question, its parameters, and what it reproduces."""
    return json_response(asker.analyses())


@router.get(
    "/analyses/{id}", response_model=models.Table, responses=FILE_CONTENT, tags=["workload"]
)
def analysis(asker: As, id: Id, query: Annotated[asked.ResultQuery, Query()]) -> Response:
    """One analysis' table; its own parameters are given as `param.NAME=VALUE`."""
    if query.format == "json":
        return json_response(asker.table(id, query))
    return file_response(asker.result(id, query).result.table, id, query.format)


@router.get("/figures/{id}", response_model=models.Drawing, tags=["workload"])
def figure(asker: As, id: Id, query: Annotated[asked.FigureQuery, Query()]) -> Response:
    """The same as a figure: an ECharts option."""
    return json_response(asker.figure(id, query))


@router.get("/jobs", response_model=models.Jobs, tags=["jobs"])
def jobs(asker: As, query: Annotated[asked.JobsQuery, Query()]) -> Response:
    """Jobs, sorted and paged; the role user gets their own."""
    return json_response(asker.jobs(query))


@router.get("/job", response_model=models.Job, tags=["jobs"])
def job(asker: As, query: Annotated[asked.JobQuery, Query()]) -> Response:
    """One job's whole record, and its place among the user's and the cluster's jobs."""
    return json_response(asker.job(query))


@router.get("/people", response_model=models.People, tags=["people"])
def people(asker: As, query: Annotated[asked.PeopleQuery, Query()]) -> Response:
    """Users or accounts, sorted and paged; the role user gets themselves."""
    return json_response(asker.people(query))


@router.get("/compare", response_model=models.Comparison, tags=["workload"])
def compare(asker: As, query: Annotated[asked.CompareQuery, Query()]) -> Response:
    """Clusters and published figures side by side."""
    return json_response(asker.compare(query))


@router.get("/lake", response_model=models.LakeContents, tags=["lake"])
def lake(asker: As, query: Annotated[asked.Nothing, Query()]) -> Response:
    """What is in the lake, the last ingests, and why records were rejected."""
    return json_response(asker.lake())


@router.get("/lake/rejects", response_model=models.Rejects, tags=["lake"])
def rejects(asker: As, query: Annotated[asked.RejectsQuery, Query()]) -> Response:
    """The rejected records, paged; for operators."""
    return json_response(asker.rejects(query))
