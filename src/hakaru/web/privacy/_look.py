"""Which selections a viewer may ask of: anything for an operator, for a user their own or many people's.

Two answers that differ by one person tell of that person. So a user narrows only by whole months, queue,
application, state and size; and with any of these conditions dropped, what comes in is of five people too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import combinations
from typing import Any

from hakaru.analyses import Selection
from hakaru.engine.where import end_of, parse_moment
from hakaru.errors import FilterError
from hakaru.web.access import Viewer
from hakaru.web.filters import Filters
from hakaru.web.privacy._people import (
    FEWEST,
    jobs_of_each,
    num_people,
    people_between,
    people_sql,
    per_file,
)
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers

CONDITIONS: dict[str, Any] = {
    "queue": None, "application": None, "state": (), "min_gpus": None, "max_gpus": None,
}  # fmt: skip
PERSONAL = ("user", "account", "where", "min_run")
PERSONAL_GROUPS = ("user", "account")
MONTH = "year(submitted_local) * 12 + month(submitted_local) - 1"
OWN_FIX = (
    "Ask of your own jobs with user={user}, where every filter is allowed, or ask an operator."
)


@dataclass(frozen=True)
class View:
    """A selection that the viewer may ask of; `own` where all its jobs are the viewer's to see."""

    selection: Selection
    own: bool
    viewer: Viewer


def look(readers: Readers, viewer: Viewer, filters: Filters, selection: Selection) -> View:
    """The selection as this viewer may see it, its period perhaps wider; or a refusal with its reason.

    `selection` is the filters' own, with its clusters named.
    """
    if viewer.sees_all:
        return View(selection, own=True, viewer=viewer)
    if viewer.user is not None and filters.user == viewer.user:
        return View(selection, own=True, viewer=viewer)
    _refuse_the_personal(filters, selection, viewer)
    return View(_each_cluster(readers, filters, selection), own=False, viewer=viewer)


def _each_cluster(readers: Readers, filters: Filters, selection: Selection) -> Selection:
    """The selection with its period widened; side by side, each cluster must pass, and with one period."""
    passed = [
        _Gate(readers, filters, replace(selection, clusters=(name,))).passed()
        for name in selection.clusters
    ]
    if len({(each.since, each.until) for each in passed}) > 1:
        raise Refused(
            f"the period would have to be widened for {', '.join(selection.clusters)} to different months",
            "Ask for one cluster with cluster=NAME, or leave out since and until.",
        )
    return replace(passed[0], clusters=selection.clusters)


def own_only(viewer: Viewer, filters: Filters) -> Filters:
    """The filters, held to the viewer's own jobs where they may not see others'."""
    if viewer.sees_all:
        return filters
    if filters.user not in (None, viewer.user):
        raise _refusal("others' jobs are not listed", viewer)
    return filters.model_copy(update={"user": viewer.user})


def _refuse_the_personal(filters: Filters, selection: Selection, viewer: Viewer) -> None:
    used = [name for name in PERSONAL if getattr(filters, name) is not None]
    if used:
        raise _refusal(f"{', '.join(used)} could pick out a person among others", viewer)
    if selection.by in PERSONAL_GROUPS:
        raise _refusal(f"by={selection.by} would show people one by one", viewer)


def _refusal(why: str, viewer: Viewer) -> Refused:
    return Refused(why, OWN_FIX.format(user=viewer.user))


@dataclass(frozen=True)
class _Gate:
    readers: Readers
    filters: Filters
    selection: Selection

    def passed(self) -> Selection:
        """The selection with its period widened, if it may be asked of."""
        widened = self.widened()
        self.check(widened)
        return widened

    def widened(self) -> Selection:
        """The period, widened to whole months whose first and last hold enough people, or left open."""
        selection = self._at(self.filters, None, None)
        sql = people_sql({"month": MONTH}, "jobs", self._per_file)
        people = {r["key_0"]: r["num_people"] for r in self.readers.rows(sql, selection)}
        full = sorted(month for month, num in people.items() if num >= FEWEST)
        first, last = _months(self.filters)
        since = max((m for m in full if first is not None and m <= first), default=None)
        until = min((m for m in full if last is not None and m >= last), default=None)
        if since is not None and self._is_small(replace(selection, until=str(_day_before(since)))):
            since = None
        if until is not None and self._is_small(
            replace(selection, since=str(_first_day(until + 1)))
        ):
            until = None
        return self._at(self.filters, since, until)

    def check(self, selection: Selection) -> None:
        if num_people(self.readers, selection) < FEWEST:
            raise Refused(
                f"fewer than {FEWEST} people stand behind these jobs of {self.selection.clusters[0]}",
                "Choose another cluster, a longer period or fewer conditions, or ask of your own jobs.",
            )
        self._check_ends(selection)
        mine = jobs_of_each(self.readers, selection)
        for dropped in self._droppable():
            wider = self._with(self.filters.model_copy(update=dropped), selection)
            between = people_between(jobs_of_each(self.readers, wider), mine, self._per_file)
            if between is not None and between < FEWEST:
                raise Refused(
                    f"without {' and '.join(dropped)} fewer than {FEWEST} people come in, "
                    "and the difference would show them",
                    "Choose other values, or fewer conditions.",
                )

    def _check_ends(self, selection: Selection) -> None:
        """Each chosen state, and the least and the greatest chosen size, is of enough people."""
        cells = []
        if self.filters.state:
            cells += self._cells("state", selection)
        sizes = sorted(
            (key, num) for key, num in self._cells("num_pes", selection) if key is not None
        )
        if self.filters.min_gpus is not None:
            cells += sizes[:1]
        if self.filters.max_gpus is not None:
            cells += sizes[-1:]
        if any(num < FEWEST for _, num in cells):
            raise Refused(
                f"one of the chosen states or sizes is of fewer than {FEWEST} people",
                "Choose other states, or a wider range of GPUs.",
            )

    def _cells(self, column: str, selection: Selection) -> list[tuple[Any, int]]:
        sql = people_sql({column: column}, "jobs", self._per_file)
        return [(r["key_0"], r["num_people"]) for r in self.readers.rows(sql, selection)]

    def _droppable(self) -> list[dict[str, Any]]:
        """Every way to drop some of the conditions."""
        used = {
            name: none for name, none in CONDITIONS.items() if getattr(self.filters, name) != none
        }
        return [
            dict(chosen)
            for n in range(1, len(used) + 1)
            for chosen in combinations(used.items(), n)
        ]

    def _is_small(self, selection: Selection) -> bool:
        """Whether it holds jobs, but of too few people."""
        others = jobs_of_each(self.readers, selection)
        between = people_between(others, {}, self._per_file)
        return between is not None and between < FEWEST

    @property
    def _per_file(self) -> bool:
        return per_file(self.readers, self.selection.clusters)

    def _at(self, filters: Filters, since: int | None, until: int | None) -> Selection:
        period = replace(
            self.selection,
            since=None if since is None else str(_first_day(since)),
            until=None if until is None else str(_day_before(until + 1)),
        )
        return self._with(filters, period)

    def _with(self, filters: Filters, selection: Selection) -> Selection:
        """The selection with the conditions of these filters."""
        return replace(
            selection, checks=filters.checks(), states=tuple(dict.fromkeys(filters.state))
        )


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


def _day_before(month: int) -> date:
    return _first_day(month) - timedelta(days=1)
