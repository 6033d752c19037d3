"""The outermost wall: what no request may be, and the headers that every answer has."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hakaru.web.answers import problem_response
from hakaru.web.problems import Malformed, Refused, WebError, problem_of

MAX_URL = 8_000
MAX_BODY = 4_000
MAX_SCENARIO = 80_000  # its text, as a form writes it
SCENARIO_PATHS = ("/what-if", "/api/v1/what-if")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
log = logging.getLogger("hakaru.web")


class TooLong(WebError):
    status = 414
    title = "The address is too long"


class TooLarge(WebError):
    status = 413
    title = "The request is too large"


class WrongHost(WebError):
    status = 421
    title = "Wrong host name"


class Guard:
    """Refuses what cannot be meant well, adds the security headers, and logs without the query."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] | None) -> None:
        self.app = app
        self.hosts = None if hosts is None else {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # nothing here speaks WebSocket
        begin, status = time.perf_counter(), [500]

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                _add_headers(message, scope["path"])
            await send(message)

        error = self._check(scope)
        if error is None:
            await self.app(scope, receive, send_on)
        else:
            await problem_response(Request(scope), problem_of(error))(scope, receive, send_on)
        path = scope["path"][:200].encode("unicode_escape").decode()
        spent_ms = (time.perf_counter() - begin) * 1000
        log.info("%s %s %d %.0f ms", scope["method"], path, status[0], spent_ms)

    def _check(self, scope: Scope) -> WebError | None:
        path, query = scope.get("raw_path") or b"", scope.get("query_string") or b""
        if len(path) + len(query) > MAX_URL:
            return TooLong(
                f"the address has more than {MAX_URL:,} characters", "Use a shorter filter."
            )
        if not (_is_text(path) and _is_text(query.replace(b"+", b" "))):
            return Malformed("the address is not valid UTF-8 text")
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        most = MAX_SCENARIO if scope["path"] in SCENARIO_PATHS else MAX_BODY
        if "transfer-encoding" in headers or not length.isdecimal() or int(length) > most:
            return TooLarge(f"the body needs a Content-Length of at most {most:,} bytes")
        return self._check_host(headers) or _check_site(headers, scope["method"])

    def _check_host(self, headers: Headers) -> WebError | None:
        """A page of somebody else's whose name leads here (DNS rebinding) shall read nothing."""
        names = headers.getlist("host")
        found = HOST.fullmatch(names[0]) if len(names) == 1 else None
        if found is None:
            return Malformed("the Host header is missing or is not a host name")
        if self.hosts is not None and found.group(1).lower() not in self.hosts:
            return WrongHost(
                f"this app is not served under the name {found.group(1)!r}",
                "If the name is right, add it to web.hosts in hakaru.toml.",
            )
        return None


def _check_site(headers: Headers, method: str) -> WebError | None:
    """Another site may link here, and nothing else: it shall not make this app work for it."""
    foreign = headers.get("sec-fetch-site") == "cross-site"
    if foreign and (method != "GET" or headers.get("sec-fetch-mode") != "navigate"):
        return Refused("this request came from a page of another site", "Open the app itself.")
    return None


def _is_text(raw: bytes) -> bool:
    decoded = unquote_to_bytes(raw)
    if CONTROL.search(decoded):
        return False
    try:
        decoded.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _add_headers(message: Message, path: str) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        headers[name] = value
    if not path.startswith("/static/"):
        headers["Cache-Control"] = "no-store"
