"""When a cluster's jobs were submitted, for the message that a selection found none."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hakaru.engine.dialect import quote

if TYPE_CHECKING:
    from hakaru.analyses import Session


def period_of(session: Session, cluster: str) -> str:
    """The first and the last submission, in the site's zone, for a selection that found nothing."""
    row = session.engine.query(
        "SELECT min(submitted_at) AS first, max(submitted_at) AS last "
        f"FROM {session.stored(['cluster', 'submitted_at'])} AS stored WHERE cluster = {quote(cluster)}"
    ).to_pylist()[0]
    if row["first"] is None:
        return f"{cluster} holds no jobs"
    zone = ZoneInfo(session.settings.cluster(cluster).zone)
    first, last = (f"{row[end].astimezone(zone):%Y-%m-%d %H:%M}" for end in ("first", "last"))
    return f"the jobs of {cluster} were submitted from {first} to {last} ({zone.key})"
