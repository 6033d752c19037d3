"""A connection for the tests of the lake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hakaru.engine.duckdb import connect
from hakaru.settings import Engine


@pytest.fixture
def con() -> Iterator[Any]:
    con = connect(Engine())
    yield con
    con.close()
