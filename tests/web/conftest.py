"""The small site, its servers with and without tokens, and one Chromium for all pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hakaru.lake import Lake
from hakaru.web.app import create_app
from tests.conftest import put, put_jobs
from tests.web._look import Tab, tab
from tests.web._site import Running, closed, running, site_jobs


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = put_jobs(Lake.create(tmp_path_factory.mktemp("site")), site_jobs())
    put(
        lake,
        "rejects",
        [
            {
                "cluster": "c",
                "file": "a.csv",
                "line": line,
                "reason": "no end",
                "text": f"ann,{line}",
            }
            for line in (3, 5, 9)
        ],
    )
    return lake


@pytest.fixture(scope="session")
def open_site(site: Lake) -> Iterator[Running]:
    """Without tokens, on this machine only: whoever sits here is an operator."""
    with running(create_app(site)) as server:
        yield server


@pytest.fixture(scope="session")
def closed_site(site: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with closed(site, tmp_path_factory.mktemp("access")) as server:
        yield server


@pytest.fixture
def fresh_closed_site(site: Lake, tmp_path: Path) -> Iterator[Running]:
    """One that has seen no wrong token yet: the brake counts them for all who come from one address."""
    with closed(site, tmp_path) as server:
        yield server


@pytest.fixture
def ask(open_site: Running) -> Iterator[httpx.Client]:
    with open_site.client() as client:
        yield client


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One headless Chromium for all tests of the pages."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    assert path, "Chromium is not installed: scripts/install-system-packages"
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, open_site: Running) -> Iterator[Tab]:
    with tab(chromium, open_site) as found:
        yield found
