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

    names = chosen(readers, query.cluster)
    selection = _selection(readers, viewer, query, names)
    metrics = find_metrics(() if query.metrics == "all" and viewer.sees_all else HEADLINE)
    published = find_clusters(query.published) if query.published else None

    def answer(session: Session) -> dict[str, Any]:
        return to_document(side_by_side(session, names, metrics, published, selection))

    question = ("compare", names, selection, query.metrics, query.published, viewer.sees_all)
    document = readers.ask(question, answer)
    left_out = document["left_out"] if viewer.sees_all else []
    return Comparison(**document | {"left_out": left_out, "period": _period(selection)})


def _selection(
    readers: Readers, viewer: Viewer, query: CompareQuery, names: tuple[str, ...]
) -> Selection:
    """The period, which a user's clusters must share when it was widened."""
    filters = Filters(since=query.since, until=query.until)
    asked = filters.selection()
    if viewer.sees_all:
        return asked
    views = [look(readers, viewer, filters, replace(asked, clusters=(name,))) for name in names]
    periods = {(view.selection.since, view.selection.until) for view in views}
    few = [v for v in views if num_people(readers, v.selection, STRICTEST) < FEWEST]
    if few or len(periods) > 1:
        raise Refused(
            f"fewer than {FEWEST} people stand behind one of the clusters in this period",
            "Choose one cluster, or leave out since and until.",
        )
    (period,) = periods
    return replace(asked, since=period[0], until=period[1])


def _period(selection: Selection) -> dict[str, str | None]:
    return {"since": selection.since, "until": selection.until}
