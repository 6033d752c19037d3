"""Clusters side by side: run each analysis once a cluster, and read the metrics from its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hakaru.analyses import Result, Selection, counted, load_all, never_recorded, unit_remarks
from hakaru.comparison._period import period_of
from hakaru.comparison._users import users_note
from hakaru.reference.metrics import Cell, Metric, read, wanted_states
from hakaru.reference.published import Published, first_of_each, without_parts
from hakaru.texts import agreeing, language

if TYPE_CHECKING:
    from hakaru.analyses import Session
    from hakaru.settings import Cluster

Key = tuple[str, str | None, float | None, tuple[str, ...]]
HEADLINE = (
    "num_jobs",
    "num_users",
    "utilisation_mean",
    "share_single_pe",
    "share_multi_node",
    "wra_mean",
    "wra_median",
    "share_at_max",
    "run_mean_s",
    "run_median_s",
    "spearman_size_run",
    "wait_mean_s",
    "wait_median_s",
    "weekday_peak_ratio",
    "interarrival_median_s",
    "share_completed",
)
ACROSS_LOGS = "ids are numbered anew in every log file, so they cannot be counted across files"


@dataclass(frozen=True)
class Line:
    """One metric: which jobs it counts, and its value for each cluster."""

    metric: Metric
    counting: str
    cells: dict[str, Cell]
    published: dict[str, Published]
    jobs: str = "jobs"  # the same as `counting`, as a sentence speaks of them


@dataclass(frozen=True)
class Comparison:
    clusters: list[str]
    units: dict[str, str]
    synthetic: set[str]
    lines: list[Line]
    published: list[str] | None  # the chosen clusters; null for all that have a metric, shortly
    left_out: list[str] = field(default_factory=list)
    missing: Mapping[str, float] = field(default_factory=dict)  # shares of rows not read, a cluster

    def cell(self, metric: str, cluster: str) -> Cell | None:
        """The value of a metric, or null where the metric was not asked for."""
        line = self.line(metric)
        return line.cells[cluster] if line else None

    def line(self, metric: str) -> Line | None:
        return next((line for line in self.lines if line.metric.id == metric), None)

    def name(self, cluster: str) -> str:
        return f"{cluster} (SYNTHETIC)" if cluster in self.synthetic else cluster


def compare(
    session: Session,
    clusters: Sequence[str],
    metrics: Sequence[Metric],
    published: list[str] | None,
    selection: Selection,
) -> Comparison:
    """Compute the metrics of the clusters, and set the published ones beside them."""
    runs = _Runs(session, selection)
    lines = [
        Line(
            metric=metric,
            counting=runs.counting(metric),
            cells={cluster: runs.cell(metric, cluster) for cluster in clusters},
            published=_beside(metric.id, published),
            jobs=runs.jobs(metric),
        )
        for metric in metrics
    ]
    return Comparison(
        clusters=list(clusters),
        units={cluster: session.unit(cluster) for cluster in clusters},
        synthetic={cluster for cluster in clusters if cluster in session.synthetic},
        lines=lines,
        published=published,
        left_out=runs.left_out(),
        missing={name: session.missing[name] for name in clusters if name in session.missing},
    )


def _beside(metric: str, chosen: list[str] | None) -> dict[str, Published]:
    figures = first_of_each(metric)
    if chosen is None:
        return without_parts(figures)
    return {name: figures[name] for name in chosen if name in figures}


@dataclass
class _Runs:
    """The tables that were computed so far: one for each cluster, analysis and set of rules."""

    session: Session
    selection: Selection
    results: dict[tuple[Key, str], Result] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)

    def cell(self, metric: Metric, cluster: str) -> Cell:
        if metric.setting:
            return self._from_settings(metric, cluster)
        if metric.users and self._users_note(cluster):
            return Cell(None, ACROSS_LOGS)
        result = self._result(metric, cluster)
        if result.num_used == 0:
            return Cell(None, self._why_empty(result, cluster))
        cell = _finite(read(metric, result.rows))
        if cell.value is None:
            return cell
        if cell.value == 0 and (reason := self._unrecorded(metric, cluster)):
            return Cell(None, reason)
        counted = (result.num_used, result.num_selected)
        return replace(cell, caveat=_caveat(metric, result), counted=counted)

    def jobs(self, metric: Metric) -> str:
        chosen = self._counted(metric)
        return language("en").jobs(chosen.min_run_s, chosen.states) if chosen else "jobs"

    def counting(self, metric: Metric) -> str:
        """Which jobs the metric counts, in a few words: nothing where all of them."""
        chosen = self._counted(metric)
        if chosen is None:
            return ""
        states = [state for state in chosen.states if state != "any"]
        parts = [" or ".join(states)] if states else []
        parts += [f"≥ {chosen.min_run_s:g} s"] if chosen.min_run_s else []
        fixed = metric.min_run_s is not None and not parts
        return "all that ran" if fixed else ", ".join(parts)

    def _counted(self, metric: Metric) -> Selection | None:
        if metric.setting:
            return None
        return counted(load_all().get(metric.analysis), self._selection(metric, ""))

    def _unrecorded(self, metric: Metric, cluster: str) -> str:
        """Why a share of no jobs is unknown: a log that never records a state says nothing of it."""
        states = wanted_states(metric)
        if not states or not never_recorded(self.session.states(cluster), states):
            return ""
        return f"no job of the log is {' or '.join(states)}: it may not record that"

    def left_out(self) -> list[str]:
        """How many jobs of each cluster the rules left out; analyses with the same rules together."""
        lines: dict[tuple[str, str], list[str]] = {}
        for (_, cluster), result in self.results.items():
            if rules := _rules(result):
                counts = agreeing(f"{result.num_used:,} of {result.num_selected:,} jobs")
                text = f"{counts}; left out {rules}"
                names = lines.setdefault((cluster, text), [])
                if result.analysis.id not in names:
                    names.append(result.analysis.id)
        order = sorted(lines, key=lambda key: key[0])
        told = [f"{key[0]}, {', '.join(lines[key])}: {key[1]}" for key in order]
        remarks = [line for result in self.results.values() for line in _by_unit(result)]
        return [*told, *dict.fromkeys(remarks)]

    def _result(self, metric: Metric, cluster: str) -> Result:
        key = (metric.analysis, metric.by, metric.min_run_s, tuple(metric.states))
        if (key, cluster) not in self.results:
            analysis = load_all().get(metric.analysis)
            selection = self._selection(metric, cluster)
            self.results[key, cluster] = self.session.run(analysis, selection)
        return self.results[key, cluster]

    def _selection(self, metric: Metric, cluster: str) -> Selection:
        """The chosen jobs; a metric that has rules of its own keeps them."""
        chosen = replace(self.selection, clusters=(cluster,), by=metric.by)
        if metric.min_run_s is not None:
            chosen = replace(chosen, min_run_s=metric.min_run_s)
        return replace(chosen, states=tuple(metric.states)) if metric.states else chosen

    def _users_note(self, cluster: str) -> str:
        if cluster not in self.users:
            self.users[cluster] = users_note(self.session, cluster, self.selection)
        return self.users[cluster]

    def _why_empty(self, result: Result, cluster: str) -> str:
        if result.num_selected == 0:
            return f"no job is selected; {period_of(self.session, cluster)}"
        by_state = any(e.num_jobs and e.rule.startswith("that are ") for e in result.left_out)
        hint = " (--state any counts jobs however they ended)" if by_state else ""
        told = [f"no job counts of {result.num_selected:,}; left out {_rules(result)}{hint}"]
        return "; ".join([*told, *_by_unit(result)])

    def _from_settings(self, metric: Metric, cluster: str) -> Cell:
        value = _size(self.session.settings.cluster(cluster), metric.setting)
        return Cell(value, "" if value is not None else metric.missing)


def _caveat(metric: Metric, result: Result) -> str:
    """What the number of a metric is not, by the rest of its table."""
    if metric.column == "utilisation":
        return ", ".join(
            f"jobs exceed the machine's size for {over.share * 100:.1f} % of this time"
            for over in result.over.values()
        )
    if metric.column == "share_at_max" and result.rows[0]["share_with_known_limit"] < 1:
        return "where no limit is known, it is the longest request seen in the queue"
    return ""


def _by_unit(result: Result) -> list[str]:
    return unit_remarks(result, language("en"))


def _size(cluster: Cluster, name: str) -> float | None:
    """A size of the machine: of its largest state where it grew or shrank."""
    if name.endswith("_per_node"):
        found = cluster.per_node(name.removesuffix("s_per_node"))
    else:
        spans = cluster.nodes if name == "nodes" else cluster.size(name.removesuffix("s"))
        found = max((span.count for span in spans), default=None)
    return None if found is None else float(found)


def _finite(cell: Cell) -> Cell:
    """NaN, e.g. a correlation of equal numbers, is no number: it is unknown, and says so."""
    if cell.value is None or math.isfinite(cell.value):
        return cell
    return Cell(None, "these jobs do not define it")


def _rules(result: Result) -> str:
    """The rules that left jobs out, with their number; nothing where none did."""
    words = language("en", *result.units.values())
    left = [entry for entry in result.left_out if entry.num_jobs]
    return ", ".join(f"{e.num_jobs:,}: only jobs {words.rule(e.rule)}" for e in left)
