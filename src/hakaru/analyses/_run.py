"""Run an analysis: select the jobs, count who is left out and why, and ask the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hakaru.analyses._base import Analysis, Rule
from hakaru.engine import Engine, open_engine
from hakaru.engine.where import EVERYTHING, Condition, end_of, parse_moment, parse_where
from hakaru.errors import FilterError, HakaruError
from hakaru.lake import Lake
from hakaru.schema import JOBS, STATES, Type
from hakaru.settings import Cluster, Settings, load

if TYPE_CHECKING:
    import pyarrow as pa

DERIVED: dict[str, Type] = {
    "num_pes": "bigint",
    "parallelism": "string",
    "pe_hours": "double",
    "quarter": "string",
}
COLUMNS: dict[str, Type] = {**{c.name: c.type for c in JOBS.columns}, **DERIVED}
GROUPS = (
    "cluster", "user", "account", "queue", "qos", "application", "state", "gpu_model", "num_gpus",
    "num_nodes", "parallelism", "quarter",
)  # fmt: skip
WEIGHTS = ("jobs", "gpu-hours")


@dataclass(frozen=True)
class Selection:
    """Which jobs, counted how. `min_run_s` and `states` replace the analysis' own rules."""

    clusters: tuple[str, ...] = ()
    where: str | None = None
    since: str | None = None
    until: str | None = None
    min_run_s: float | None = None
    states: tuple[str, ...] = ()
    by: str | None = None
    weight: str = "jobs"

    def check(self) -> None:
        for state in self.states:
            if state not in (*STATES, "any"):
                raise FilterError(f"there is no state {state!r}; known: {', '.join(STATES)}, any")
        if self.by is not None and self.by not in GROUPS:
            raise FilterError(f"cannot group by {self.by!r}; known: {', '.join(GROUPS)}")
        if self.weight not in WEIGHTS:
            raise FilterError(f"cannot count by {self.weight!r}; known: {', '.join(WEIGHTS)}")
        if self.min_run_s is not None and self.min_run_s < 0:
            raise FilterError("--min-run is a number of seconds, 0 or more")


@dataclass(frozen=True)
class LeftOut:
    """A rule, and how many of the selected jobs it leaves out."""

    rule: str
    num_jobs: int


@dataclass(frozen=True)
class Result:
    """A table, and what must be said beside it."""

    analysis: Analysis
    table: pa.Table
    selection: Selection
    params: Mapping[str, Any]
    num_selected: int
    num_used: int
    left_out: tuple[LeftOut, ...]
    synthetic: bool

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self.table.to_pylist())


@dataclass
class Session:
    """An engine over one snapshot of a lake, for any number of analyses."""

    lake: Lake
    settings: Settings
    engine: Engine
    known_clusters: tuple[str, ...]
    synthetic: set[str]
    _units: dict[str, str] = field(default_factory=dict)

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
        selection = self._complete(selection or Selection(), analysis)
        sql = analysis.sql(**params)
        rules = _rules(analysis, selection)
        condition = self._condition(selection, analysis)
        self._define(selection, condition, rules)
        counts = self.engine.query(_counting(rules)).to_pylist()[0]
        table = self.engine.query(sql)
        if analysis.groups:
            table = _name_groups(table, selection.by)
        left_out = tuple(LeftOut(r.text, counts[f"left_{i}"] or 0) for i, r in enumerate(rules))
        num_selected = counts["num_selected"] or 0
        return Result(
            analysis=analysis,
            table=table,
            selection=selection,
            params=params,
            num_selected=num_selected,
            num_used=num_selected - sum(entry.num_jobs for entry in left_out),
            left_out=left_out,
            synthetic=any(name in self.synthetic for name in selection.clusters),
        )

    def unit(self, cluster: str) -> str:
        """What the size of this cluster's jobs counts: gpu or cpu."""
        if cluster not in self._units:
            chosen = self.settings.cluster(cluster).unit
            self._units[cluster] = chosen or self._observed_unit(cluster)
        return self._units[cluster]

    def _observed_unit(self, cluster: str) -> str:
        row = self.engine.query(
            f"SELECT max(num_gpus) AS most FROM jobs_stored WHERE cluster = '{cluster}'"
        ).to_pylist()[0]
        return "gpu" if (row["most"] or 0) > 0 else "cpu"

    def _complete(self, selection: Selection, analysis: Analysis) -> Selection:
        """Name the clusters, or ask for a choice where pooling them would say nothing."""
        selection.check()
        unknown = [name for name in selection.clusters if name not in self.known_clusters]
        if unknown:
            known = ", ".join(self.known_clusters) or "none"
            raise HakaruError(
                f"there is no cluster {unknown[0]!r} in {self.lake.workspace}; known: {known}"
            )
        if selection.by is not None and not analysis.groups:
            raise FilterError(f"{analysis.id} cannot be grouped with --by")
        clusters = selection.clusters or self.known_clusters
        if not clusters:
            raise HakaruError(
                f"{self.lake.workspace} holds no jobs yet. Begin with: hakaru ingest FILE --cluster NAME"
            )
        if len(clusters) > 1 and selection.by != "cluster":
            raise HakaruError(
                f"{self.lake.workspace} holds {', '.join(clusters)}: choose one with --cluster"
                + (", or put them side by side with --by cluster" if analysis.groups else "")
            )
        return replace(selection, clusters=tuple(clusters))

    def _condition(self, selection: Selection, analysis: Analysis) -> Condition:
        zone = self.settings.cluster(selection.clusters[0]).zone
        condition = EVERYTHING
        if selection.where:
            condition &= parse_where(selection.where, "jobs_all", COLUMNS, zone)
        present = analysis.period == "present"
        if selection.since:
            column = "coalesce(ended_at, started_at, submitted_at)" if present else "submitted_at"
            test = f"{column} >= {{0}}"
            if present:
                test = f"({test} OR ended_at IS NULL AND state IN ('pending', 'running'))"
            condition &= Condition(test, (parse_moment(selection.since, zone),))
        if selection.until:
            condition &= Condition("submitted_at < {0}", (end_of(selection.until, zone),))
        return condition

    def _define(self, selection: Selection, condition: Condition, rules: Sequence[Rule]) -> None:
        names = selection.clusters
        self.engine.define("jobs_all", self._jobs_sql(names, selection))
        self.engine.define(
            "jobs_selected", f"SELECT * FROM jobs_all WHERE {condition.sql}", condition.values
        )
        passing = " AND ".join(f"({rule.sql})" for rule in rules) or "true"
        self.engine.define("jobs", f"SELECT * FROM jobs_selected AS jobs_all WHERE {passing}")
        clusters = {name: self.settings.cluster(name) for name in names}
        self.engine.constants("queues", _queue_rows(clusters))
        self.engine.constants("capacity", self._capacity_rows(clusters))
        self.engine.constants("sites", _site_rows(clusters))
        self.engine.constants("period", _period_row(selection, clusters[names[0]].zone))

    def _jobs_sql(self, names: Sequence[str], selection: Selection) -> str:
        """The canonical columns and the derived ones; cluster and zone names are checked words."""
        num_pes = _by_cluster({n: f"num_{self.unit(n)}s" for n in names})
        per_node = _by_cluster({n: self._pes_per_node(n) for n in names})
        zones = {n: self.settings.cluster(n).zone for n in names}

        def local(column: str) -> str:
            return _by_cluster(
                {n: f"from_utc_timestamp({column}, '{zone}')" for n, zone in zones.items()}
            )

        grp = (
            f"coalesce(CAST(sized.{selection.by} AS STRING), 'unknown')"
            if selection.by
            else "'all'"
        )
        weight = "pe_hours" if selection.weight == "gpu-hours" else "CAST(1 AS DOUBLE)"
        listed = ", ".join(f"'{name}'" for name in names)
        return f"""
            SELECT sized.*, {grp} AS grp, {weight} AS weight FROM (
                SELECT placed.*, num_pes * run_s / 3600 AS pe_hours,
                       CASE WHEN num_pes = 1 THEN 'single-pe'
                            WHEN span_nodes > 1 THEN 'multi-node'
                            WHEN span_nodes = 1 THEN 'single-node'
                            WHEN num_pes > 1 THEN 'unknown-nodes' END AS parallelism,
                       {_quarter_of("submitted_local")} AS quarter,
                       {_quarter_of("ended_local")} AS ended_quarter
                FROM (SELECT stored.*, {num_pes} AS num_pes, {local("submitted_at")} AS submitted_local,
                             {local("ended_at")} AS ended_local,
                             coalesce(num_nodes, ceil({num_pes} / ({per_node}))) AS span_nodes
                      FROM jobs_stored AS stored WHERE cluster IN ({listed})) AS placed
            ) AS sized
        """

    def _pes_per_node(self, cluster: str) -> str:
        settings = self.settings.cluster(cluster)
        count = settings.gpus_per_node if self.unit(cluster) == "gpu" else settings.cpus_per_node
        return f"CAST({count} AS DOUBLE)" if count else "CAST(NULL AS DOUBLE)"

    def _capacity_rows(self, clusters: Mapping[str, Cluster]) -> pa.Table:
        import pyarrow as pa

        rows = []
        for name, cluster in clusters.items():
            gpu = self.unit(name) == "gpu"
            per_node = cluster.gpus_per_node if gpu else cluster.cpus_per_node
            starts = [span.since.timestamp() if span.since else None for span in cluster.nodes]
            for i, span in enumerate(cluster.nodes if per_node else ()):
                until = starts[i + 1] if i + 1 < len(starts) else None
                pes = float(span.count * (per_node or 0))
                rows.append(
                    {"cluster": name, "since_s": starts[i], "until_s": until, "num_pes": pes}
                )
        number = pa.float64()
        return pa.Table.from_pylist(
            rows,
            schema=pa.schema(
                {"cluster": pa.string(), "since_s": number, "until_s": number, "num_pes": number}
            ),
        )


def open_session(lake: Lake, engine: str = "duckdb", settings: Settings | None = None) -> Session:
    """A session on the lake as it is now; later commits do not change what it sees."""
    settings = settings or load(lake.workspace, lake.facts())
    opened = open_engine(engine, settings.engine)
    opened.scan("jobs_stored", JOBS, lake.files(JOBS))
    return Session(
        lake=lake,
        settings=settings,
        engine=opened,
        known_clusters=tuple(lake.clusters()),
        synthetic=lake.synthetic_clusters(),
    )


def _rules(analysis: Analysis, selection: Selection) -> list[Rule]:
    """The analysis' rules, with its least run time and states unless others were chosen."""
    rules = list(analysis.rules)
    min_run_s = analysis.min_run_s if selection.min_run_s is None else selection.min_run_s
    if min_run_s:
        rules.append(Rule(f"that ran for at least {min_run_s:g} s", f"run_s >= {min_run_s!r}"))
    states = selection.states or analysis.states
    if states and "any" not in states:
        listed = ", ".join(f"'{state}'" for state in states)
        rules.append(Rule(f"that are {' or '.join(states)}", f"state IN ({listed})"))
    return rules


def _counting(rules: Sequence[Rule]) -> str:
    """How many jobs are selected, and how many each rule leaves out of what is left before it."""
    picks = []
    for i, rule in enumerate(rules):
        before = "".join(f"coalesce({r.sql}, false) AND " for r in rules[:i])
        falls = f"{before}NOT coalesce({rule.sql}, false)"
        picks.append(f", sum(CASE WHEN {falls} THEN 1 ELSE 0 END) AS left_{i}")
    return f"SELECT count(*) AS num_selected{''.join(picks)} FROM jobs_selected AS jobs_all"


def _quarter_of(column: str) -> str:
    return f"concat(CAST(year({column}) AS STRING), 'Q', CAST(quarter({column}) AS STRING))"


def _by_cluster(expressions: Mapping[str, str]) -> str:
    """One expression, or a CASE over the clusters where theirs differ."""
    if len(set(expressions.values())) == 1:
        return next(iter(expressions.values()))
    cases = " ".join(f"WHEN '{name}' THEN {sql}" for name, sql in expressions.items())
    return f"CASE cluster {cases} END"


def _queue_rows(clusters: Mapping[str, Cluster]) -> pa.Table:
    import pyarrow as pa

    rows = [
        {"cluster": name, "queue": queue, "max_requested_s": limit.max_walltime_h * 3600}
        for name, cluster in clusters.items()
        for queue, limit in cluster.queues.items()
        if limit.max_walltime_h
    ]
    kinds = {"cluster": pa.string(), "queue": pa.string(), "max_requested_s": pa.float64()}
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def _site_rows(clusters: Mapping[str, Cluster]) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {
            "cluster": pa.array(list(clusters), pa.string()),
            "zone": pa.array([cluster.zone for cluster in clusters.values()], pa.string()),
        }
    )


def _period_row(selection: Selection, zone: str) -> pa.Table:
    import pyarrow as pa

    def seconds(moment: datetime | None) -> float | None:
        return moment.timestamp() if moment else None

    since = parse_moment(selection.since, zone) if selection.since else None
    until = end_of(selection.until, zone) if selection.until else None
    row = {"since_s": seconds(since), "until_s": seconds(until)}
    kinds = {"since_s": pa.float64(), "until_s": pa.float64()}
    return pa.Table.from_pylist([row], schema=pa.schema(kinds))


def _name_groups(table: pa.Table, by: str | None) -> pa.Table:
    """Drop `grp` where nothing was grouped, else call it what it is."""
    if by is None:
        return table.drop_columns("grp")
    names = [by if name == "grp" else name for name in table.column_names]
    if names.count(by) > 1:
        names[0] = f"group_{by}"
    return table.rename_columns(names)
