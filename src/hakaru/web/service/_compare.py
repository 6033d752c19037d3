"""Clusters and published figures side by side, for the clusters that have enough people."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hakaru.analyses import Selection, Session
from hakaru.web.access import Viewer
from hakaru.web.filters import CompareQuery, Filters
from hakaru.web.models import Comparison
from hakaru.web.privacy import FEWEST, look, num_people
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service._clusters import chosen

# the jobs that the strictest of the analyses counts
STRICTEST = (
    "(SELECT * FROM jobs WHERE state = 'completed' AND run_s >= 60 AND requested_s IS NOT NULL "
    "AND num_pes >= 1)"
)


def compare(readers: Readers, viewer: Viewer, query: CompareQuery) -> Comparison:
    from hakaru.comparison import HEADLINE, to_document
    from hakaru.comparison import compare as side_by_side
    from hakaru.reference.metrics import find_metrics
    from hakaru.reference.published import find_clusters

    asked = chosen(readers, query.cluster)
    names, selection = _seen(readers, viewer, query, asked)
    metrics = find_metrics(() if query.metrics == "all" and viewer.sees_all else HEADLINE)
    published = find_clusters(query.published) if query.published else None

    def answer(session: Session) -> dict[str, Any]:
        return to_document(side_by_side(session, names, metrics, published, selection))

    question = ("compare", names, selection, query.metrics, query.published, viewer.sees_all)
    document = readers.ask(question, answer)
    left_out = document["left_out"] if viewer.sees_all else []
    withheld = [name for name in asked if name not in names]
    beside = {"left_out": left_out, "withheld": withheld, "period": _period(selection)}
    return Comparison(**document | beside)


def _seen(
    readers: Readers, viewer: Viewer, query: CompareQuery, names: tuple[str, ...]
) -> tuple[tuple[str, ...], Selection]:
    """The clusters of enough people, and the period, which they must share when it was widened."""
    filters = Filters(since=query.since, until=query.until)
    asked = filters.selection()
    if viewer.sees_all:
        return names, asked
    found = {name: _of_many(readers, viewer, filters, name) for name in names}
    seen = {name: selection for name, selection in found.items() if selection is not None}
    if not seen:
        raise Refused(
            f"fewer than {FEWEST} people stand behind each of the clusters in this period",
            "Choose another cluster, or leave out since and until.",
        )
    periods = {(selection.since, selection.until) for selection in seen.values()}
    if len(periods) > 1:
        raise Refused(
            f"the period would have to be widened for {', '.join(seen)} to different months",
            "Choose one cluster, or leave out since and until.",
        )
    (period,) = periods
    return tuple(seen), replace(asked, since=period[0], until=period[1])


def _of_many(readers: Readers, viewer: Viewer, filters: Filters, name: str) -> Selection | None:
    """One cluster's selection as the viewer may see it; None where too few people stand behind it."""
    one = replace(filters.selection(), clusters=(name,))
    try:
        selection = look(readers, viewer, filters, one).selection
    except Refused:
        return None
    return selection if num_people(readers, selection, STRICTEST) >= FEWEST else None


def _period(selection: Selection) -> dict[str, str | None]:
    return {"since": selection.since, "until": selection.until}
