"""uvicorn, as this app wants it: no log of addresses with their queries, no trust in anybody's headers."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hakaru.errors import HakaruError, MissingExtraError
from hakaru.lake import Lake
from hakaru.settings import load

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

MAX_CONNECTIONS = 1000
SHUTDOWN_S = 5


def serve(
    lake: Lake,
    host: str,
    port: int,
    *,
    access_folder: Path | None = None,
    access_log: bool = False,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve the lake until the process is told to stop; `ready` hears the address once it answers."""
    try:
        import uvicorn  # noqa: F401

        from hakaru.web.app import create_app
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "FastAPI", "web") from None
    settings = load(lake.workspace)
    loopback = is_loopback(host)
    app = create_app(lake, settings, access_folder=access_folder, loopback=loopback)
    if not loopback and not app.state.access.is_configured:
        raise HakaruError(
            f"--host {host} would show every job to whoever can reach it. Make a token first: "
            "hakaru token create --name NAME --role operator (or set web.proxy_header and "
            "web.proxy_address in hakaru.toml), or leave out --host"
        )
    with listening(host, port) as bound:
        if access_log:
            _log_requests()
        ready(url_of(host, bound))
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end
            server_of(app).run(sockets=[bound])


def server_of(app: FastAPI) -> uvicorn.Server:
    import uvicorn

    config = uvicorn.Config(
        app,
        access_log=False,  # it would write the query, and with it names and filters
        log_level="warning",
        proxy_headers=False,  # the peer is who it is; the trusted proxy is checked by its address
        server_header=False,
        date_header=True,
        ws="none",
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=SHUTDOWN_S,
        h11_max_incomplete_event_size=16_384,
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A bound socket, or a clear word on why there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise HakaruError(f"--host {host}: there is no such address on this machine") from None
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(address)
        except OSError as error:
            raise HakaruError(
                f"cannot listen on {host}:{port}: {error.strerror}. Choose another with --port, "
                "or --port 0 for any that is free"
            ) from None
        bound.listen(128)  # so that whoever is told the address can connect at once
        yield bound


def is_loopback(host: str) -> bool:
    """Whether the name leads to this machine only; a name that leads anywhere else does not."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def url_of(host: str, bound: socket.socket) -> str:
    port = bound.getsockname()[1]
    shown = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else host
    return f"http://{f'[{shown}]' if ':' in shown and '[' not in shown else shown}:{port}/"


def _log_requests() -> None:
    """Method, path, status and time of each request on stderr; never its query or its headers."""
    log = logging.getLogger("hakaru.web")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
