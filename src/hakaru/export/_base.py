"""What an export format is: a function that writes the selected jobs of one cluster to files.

A format reads a view with the canonical columns of `jobs`; DuckDB does the writing, in its memory limit.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.registry import Registry
from hakaru.settings import Capacity, Cluster

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FORMATS: Registry[Format] = Registry("export format")


@dataclass(frozen=True)
class Site:
    """The cluster whose jobs are written: its name, what its jobs' size counts, its settings."""

    name: str
    unit: str
    settings: Cluster
    synthetic: bool = False
    missing: float | None = None  # the share of the log's rows that could not be read, where large

    @property
    def pes(self) -> str:
        return f"num_{self.unit}s"

    @property
    def pes_per_node(self) -> int | None:
        return self.settings.per_node(self.unit)

    def facts(self) -> dict[str, Any]:
        """The settings in the form in which a source hands them over."""
        known = {
            "zone": self.settings.zone if self.settings.has_zone else None,
            "unit": self.unit,
            "gpus_per_node": self.settings.gpus_per_node,
            "cpus_per_node": self.settings.cpus_per_node,
            "working_hours": list(self.settings.working_hours),
            "nodes": [_capacity(span) for span in self.settings.nodes] or None,
            "queues": {
                name: {key: value for key, value in vars(queue).items() if value is not None}
                for name, queue in self.settings.queues.items()
            }
            or None,
            "gpus": [_capacity(span) for span in self.settings.gpus] or None,
            "cpus": [_capacity(span) for span in self.settings.cpus] or None,
            "users_per_file": self.settings.users_per_file or None,
            "relative_dates": self.settings.relative_dates or None,
        }
        return {key: value for key, value in known.items() if value is not None}


@dataclass(frozen=True)
class Target:
    """Where a format writes: a folder, and the name of a single file if one was asked for."""

    folder: Path
    file: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What a format wrote, and what it could not hold: the substance of the manifest."""

    files: dict[str, int]
    left_out: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    not_held: tuple[str, ...] = ()
    holds_settings: bool = True
    holds_synthetic: bool = True

    @property
    def num_jobs(self) -> int:
        return sum(self.files.values())


@dataclass(frozen=True)
class Format:
    """A format. `write(con, jobs, site, target)` writes the view `jobs`; the first ending is usual."""

    id: str
    title: str
    endings: tuple[str, ...]
    write: Callable[[DuckDBPyConnection, str, Site, Target], Outcome]


Writer = Callable[["DuckDBPyConnection", str, Site, Target], Outcome]


def export_format(id: str, title: str, endings: Sequence[str]) -> Callable[[Writer], Writer]:
    """Register a function that writes a format."""

    def register(write: Writer) -> Writer:
        FORMATS.add(Format(id=id, title=title, endings=tuple(endings), write=write))
        return write

    return register


def load_all() -> Registry[Format]:
    """Import every format of this folder, so that each has registered itself."""
    import hakaru.export as package

    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"hakaru.export.{module.name}")
    return FORMATS


def seconds(column: str) -> str:
    """SQL for a time in whole seconds since 1970."""
    return f"CAST(floor(epoch({column})) AS BIGINT)"


def is_fraction(*columns: str) -> str:
    """SQL for whether one of the numbers is not whole; unknown ones are."""
    return " OR ".join(f"coalesce({column} <> floor({column}), false)" for column in columns)


def positive(counts: dict[str, int | None]) -> dict[str, int]:
    return {what: number for what, number in counts.items() if number}


def _capacity(span: Capacity) -> dict[str, Any]:
    since = {"since": span.since.isoformat()} if span.since else {}
    return {**since, "count": span.count}
