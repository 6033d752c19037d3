"""The app: the service, the API and the pages behind one gate, with one way to tell of problems."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hakaru.analyses import Unit
from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.settings import Settings, load
from hakaru.web import api, api_docs, pages
from hakaru.web.access import sign_in
from hakaru.web.access.gate import Access, Gate
from hakaru.web.access.tokens import Tokens
from hakaru.web.answers import problem_response
from hakaru.web.guard import LOOPBACK_NAMES, Guard
from hakaru.web.measure import api as measure
from hakaru.web.problems import Problem, WebError, problem_of
from hakaru.web.readers import Readers
from hakaru.web.service import Service
from hakaru.web.turns import Turns
from hakaru.web.what_if import api as what_if
from hakaru.web.what_if.bounds import Bounds
from hakaru.web.what_if.runs import Runs

DESCRIPTION = """
The analyses, filters and job records of Hakaru. Every endpoint takes the filters by the same names as the
pages' addresses. An unknown parameter is an error. Errors are problem objects (RFC 9457). Sign in with
`Authorization: Bearer TOKEN` where access is configured.
"""
log = logging.getLogger("hakaru.web")


def create_app(
    lake: Lake,
    settings: Settings | None = None,
    *,
    access_folder: Path | None = None,
    loopback: bool = True,
    cache: bool = True,
    bounds: Bounds | None = None,
    unit: Unit | None = None,
) -> FastAPI:
    """The app over a lake. `loopback` says that it is reached from this machine only.

    Tokens are those of `access_folder`, else of the lake's workspace. `bounds` are those of what-if;
    `unit` is what sizes count, in place of the settings' or the log's.
    """
    settings = settings or load(lake.workspace)
    readers = Readers(lake, settings, cache, unit)
    runs = Runs(bounds, lake.workspace)
    access = Access(Tokens(access_folder or lake.workspace), settings.web, open_here=loopback)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        runs.close()
        readers.close()

    app = FastAPI(
        title="Hakaru",
        version="1",
        description=DESCRIPTION,
        openapi_url=f"{api.PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.service = Service(readers)
    app.state.access = access
    app.state.runs = runs
    app.include_router(api.router)
    app.include_router(what_if.router)
    app.include_router(measure.router)
    app.include_router(api_docs.router)
    app.include_router(sign_in.router)
    pages.install(app)
    _tell_problems(app)
    app.add_middleware(Turns, web=settings.web)
    app.add_middleware(Gate, access=access)
    app.add_middleware(Guard, hosts=_hosts(settings, loopback))
    return app


def _hosts(settings: Settings, loopback: bool) -> tuple[str, ...] | None:
    """The names that the app answers to; None, any, where it is reached from elsewhere and none are set."""
    if loopback or settings.web.hosts:
        return (*LOOPBACK_NAMES, *settings.web.hosts)
    return None


def _tell_problems(app: FastAPI) -> None:
    """Every error leaves as a problem: what it was, and how to mend it; never a stack trace."""

    @app.exception_handler(HakaruError)
    def mended(request: Request, error: HakaruError) -> Response:
        return problem_response(request, problem_of(error))

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        problem = Problem(
            title="A parameter is wrong",
            status=422,
            detail="; ".join(_told(each) for each in error.errors()[:10]),
            fix=f"The parameters are listed at {api_docs.PATH}.",
        )
        return problem_response(request, problem)

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> Response:
        known = {
            404: ("Not found", "There is no page at this address."),
            405: ("Method not allowed", f"This address does not take {request.method}."),
        }
        title, text = known.get(error.status_code, (WebError.title, str(error.detail)))
        problem = Problem(title=title, status=error.status_code, detail=text)
        return problem_response(request, problem)

    @app.exception_handler(ClientDisconnect)
    def gone(request: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=400)  # nobody reads it

    @app.exception_handler(Exception)
    def broken(request: Request, error: Exception) -> Response:
        problem = Problem(
            title="Internal error",
            status=500,
            detail="The server failed to answer; its log has the details.",
            fix="Try again. If it fails again, ask an operator to look at the log at this time.",
        )
        return problem_response(request, problem)


def _told(error: dict[str, object]) -> str:
    """`size: Input should be less than or equal to 200`; an unknown one is called so."""
    place = error.get("loc")
    parts = place[1:] if isinstance(place, tuple) else ()
    name = ".".join(str(part)[:60] for part in parts)
    if error.get("type") == "extra_forbidden":
        return f"{name}: there is no such parameter"
    return f"{name}: {error.get('msg')}"
