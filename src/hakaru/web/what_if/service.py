"""What-if as a viewer may ask it: for operators, over jobs that the readers fetch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.sim import POLICIES
from hakaru.sim.idle import IdleRule, with_idleness
from hakaru.sim.site import Site, jobs_of
from hakaru.web.access import Viewer
from hakaru.web.filters import Filters
from hakaru.web.models import Drawing
from hakaru.web.problems import Refused, Unknown, WebError
from hakaru.web.readers import Readers
from hakaru.web.service._clusters import chosen
from hakaru.web.what_if import check, figures, models, player
from hakaru.web.what_if.nodes import nodes_of_day
from hakaru.web.what_if.runs import Run, Runs

if TYPE_CHECKING:
    from hakaru.analyses import Selection, Session


class Desk:
    """Takes questions about what-if of one viewer."""

    def __init__(self, runs: Runs, readers: Readers, viewer: Viewer) -> None:
        if not viewer.sees_all:
            raise Refused(
                "what-if replays everyone's jobs and is for operators only", "Ask an operator."
            )
        self.runs = runs
        self.readers = readers

    def about(self) -> models.WhatIf:
        bounds = self.runs.bounds
        return models.WhatIf(
            install=None if check.is_installed() else check.INSTALL,
            policies=[
                models.PolicyInfo(id=each.id, title=each.title, needs_queues=each.preempts)
                for each in POLICIES
            ],
            max_jobs=bounds.jobs,
            max_variants=bounds.variants,
            max_seconds=bounds.seconds,
            runs=[self._told(run) for run in self.runs.all()],
        )

    def start(self, wanted: models.Wanted) -> models.Run:
        if not check.is_installed():
            raise check.NotInstalled(
                "numba, which runs the simulator, is not installed here", f"Run: {check.INSTALL}"
            )
        bounds = self.runs.bounds
        scenario = check.checked(wanted.scenario, bounds)
        selection = self._selection(wanted)
        (counted,) = self.readers.rows("SELECT count(*) AS num FROM jobs", selection)
        num_jobs = int(counted["num"])
        if not num_jobs:
            raise WebError("no job was submitted in this period", "Choose another period.")
        if check.num_to_play(scenario, num_jobs) > bounds.jobs:
            raise WebError(
                f"{num_jobs:,} jobs in {len(scenario.plans)} runs are more than the "
                f"{bounds.jobs:,} that this server plays at a time",
                "Choose a shorter period, or fewer variants; `hakaru whatif` has no such limit.",
            )

        def prepare(folder: Path) -> Site:
            return self._fetch(selection, folder, scenario.idle_rules)

        names = [plan.name for plan in scenario.plans]
        return self._told(self.runs.start(Run(wanted, names, num_jobs, prepare)))

    def find(self, id: str) -> models.RunResult:
        run = self.runs.find(id)
        return models.RunResult(
            **self._facts(run), scenario=run.wanted.scenario, outcome=run.outcome
        )

    def cancel(self, id: str) -> models.Run:
        return self._told(self.runs.cancel(id))

    def nodes(self, id: str, query: models.DayQuery) -> models.NodesOfDay:
        run, outcome = self._done(id)
        if query.variant >= len(outcome.runs):
            last = len(outcome.runs) - 1
            raise WebError(f"there is no variant {query.variant}", f"They are 0 to {last}.")
        day = query.day or outcome.day
        if not outcome.first_day <= day or day.year > 9000:
            raise WebError(f"the log begins on {outcome.first_day}", "Choose a later day.")
        assert run.folder is not None
        try:
            return nodes_of_day(run.folder, outcome, query.variant, day)
        except FileNotFoundError:  # it was forgotten meanwhile
            raise Unknown("there is no such what-if run", "Begin a new one.") from None

    def figure(self, id: str, figure: str, query: models.FigureQuery) -> Drawing:
        theme = figures.theme_of(query.dark)
        _, outcome = self._done(id)
        if figure == "nodes":
            day = models.DayQuery(variant=query.variant, day=query.day)
            drawn = figures.nodes(self.nodes(id, day), theme, outcome.unit)
            return figures.drawing(figure, *figures.NODES, drawn, theme)
        title, question, draw = figures.OF_OUTCOME[figure]
        return figures.drawing(figure, title, question, draw(outcome, query, theme), theme)

    def _selection(self, wanted: models.Wanted) -> Selection:
        names = chosen(self.readers, (wanted.cluster,))
        period = Filters(since=wanted.since, until=wanted.until)
        return replace(period.selection(), clusters=names)

    def _fetch(self, selection: Selection, folder: Path, rules: Sequence[IdleRule]) -> Site:
        """Whose jobs they are, and the jobs written as a file that the player maps."""
        import pyarrow as pa

        (name,) = selection.clusters

        def write(session: Session) -> Site:
            table = with_idleness(session, name, jobs_of(session, selection), rules)
            with pa.ipc.new_file(str(folder / player.JOBS), table.schema) as sink:
                sink.write_table(table)
            return Site.of(session, name)

        return self.readers.ask(("what-if", str(folder)), write)

    def _done(self, id: str) -> tuple[Run, models.Outcome]:
        run = self.runs.find(id)
        if run.outcome is None:
            raise WebError(f"this run is {run.state} and has no results", "Check its state.")
        return run, run.outcome

    def _told(self, run: Run) -> models.Run:
        return models.Run(**self._facts(run))

    def _facts(self, run: Run) -> dict[str, Any]:
        own = ("id", "state", "names", "num_jobs", "asked_at", "began_at", "ended_at",
               "num_done", "doing", "problem")  # fmt: skip
        wanted = {name: getattr(run.wanted, name) for name in ("cluster", "since", "until")}
        return {name: getattr(run, name) for name in own} | wanted | {
            "num_ahead": self.runs.num_ahead(run)
        }  # fmt: skip
