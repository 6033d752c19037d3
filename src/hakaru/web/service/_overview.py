"""A cluster at a glance: now, over the chosen period, and against the period of the same length before it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hakaru.analyses import Result, Selection, over_remarks
from hakaru.analyses.load import KNOWN_SIZE, PLACED
from hakaru.engine.where import end_of, parse_moment
from hakaru.schema import ENDED
from hakaru.texts import language
from hakaru.web.access import Viewer
from hakaru.web.filters import Filters
from hakaru.web.models import ClusterOverview, Measures, Now, Overview, Period
from hakaru.web.privacy import View, is_of_many, is_whole, look, to_digits, without_spread
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service._analyses import find
from hakaru.web.service._clusters import EMPTY, About, about, chosen, note_on_users

BINS = 100
MEASURED = f"""
    SELECT count(*) AS num_jobs, count(DISTINCT jobs.user) AS num_users, sum(pe_hours) AS pe_hours,
           percentile(wait_s, 0.5) AS wait_median_s, percentile(wait_s, 0.95) AS wait_p95_s,
           count(wait_s) AS num_waits,
           percentile(run_s, 0.5) AS run_median_s,
           avg(CASE WHEN started_at IS NULL THEN 0e0 ELSE 1e0 END) AS share_started,
           avg(CASE WHEN state = 'completed' THEN 1e0
                    WHEN state IN {ENDED} THEN 0e0 END) AS share_completed
    FROM jobs
"""
# which measure of the partition each is of
MEASURE_OF = {
    "pe_hours": "hours",
    "wait_median_s": "waits",
    "wait_p95_s": "waits",
    "run_median_s": "runs",
}
SPREAD = ("wait_p95_s",)
UNPLACED = f"NOT coalesce({PLACED.sql}, false)"  # nobody knows when such a job ran
# A log that still has open jobs ends with its last event; one that has none was cut, and after the
# last submission its machine only runs empty.
NOW = f"""
    WITH told AS (
        SELECT max(submitted_at) AS last_submit,
               max(coalesce(ended_at, started_at, submitted_at)) AS last_event,
               count(CASE WHEN ended_at IS NULL AND state IN ('pending', 'running') THEN 1 END) AS num_open
        FROM jobs
    ), ends AS (
        SELECT least(CASE WHEN num_open > 0 THEN last_event ELSE last_submit END, {{end}}) AS now_at
        FROM told
    ), stays AS (
        SELECT now_at, num_pes,
               CASE WHEN {UNPLACED} THEN NULL
                    WHEN started_at <= now_at
                         AND (ended_at > now_at OR ended_at IS NULL AND state = 'running')
                    THEN 1 ELSE 0 END AS runs,
               CASE WHEN {UNPLACED} THEN NULL
                    WHEN submitted_at <= now_at AND (started_at > now_at OR started_at IS NULL
                         AND (ended_at > now_at OR ended_at IS NULL AND state = 'pending'))
                    THEN 1 ELSE 0 END AS waits
        FROM jobs CROSS JOIN ends
    )
    SELECT max(now_at) AS at, sum(runs) AS jobs_running,
           CASE WHEN count(CASE WHEN runs = 1 AND num_pes IS NULL THEN 1 END) = 0
                THEN sum(runs * coalesce(num_pes, 0)) END AS busy_pes,
           sum(waits) AS jobs_waiting,
           CASE WHEN count(CASE WHEN waits = 1 AND num_pes IS NULL THEN 1 END) = 0
                THEN sum(waits * coalesce(num_pes, 0)) END AS pes_waiting
    FROM stays
"""


FIRST = "SELECT min(submitted_at) AS first FROM jobs"


def overview(readers: Readers, viewer: Viewer, filters: Filters) -> Overview:
    known = about(readers)
    if not known.zones:
        filters.check()
        return Overview(clusters=[], hint=EMPTY)
    names = chosen(readers, filters.cluster)
    shown: list[ClusterOverview] = []
    refusals: dict[str, Refused] = {}
    for name in names:
        try:
            shown.append(_cluster(readers, viewer, filters, name, known))
        except Refused as error:
            refusals[name] = error
    if not shown:
        raise refusals[names[0]]
    return Overview(clusters=shown, withheld=list(refusals))


def _cluster(
    readers: Readers, viewer: Viewer, filters: Filters, name: str, known: About
) -> ClusterOverview:
    one = filters.model_copy(update={"cluster": (name,)})
    view = look(readers, viewer, one, one.selection())
    measures = _measures(readers, one, view)
    earlier_one = _before(readers, one, view, known.zones[name])
    before = _seen_before(readers, earlier_one, view) if earlier_one else None
    earlier = _measures(readers, earlier_one, before) if earlier_one and before else None
    return ClusterOverview(
        cluster=name,
        **known.log(name),
        users_note=note_on_users(readers, view.selection),
        period=_period(view),
        now=_now(readers, view, known, name),
        warnings=_warnings(_load(readers, view) if viewer.sees_all else None, known.units[name]),
        measures=measures,
        before=earlier,
        before_period=_period(before) if before else None,
        change=_change(measures, earlier),
    )


def _measures(readers: Readers, filters: Filters, view: View) -> Measures:
    table = readers.table(MEASURED, view.selection)
    if not view.own:
        table = without_spread(table, SPREAD, "num_waits")
    (row,) = table.to_pylist()
    if note_on_users(readers, view.selection):  # nobody can count them
        row = row | {"num_users": None}
    if not view.own:
        row = _of_cells(row, view) | _share_completed(readers, filters, view)
        row |= {"share_started": _share_started(readers, filters, view)}
    if not view.own and not is_whole(filters):
        return Measures.model_validate(row | {"num_users": None})
    return Measures.model_validate(row | _seen_levels(readers, view))


def _of_cells(row: dict[str, Any], view: View) -> dict[str, Any]:
    """Counts and hours as they are, for they are of whole cells; medians, which are one job's, rounded."""
    known = {n: v for n, v in row.items() if MEASURE_OF.get(n, "") in ("", *view.measures)}
    times = {name: value for name, value in known.items() if name.endswith("_s")}
    return known | _coarse(times)


def _coarse(values: dict[str, Any]) -> dict[str, Any]:
    return {n: None if v is None else to_digits(float(v)) for n, v in values.items()}


def _share_completed(readers: Readers, filters: Filters, view: View) -> dict[str, Any]:
    """Of the cells that hold one state each: of others the share would be a count within a cell."""
    try:
        seen = look(readers, view.viewer, filters, filters.selection(), ("state",))
    except Refused:
        return {"share_completed": None}
    (row,) = readers.rows(MEASURED, seen.selection)
    return {"share_completed": row["share_completed"], "num_by_state": row["num_jobs"]}


def _seen_levels(readers: Readers, view: View) -> dict[str, Any]:
    """The levels; of others, rounded, where enough people's jobs are in them."""
    load = _load(readers, view)
    levels = _levels(load) | _all_waiting(readers, view, load)
    if view.own:
        return levels
    whole = Selection(clusters=view.selection.clusters)
    return _coarse(levels) if is_of_many(readers, find("utilisation"), whole) else {}


def _share_started(readers: Readers, filters: Filters, view: View) -> float | None:
    """Of the cells that hold one fate each, which a start decides; unknown where jobs are left out."""
    try:
        seen = look(readers, view.viewer, filters, filters.selection(), ("fate",))
    except Refused:
        return None
    if seen.is_partial:
        return None
    (row,) = readers.rows(MEASURED, seen.selection)
    return row["share_started"]  # type: ignore[no-any-return]


def _load(readers: Readers, view: View) -> Result:
    """How full the machine was; a user sees it of the whole log only."""
    return readers.run(find("load"), _of_load(view), {"bins": BINS})


def _of_load(view: View) -> Selection:
    return view.selection if view.own else replace(view.selection, branches=(), states=())


def _all_waiting(readers: Readers, view: View, load: Result) -> dict[str, Any]:
    """The mean number of waiting jobs with those whose size is unknown, which the load leaves out."""
    unsized = sum(each.num_jobs for each in load.left_out if each.rule == KNOWN_SIZE.text)
    if not unsized:
        return {}
    placed = replace(load.analysis, id="load-of-any-size", rules=(PLACED,))
    every = _levels(readers.run(placed, _of_load(view), {"bins": BINS}))
    return {name: value for name, value in every.items() if name == "jobs_waiting"}


def _levels(load: Result) -> dict[str, Any]:
    """Means over the period, from the means of its bins; the utilisation where the size is always known."""
    if not load.table.num_rows:
        return {}
    rows = load.rows
    spans = [(row["until_at"] - row["since_at"]).total_seconds() for row in rows]

    def area(name: str) -> float | None:
        if any(row[name] is None for row in rows):
            return None
        return float(sum(row[name] * span for row, span in zip(rows, spans, strict=True)))

    whole = sum(spans)
    busy, waiting, installed = (
        area(name) for name in ("num_pes_busy", "num_jobs_waiting", "num_pes_installed")
    )
    return {
        "busy_pes": None if busy is None else busy / whole,
        "jobs_waiting": None if waiting is None else waiting / whole,
        "utilisation": busy / installed if busy is not None and installed else None,
    }


def _now(readers: Readers, view: View, known: About, name: str) -> Now:
    """The end of the log or of the period; a moment shows few people's jobs, so only of what is one's own."""
    if not view.own:
        return Now()
    end = "last_event"
    if view.selection.until:  # of what was submitted later the selection knows nothing
        until = end_of(view.selection.until, known.zones[name])
        end = f"timestamp_seconds({int(until.timestamp())})"
    (row,) = readers.rows(NOW.format(end=end), replace(view.selection, since=None))
    seen = [each.num_pes for each in _load(readers, view).seen.values()]
    installed = known.size(name, row["at"]) if row["at"] else None
    return Now(**row, installed_pes=installed, seen_pes=seen[0] if seen else None)


def _warnings(load: Result | None, unit: str) -> list[str]:
    return over_remarks(load, language("en", unit)) if load else []


def _before(readers: Readers, filters: Filters, view: View, zone: str) -> Filters | None:
    """The period of the same length before the chosen one; None where that one has no beginning."""
    bounds = _bounds_before(readers, view, zone)
    if bounds is None:
        return None
    return filters.model_copy(update={"since": bounds[0], "until": bounds[1]})


def _seen_before(readers: Readers, filters: Filters, view: View) -> View | None:
    """That period as the viewer may see it; None where jobs may be left out, which cannot be compared."""
    try:
        found = look(readers, view.viewer, filters, filters.selection())
    except Refused:
        return None
    return None if found.is_partial or view.is_partial else found


def _bounds_before(readers: Readers, view: View, zone: str) -> tuple[str, str] | None:
    """Whole months before whole months, days before days, and seconds before anything else.

    None where the log does not reach back so far: part of a period cannot be compared with a whole.
    """
    if view.selection.since is None:
        return None
    since = parse_moment(view.selection.since, zone).astimezone(ZoneInfo(zone))
    until = _end(readers, view, zone)
    if until is None or until <= since:
        return None
    midnight = all(m.hour == m.minute == m.second == m.microsecond == 0 for m in (since, until))
    log_begins = _log_begins(readers, view, zone)
    # long before the log (months differ in length by less than a month): it may have no date at all
    if log_begins is None or until - since > since - log_begins + timedelta(days=32):
        return None
    first = since - (until - since)
    if midnight:
        first = parse_moment(str(_day_before(since.date(), until.date())), zone)
    if first < log_begins - timedelta(days=1):
        return None
    if not midnight:
        return first.isoformat(), since.isoformat()
    return str(_day_before(since.date(), until.date())), str(since.date() - timedelta(days=1))


def _day_before(first: date, last: date) -> date:
    """The first day of the period before [first, last)."""
    if first.day == last.day == 1:
        month = 2 * (first.year * 12 + first.month) - (last.year * 12 + last.month) - 1
        return date(month // 12, month % 12 + 1, 1)
    return first - (last - first)


def _log_begins(readers: Readers, view: View, zone: str) -> datetime | None:
    """The first submission, which is one person's; for a user, the month after it."""
    (row,) = readers.rows(FIRST, Selection(clusters=view.selection.clusters))
    if row["first"] is None or view.viewer.sees_all:
        return row["first"]  # type: ignore[no-any-return]
    return _month_after(row["first"], zone)


def _end(readers: Readers, view: View, zone: str) -> datetime | None:
    """Where the period ends; an open one with the day of the last submission, of others with its month."""
    if view.selection.until is not None:
        return end_of(view.selection.until, zone).astimezone(ZoneInfo(zone))
    (row,) = readers.rows("SELECT max(submitted_at) AS last FROM jobs", view.selection)
    if row["last"] is None:
        return None
    if not view.own:
        return _month_after(row["last"], zone)
    day = row["last"].astimezone(ZoneInfo(zone)).date() + timedelta(days=1)
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))


def _month_after(moment: datetime, zone: str) -> datetime:
    day = moment.astimezone(ZoneInfo(zone)).date()
    return datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=ZoneInfo(zone))


def _change(now: Measures, before: Measures | None) -> dict[str, float | None]:
    """Each measure against the one before: 0.1 is a tenth more."""
    if before is None:
        return {}
    pairs = {name: (getattr(now, name), getattr(before, name)) for name in Measures.model_fields}
    return {name: _relative(*pair) for name, pair in pairs.items()}


def _relative(now: Any, before: Any) -> float | None:
    return None if now is None or not before else float(now / before - 1)


def _period(view: View) -> Period:
    return Period(since=view.selection.since, until=view.selection.until)
