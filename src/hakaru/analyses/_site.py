"""What is known of the clusters themselves, as the columns and small tables that queries see."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from hakaru.analyses._select import Selection
from hakaru.analyses._unit import other_unit
from hakaru.engine.where import end_of, parse_moment
from hakaru.schema import JOBS
from hakaru.settings import Cluster

if TYPE_CHECKING:
    import pyarrow as pa


A_WEEK = timedelta(weeks=1)  # no zone has moved its clock and back within one
LONGEST_LIFE = timedelta(days=5 * 365)  # of a job, from its submission to its end
A_YEAR = timedelta(days=366)
LONGEST_LOG = timedelta(days=100 * 365)
Stored = Callable[[Collection[str]], str]  # the stored jobs' columns, to select from
UNKNOWN = "(unknown)"
CLASSES = ("single-pe", "single-node", "multi-node", "unknown-nodes")
CLASS_NUMBER = (
    "CASE WHEN num_pes = 1 THEN 1 WHEN span_nodes = 1 THEN 2 WHEN span_nodes > 1 THEN 3 "
    "WHEN num_pes > 1 THEN 4 END"
)


@dataclass(frozen=True)
class Site:
    """The chosen clusters, each with its settings and the unit of its jobs' size (gpu or cpu).

    `span` is the time that their jobs were submitted in, where it is known. The names and zones were
    checked when they were read, and may stand in a query.
    """

    clusters: Mapping[str, Cluster]
    units: Mapping[str, str]
    span: tuple[datetime, datetime] | None = None

    def jobs_sql(self, stored: Stored, selection: Selection, words: Collection[str]) -> str:
        """The columns that are among the words, canonical and derived: planning knows no others."""
        derived = {name: sql for name, sql in self._derived(selection).items() if name in words}
        inner = set(words) | {word for sql in derived.values() for word in words_of(sql)}
        placed = {name: sql for name, sql in self._placed().items() if name in inner}
        inner |= {"cluster"} | {word for sql in placed.values() for word in words_of(sql)}
        names = [name for name in JOBS.names if name in inner]
        outer = ["placed.*", *(f"{sql} AS {name}" for name, sql in derived.items())]
        columns = [
            *(f"stored.{name}" for name in names),
            *(f"{sql} AS {name}" for name, sql in placed.items()),
        ]
        listed = ", ".join(f"'{name}'" for name in self.clusters)
        return f"""
            SELECT {", ".join(outer)} FROM (
                SELECT {", ".join(columns)}
                FROM {stored(names)} AS stored WHERE cluster IN ({listed})) AS placed
        """

    def _placed(self) -> dict[str, str]:
        """Columns that need only the stored ones."""
        num_pes = self._each(lambda name: f"num_{self.units[name]}s")
        per_node = self._each(self._per_node)
        return {
            "num_pes": num_pes,
            "num_other_pes": self._each(lambda name: f"num_{other_unit(self.units[name])}s"),
            "submitted_local": self._local("submitted_at"),
            "ended_local": self._local("ended_at"),
            "span_nodes": f"coalesce(num_nodes, ceil({num_pes} / ({per_node})))",
        }

    def _derived(self, selection: Selection) -> dict[str, str]:
        """Columns that need those, and the chosen group and weight."""
        columns = {
            "pe_hours": "num_pes * run_s / 3600",
            "parallelism": f"CASE WHEN num_pes >= 1 THEN {class_name(CLASS_NUMBER)} END",
            "class_number": CLASS_NUMBER,
            "quarter": quarter_name(_quarter_number("submitted_local")),
            "quarter_number": _quarter_number("submitted_local"),
            "ended_quarter_number": _quarter_number("ended_local"),
            "weekday": "weekday(CAST(submitted_local AS DATE))",
            "hour": "hour(submitted_local)",
        }
        by, weight = selection.by, selection.weight
        group = columns.get(by or "", f"placed.{by}")
        columns["grp"] = f"coalesce(CAST({group} AS STRING), '{UNKNOWN}')" if by else "'all'"
        columns["weight"] = columns["pe_hours"] if weight == "gpu-hours" else "CAST(1 AS DOUBLE)"
        return columns

    def limits_sql(self, stored: Stored) -> str:
        """The queues' limits as they are set, else the largest request ever seen in the queue."""
        listed = ", ".join(f"'{name}'" for name in self.clusters)
        return f"""
            SELECT seen.cluster, seen.queue, coalesce(max_requested_s, most_s) AS limit_s,
                   max_requested_s IS NOT NULL AS is_known
            FROM (SELECT cluster, queue, max(requested_s) AS most_s
                  FROM {stored(["cluster", "queue", "requested_s"])} AS stored
                  WHERE cluster IN ({listed}) GROUP BY cluster, queue) AS seen
            LEFT JOIN queues ON seen.cluster = queues.cluster AND seen.queue = queues.queue
        """

    def constants(self, selection: Selection) -> dict[str, Callable[[], pa.Table]]:
        """The small tables beside `jobs`."""
        return {
            "queues": self._queues,
            "capacity": self._capacity,
            "sites": self._zones,
            "period": lambda: self._period(selection),
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
            lambda name: (
                f"from_utc_timestamp({column}, '{clock(self.clusters[name].zone, self.span)}')"
            )
        )

    def _per_node(self, name: str) -> str:
        count = self.clusters[name].per_node(self.units[name])
        return f"CAST({count or 'NULL'} AS DOUBLE)"

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
            spans = cluster.size(self.units[name])
            starts = [_seconds(span.since) for span in spans]
            for span, since, until in zip(spans, starts, [*starts[1:], None], strict=False):
                num_pes = float(span.count)
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

    def _near(
        self, since: datetime | None, until: datetime | None
    ) -> tuple[datetime | None, datetime | None]:
        """The period without the centuries in which no job can be: a machine's load has a row a slot."""
        if self.span is None:
            return since, until
        first, last = self.span[0] - A_YEAR, self.span[1] + LONGEST_LIFE
        return since and min(max(since, first), last), until and max(min(until, last), first)

    def _period(self, selection: Selection) -> pa.Table:
        """The chosen period, in each cluster's own zone."""
        import pyarrow as pa

        rows = []
        for name, cluster in self.clusters.items():
            zone = ZoneInfo(cluster.zone)
            since = parse_moment(selection.since, cluster.zone) if selection.since else None
            until = end_of(selection.until, cluster.zone) if selection.until else None
            near_since, near_until = self._near(since, until)
            last = until - timedelta(microseconds=1) if until else None
            rows.append(
                {
                    "cluster": name,
                    "since_s": _seconds(near_since),
                    "until_s": _seconds(near_until),
                    "first_day": since.astimezone(zone).date() if since else None,
                    "last_day": last.astimezone(zone).date() if last else None,
                }
            )
        kinds = {"since_s": pa.float64(), "until_s": pa.float64()}
        kinds |= {"first_day": pa.date32(), "last_day": pa.date32()}
        return pa.Table.from_pylist(rows, schema=pa.schema({"cluster": pa.string()} | kinds))


@functools.cache
def clock(zone: str, span: tuple[datetime, datetime] | None) -> str:
    """The zone, or its offset from UTC (+09:00) where that stays the same for all the jobs' lives."""
    if span is None or span[1] - span[0] > LONGEST_LOG:
        return zone
    known = ZoneInfo(zone)
    first, last = span[0] - A_WEEK, span[1] + LONGEST_LIFE
    num_weeks = (last - first) // A_WEEK + 2
    offsets = {(first + week * A_WEEK).astimezone(known).utcoffset() for week in range(num_weeks)}
    (offset, *others) = offsets
    minutes, rest = divmod(offset or timedelta(0), timedelta(minutes=1))
    if others or rest:
        return zone
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def words_of(sql: str) -> set[str]:
    """Every word of a query, and so every column and table that it may name."""
    return set(re.findall(r"[a-z_]+", sql))


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
