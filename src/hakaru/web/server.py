"""uvicorn, as this app wants it: no log of addresses with their queries, no trust in anybody's headers."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from hakaru.errors import HakaruError, MissingExtraError
from hakaru.lake import Lake
from hakaru.settings import load

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from hakaru.analyses import Unit

MAX_CONNECTIONS = 1000
EVERY_ADDRESS = ("0.0.0.0", "::", "")
SHUTDOWN_S = 5


def serve(
    lake: Lake,
    host: str,
    port: int,
    *,
    access_folder: Path | None = None,
    access_log: bool = False,
    ready: Callable[[str, list[str]], None] = lambda url, others: None,
    unit: Unit | None = None,
) -> None:
    """Serve the lake until the process is told to stop.

    `ready` hears, once it answers, the address on this machine and those that others may know it by.
    """
    try:
        import uvicorn  # noqa: F401

        from hakaru.web.app import create_app
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "FastAPI", "web") from None
    settings = load(lake.workspace)
    loopback = is_loopback(host)
    app = create_app(lake, settings, access_folder=access_folder, loopback=loopback, unit=unit)
    if not loopback and not app.state.access.is_configured:
        raise HakaruError(
            f"--host {host} would show every job to anyone who can reach it. Make a token first: "
            "hakaru token create --name NAME --role operator (or set web.proxy_header and "
            "web.proxy_address in hakaru.toml), or leave out --host"
        )
    with listening(host, port) as bound:
        if access_log:
            _log_requests()
        Thread(target=app.state.service.readers.open_first, daemon=True).start()
        ready(url_of(host, bound), urls_of_others(host, bound, settings.web.hosts))
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end
            server_of(app).run(sockets=[bound])


def server_of(app: FastAPI, **limits: float) -> uvicorn.Server:
    """`limits` are those of `protocol_of`, in seconds."""
    import uvicorn

    from hakaru.web.connections import Connections, protocol_of

    web = app.state.access.web
    connections = Connections(most_connections(), web.address_connections, web.proxy_address)
    config = uvicorn.Config(
        app,
        access_log=False,  # it would write the query, and with it names and filters
        log_level="warning",
        proxy_headers=False,  # the peer is who it is; the trusted proxy is checked by its address
        server_header=False,
        date_header=True,
        ws="none",
        http=protocol_of(connections, **limits),
        timeout_graceful_shutdown=SHUTDOWN_S,
        h11_max_incomplete_event_size=16_384,
    )
    return uvicorn.Server(config)


def most_connections() -> int:
    """Half of the files that this process may have open are left to the lake."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft < 0 else max(16, min(MAX_CONNECTIONS, soft // 2))


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
    """Where it is on this machine; one that listens on every address has this one too."""
    return _url({"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host), bound)


def urls_of_others(host: str, bound: socket.socket, names: Sequence[str]) -> list[str]:
    """Where it is for others if it listens on every address: by the set names, else by this machine's own."""
    if host not in EVERY_ADDRESS:
        return []
    return [_url(name, bound) for name in names or _own_addresses(bound.family)]


def _url(host: str, bound: socket.socket) -> str:
    port = bound.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _own_addresses(family: int) -> list[str]:
    """The address that the way out of this machine begins at; nothing is sent to find it."""
    elsewhere = (
        "2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1"
    )  # kept for documentation
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))
            return [probe.getsockname()[0]]
    except OSError:
        return []


def _log_requests() -> None:
    """Method, path, status and time of each request on stderr; never its query or its headers."""
    log = logging.getLogger("hakaru.web")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
