"""What is known of the clusters themselves, as the columns and small tables that queries see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hakaru.analyses._select import Selection
from hakaru.engine.where import end_of, parse_moment
from hakaru.settings import Cluster

if TYPE_CHECKING:
    import pyarrow as pa


UNKNOWN = "(unknown)"
CLASSES = ("single-pe", "single-node", "multi-node", "unknown-nodes")
CLASS_NUMBER = (
    "CASE WHEN num_pes = 1 THEN 1 WHEN span_nodes = 1 THEN 2 WHEN span_nodes > 1 THEN 3 "
    "WHEN num_pes > 1 THEN 4 END"
)


@dataclass(frozen=True)
class Site:
    """The chosen clusters, each with its settings and the unit of its jobs' size (gpu or cpu).

    Their names and zones were checked when they were read, and may stand in a query.
    """

    clusters: Mapping[str, Cluster]
    units: Mapping[str, str]

    def jobs_sql(self, selection: Selection) -> str:
        """The canonical columns and the derived ones."""
        num_pes = self._each(lambda name: f"num_{self.units[name]}s")
        submitted, ended = (self._local(column) for column in ("submitted_at", "ended_at"))
        grp = "'all'"
        if selection.by:
            grp = f"coalesce(CAST(sized.{selection.by} AS STRING), '{UNKNOWN}')"
        weight = "pe_hours" if selection.weight == "gpu-hours" else "CAST(1 AS DOUBLE)"
        listed = ", ".join(f"'{name}'" for name in self.clusters)
        return f"""
            SELECT sized.*, {grp} AS grp, {weight} AS weight FROM (
                SELECT placed.*, num_pes * run_s / 3600 AS pe_hours,
                       CASE WHEN num_pes >= 1 THEN {class_name(CLASS_NUMBER)} END AS parallelism,
                       {CLASS_NUMBER} AS class_number,
                       {quarter_name(_quarter_number("submitted_local"))} AS quarter,
                       {_quarter_number("submitted_local")} AS quarter_number,
                       {_quarter_number("ended_local")} AS ended_quarter_number
                FROM (SELECT stored.*, {num_pes} AS num_pes, {submitted} AS submitted_local,
                             {ended} AS ended_local,
                             coalesce(num_nodes, ceil({num_pes} / ({self._each(self._per_node)})))
                                 AS span_nodes
                      FROM jobs_stored AS stored WHERE cluster IN ({listed})) AS placed
            ) AS sized
        """

    def limits_sql(self) -> str:
        """The queues' limits as they are set, else the largest request ever seen in the queue."""
        listed = ", ".join(f"'{name}'" for name in self.clusters)
        return f"""
            SELECT seen.cluster, seen.queue, coalesce(max_requested_s, most_s) AS limit_s,
                   max_requested_s IS NOT NULL AS is_known
            FROM (SELECT cluster, queue, max(requested_s) AS most_s FROM jobs_stored
                  WHERE cluster IN ({listed}) GROUP BY cluster, queue) AS seen
            LEFT JOIN queues ON seen.cluster = queues.cluster AND seen.queue = queues.queue
        """

    def constants(self, selection: Selection) -> dict[str, pa.Table]:
        """The small tables beside `jobs`."""
        return {
            "queues": self._queues(),
            "capacity": self._capacity(),
            "sites": self._zones(),
            "period": self._period(selection),
        }

    def _each(self, expression: Callable[[str], str]) -> str:
        """One expression, or a CASE over the clusters where theirs differ."""
        expressions = {name: expression(name) for name in self.clusters}
        if len(set(expressions.values())) == 1:
            return next(iter(expressions.values()))
        cases = " ".join(f"WHEN '{name}' THEN {sql}" for name, sql in expressions.items())
        return f"CASE cluster {cases} END"

    def _local(self, column: str) -> str:
        return self._each(
            lambda name: f"from_utc_timestamp({column}, '{self.clusters[name].zone}')"
        )

    def _per_node(self, name: str) -> str:
        count = self._pes_per_node(name)
        return f"CAST({count or 'NULL'} AS DOUBLE)"

    def _pes_per_node(self, name: str) -> int | None:
        cluster = self.clusters[name]
        return cluster.gpus_per_node if self.units[name] == "gpu" else cluster.cpus_per_node

    def _queues(self) -> pa.Table:
        import pyarrow as pa

        rows = [
            {"cluster": name, "queue": queue, "max_requested_s": limit.max_walltime_h * 3600}
            for name, cluster in self.clusters.items()
            for queue, limit in cluster.queues.items()
            if limit.max_walltime_h
        ]
        kinds = {"cluster": pa.string(), "queue": pa.string(), "max_requested_s": pa.float64()}
        return pa.Table.from_pylist(rows, schema=pa.schema(kinds))

    def _capacity(self) -> pa.Table:
        """How many PEs there were from when to when; a null bound is open."""
        import pyarrow as pa

        rows = []
        for name, cluster in self.clusters.items():
            per_node = self._pes_per_node(name)
            spans = cluster.nodes if per_node else ()
            starts = [_seconds(span.since) for span in spans]
            for span, since, until in zip(spans, starts, [*starts[1:], None], strict=False):
                num_pes = float(span.count * (per_node or 0))
                row = {"cluster": name, "since_s": since, "until_s": until, "num_pes": num_pes}
                rows.append(row)
        kinds = {"since_s": pa.float64(), "until_s": pa.float64(), "num_pes": pa.float64()}
        return pa.Table.from_pylist(rows, schema=pa.schema({"cluster": pa.string()} | kinds))

    def _zones(self) -> pa.Table:
        import pyarrow as pa

        rows = [
            {
                "cluster": name,
                "zone": cluster.zone,
                "working_from": cluster.working_hours[0],
                "working_to": cluster.working_hours[1],
            }
            for name, cluster in self.clusters.items()
        ]
        kinds = {"zone": pa.string(), "working_from": pa.int64(), "working_to": pa.int64()}
        return pa.Table.from_pylist(rows, schema=pa.schema({"cluster": pa.string()} | kinds))

    def _period(self, selection: Selection) -> pa.Table:
        """The chosen period, in each cluster's own zone."""
        import pyarrow as pa

        rows = []
        for name, cluster in self.clusters.items():
            zone = ZoneInfo(cluster.zone)
            since = parse_moment(selection.since, cluster.zone) if selection.since else None
            until = end_of(selection.until, cluster.zone) if selection.until else None
            last = until - timedelta(microseconds=1) if until else None
            rows.append(
                {
                    "cluster": name,
                    "since_s": _seconds(since),
                    "until_s": _seconds(until),
                    "first_day": since.astimezone(zone).date() if since else None,
                    "last_day": last.astimezone(zone).date() if last else None,
                }
            )
        kinds = {"since_s": pa.float64(), "until_s": pa.float64()}
        kinds |= {"first_day": pa.date32(), "last_day": pa.date32()}
        return pa.Table.from_pylist(rows, schema=pa.schema({"cluster": pa.string()} | kinds))


def class_name(number: str) -> str:
    """SQL for the name of a class of parallelism; null, a row over all classes, is `all`."""
    names = " ".join(f"WHEN {i} THEN '{name}'" for i, name in enumerate(CLASSES, 1))
    return f"CASE ({number}) {names} ELSE 'all' END"


def quarter_name(number: str) -> str:
    """SQL for `2018Q1` from 20181: analyses group by the number, which is cheaper, and name it last."""
    # not concat(), which skips a null in DuckDB: a job that has not ended has no quarter
    return (
        f"(CAST(CAST(floor(({number}) / 10) AS BIGINT) AS STRING) || 'Q' || "
        f"CAST(({number}) % 10 AS STRING))"
    )


def _quarter_number(column: str) -> str:
    return f"year({column}) * 10 + quarter({column})"


def _seconds(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None
