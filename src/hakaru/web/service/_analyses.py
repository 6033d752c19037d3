"""The registered analyses: the list of them, one's table, and its figure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

from hakaru.analyses import Analysis, Param, Result, caveat_remarks, load_all, missing_remarks
from hakaru.registry import hint
from hakaru.texts import language
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery
from hakaru.web.models import (
    Analyses,
    AnalysisInfo,
    Drawing,
    LeftOut,
    Parameter,
    Period,
    Table,
)
from hakaru.web.privacy import RULES, Guarded, guard_result, look_at
from hakaru.web.problems import Unknown, WebError
from hakaru.web.readers import Readers
from hakaru.web.service._clusters import about, selected

MAX_ROWS = 100_000


def listed() -> Analyses:
    """In the order in which the paper tells them."""
    return Analyses(analyses=[_info(analysis) for analysis in load_all()])


def result(readers: Readers, viewer: Viewer, id: str, query: AnalysisQuery) -> Guarded:
    analysis = find(id)
    params = _parsed(analysis, query.params())
    _check_options(analysis, query)
    selection = selected(readers, query, query.by, query.weight)
    view = look_at(readers, viewer, query, selection, analysis)
    found = readers.run(analysis, view.selection, params)
    if not viewer.sees_all:
        found = _without_few(found)
    if query.by is not None and found.table.column_names[1:2] == [query.by]:
        raise WebError(f"{id} has a row for each {query.by} already", f"Leave out by={query.by}.")
    if found.table.num_rows > MAX_ROWS:
        raise WebError(
            f"the table has {found.table.num_rows:,} rows; {MAX_ROWS:,} are allowed",
            "Choose a shorter period or fewer groups.",
        )
    return guard_result(readers, view, found)


def _without_few(found: Result) -> Result:
    """Without what few people's jobs, or one's, decide: a peak, or that all jobs are of one state."""
    caveats = replace(found.caveats, one_state={})
    return replace(found, uncounted={}, over={}, seen={}, caveats=caveats)


def table(guarded: Guarded) -> Table:
    found = guarded.result
    return Table(
        id=found.analysis.id,
        title=found.analysis.title,
        question=found.analysis.answers,
        clusters=list(found.selection.clusters),
        period=Period(since=found.selection.since, until=found.selection.until),
        columns=found.table.column_names,
        rows=found.rows,
        num_selected=found.num_selected if guarded.counts else None,
        num_used=found.num_used if guarded.counts else None,
        left_out=[
            LeftOut(rule=e.rule, num_jobs=e.num_jobs if guarded.counts else None)
            for e in found.left_out
        ],
        synthetic=found.synthetic,
        missing=dict(found.missing),
        withheld=guarded.withheld,
    )


def figure(readers: Readers, guarded: Guarded, dark: bool) -> Drawing:
    from hakaru.figures import conjunction, draw, of_rules

    first = guarded.result.selection.clusters[0]
    unit: Literal["gpu", "cpu"] = "gpu" if about(readers).units[first] == "gpu" else "cpu"
    figure = draw(guarded.result, dark=dark, unit=unit)
    notes = figure.notes if guarded.counts else _uncounted(guarded.result, unit)
    return Drawing(
        id=guarded.result.analysis.id,
        kind=figure.kind,
        title=figure.title,
        question=figure.question,
        option=figure.option,
        notes=[*notes, *_notes_on_users(readers, guarded.result)],
        height=figure.height,
        where=conjunction(of_rules(guarded.result)),
        withheld=guarded.withheld,
    )


def _uncounted(found: Result, unit: str) -> list[str]:
    """The notes that hold no count: those on the log."""
    words = language("en", unit)
    synthetic = [words.say("figure", "synthetic")] if found.synthetic else []
    return [*synthetic, *missing_remarks(found.missing, words), *caveat_remarks(found, words)]


def _notes_on_users(readers: Readers, found: Result) -> list[str]:
    from hakaru.comparison import notes_on_users

    question = (
        "users-notes",
        found.analysis.id,
        found.selection,
        tuple(sorted(found.params.items())),
    )
    return readers.ask(question, lambda session: notes_on_users(session, found))


def find(id: str) -> Analysis:
    known = load_all()
    if id not in known:
        raise Unknown(f"there is no analysis {id!r}", hint(id, known.ids()))
    return known.get(id)


def _parsed(analysis: Analysis, params: dict[str, str]) -> dict[str, Any]:
    known = {param.name: param for param in analysis.params}
    for name in params:
        if name not in known:
            allowed = ", ".join(f"param.{each}" for each in known) or "none"
            raise WebError(f"{analysis.id} has no parameter {name!r}", f"It takes: {allowed}.")
    return {name: _number(known[name], value) for name, value in params.items()}


def _number(param: Param, value: str) -> Any:
    if len(value) > 40:
        raise WebError(f"param.{param.name} has more than 40 characters")
    return param.parse(value)


def _check_options(analysis: Analysis, query: AnalysisQuery) -> None:
    if query.by is not None and not analysis.groups:
        raise WebError(f"{analysis.id} cannot be grouped", "Leave out by.")
    if query.weight != "jobs" and not analysis.weighted:
        able = ", ".join(each.id for each in load_all() if each.weighted)
        raise WebError(f"{analysis.id} counts jobs", f"weight works with: {able}.")


def _info(analysis: Analysis) -> AnalysisInfo:
    return AnalysisInfo(
        id=analysis.id,
        title=analysis.title,
        question=analysis.answers,
        description=analysis.description,
        subject=analysis.subject,
        figure=analysis.figure,
        reproduces=analysis.reproduces,
        params=[_parameter(param) for param in analysis.params],
        groups=analysis.groups,
        weighted=analysis.weighted,
        for_users=analysis.id in RULES,
    )


def _parameter(param: Param) -> Parameter:
    bounds = {
        name: value if math.isfinite(value) and not param.choices else None
        for name, value in (("low", param.low), ("high", param.high))
    }
    return Parameter(
        name=param.name,
        default=param.default,
        help=param.help,
        choices=list(param.choices),
        **bounds,
    )
