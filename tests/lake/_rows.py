"""The jobs of a lake, as the tests compare them."""

from __future__ import annotations

from typing import Any

from hakaru.lake import Lake
from hakaru.schema import JOBS


def rows(lake: Lake, con: Any) -> dict[str, dict[str, Any]]:
    return {row["job_id"]: row for row in lake.read(con, JOBS).to_pylist()}


def state_of_table(lake: Lake, con: Any) -> list[tuple[Any, ...]]:
    found = [tuple(map(repr, row.values())) for row in lake.read(con, JOBS).to_pylist()]
    return sorted(found)
