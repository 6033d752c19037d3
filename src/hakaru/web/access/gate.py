"""The gate that every request passes: what is behind it runs only for known viewers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hakaru.errors import HakaruError
from hakaru.settings import Web
from hakaru.web.access.sessions import Failures, Sessions
from hakaru.web.access.tokens import Tokens
from hakaru.web.access.viewer import ANYBODY_HERE, OPERATOR, USER, Viewer
from hakaru.web.addresses import is_proxy
from hakaru.web.answers import problem_response
from hakaru.web.problems import Busy, Malformed, NotSignedIn, TooMany, WebError, problem_of

SIGN_IN = "/sign-in"
OPEN_PATHS = (SIGN_IN, "/static/")  # the form, and what it looks like; neither shows any data
log = logging.getLogger("hakaru.web")
COOKIE = "hakaru_session"
SIGN_IN_FIX = (
    "Sign in at /sign-in, or send `Authorization: Bearer TOKEN`. An operator creates tokens with: "
    "hakaru token create"
)


class Access:
    """Decides who asks. `open_here` says that the app listens on this machine only."""

    def __init__(self, tokens: Tokens, web: Web, open_here: bool) -> None:
        self.tokens = tokens
        self.web = web
        self.open_here = open_here
        self.sessions = Sessions()
        self.failures = Failures()

    @property
    def is_configured(self) -> bool:
        return self.tokens.exist or self.web.proxy_header is not None

    def viewer(self, scope: Scope) -> Viewer | None:
        """Who asks, or None; a wrong token is an error, not merely nobody."""
        headers = Headers(scope=scope)
        if not self.is_configured:
            return ANYBODY_HERE if self.open_here else None
        if self._is_proxy(scope) and (viewer := self._named_by_proxy(headers)):
            return viewer
        if "authorization" in headers:
            return self._bearer(headers, scope)
        return self._session(headers)

    def is_https(self, scope: Scope) -> bool:
        forwarded = Headers(scope=scope).get("x-forwarded-proto")
        return (forwarded if self._is_proxy(scope) and forwarded else scope["scheme"]) == "https"

    def sign_in(self, secret: str, scope: Scope) -> str:
        """The cookie of a new session for a right token."""
        token = self.tokens.find(secret)
        if token is None:
            raise self._failed(scope)
        return self.sessions.begin(token.id)

    def _bearer(self, headers: Headers, scope: Scope) -> Viewer:
        scheme, _, secret = headers["authorization"].partition(" ")
        token = self.tokens.find(secret.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            raise self._failed(scope)
        return token.viewer()

    def _session(self, headers: Headers) -> Viewer | None:
        cookie = cookies_of(headers).get(COOKIE)
        token_id = self.sessions.token_id(cookie) if cookie else None
        token = self.tokens.by_id(token_id) if token_id else None
        return token.viewer(has_session=True) if token else None

    def _named_by_proxy(self, headers: Headers) -> Viewer | None:
        names = headers.getlist(self.web.proxy_header or "")
        if len(names) > 1:
            raise Malformed(f"the proxy sent the header {self.web.proxy_header} twice")
        name = names[0].strip() if names else ""
        if not name:
            return None
        role = OPERATOR if name in self.web.operators else USER
        return Viewer(role, name, name if role == USER else None)

    def _is_proxy(self, scope: Scope) -> bool:
        has_header = self.web.proxy_header is not None
        return has_header and is_proxy(peer_of(scope), self.web.proxy_address)

    def _failed(self, scope: Scope) -> HakaruError:
        if self.failures.add(peer_of(scope)):
            return TooMany("too many wrong tokens came from this address", "Wait a few minutes.")
        return NotSignedIn("the token is unknown, revoked or expired", SIGN_IN_FIX)


class Gate:
    """Lets through whom `Access` knows, as `request.state.viewer`; the rest are asked to sign in."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            viewer = self.access.viewer(scope)
        except HakaruError as error:
            answer = problem_response(Request(scope), problem_of(_for_strangers(error)))
            await answer(scope, receive, send)
            return
        if viewer is None and not is_open(scope["path"]):
            await _ask_to_sign_in(scope)(scope, receive, send)
            return
        scope.setdefault("state", {})["viewer"] = viewer
        await self.app(scope, receive, send)


def _for_strangers(error: HakaruError) -> WebError:
    """What is wrong with the file of tokens is for the log, not for whoever asks."""
    if isinstance(error, WebError):
        return error
    log.error("sign-in fails: %s", error)
    return Busy("sign-in does not work at the moment", "Ask an operator to check the app's log.")


def is_open(path: str) -> bool:
    return any(
        path == each or (each.endswith("/") and path.startswith(each)) for each in OPEN_PATHS
    )


def peer_of(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


def cookies_of(headers: Headers) -> Mapping[str, str]:
    try:
        return {k: v.value for k, v in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def _ask_to_sign_in(scope: Scope) -> Response:
    request = Request(scope)
    wants_page = "text/html" in request.headers.get("accept", "")
    if wants_page and request.method == "GET" and not scope["path"].startswith("/api/"):
        back = scope["path"] + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{SIGN_IN}?next={quote(back, safe='')}", status_code=303)
    error = NotSignedIn("sign in to see this app", SIGN_IN_FIX)
    return problem_response(request, problem_of(error))
