"""Results written by hand, so that a figure is drawn from numbers that no analysis computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hakaru.analyses import Result, Selection, load_all
from hakaru.analyses._run import LeftOut


def result(
    id: str,
    columns: Mapping[str, Sequence[Any]],
    left_out: Mapping[str, int] | None = None,
    *,
    num_selected: int = 100,
    zone: str = "UTC",
    synthetic: bool = False,
    params: Mapping[str, Any] | None = None,
    **selection: Any,
) -> Result:
    """The result of an analysis on cluster `c` with these columns; a group's column comes first."""
    return Result(
        analysis=load_all().get(id),
        table=pa.table({name: list(values) for name, values in columns.items()}),
        selection=Selection(clusters=("c",), **selection),
        params=params or {},
        num_selected=num_selected,
        left_out=tuple(LeftOut(rule, num) for rule, num in (left_out or {}).items()),
        synthetic_clusters=("c",) if synthetic else (),
        zone=zone,
    )
