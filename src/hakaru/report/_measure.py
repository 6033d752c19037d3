"""Measurements in the report and on a page of their own: the verdict first, then figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hakaru.assets import script
from hakaru.figures.measure import words
from hakaru.figures.measure.beside import Line, beside, set_beside
from hakaru.figures.measure.cards import card_curve
from hakaru.figures.measure.chapters import Picture, chapters_of
from hakaru.figures.measure.choice import Choice, card_subjects, find_subject, history_subjects
from hakaru.figures.measure.collectives import (
    MORE_RANKS,
    NO_PREDICTION,
    blame_of,
    blame_text,
    collective,
    collectives_of,
    predictions,
    sweeps_of,
)
from hakaru.figures.measure.fleet import fleet
from hakaru.figures.measure.preflight import Table, read_preflight
from hakaru.figures.measure.search import search_history, search_of
from hakaru.figures.measure.series import history, series_in
from hakaru.figures.measure.stored import (
    Listed,
    before,
    list_runs,
    load_run,
    load_series,
    load_view,
    newest,
)
from hakaru.figures.measure.view import Reading, RunView
from hakaru.measure.verdict import ORDER, Verdict
from hakaru.registry import listed
from hakaru.report._page import _environment, _file
from hakaru.safety.policy import policy_of

if TYPE_CHECKING:
    from hakaru.analyses import Session
    from hakaru.figures import Figure
    from hakaru.figures.measure.choice import Subject
    from hakaru.measure.record import Run
    from hakaru.measure.series import Series

MOST_ROWS = 200
MOST_NAMED = 5
MOST_BESIDE = 30
MOST_OF_A_KIND = 4
ALONE = ("breakdown", "steps")
DEVICES, HISTORY = "devices", "history"


@dataclass(frozen=True)
class Measured:
    """A run, one quantity's history, the run before it, and the cluster's last preflight."""

    view: RunView
    subject: Subject | None
    series: Series | None
    before: Listed | None
    changes: Sequence[Line]
    preflight: Table | None
    zone: str


def measured_view(session: Session, cluster: str) -> dict[str, Any] | None:
    """The newest run of a cluster, for the report; None where the lake has none of it."""
    runs = [each for each in list_runs(session) if each.cluster == cluster]
    if not runs:
        return None
    run = newest(runs)
    view, earlier = load_view(session, cluster, run.id), before(runs, run)
    subject = find_subject(history_subjects(view), Choice())
    found = Measured(
        view,
        subject,
        load_series(session, cluster, subject) if subject else None,
        earlier,
        set_beside(*(load_run(session, cluster, each.id) for each in (earlier, run)))
        if earlier
        else (),
        read_preflight(session.lake.workspace, cluster),
        session.settings.cluster(cluster).zone,
    )
    return _section(found) | {"num_runs": len(runs)}


def other_runs(session: Session) -> str:
    """Where no cluster of the report was measured, whose runs there are; nothing where there are none."""
    names = sorted({each.cluster for each in list_runs(session)})
    if not names:
        return ""
    return (
        f"Runs of {listed(names, MOST_NAMED)} are not in this report: "
        f"hakaru bench show --cluster {names[0]} -o FILE"
    )


def measure_to_html(
    run: Run, others: Sequence[Run] = (), zone: str = "UTC", preflight: Table | None = None
) -> str:
    """One HTML document of a run that needs no network to be read; `others` are its history."""
    style, chart = _file("style.css"), _file("figures.js")
    echarts = script("echarts").strip()
    view = RunView.of(run)
    subject = find_subject(history_subjects(view), Choice())
    all = {each.id: each for each in (*others, run) if each.cluster == run.cluster}
    earlier = before([Listed.of(each) for each in all.values()], Listed.of(run))
    found = Measured(
        view,
        subject,
        series_in(list(all.values()), subject) if subject else None,
        earlier,
        set_beside(all[earlier.id], run) if earlier else (),
        preflight,
        zone,
    )
    return (
        _environment()
        .get_template("measure.html")
        .render(
            lang="en",
            is_both=True,
            title=f"Measured: {run.cluster}",
            subtitle=_subtitle(view),
            measured=_section(found, both=True),
            rows=[_row(each) for each in _worst_first(view)[:MOST_ROWS]],
            num_more=max(0, len(view.judged) - MOST_ROWS),
            style=style,
            echarts=echarts,
            figures_script=chart,
            policy=policy_of([style], [echarts, chart]),
        )
    )


def _section(found: Measured, both: bool = False) -> dict[str, Any]:
    view = found.view
    light = _figures(found, dark=False)
    dark = _figures(found, dark=True) if both else light
    drawn = [
        (chapter, _figure(number, figure, in_dark, both))
        for number, ((chapter, figure), (_, in_dark)) in enumerate(zip(light, dark, strict=True), 1)
    ]
    return {
        "summary": words.summarise(view),
        "subtitle": _subtitle(view),
        "left_out": view.left_out,
        "figures": [each for chapter, each in drawn if chapter == DEVICES],
        "history": [each for chapter, each in drawn if chapter == HISTORY],
        "blame": blame_text(blame_of(view)),
        "chapters": [
            (each, [one for chapter, one in drawn if chapter == each.id])
            for each in chapters_of(view)
        ],
        "predictions": predictions(sweeps_of(view)),
        "more_ranks": MORE_RANKS,
        "no_prediction": NO_PREDICTION,
        "beside": _beside(found.before, found.changes) if found.before else None,
        "preflight": found.preflight,
    }


def _figures(found: Measured, dark: bool) -> list[tuple[str, Figure]]:
    """Those for which the run has numbers, with the part of the section that each is in."""
    view = found.view
    drawn: list[Figure] = []
    subject = find_subject(card_subjects(view), Choice())
    if subject is not None:
        drawn += [fleet(view, None, dark), card_curve(view, subject, dark)]
    sweeps, search = sweeps_of(view), search_of(view)
    drawn += [collective(sweeps, name, dark) for name in collectives_of(sweeps)]
    if search is not None:
        drawn.append(search_history(search, dark))
    every = [(DEVICES, each) for each in drawn]
    for chapter in chapters_of(view):
        every += [
            (chapter.id, each.draw(name, dark))
            for each in chapter.pictures
            for name in _names(each)
        ]
    if found.series is not None and found.subject is not None:
        every.append((HISTORY, history(found.series, found.subject, dark, found.zone)))
    return every


def _names(each: Picture) -> Sequence[str | None]:
    """On paper nobody chooses: of steps the one that matters most, of all else the first few."""
    if each.id in ALONE or not each.names:
        return [each.first]
    return each.names[:MOST_OF_A_KIND]


def _beside(earlier: Listed, changes: Sequence[Line]) -> dict[str, Any] | None:
    """The run before and this one, what differs first; None where they share nothing."""
    found = beside(changes)
    if not found.lines:
        return None
    return {
        "subtitle": _subtitle(earlier),
        "lines": found.lines[:MOST_BESIDE],
        "num_more": max(0, len(found.lines) - MOST_BESIDE),
        "num_lines": len(found.lines),
        "num_differ": sum(each.line.differs for each in found.lines),
    }


def _figure(number: int, figure: Figure, dark: Figure, both: bool) -> dict[str, Any]:
    return {
        "id": f"measure-{number}",
        "title": figure.title,
        "question": figure.question,
        "height": figure.height,
        "option": _in_page(figure),
        "dark": _in_page(dark) if both else None,
        "notes": figure.notes,
    }


def _in_page(figure: Figure) -> dict[str, Any]:
    """A tooltip of HTML would need style attributes, which the page's policy forbids."""
    return figure.option | {"tooltip": figure.option["tooltip"] | {"renderMode": "richText"}}


def _subtitle(view: RunView | Listed) -> str:
    label = f", {view.label}" if view.label else ""
    return f"{view.started_at:%Y-%m-%d %H:%M} UTC{label}, run {view.id}"


def _worst_first(view: RunView) -> list[Reading]:
    return sorted(view.judged, key=lambda each: ORDER.index(each.verdict))


def _row(each: Reading) -> tuple[list[str], str]:
    """The cells of a measurement, and the reason where it is not good."""
    cells = [
        each.what, each.where, each.quantity, words.amount(each.median, each.unit),
        words.interval_text(each.low, each.high) or "–", f"{each.num_repetitions:,}",
        each.verdict.value,
    ]  # fmt: skip
    return cells, "" if each.verdict is Verdict.GOOD else each.reason
