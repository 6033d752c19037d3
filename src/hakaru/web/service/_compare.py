"""Clusters and published figures side by side, for the clusters that have enough people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hakaru.analyses import Session
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, CompareQuery, Filters
from hakaru.web.models import Comparison
from hakaru.web.privacy import FEWEST, partition_of, to_digits
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service._analyses import result
from hakaru.web.service._clusters import chosen

if TYPE_CHECKING:
    from hakaru.comparison import Comparison as Compared
    from hakaru.reference.metrics import Cell, Metric

    Cells = dict[str, Cell]  # by metric

EXACT = ("num_jobs", "num_users")  # of all jobs of the cluster, which `clusters` counts too
# one reason for all: why a value is missing could tell whether one person has such a job
MISSING = "not shown: too few people or no data"


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
        else {name: _cells(readers, viewer, name, metrics) for name in names}
    )

    def answer(session: Session) -> dict[str, Any]:
        found = side_by_side(session, names, metrics, published, selection)
        return to_document(found if shown is None else _as_shown(found, shown))

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


def _cells(readers: Readers, viewer: Viewer, name: str, metrics: Sequence[Metric]) -> Cells:
    """The metrics as they stand in the answers that this user gets."""
    from hakaru.reference.metrics import Cell, read

    hidden = Cell(None, MISSING)
    found: Cells = {}
    for metric in metrics:
        rules = {"by": metric.by, "min_run": metric.min_run_s, "state": tuple(metric.states)}
        query = AnalysisQuery.model_validate({"cluster": (name,), **rules})
        try:
            guarded = result(readers, viewer, metric.analysis, query)
        except Refused:
            found[metric.id] = hidden
            continue
        cell = read(metric, guarded.result.rows)
        known = cell.value is not None and math.isfinite(cell.value)
        found[metric.id] = _coarse(cell) if known else hidden
    return found


def _as_shown(found: Compared, shown: dict[str, Cells]) -> Compared:
    """The comparison with the numbers that this user may see; of the others nothing is kept."""
    lines = [
        replace(
            line,
            cells={
                name: cell if line.metric.id in EXACT else shown[name][line.metric.id]
                for name, cell in line.cells.items()
            },
        )
        for line in found.lines
    ]
    return replace(found, lines=lines, left_out=[])


def _coarse(cell: Cell) -> Cell:
    value, low, high = (
        None if each is None else to_digits(each) for each in (cell.value, cell.low, cell.high)
    )
    return replace(cell, value=value, low=low, high=high)
