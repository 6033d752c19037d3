"""Signing in with a token, which begins a session, and out, which ends it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from hakaru.web.access.gate import COOKIE, SIGN_IN, Access, cookies_of
from hakaru.web.access.sessions import LASTS_S
from hakaru.web.problems import Malformed, Refused

SIGN_OUT = "/sign-out"
FORM = "application/x-www-form-urlencoded"

router = APIRouter(include_in_schema=False)


@router.post(SIGN_IN)
async def sign_in(request: Request) -> Response:
    """A form with `token`, and `next`: where to go then, on this app only."""
    check_same_site(request)
    fields = await _form(request)
    access: Access = request.app.state.access
    cookie = access.sign_in(fields.get("token", "").strip(), request.scope)
    response = RedirectResponse(_local(fields.get("next", "/")), status_code=303)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=LASTS_S,
        path="/",
        httponly=True,
        samesite="strict",
        secure=access.is_https(request.scope),
    )
    return response


@router.post(SIGN_OUT)
def sign_out(request: Request) -> Response:
    check_same_site(request)
    access: Access = request.app.state.access
    cookie = cookies_of(request.headers).get(COOKIE)
    if cookie:
        access.sessions.end(cookie)
    response = RedirectResponse(SIGN_IN, status_code=303)
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return response


def check_same_site(request: Request) -> None:
    """A form of another site is refused: browsers say where a POST comes from."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    if foreign or (site is not None and site not in ("same-origin", "none")):
        raise Refused(
            "this form was sent from another site", "Open the app itself and sign in there."
        )


async def _form(request: Request) -> dict[str, str]:
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != FORM:
        raise Malformed("expected a form", f"Send it as {FORM}.")
    try:
        fields = parse_qs((await request.body()).decode("utf-8"), max_num_fields=10)
    except (UnicodeDecodeError, ValueError):
        raise Malformed("the form cannot be read") from None
    return {name: values[0] for name, values in fields.items()}


def _local(path: str) -> str:
    """The path if it is one of this app, else the front page: nobody is sent elsewhere."""
    plain = path.isprintable() and path.isascii() and "\\" not in path
    return path if plain and path.startswith("/") and not path.startswith("//") else "/"
