"""Measurements as a viewer may ask for them: for operators, over runs that the readers fetch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from hakaru.figures import Figure
from hakaru.figures.measure.beside import Line, set_beside
from hakaru.figures.measure.cards import card_curve
from hakaru.figures.measure.chapters import MEASURED_BY, PICTURES, find_picture
from hakaru.figures.measure.choice import (
    Choice,
    Subject,
    card_subjects,
    find_subject,
    history_subjects,
)
from hakaru.figures.measure.collectives import collective, collectives_of, sweeps_of
from hakaru.figures.measure.fleet import fleet
from hakaru.figures.measure.preflight import Table, read_preflight
from hakaru.figures.measure.search import search_history, search_of
from hakaru.figures.measure.series import history
from hakaru.figures.measure.stored import (
    Listed,
    list_runs,
    load_run,
    load_series,
    load_view,
    newest,
)
from hakaru.figures.measure.view import RunView
from hakaru.figures.measure.words import summarise
from hakaru.measure.series import Series
from hakaru.measure.store import LATEST
from hakaru.registry import hint
from hakaru.web.access import Viewer
from hakaru.web.measure import models
from hakaru.web.models import Drawing
from hakaru.web.problems import Refused, Unknown
from hakaru.web.readers import Readers

EMPTY = "Measure first: hakaru bench run --quick"


class Bench:
    """Takes questions about measurements of one viewer."""

    def __init__(self, readers: Readers, viewer: Viewer) -> None:
        if not viewer.sees_all:
            raise Refused("measurements name hosts and are for operators only", "Ask an operator.")
        self.readers = readers

    def runs(self, cluster: str | None = None) -> list[Listed]:
        """The newest first."""
        every = self.readers.ask("measure-runs", list_runs)
        return [each for each in every if cluster in (None, each.cluster)]

    def listed(self, query: models.RunsQuery) -> models.Runs:
        found = [info_of(each) for each in self.runs(query.cluster)]
        return models.Runs(runs=found, hint=None if found else EMPTY)

    def find(
        self, name: str = LATEST, cluster: str | None = None, benchmark: str | None = None
    ) -> Listed:
        """A run by its id; `latest` leaves self-tests and gates out.

        A benchmark that not every run has is looked for in the newest run that has it.
        """
        known = self.runs(cluster)
        if not known:
            whose = f" of {cluster}" if cluster else ""
            raise Unknown(f"the lake holds no measurements{whose}", EMPTY)
        if name == LATEST:
            return newest([each for each in known if benchmark in each.benchmarks] or known)
        found = [each for each in known if each.id == name]
        if not found:
            raise Unknown(f"there is no run {name!r}", hint(name, [each.id for each in known], 8))
        return found[0]

    def view(self, run: Listed) -> RunView:
        question = ("measure-run", run.cluster, run.id)
        return self.readers.ask(question, lambda session: load_view(session, run.cluster, run.id))

    def result(self, name: str, query: models.RunQuery) -> models.RunResult:
        run = self.find(name, query.cluster)
        view = self.view(run)
        summary = summarise(view)
        wanted = ((query.benchmark, "benchmark"), (query.verdict, "verdict"))
        rows = [each for each in view.readings
                if all(value in (None, getattr(each, field)) for value, field in wanted)]  # fmt: skip
        shown = rows[(query.page - 1) * query.size : query.page * query.size]
        return models.RunResult(
            **info_of(run).model_dump(),
            sentence=summary.sentence,
            meter=summary.meter,
            left_out=list(view.left_out),
            page=query.page,
            num_rows=len(rows),
            measurements=[
                models.Measurement(**(asdict(each) | {"parameters": dict(each.options)}))
                for each in shown
            ],
        )

    def figure(self, name: str, figure: str, query: models.FigureQuery) -> Drawing:
        run = self.find(name, query.cluster, query.benchmark if figure == "history" else None)
        drawn = self._drawn(run, figure, query)
        return Drawing(
            id=figure, kind=figure, title=drawn.title, question=drawn.question, option=drawn.option,
            notes=list(drawn.notes), height=drawn.height,
        )  # fmt: skip

    def series(
        self, cluster: str, subject: Subject, host: str | None = None, device: str | None = None
    ) -> Series:
        question = ("measure-series", cluster, subject, host, device)
        return self.readers.ask(
            question, lambda session: load_series(session, cluster, subject, host, device)
        )

    def history(self, query: models.SubjectQuery) -> models.History:
        run = self.find(LATEST, query.cluster, query.benchmark)
        subject = _chosen(history_subjects(self.view(run)), query.choice, "a history")
        found = self.series(run.cluster, subject, query.host, query.device)
        return models.History(
            title=subject.title,
            unit=subject.unit,
            sentence=found.sentence,
            points=[models.Point(**asdict(each)) for each in found.known],
            changes=[
                models.Change(run=each.point.run, size=each.size, worse=each.is_worse,
                              confirmed=each.is_confirmed)
                for each in found.changes
            ],
        )  # fmt: skip

    def beside(self, first: str, second: str, query: models.RunsQuery) -> models.Beside:
        earlier, later, lines = self.compared(
            *(self.find(n, query.cluster) for n in (first, second))
        )
        return models.Beside(
            first=info_of(earlier),
            second=info_of(later),
            lines=[models.Line(**asdict(each)) for each in lines],
        )

    def compared(self, run: Listed, other: Listed) -> tuple[Listed, Listed, list[Line]]:
        """The earlier run, the later one, and what has changed from one to the other."""
        earlier, later = sorted((run, other), key=lambda each: (each.started_at, each.id))
        pairs = [(each.cluster, each.id) for each in (earlier, later)]
        lines = self.readers.ask(
            ("measure-beside", *pairs),
            lambda session: set_beside(*(load_run(session, *pair) for pair in pairs)),
        )
        return earlier, later, lines

    def preflight(self, cluster: str | None) -> models.Preflight:
        """It is no part of the lake, so it is read anew each time."""
        found = self.preflight_table(cluster)
        return models.Preflight(**asdict(found)) if found else models.Preflight()

    def preflight_table(self, cluster: str | None) -> Table | None:
        """Of a cluster; else of the one that was measured last."""
        runs = [] if cluster else self.runs()
        name = newest(runs).cluster if runs else cluster
        return read_preflight(self.readers.lake.workspace, name)

    def zone(self, cluster: str) -> str:
        return self.readers.settings.cluster(cluster).zone

    def _drawn(self, run: Listed, figure: str, query: models.FigureQuery) -> Figure:
        view, choice, dark = self.view(run), query.choice, query.dark
        if figure in PICTURES:
            return _picture(view, figure, query.of, dark)
        if figure == "fleet":
            subject = None if choice.is_open else find_subject(card_subjects(view), choice)
            return fleet(view, subject, dark)
        if figure == "cards":
            return card_curve(view, _chosen(card_subjects(view), choice, "devices"), dark)
        if figure == "collectives":
            sweeps = sweeps_of(view)
            known = collectives_of(sweeps)
            return collective(sweeps, _one_of(query.collective, known), dark)
        if figure == "search":
            found = search_of(view)
            if found is None:
                raise Unknown("this run has no search of HPL", "Measure: hakaru bench run hpl")
            return search_history(found, dark)
        subject = _chosen(history_subjects(view), choice, "a history")
        series = self.series(run.cluster, subject, query.host, query.device)
        return history(series, subject, dark, self.zone(run.cluster))


def info_of(run: Listed) -> models.RunInfo:
    return models.RunInfo(
        id=run.id,
        cluster=run.cluster,
        label=run.label,
        source=run.source,
        started_at=run.started_at,
        benchmarks=list(run.benchmarks),
        verdict=run.verdict.value,
        counts={verdict.value: num for verdict, num in run.counts.items()},
    )


def _chosen(subjects: Sequence[Subject], choice: Choice, what: str) -> Subject:
    found = find_subject(subjects, choice)
    if found is None:
        raise Unknown(f"this run measured nothing that has {what}", "Choose another run.")
    return found


def _picture(view: RunView, figure: str, name: str | None, dark: bool) -> Figure:
    found = find_picture(view, figure)
    if found is None:
        raise Unknown(
            f"this run has no figure {figure!r}", f"Measure: hakaru bench run {MEASURED_BY[figure]}"
        )
    if name is not None and name not in found.names:
        raise Unknown(f"the figure {figure!r} has no {name!r}", hint(name, found.names))
    return found.draw(name, dark)


def _one_of(name: str | None, known: Sequence[str]) -> str:
    if name is not None and name not in known:
        raise Unknown(f"this run has no collective {name!r}", hint(name, known))
    return name or (known[0] if known else "")
