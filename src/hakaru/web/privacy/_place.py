"""A job's place among the cluster's: by a histogram that is the same for every job and every viewer.

Its buckets end at the deciles and hold six people each, or are joined to the next. A job is placed in the
middle of the tenths that its bucket stands for, so that an own job with another value finds out nothing more,
and no place tells a number of jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hakaru.analyses import Selection
from hakaru.web.privacy._people import FEWEST, people_among, per_file
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
    """Values up to `to`, and more than those of the bucket before; so many tenths of the jobs end with it."""

    to: float
    tenths: int
    users: set[str | None]


def _share(buckets: list[_Bucket], value: float) -> float | None:
    """The middle of the tenths that the value's bucket stands for."""
    before = 0
    for bucket in buckets:
        if value <= bucket.to:
            return (before + bucket.tenths) / 20
        before = bucket.tenths
    return None


def _buckets(readers: Readers, selection: Selection, measure: str) -> list[_Bucket]:
    """The histogram; empty where fewer than six people have the measure."""
    points = ", ".join(f"percentile(value, 0.{tenth}) AS p{tenth}" for tenth in TENTHS)
    values = f"(SELECT jobs.user AS holder, {measure} AS value FROM jobs) AS measured"
    (row,) = readers.rows(f"SELECT {points} FROM {values}", selection)
    # where deciles are alike, the bucket stands for all of their tenths
    edges = {float(row[f"p{i}"]): i for i in TENTHS if row[f"p{i}"] is not None}
    if not edges:
        return []
    steps = " ".join(f"WHEN value <= {edge!r} THEN {i}" for i, edge in enumerate(edges))
    found = readers.rows(
        f"SELECT DISTINCT CASE {steps} ELSE {len(edges)} END AS place, holder "
        f"FROM {values} WHERE value IS NOT NULL",
        selection,
    )
    holders: list[set[str | None]] = [set() for _ in range(len(edges) + 1)]
    for each in found:
        holders[each["place"]].add(each["holder"])
    ends = [*edges.items(), (float("inf"), 10)]
    buckets = [
        _Bucket(to, tenths, users) for (to, tenths), users in zip(ends, holders, strict=True)
    ]
    return _joined(buckets, per_file(readers, selection.clusters))


def _joined(buckets: list[_Bucket], by_file: bool) -> list[_Bucket]:
    """Buckets of enough people: one of fewer is joined to the next, the last one to the one before."""
    found: list[_Bucket] = []
    waiting: set[str | None] = set()
    for bucket in buckets:
        waiting |= bucket.users
        if people_among((user for user in waiting if user is not None), by_file) >= FEWEST:
            found.append(replace(bucket, users=waiting))
            waiting = set()
    return [*found[:-1], replace(found[-1], to=buckets[-1].to, tenths=10)] if found else []
