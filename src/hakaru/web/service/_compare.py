"""Clusters and published figures side by side, for the clusters that have enough people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hakaru.analyses import Session
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, CompareQuery, Filters
from hakaru.web.models import Comparison
from hakaru.web.privacy import FEWEST, partition_of, step_of, to_digits, to_step
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service._analyses import result
from hakaru.web.service._clusters import chosen

if TYPE_CHECKING:
    from hakaru.comparison import Comparison as Compared
    from hakaru.reference.metrics import Cell, Metric

EXACT = ("num_jobs", "num_users")  # of all jobs of the cluster, which `clusters` counts too


def compare(readers: Readers, viewer: Viewer, query: CompareQuery) -> Comparison:
    from hakaru.comparison import HEADLINE, to_document
    from hakaru.comparison import compare as side_by_side
    from hakaru.reference.metrics import find_metrics
    from hakaru.reference.published import find_clusters

    asked = chosen(readers, query.cluster)
    selection = Filters(since=query.since, until=query.until).selection()
    names = asked if viewer.sees_all else _of_many(readers, query, asked)
    metrics = find_metrics(() if query.metrics == "all" and viewer.sees_all else HEADLINE)
    published = find_clusters(query.published) if query.published else None
    shown = (
        None
        if viewer.sees_all
        else {name: _shown(readers, viewer, name, metrics) for name in names}
    )

    def answer(session: Session) -> dict[str, Any]:
        found = side_by_side(session, names, metrics, published, selection)
        return to_document(found if shown is None else _coarse(found, shown))

    question = ("compare", names, selection, query.metrics, query.published, viewer.sees_all)
    document = readers.ask(question, answer)
    left_out = document["left_out"] if viewer.sees_all else []
    withheld = [name for name in asked if name not in names]
    period = {"since": selection.since, "until": selection.until}
    return Comparison(**document | {"left_out": left_out, "withheld": withheld, "period": period})


def _of_many(readers: Readers, query: CompareQuery, names: tuple[str, ...]) -> tuple[str, ...]:
    """The clusters that a user may compare: those of enough people, and whole."""
    if query.since or query.until:
        raise Refused(
            "others' jobs are compared over the whole log only", "Leave out since and until."
        )
    seen = tuple(name for name in names if partition_of(readers, name) is not None)
    if not seen:
        raise Refused(
            f"fewer than {FEWEST} people ran jobs on each of these clusters",
            "Choose another cluster.",
        )
    return seen


def _shown(
    readers: Readers, viewer: Viewer, name: str, metrics: Sequence[Metric]
) -> dict[str, float]:
    """The metrics that hide nobody, each with the step of its shares: no row of their table is withheld."""
    steps: dict[str, float] = {}
    for metric in metrics:
        try:
            guarded = result(readers, viewer, metric.analysis, AnalysisQuery(cluster=(name,)))
        except Refused:
            continue
        if guarded.complete:
            steps[metric.id] = step_of(guarded.result.num_selected)
    return steps


def _coarse(found: Compared, shown: dict[str, dict[str, float]]) -> Compared:
    """The comparison without what could be few people's, its numbers rounded."""
    lines = [
        replace(
            line,
            cells={
                name: cell if line.metric.id in EXACT else _cell(cell, line.metric, shown[name])
                for name, cell in line.cells.items()
            },
        )
        for line in found.lines
    ]
    return replace(found, lines=lines, left_out=[])


def _cell(cell: Cell, metric: Metric, steps: dict[str, float]) -> Cell:
    if metric.id not in steps:
        hidden = f"it could show fewer than {FEWEST} people"
        return replace(cell, value=None, reason=hidden, low=None, high=None)
    step = steps[metric.id]

    def write(value: float | None) -> float | None:
        if value is None:
            return None
        return to_step(value, step) if metric.unit == "share" else to_digits(value)

    return replace(cell, value=write(cell.value), low=write(cell.low), high=write(cell.high))
