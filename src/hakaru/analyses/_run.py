"""Run an analysis: select the jobs, count who is left out and why, and ask the engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hakaru.analyses._base import ANALYSES, Analysis, Rule
from hakaru.analyses._caveats import caveats_of, never_recorded, one_state, recorded_states
from hakaru.analyses._ends import ends_of, without_ends
from hakaru.analyses._machine import Over, Seen, seen
from hakaru.analyses._result import LeftOut, Result
from hakaru.analyses._select import (
    COLUMNS,
    Selection,
    absent_values,
    chosen_rules,
    condition_of,
    counting,
    passing,
    rules_of,
    text_columns,
)
from hakaru.analyses._site import UNKNOWN, Site, words_of
from hakaru.analyses._unit import Unit, observed_unit, uncounted
from hakaru.engine import Engine, open_engine
from hakaru.errors import FilterError, HakaruError
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Settings, load

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Session:
    """An engine over one snapshot of a lake, for any number of analyses."""

    lake: Lake
    settings: Settings
    engine: Engine
    files: list[str]
    known_clusters: tuple[str, ...]
    synthetic: set[str]
    span: tuple[datetime, datetime] | None = None
    missing: Mapping[str, float] = field(default_factory=dict)  # rejected shares worth a remark
    chosen_unit: Unit | None = None
    _units: dict[str, Unit] = field(default_factory=dict, init=False)
    _states: dict[str, Mapping[str | None, int]] = field(default_factory=dict, init=False)
    _scope: Any = field(default=None, init=False)
    _words: set[str] = field(default_factory=set, init=False)
    _beside: set[str] = field(default_factory=set, init=False)
    _counts: dict[tuple[Rule, ...], dict[int, int]] = field(default_factory=dict, init=False)
    _uncounted: dict[Rule, dict[str, int]] = field(default_factory=dict, init=False)
    _overs: dict[tuple[Rule, ...], dict[str, Over]] = field(default_factory=dict, init=False)
    _seen: dict[str, Seen | None] = field(default_factory=dict, init=False)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.engine.close()

    def run(self, analysis: Analysis, selection: Selection | None = None, **params: Any) -> Result:
        sql = analysis.sql(**params)
        selection = self._complete(selection or Selection(), analysis)
        rules = rules_of(analysis, selection)
        table = self._query(sql, selection, rules, analysis.period)
        counts = self._count(rules)
        use = "utilisation" in table.column_names
        unrecorded = self._unrecorded(selection, table.column_names)
        table = without_ends(table, [end for ends in unrecorded.values() for end in ends])
        return Result(
            analysis=analysis,
            table=_name_groups(table, selection.by) if analysis.groups else table,
            selection=selection,
            params=params,
            num_selected=sum(counts.values()),
            left_out=tuple(LeftOut(rule.text, counts.get(i, 0)) for i, rule in enumerate(rules)),
            synthetic_clusters=tuple(n for n in selection.clusters if n in self.synthetic),
            zone=self._zone(selection.clusters),
            missing={n: self.missing[n] for n in selection.clusters if n in self.missing},
            units={name: self.unit(name) for name in selection.clusters},
            uncounted=self._left_by_unit(rules, counts, selection, analysis.period),
            over=self._over(rules, selection) if use else {},
            seen=self._seen_sizes(selection) if use else {},
            caveats=replace(
                caveats_of(
                    self.settings,
                    selection.clusters,
                    {*words_of(sql), selection.by or ""},
                    selection.states or analysis.states,
                    lambda name: one_state(self.states(name)),
                ),
                unrecorded=unrecorded,
            ),
        )

    def _unrecorded(
        self, selection: Selection, columns: Collection[str]
    ) -> dict[str, tuple[str, ...]]:
        """The ends that a table of people has shares of and that a log may not record, by cluster."""
        ends = ends_of(columns)
        found = {
            name: tuple(
                end for end, states in ends.items() if never_recorded(self.states(name), states)
            )
            for name in (selection.clusters if ends else ())
        }
        return {name: each for name, each in found.items() if each}

    def ask(self, sql: str, selection: Selection) -> pa.Table:
        """A query of one's own over `jobs`, the jobs that the selection keeps."""
        selection = self._complete(selection)
        return self._query(sql, selection, chosen_rules(selection), "submitted")

    def absent_values(self, selection: Selection) -> list[tuple[str, str, list[str]]]:
        """What the filter compares with that no job of the clusters has, and what they have instead."""
        whole = Selection(clusters=selection.clusters, by="cluster")

        def values_of(column: str) -> set[str]:
            sql = (
                f"SELECT DISTINCT jobs.{column} AS value FROM jobs WHERE jobs.{column} IS NOT NULL"
            )
            return set(self.ask(sql, whole)["value"].to_pylist())

        return absent_values(selection, values_of)

    def empty_columns(self, selection: Selection) -> list[str]:
        """The text columns that the filter compares and that no job of the clusters has a value in."""
        if not selection.where:
            return []
        whole = Selection(clusters=selection.clusters, by="cluster")
        columns = text_columns(selection.where)
        found = [f"count(jobs.{column}) AS {column}_count" for column in columns]
        if not found:
            return []
        (row,) = self.ask(f"SELECT {', '.join(found)} FROM jobs", whole).to_pylist()
        return [column for column in columns if not row[f"{column}_count"]]

    def stored(self, columns: Collection[str]) -> str:
        """All stored jobs of all clusters, as something that a query can select from."""
        return self.engine.relation(JOBS, self.files, columns)

    def states(self, cluster: str) -> Mapping[str | None, int]:
        """The states that a cluster's log records (null: unknown), with their number of jobs."""
        if cluster not in self._states:
            self._states[cluster] = recorded_states(self.engine, self.stored, cluster)
        return self._states[cluster]

    def unit(self, cluster: str) -> Unit:
        """What the size of this cluster's jobs counts: as chosen, as set, else what most hours are."""
        if cluster not in self._units:
            chosen = self.chosen_unit or self.settings.cluster(cluster).unit
            self._units[cluster] = chosen or observed_unit(self.engine, self.stored, cluster)
        return self._units[cluster]

    def _zone(self, clusters: Sequence[str]) -> str:
        (zone, *others) = {self.settings.cluster(name).zone for name in clusters}
        return "UTC" if others else zone

    def _complete(self, selection: Selection, analysis: Analysis | None = None) -> Selection:
        """Name the clusters, or ask for a choice where pooling them would say nothing."""
        selection.check()
        workspace = self.lake.workspace
        unknown = [name for name in selection.clusters if name not in self.known_clusters]
        if unknown:
            known = ", ".join(self.known_clusters) or "none"
            raise HakaruError(f"there is no cluster {unknown[0]!r} in {workspace}; known: {known}")
        if analysis and selection.by is not None and not analysis.groups:
            raise FilterError(f"{analysis.id} cannot be grouped with --by")
        if analysis and selection.weight != "jobs" and not analysis.weighted:
            able = ", ".join(each.id for each in ANALYSES if each.weighted)
            raise FilterError(
                f"{analysis.id} counts jobs; --weight {selection.weight} works with: {able}"
            )
        clusters = selection.clusters or self.known_clusters
        if not clusters:
            raise HakaruError(
                f"{workspace} holds no jobs yet. Begin with: hakaru ingest FILE --cluster NAME"
            )
        groups = analysis is None or analysis.groups
        if len(clusters) > 1 and selection.by != "cluster":
            raise HakaruError(
                f"{workspace} holds {', '.join(clusters)}: choose one with --cluster"
                + (" (show puts them side by side with --by cluster)" if groups else "")
            )
        return replace(selection, clusters=tuple(clusters))

    def _query(
        self, sql: str, selection: Selection, rules: tuple[Rule, ...], period: str
    ) -> pa.Table:
        kept = passing(rules)
        scope = (replace(selection, min_run_s=None, states=()), period)
        if scope != self._scope:
            self._scope, self._words, self._beside = scope, set(), set()
            self._counts.clear()
            self._uncounted.clear()
            self._overs.clear()
        self._define(selection, period, words_of(f"{sql} {kept}"))
        self.engine.define("jobs", f"SELECT * FROM jobs_selected AS jobs_all WHERE {kept}")
        return self.engine.query(sql)

    def _define(self, selection: Selection, period: str, words: set[str]) -> None:
        """The tables that a query's words name, with the columns that they name and no others."""
        if words == self._words:
            return
        names = selection.clusters
        site = Site(
            clusters={name: self.settings.cluster(name) for name in names},
            units={name: self.unit(name) for name in names},
            span=self.span,
        )
        zones = {name: cluster.zone for name, cluster in site.clusters.items()}
        condition = condition_of(selection, zones, period)
        jobs = site.jobs_sql(self.stored, selection, words | words_of(condition.sql))
        if condition.values:  # a brace in a file's path is not the place of a value
            jobs = jobs.replace("{", "{{").replace("}", "}}")
        selected = f"SELECT * FROM ({jobs}) AS jobs_all WHERE {condition.sql}"
        self.engine.define("jobs_selected", selected, condition.values)
        wanted = words | ({"queues"} if "limits" in words else set())
        for name, rows in site.constants(selection).items():
            if name in wanted - self._beside:
                self.engine.constants(name, rows())
        if "limits" in wanted - self._beside:
            # a table, not a view: a planner that knows how small it is does not build on the jobs
            self.engine.constants("limits", self.engine.query(site.limits_sql(self.stored)))
        self._beside |= wanted
        self._words = words

    def _count(self, rules: tuple[Rule, ...]) -> dict[int, int]:
        if rules not in self._counts:
            rows = self.engine.query(counting(rules)).to_pylist()
            self._counts[rules] = {row["fails"]: row["num_jobs"] for row in rows}
        return self._counts[rules]

    def _left_by_unit(
        self, rules: tuple[Rule, ...], counts: Mapping[int, int], selection: Selection, period: str
    ) -> dict[str, int]:
        """The jobs that the first rule on sizes leaves out and that the other unit would count."""
        failing = [rule for i, rule in enumerate(rules) if rule.of_size and counts.get(i)]
        if not failing:
            return {}
        (rule, *_) = failing
        if rule not in self._uncounted:
            rows = self._query(uncounted(rule), selection, (), period).to_pylist()
            self._uncounted[rule] = {row["cluster"]: row["num_jobs"] for row in rows}
        return self._uncounted[rule]

    def has_size(self, cluster: str) -> bool:
        """Whether the machine's size is set, at least for a part of the time."""
        return bool(self.settings.cluster(cluster).size(self.unit(cluster)))

    def seen(self, cluster: str) -> Seen | None:
        """How large the machine is at least, by the nodes that the log names."""
        if cluster not in self._seen:
            unit = self.unit(cluster)
            self._seen[cluster] = seen(self.engine, self.stored, cluster, unit)
        return self._seen[cluster]

    def _seen_sizes(self, selection: Selection) -> dict[str, Seen]:
        unknown = [name for name in selection.clusters if not self.has_size(name)]
        found = {name: self.seen(name) for name in unknown}
        return {name: each for name, each in found.items() if each is not None}

    def _over(self, rules: tuple[Rule, ...], selection: Selection) -> dict[str, Over]:
        """Of whole clusters only: of another group nobody knows how much of the machine is its own."""
        from hakaru.analyses.load import exceeding

        sized = [name for name in selection.clusters if self.has_size(name)]
        if selection.by not in (None, "cluster") or not sized:
            return {}
        if rules not in self._overs:
            rows = self._query(exceeding(), selection, rules, "present").to_pylist()
            self._overs[rules] = {
                selection.clusters[0] if selection.by is None else row["grp"]: Over(
                    row["share"], row["most"], row["size"]
                )
                for row in rows
                if row["share"]
            }
        return self._overs[rules]


def open_session(
    lake: Lake,
    engine: str = "duckdb",
    settings: Settings | None = None,
    unit: Unit | None = None,
) -> Session:
    """A session on the lake as it is now; later commits do not change what it sees.

    `unit` is what the size of jobs counts on every cluster, in place of the settings' or the log's.
    """
    settings = settings or load(lake.workspace, lake.facts())
    opened = open_engine(engine, settings.engine)
    return Session(
        lake=lake,
        settings=settings,
        engine=opened,
        files=lake.files(JOBS),
        known_clusters=tuple(lake.clusters()),
        synthetic=lake.synthetic_clusters(),
        span=lake.span(JOBS),
        missing=_worth_saying(lake.missing(), settings.ingest.max_missing),
        chosen_unit=unit,
    )


def _name_groups(table: pa.Table, by: str | None) -> pa.Table:
    """Drop `grp` where nothing was grouped, else call it what it is; numbers become numbers again."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if by is None:
        return table.drop_columns("grp")
    if COLUMNS[by] == "bigint":
        known = pc.if_else(pc.equal(table["grp"], UNKNOWN), None, table["grp"])
        table = table.set_column(0, "grp", known.cast(pa.int64()))
        table = table.take(pc.sort_indices(table["grp"]))  # stable: the order within a group stays
    names = [by if name == "grp" else name for name in table.column_names]
    if names.count(by) > 1:
        names[0] = f"group_{by}"
    return table.rename_columns(names)


def _worth_saying(shares: Mapping[str, float], limit: float) -> dict[str, float]:
    return {name: share for name, share in shares.items() if share > limit}
