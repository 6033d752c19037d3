"""A server for what-if, and one run that has ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.conftest import put_jobs
from tests.web._site import Running, running
from tests.web.what_if._runs import API, ONE_NODE, ended, queue_jobs


@pytest.fixture(scope="session")
def queued(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return put_jobs(Lake.create(tmp_path_factory.mktemp("queued")), queue_jobs())


@pytest.fixture(scope="session")
def server(queued: Lake) -> Iterator[Running]:
    with running(create_app(queued)) as found:
        yield found


@pytest.fixture
def ask(server: Running) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="session")
def done(server: Running) -> dict[str, Any]:
    """One node of two GPUs against two of them, played once for all that look at it."""
    with server.client() as client:
        answer = client.post(API, json={"cluster": "c", "scenario": ONE_NODE})
        assert answer.status_code == 202, answer.text
        return ended(client, answer.json()["id"])
