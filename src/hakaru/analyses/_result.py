"""What an analysis answers: its table, the jobs that it rests on, and what must be said beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hakaru.analyses._base import Analysis
from hakaru.analyses._caveats import Caveats
from hakaru.analyses._machine import Over, Seen
from hakaru.analyses._select import Selection
from hakaru.analyses._unit import Unit

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class LeftOut:
    """A rule, and how many of the selected jobs it leaves out."""

    rule: str
    num_jobs: int


@dataclass(frozen=True)
class Result:
    """A table, and what must be said beside it.

    `uncounted` are the jobs, by cluster, that are left out and that the other unit would count. Beside a
    table of the machine's use, `over` says where jobs exceed its size, and `seen` how large one of unknown
    size must be.
    """

    analysis: Analysis
    table: pa.Table
    selection: Selection
    params: Mapping[str, Any]
    num_selected: int
    left_out: tuple[LeftOut, ...]
    synthetic_clusters: tuple[str, ...] = ()
    missing: Mapping[str, float] = field(default_factory=dict)  # shares of rows not read, a cluster
    zone: str = "UTC"  # the clusters' own, where they share one
    units: Mapping[str, Unit] = field(default_factory=dict)
    uncounted: Mapping[str, int] = field(default_factory=dict)
    over: Mapping[str, Over] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)
    caveats: Caveats = field(default_factory=Caveats)

    @property
    def synthetic(self) -> bool:
        """Whether any of the jobs are."""
        return bool(self.synthetic_clusters)

    @property
    def num_used(self) -> int:
        return self.num_selected - sum(entry.num_jobs for entry in self.left_out)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self.table.to_pylist())
