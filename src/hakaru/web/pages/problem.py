"""The page of an error: what it was, and how to mend it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from hakaru.web.access.gate import SIGN_IN
from hakaru.web.pages._frame import pages_of, render
from hakaru.web.problems import Problem


def problem_page(request: Request, problem: Problem) -> Response:
    """It asks the lake nothing, so that it can tell of a lake that cannot be read."""
    if request.url.path == SIGN_IN and problem.status in (401, 429):
        text = render("sign_in.html", problem=problem, next="/")
        return HTMLResponse(text, problem.status)
    viewer = getattr(request.state, "viewer", None)
    text = render(
        "problem.html",
        problem=problem,
        pages=pages_of(viewer.role) if viewer is not None else (),
        path=request.url.path,
        sign_out=viewer is not None and viewer.has_session,
        has_query=_works_without_query(request),
    )
    return HTMLResponse(text, problem.status)


def _works_without_query(request: Request) -> bool:
    """Whether the page is there and shows something without its filters; // would lead to another site."""
    path = request.url.path
    is_page = "route" in request.scope and path != "/job" and not path.startswith("//")
    return bool(request.url.query) and is_page
