"""One Spark for the whole run of the tests: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hakaru.engine import Engine, open_engine
from hakaru.settings import Engine as EngineSettings


@pytest.fixture(scope="session")
def spark() -> Iterator[Engine]:
    engine = open_engine("spark", EngineSettings(spark_master="local[2]"))
    yield engine
    engine.close()
