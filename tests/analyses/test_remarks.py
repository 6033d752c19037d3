"""What stands beside the machine's use where its size is unknown, or less than the log gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hakaru.analyses import remarks
from hakaru.lake import Lake
from hakaru.texts import language
from tests.analyses._ask import ask
from tests.analyses.test_load import stay

ENGLISH = language("en")
Make = Callable[..., Lake]


def said(lake: Lake, id: str, **selection: Any) -> list[str]:
    return remarks(ask(lake, id, **selection), ENGLISH)


@pytest.mark.parametrize("id", ["load", "utilisation"])
def test_an_unknown_size_comes_with_the_lines_that_tell_it(lake_of: Make, id: str) -> None:
    lake = lake_of([stay(1, 0, 0, 60)])
    told, *lines = said(lake, id)
    assert "the size of c is unknown" in told and "hakaru.toml under [clusters.c]" in told
    assert lines == ["nodes = 32", "gpus_per_node = 8"]
    assert remarks(ask(lake, id), language("ja", "cpu"))[2] == "cpus_per_node = 8"


def test_more_busy_than_there_are(lake_of: Make) -> None:
    """Four GPUs for an hour, of which for a quarter of an hour six are busy."""
    rows = [stay(1, 0, 0, 60, num_gpus=4), stay(2, 15, 15, 30, num_gpus=2)]
    lake = lake_of(rows, facts='{"nodes": 1, "gpus_per_node": 4}')
    (told,) = said(lake, "load")
    assert told.startswith("more GPUs are busy than c has in 25.0 % of this time, up to 6 of 4:")
    (told,) = said(lake, "utilisation")
    assert told.startswith("more than 100 % in 2018Q1:")
    assert said(lake, "load", by="queue") == [], "what a queue may have is not known"
    assert len(said(lake, "load", by="cluster")) == 1


def test_as_many_as_there_are(lake_of: Make) -> None:
    lake = lake_of([stay(1, 0, 0, 60, num_gpus=4)], facts='{"nodes": 1, "gpus_per_node": 4}')
    assert said(lake, "load") == said(lake, "utilisation") == []
    assert said(lake, "states") == []


def test_a_size_that_is_known_from_some_day_on(lake_of: Make) -> None:
    facts = '{"nodes": [{"since": "2018-01-01T00:30:00Z", "count": 1}], "gpus_per_node": 4}'
    (told,) = said(lake_of([stay(1, 0, 0, 60)], facts=facts), "load")
    assert "is not known for all of this time" in told
