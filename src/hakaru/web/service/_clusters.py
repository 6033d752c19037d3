"""The clusters of the lake, and which of them a question is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hakaru.analyses import Selection, Session
from hakaru.registry import hint
from hakaru.settings import Cluster as Site
from hakaru.web.access import Viewer
from hakaru.web.filters import Filters
from hakaru.web.models import Cluster, Clusters
from hakaru.web.privacy import partition_of
from hakaru.web.problems import Unknown, WebError
from hakaru.web.readers import Readers

EMPTY = "Begin with: hakaru ingest FILE --cluster NAME"
MAX_NAMES = 200


@dataclass(frozen=True)
class About:
    """What a session knows of its clusters without a query, and their units."""

    sites: dict[str, Site]
    units: dict[str, str]
    synthetic: frozenset[str]
    missing: dict[str, float]

    @property
    def zones(self) -> dict[str, str]:
        return {name: site.zone for name, site in self.sites.items()}

    def log(self, name: str) -> dict[str, Any]:
        """What must be said of a cluster's log beside any answer."""
        site = self.sites[name]
        return {
            "zone": site.zone,
            "zone_known": site.has_zone,
            "relative_dates": site.relative_dates,
            "unit": self.units[name],
            "synthetic": name in self.synthetic,
            "missing": self.missing.get(name),
        }

    def size(self, name: str, at: datetime) -> int | None:
        """PEs installed at a moment."""
        spans = self.sites[name].size(self.units[name])
        begun = [span.count for span in spans if span.since is None or span.since <= at]
        return begun[-1] if begun else None


def about(readers: Readers) -> About:
    def tell(session: Session) -> About:
        names = session.known_clusters
        return About(
            sites={name: session.settings.cluster(name) for name in names},
            units={name: session.unit(name) for name in names},
            synthetic=frozenset(session.synthetic),
            missing=dict(session.missing),
        )

    return readers.ask("about", tell)


def chosen(readers: Readers, names: Sequence[str]) -> tuple[str, ...]:
    """The clusters of a question: those named, else all; an error where there is none such."""
    known = tuple(about(readers).zones)
    for name in names:
        if name not in known:
            raise Unknown(f"there is no cluster {name!r}", hint(name, known))
    if not known:
        raise Unknown("the lake holds no jobs yet", EMPTY)
    return tuple(dict.fromkeys(names)) or known


def selected(
    readers: Readers, filters: Filters, by: str | None = None, weight: str = "jobs"
) -> Selection:
    """The filters' selection with its clusters named: one, or several side by side."""
    selection = filters.selection(by, weight)
    names = chosen(readers, filters.cluster)
    if len(names) > 1 and by != "cluster":
        raise WebError(
            f"the clusters {', '.join(names)} are not one machine",
            "Choose one with cluster=NAME, or put them side by side with by=cluster.",
        )
    return replace(selection, clusters=names)


def pooled(readers: Readers, filters: Filters) -> Selection:
    """The selection over all its clusters, for lists of jobs, where they may stand among one another."""
    names = chosen(readers, filters.cluster)
    by = "cluster" if len(names) > 1 else None
    return replace(filters.selection(by), clusters=names)


def clusters(readers: Readers, viewer: Viewer) -> Clusters:
    known = about(readers)
    rows = [_cluster(readers, viewer, name, known) for name in known.zones]
    return Clusters(clusters=rows, hint=None if rows else EMPTY)


def note_on_users(readers: Readers, selection: Selection) -> str | None:
    """What must be said beside a count of users: a log may number them anew in every file, or name none."""
    from hakaru.comparison import users_note

    (name,) = selection.clusters
    question = ("users-note", selection)
    told = readers.ask(question, lambda session: users_note(session, name, selection))
    return told or names_none(readers, name, "user")


def names_none(readers: Readers, cluster: str, kind: str) -> str | None:
    """Says so where no job of a cluster's log has a known user (or account)."""
    sql = f"SELECT count(*) AS num_jobs, count(jobs.{kind}) AS num_known FROM jobs"
    (row,) = readers.rows(sql, Selection(clusters=(cluster,)))
    return None if row["num_known"] or not row["num_jobs"] else f"this log names no {kind}s"


def _cluster(readers: Readers, viewer: Viewer, name: str, known: About) -> Cluster:
    selection = Selection(clusters=(name,))
    (row,) = readers.rows(
        "SELECT count(*) AS num_jobs, count(DISTINCT jobs.user) AS num_users, "
        "min(submitted_at) AS first_submit, max(submitted_at) AS last_submit FROM jobs",
        selection,
    )
    if note_on_users(readers, selection):  # nobody can count them
        row = row | {"num_users": None}
    if not viewer.sees_all:
        few = partition_of(readers, name) is None
        row = dict.fromkeys(row) if few else _to_months(row, ZoneInfo(known.zones[name]))
    return Cluster(
        name=name,
        **known.log(name),
        queues=_names(readers, viewer, "queue", selection),
        applications=_names(readers, viewer, "application", selection),
        **row,
    )


def _to_months(row: dict[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    """The first day of the first month and the last of the last: both submissions are one person's."""
    first, last = (row[name].astimezone(zone).date() for name in ("first_submit", "last_submit"))
    after = (last.replace(day=1) + timedelta(days=31)).replace(day=1)
    ends = {"first_submit": first.replace(day=1), "last_submit": after - timedelta(days=1)}
    return row | {name: datetime.combine(day, time(), zone) for name, day in ends.items()}


def _names(readers: Readers, viewer: Viewer, column: str, selection: Selection) -> list[str]:
    """The values of a column that a filter may be given; for a user, those that can be answered."""
    if viewer.sees_all:
        rows = readers.rows(f"SELECT DISTINCT {column} AS name FROM jobs", selection)
        named = [row["name"] for row in rows]
    else:
        partition = partition_of(readers, selection.clusters[0])
        named = partition.values_of(column) if partition else []
    return sorted(name for name in named if name is not None)[:MAX_NAMES]
