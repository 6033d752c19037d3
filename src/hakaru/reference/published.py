"""Figures of other clusters as they were published, each with its citation (`published.csv`).

A cluster may have a metric several times where sources count differently; the first one is the one that
is set beside computed figures, and the notes tell them apart.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from hakaru.errors import HakaruError
from hakaru.registry import hint


@dataclass(frozen=True)
class Published:
    """One published number. `bound` is <, > or ~ (about) where the source says so."""

    cluster: str
    metric: str
    value: float
    bound: str
    unit: str
    note: str
    source: str
    where: str


@cache
def load_published() -> tuple[Published, ...]:
    """Every published figure, in the order of the file."""
    resource = files("hakaru.reference") / "published.csv"
    rows = csv.DictReader(resource.read_text(encoding="utf-8").splitlines())
    return tuple(
        Published(**{**row, "value": float(row["value"])})  # type: ignore[arg-type]
        for row in rows
    )


def published_clusters() -> list[str]:
    return list(dict.fromkeys(entry.cluster for entry in load_published()))


def find_clusters(names: Sequence[str]) -> list[str]:
    """The clusters as the table spells them; case, blanks and hyphens do not matter.

    A part of the name is enough where it is one cluster's only: `neuron` is KISTI Neuron.
    """
    known = {_plain(name): name for name in published_clusters()}
    found = []
    for name in names:
        near = [known[key] for key in known if _plain(name) and _plain(name) in key]
        exact = known.get(_plain(name))
        if exact is None and len(near) != 1:
            listed = f"known: {', '.join(near)}" if near else hint(name, known.values())
            raise HakaruError(f"there is no published cluster {name!r}; {listed} (or none, all)")
        found.append(exact or near[0])
    return list(dict.fromkeys(found))


def first_of_each(metric: str) -> dict[str, Published]:
    """The figure of each cluster that has the metric, by cluster."""
    found: dict[str, Published] = {}
    for entry in load_published():
        if entry.metric == metric:
            found.setdefault(entry.cluster, entry)
    return found


def without_parts(figures: dict[str, Published]) -> dict[str, Published]:
    """Leave out the parts (Helios-Venus …) of a cluster that is there as a whole."""
    return {
        name: entry
        for name, entry in figures.items()
        if "-" not in name or name.rpartition("-")[0] not in figures
    }


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()
