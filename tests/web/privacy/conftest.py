"""A user and an operator of the site with tokens."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.web._site import Running


@pytest.fixture
def u1(closed_site: Running) -> Iterator[httpx.Client]:
    with closed_site.client("u1") as client:
        yield client


@pytest.fixture
def boss(closed_site: Running) -> Iterator[httpx.Client]:
    with closed_site.client("operator") as client:
        yield client
