"""The pages: HTML of what the service answers."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)
FORM = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign in · Hakaru</title>
<h1>Hakaru</h1><form method="post" action="/sign-in"><label>Token
<input type="password" name="token" autocomplete="current-password" required></label>
<button>Sign in</button></form></html>"""
FRONT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Hakaru</title>
<h1>Hakaru</h1><p><a href="/api/v1/docs">The API</a></p></html>"""


def install(app: FastAPI) -> None:
    """Add the pages' routes; `app.state.problem_page` makes the page of an error."""
    app.include_router(router)


@router.get("/")
def front(request: Request) -> Response:
    return HTMLResponse(FRONT)


@router.get("/sign-in")
def sign_in(request: Request) -> Response:
    return HTMLResponse(FORM)
