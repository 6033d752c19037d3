"""Which jobs a question is about, as its viewer may see them.

An operator's question is about what it says. A user's is about their own jobs, about whole cells of the
cluster's fixed partition, or about the whole cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Literal

from hakaru.analyses import HAS_SIZE, Analysis, Branch, Check, Selection
from hakaru.engine.where import end_of, parse_moment
from hakaru.errors import FilterError
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, Filters
from hakaru.web.privacy._partition import (
    MEASURES,
    Chosen,
    Partition,
    Wanted,
    partition_of,
    size_bounds,
)
from hakaru.web.privacy._people import FEWEST
from hakaru.web.privacy._rows import RULES
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers

PERSONAL = ("user", "account", "where", "min_run")
GROUPS = ("cluster", "queue", "state", "application", "quarter")  # what a user may group by
FEW = f"fewer than {FEWEST} people"
MAX_LISTED = 12
WAYS_OUT = {
    "queue": "Leave out queue",
    "application": "Leave out application",
    "state": "Ask with state=any",  # without it, some analyses are of completed jobs
    "month": "Leave out since and until",
    "size_class": "Leave out min_gpus and max_gpus",
}
LEAST_RUN_S = 60  # of the partition's jobs that `ran_minute`


@dataclass(frozen=True)
class View:
    """A selection that the viewer may ask about: their `own` jobs, `cells`, or the `whole` cluster.

    Of cells, `is_partial` says that wanted jobs may be left out, with cells that may hold others too.
    `measures` are those of the partition that may be shown.
    """

    selection: Selection
    viewer: Viewer
    scope: Literal["own", "cells", "whole"] = "own"
    is_partial: bool = False
    measures: frozenset[str] = frozenset(MEASURES)

    @property
    def own(self) -> bool:
        return self.scope == "own"


def look(
    readers: Readers,
    viewer: Viewer,
    filters: Filters,
    selection: Selection,
    keys: Sequence[str] = (),
    counted: Wanted | None = None,
) -> View:
    """The selection as this viewer may see it: for a user, the cells inside it; or a refusal.

    `selection` is the filters' own, with its clusters named. Each cell has one value of each of the keys,
    and all of its jobs are `counted`.
    """
    if _is_own(viewer, filters):
        return View(selection, viewer)
    _refuse_the_personal(filters, selection, viewer)
    first, last = _months(filters)
    wanted = {**_wanted(filters, first, last), **(counted or {})}
    cells = {name: _cells(readers, name, wanted, keys, viewer) for name in selection.clusters}
    return View(
        replace(
            selection,
            checks=(),
            states=("any",),
            since=None if first is None else str(_first_day(first)),
            until=None if last is None else str(_first_day(last + 1) - timedelta(days=1)),
            branches=_branches(cells),
        ),
        viewer,
        scope="cells",
        is_partial=any(each.is_partial for each in cells.values()),
        measures=frozenset.intersection(*(each.partition.measures for each in cells.values())),
    )


def look_at(
    readers: Readers,
    viewer: Viewer,
    query: AnalysisQuery,
    selection: Selection,
    analysis: Analysis,
) -> View:
    """The jobs that an analysis may be asked of; a refusal where it is for operators, or too narrow."""
    if _is_own(viewer, query):
        return View(selection, viewer)
    rule = RULES.get(analysis.id)
    if rule is None:
        raise _refusal(f"{analysis.id} could show individual people", viewer)
    _refuse_the_personal(query, selection, viewer)
    by = () if selection.by in (None, "cluster") else (selection.by,)
    used = [*_conditions(query), *("by" for _ in by)]
    if used and rule.cells is None:
        raise Refused(
            f"{analysis.id} of others' jobs is shown for the whole cluster only",
            f"Leave out {', '.join(used)}, or ask about your own jobs with user={viewer.user}.",
        )
    if rule.cells is None:
        for name in selection.clusters:
            _partition(readers, name)
        return View(selection, viewer, scope="whole")
    asked = query.model_copy(update={"state": query.state or analysis.states})
    keys = (*rule.cells, *by)
    return look(readers, viewer, asked, selection, keys, counted_by(analysis))


def counted_by(analysis: Analysis) -> Wanted:
    """The analysis' own rules as tests of the partition's columns."""
    tests: dict[str, Callable[[Any], bool]] = {}
    if analysis.min_run_s is not None:
        assert analysis.min_run_s == LEAST_RUN_S, analysis.id
        tests["ran_minute"] = bool
    if HAS_SIZE in analysis.rules:
        tests["parallelism"] = lambda name: name is not None
    return tests


def own_only(viewer: Viewer, filters: Filters) -> Filters:
    """The filters, held to the viewer's own jobs where they may not see others'."""
    if viewer.sees_all:
        return filters
    if filters.user not in (None, viewer.user):
        raise _refusal("others' jobs are not listed", viewer)
    return filters.model_copy(update={"user": viewer.user})


def is_whole(filters: Filters) -> bool:
    """Whether the filters ask for all jobs of a cluster."""
    return not _conditions(filters)


def _is_own(viewer: Viewer, filters: Filters) -> bool:
    return viewer.sees_all or (viewer.user is not None and filters.user == viewer.user)


def _refuse_the_personal(filters: Filters, selection: Selection, viewer: Viewer) -> None:
    used = [name for name in PERSONAL if getattr(filters, name) is not None]
    if used:
        raise _refusal(f"{', '.join(used)} could pick out a person among others", viewer)
    if selection.by is not None and selection.by not in GROUPS:
        raise Refused(
            f"by={selection.by} could show individual people",
            f"Others' jobs can be grouped by {', '.join(GROUPS)}; your own, with "
            f"user={viewer.user}, by everything.",
        )


def _refusal(why: str, viewer: Viewer) -> Refused:
    return Refused(
        why,
        f"Ask about your own jobs with user={viewer.user}, where every filter is allowed, or ask an "
        "operator.",
    )


def _conditions(filters: Filters) -> list[str]:
    """The names of the conditions that narrow the jobs of a cluster."""
    names = ("since", "until", "queue", "application", "min_gpus", "max_gpus")
    used = [name for name in names if getattr(filters, name) is not None]
    return used + (["state"] if filters.state and "any" not in filters.state else [])


def _wanted(filters: Filters, first: int | None, last: int | None) -> Wanted:
    """The conditions as tests of the partition's columns."""
    tests: dict[str, Callable[[Any], bool]] = {}
    for name in ("queue", "application"):
        if (value := getattr(filters, name)) is not None:
            tests[name] = {value}.__contains__
    if filters.state and "any" not in filters.state:
        tests["state"] = set(filters.state).__contains__
    if first is not None or last is not None:
        tests["month"] = lambda month: (first or 0) <= month <= (month if last is None else last)
    if filters.min_gpus is not None or filters.max_gpus is not None:
        tests["size_class"] = lambda each: (
            each is not None and _has_sizes(filters, size_bounds(each))
        )
    return tests


def _has_sizes(filters: Filters, bounds: tuple[int, int]) -> bool:
    """Whether all sizes of a class are asked for."""
    least, most = filters.min_gpus, filters.max_gpus
    return (least is None or least <= bounds[0]) and (most is None or bounds[1] <= most)


def _cells(
    readers: Readers, cluster: str, wanted: Wanted, keys: Sequence[str], viewer: Viewer
) -> Chosen:
    partition = _partition(readers, cluster)
    chosen = partition.choose(wanted, keys)
    if not chosen:
        raise Refused(
            f"too few people ran jobs on {cluster} that match these conditions",
            f"{_way_out(partition, wanted, keys)} On your own jobs, with user={viewer.user}, "
            "every filter is allowed.",
        )
    return chosen


def _way_out(partition: Partition, wanted: Wanted, keys: Sequence[str]) -> str:
    """The condition to drop, or other values of it with which the rest of the question is answered."""
    for name in (name for name in wanted if name in WAYS_OUT):
        rest = {other: test for other, test in wanted.items() if other != name}
        if found := partition.choose(rest, keys):
            return f"{WAYS_OUT[name]}{_choices(name, found.values_of(name))}."
    return f"Ask with fewer conditions{' or without by' if keys else ''}."


def _choices(column: str, values: Sequence[Any]) -> str:
    named = [_named(column, each) for each in values if each is not None]
    if len(named) < 2:
        return "".join(f", or choose {each}" for each in named)
    more = ", …" if len(named) > MAX_LISTED else ""
    return f", or choose one of {', '.join(named[:MAX_LISTED])}{more}"


def _named(column: str, value: Any) -> str:
    if column == "month":
        return str(_first_day(value))[:7]
    if column == "size_class":
        least, most = size_bounds(value)
        return str(least) if least == most else f"{least} to {most}"
    return str(value)


def _branches(cells: Mapping[str, Chosen]) -> tuple[Branch, ...]:
    """The chosen cells as the engine's condition: side by side, those of each cluster."""
    found = {name: each.branches() for name, each in cells.items()}
    if len(found) == 1 or not any(found.values()):
        return next(iter(found.values()))
    return tuple(Branch((Check("cluster", name),), each) for name, each in found.items())


def _months(filters: Filters) -> tuple[int | None, int | None]:
    """The months of the first and the last day asked for; the day is what matters, not the zone."""
    first = parse_moment(filters.since, "UTC").date() if filters.since else None
    last = None
    if filters.until:
        last = (end_of(filters.until, "UTC") - timedelta(microseconds=1)).date()
    if first and last and first > last:
        raise FilterError("the period ends before it begins")
    return tuple(None if day is None else day.year * 12 + day.month - 1 for day in (first, last))  # type: ignore[return-value]


def _first_day(month: int) -> date:
    return date(month // 12, month % 12 + 1, 1)


def _partition(readers: Readers, cluster: str) -> Partition:
    found = partition_of(readers, cluster)
    if found is None:
        raise Refused(
            f"{FEW} ran jobs on {cluster}",
            "Choose another cluster, or ask about your own jobs.",
        )
    return found
