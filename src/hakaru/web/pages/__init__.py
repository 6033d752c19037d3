"""The pages: HTML of what the service answers, the same as /api/v1; the browser draws the charts."""

from __future__ import annotations

from fastapi import FastAPI

from hakaru.web.pages import (
    compare,
    data,
    jobs,
    measure,
    overview,
    people,
    sign_in,
    static,
    what_if,
    workload,
)
from hakaru.web.pages.problem import problem_page

ROOMS = (overview, workload, jobs, people, compare, what_if, measure, data, sign_in, static)


def install(app: FastAPI) -> None:
    """Add the pages' routes; `app.state.problem_page` makes the page of an error."""
    for room in ROOMS:
        app.include_router(room.router)
    app.state.problem_page = problem_page
