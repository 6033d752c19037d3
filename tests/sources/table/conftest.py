"""The site of the table source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sources.table._site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)
