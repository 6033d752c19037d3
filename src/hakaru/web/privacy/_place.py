"""A job's place among the cluster's: by a histogram that is the same for every job and every viewer.

Its buckets end at the deciles and hold five people each, or are joined to the next. A job is placed in the
middle of its bucket, so that an own job with another value finds out nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hakaru.analyses import Selection
from hakaru.web.privacy._people import FEWEST, people_among, per_file
from hakaru.web.privacy._rounded import step_of, to_step
from hakaru.web.readers import Readers

TENTHS = range(1, 10)


def place_among(
    readers: Readers, cluster: str, measures: Mapping[str, str], values: Mapping[str, float | None]
) -> dict[str, float | None]:
    """For each measure (its SQL) the share of the cluster's jobs that have less than the value."""
    selection = Selection(clusters=(cluster,))
    return {
        name: None
        if values[name] is None
        else _share(_buckets(readers, selection, sql), float(values[name] or 0))
        for name, sql in measures.items()
    }


@dataclass
class _Bucket:
    """Jobs with at most `to`, and more than the bucket before."""

    to: float
    num_jobs: int
    users: set[str | None]


def _share(buckets: list[_Bucket], value: float) -> float | None:
    """The share of the jobs in the buckets before the value's own, and half of that one's."""
    total = sum(bucket.num_jobs for bucket in buckets)
    below = 0
    for bucket in buckets:
        if value <= bucket.to:
            return to_step((below + bucket.num_jobs / 2) / total, step_of(total))
        below += bucket.num_jobs
    return None


def _buckets(readers: Readers, selection: Selection, measure: str) -> list[_Bucket]:
    """The histogram; empty where fewer than five people have the measure."""
    points = ", ".join(f"percentile(value, 0.{tenth}) AS p{tenth}" for tenth in TENTHS)
    values = f"(SELECT jobs.user AS holder, {measure} AS value FROM jobs) AS measured"
    (row,) = readers.rows(f"SELECT {points} FROM {values}", selection)
    edges = sorted({float(edge) for edge in row.values() if edge is not None})
    steps = " ".join(f"WHEN value <= {edge!r} THEN {i}" for i, edge in enumerate(edges))
    if not edges:
        return []
    found = readers.rows(
        f"SELECT CASE {steps} ELSE {len(edges)} END AS place, holder, count(*) AS num_jobs "
        f"FROM {values} WHERE value IS NOT NULL GROUP BY ALL",
        selection,
    )
    return _joined([*edges, float("inf")], found, per_file(readers, selection.clusters))


def _joined(edges: list[float], found: list[dict[str, Any]], by_file: bool) -> list[_Bucket]:
    """Buckets of enough people: one of fewer is joined to the next, the last one to the one before."""
    buckets: list[_Bucket] = []
    open_ = _Bucket(0.0, 0, set())
    for place, edge in enumerate(edges):
        here = [row for row in found if row["place"] == place]
        open_.to = edge
        open_.num_jobs += sum(row["num_jobs"] for row in here)
        open_.users |= {row["holder"] for row in here}
        if _people(open_, by_file) >= FEWEST:
            buckets.append(open_)
            open_ = _Bucket(edge, 0, set())
    if buckets:
        buckets[-1].to = edges[-1]
        buckets[-1].num_jobs += open_.num_jobs
    return buckets


def _people(bucket: _Bucket, by_file: bool) -> int:
    return people_among((user for user in bucket.users if user is not None), by_file)
