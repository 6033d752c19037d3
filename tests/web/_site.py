"""A small site whose people can be counted on the fingers, and the real server on a free port."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from hakaru.lake import Lake
from hakaru.settings import Settings, Web
from hakaru.web.access.tokens import Tokens
from hakaru.web.app import create_app
from hakaru.web.server import listening, server_of, url_of
from tests.conftest import job, utc

MONTHS = ("2018-01", "2018-02", "2018-03")
USERS = tuple(f"u{i}" for i in range(1, 9))


def site_jobs() -> list[dict[str, Any]]:
    """Each month, eight people run an hour on one GPU, and six of them fail after half an hour on two.

    u1 alone has used the queue `rare`, once, in February; `tiny` is a cluster of two people.
    """
    rows: list[dict[str, Any]] = []
    for month in MONTHS:
        for i, user in enumerate(USERS):
            at = {
                "submitted_at": utc(f"{month}-1{i}T09:00:00"),
                "started_at": utc(f"{month}-1{i}T09:00:10"),
                "ended_at": utc(f"{month}-1{i}T10:00:10"),
            }
            rows.append(job(len(rows), user=user, name=f"train {user}", **at))
            if i < 6:
                half = {"num_gpus": 2, "run_s": 1800.0, "state": "failed", "wait_s": 60.0}
                rows.append(job(len(rows), user=user, queue="short", **at, **half))
    rare = {"queue": "rare", "submitted_at": utc("2018-02-20T12:00:00"), "account": "other"}
    rows.append(job(900, user="u1", **rare))
    rows += [job(i, cluster="tiny", user=user) for i, user in enumerate(("u1", "zoe"))]
    return rows


@dataclass
class Running:
    """A server that runs, and what its tests need to talk to it."""

    url: str
    app: Any
    secrets: dict[str, str] = field(default_factory=dict)

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.secrets[token]}"} if token else {}
        headers |= options.pop("headers", {})
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **options)


@contextmanager
def running(app: Any, host: str = "127.0.0.1") -> Iterator[Running]:
    """The real uvicorn in a thread, on a port of its own."""
    with listening(host, 0) as bound:
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        try:
            yield Running(url_of(host, bound), app)
        finally:
            server.should_exit = True
            thread.join(20)


@contextmanager
def closed(site: Lake, folder: Path) -> Iterator[Running]:
    """With tokens: an operator, the users u1 and u8, and a stranger who has no job."""
    with running(create_app(site, access_folder=folder)) as server:
        server.secrets["operator"] = Tokens(folder).create("boss", "operator", None)[1]
        for user in ("u1", "u8", "nobody"):
            server.secrets[user] = Tokens(folder).create(user, "user", user)[1]
        yield server


def settings(**web: Any) -> Settings:
    return Settings(web=Web(**web))


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a lake and what is in it, to see that nothing was changed."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
