"""The form for a token."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from hakaru.web.access.gate import SIGN_IN
from hakaru.web.pages._frame import render

router = APIRouter(include_in_schema=False)


@router.get(SIGN_IN)
async def form(request: Request) -> Response:
    return HTMLResponse(
        render("sign_in.html", problem=None, next=request.query_params.get("next", "/"))
    )
