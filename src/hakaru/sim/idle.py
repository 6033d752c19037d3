"""Idle jobs ended after some hours: found in measured use of the GPUs, never in its absence.

A job is idle while all of its GPUs are measured to do nothing. A sample is a job's where the exporter says
so, else by its node and GPU; between two of them nothing is known if they lie too far apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from hakaru.engine.dialect import quote
from hakaru.errors import HakaruError
from hakaru.schema import JOBS, SAMPLES

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.lake import Lake
    from hakaru.sim.workload import Workload

# Samples and jobs meet by GPU and part of the day first, which is ten times as fast.
BUCKET_US = 6 * 3600 * 10**6
FORM = "write HOURS[,use=SHARE][,gap=MINUTES], e.g. 2 or 2,use=0.05,gap=10"
NOT_AT_ALL, IN_PART, WHOLLY = range(3)


class Session(Protocol):
    lake: Lake

    @property
    def engine(self) -> Any: ...


@dataclass(frozen=True)
class IdleRule:
    """A job ends when all of its GPUs were in use for at most `use` of the time for so many hours on end,
    by samples that are at most `gap_min` minutes apart."""

    hours: float
    use: float = 0.0
    gap_min: float = 10.0

    def __post_init__(self) -> None:
        if not (0 < self.hours < math.inf and 0 <= self.use < 1 and 0 < self.gap_min < math.inf):
            raise HakaruError(
                f"{self}: hours and minutes are above 0, and the share of use is from 0 to below 1"
            )

    @property
    def column(self) -> str:
        return f"idle {self.hours:g} {self.use:g} {self.gap_min:g}"

    @property
    def words(self) -> str:
        most = f"at most {self.use:.3g} in use" if self.use else "not in use"
        apart = f"samples at most {self.gap_min:g} min apart"
        return f"jobs end after {self.hours:g} h with GPUs {most} ({apart})"


def parse_rule(text: str) -> IdleRule:
    """`2`, `2,use=0.05` or `2,use=0.05,gap=5`."""
    hours, *rest = text.split(",")
    names = {"use": "use", "gap": "gap_min"}
    try:
        given = {
            names[part.partition("=")[0].strip()]: float(part.partition("=")[2]) for part in rest
        }
        return IdleRule(float(hours), **given)
    except (ValueError, KeyError):
        raise HakaruError(f"{text!r} does not say when idle jobs end: {FORM}") from None


def with_idleness(
    session: Session, cluster: str, jobs: pa.Table, rules: Sequence[IdleRule]
) -> pa.Table:
    """The jobs with columns that `end_idle` looks at: when each had been idle for too long, if ever."""
    if not rules:
        return jobs
    _check_samples(session, cluster)
    keys = jobs.select(["job_id", "submitted_at"])
    keys = keys.append_column("number", _numbers(jobs.num_rows))
    session.engine.constants("idle_keys", keys)
    for rule in dict.fromkeys(rules):
        found = session.engine.query(_sql(session, cluster, rule))
        for name, column in (("end_s", rule.column), ("known", f"{rule.column} known")):
            jobs = jobs.append_column(column, found[name])
    return jobs


def end_idle(workload: Workload, rule: IdleRule, unit: str = "gpu") -> tuple[Workload, str]:
    """Jobs end when they have been idle for too long; those of which it is not known stay as they are."""
    table = workload.table
    if rule.column not in table.column_names:
        raise HakaruError(_refusal("these jobs"))
    end = np.array(table[rule.column].to_numpy(zero_copy_only=False), float)
    known = np.array(table[f"{rule.column} known"].fill_null(-1).to_numpy(zero_copy_only=False))
    ends = end < workload.run  # never true where the end is not known
    run = np.where(ends, np.nan_to_num(end), workload.run).astype(np.int64)
    freed = float(((workload.run - run) * workload.pes).sum()) / 3600
    num_long, num_part = int((known >= 0).sum()), int((known == IN_PART).sum())
    part = f", in part for {num_part:,} more" if num_part else ""
    verb = "ends" if ends.sum() == 1 else "end"
    note = (
        f"{rule.words}: idle time is known for {int((known == WHOLLY).sum()):,} of {num_long:,} "
        f"jobs of that length{part}; {int(ends.sum()):,} of them {verb} early, which frees {freed:,.1f} "
        f"{unit.upper()}-hours"
    )
    return replace(workload, run=run), note


def _check_samples(session: Session, cluster: str) -> None:
    samples = _stored(session, SAMPLES, cluster, ["cluster"])
    query = f"SELECT 1 AS one FROM {samples} AS stored WHERE cluster = {quote(cluster)} LIMIT 1"
    if not session.engine.query(query).num_rows:
        raise HakaruError(_refusal(cluster))


def _refusal(whose: str) -> str:
    return (
        "to end idle jobs: which are idle is only known from measured use of the GPUs, and the lake has no "
        f"samples of {whose}; leave it out"
    )


def _stored(session: Session, table: Any, cluster: str, columns: Sequence[str]) -> Any:
    return session.engine.relation(table, session.lake.files(table, [cluster]), columns)


def _numbers(count: int) -> Any:
    import pyarrow as pa

    return pa.array(np.arange(count), pa.int64())


def _sql(session: Session, cluster: str, rule: IdleRule) -> str:
    """A row a job in the order of `idle_keys`: `end_s` from its start on, and how far idleness is `known`."""
    job_columns = [
        "cluster", "job_id", "submitted_at", "started_at", "ended_at", "run_s", "num_gpus", "nodes",
        "gpu_ids",
    ]  # fmt: skip
    sample_columns = ["cluster", "node", "gpu", "gpu_uuid", "sampled_at", "utilization", "job_id"]
    return f"""
        WITH chosen AS (
            SELECT number, stored.job_id, num_gpus, nodes, gpu_ids, epoch_us(started_at) AS begin_us,
                   least(epoch_us(started_at) + CAST(run_s * 1e6 AS BIGINT),
                         coalesce(epoch_us(ended_at), {2**62})) AS end_us
            FROM idle_keys JOIN {_stored(session, JOBS, cluster, job_columns)} AS stored
              ON stored.job_id = idle_keys.job_id AND stored.submitted_at = idle_keys.submitted_at
            WHERE cluster = {quote(cluster)} AND num_gpus >= 1 AND started_at IS NOT NULL
              AND run_s >= {rule.hours * 3600}),
        readings AS (
            SELECT node, gpu, gpu_uuid, job_id, epoch_us(sampled_at) AS at_us,
                   epoch_us(sampled_at) // {BUCKET_US} AS bucket, utilization <= {rule.use} AS idle
            FROM {_stored(session, SAMPLES, cluster, sample_columns)} AS stored
            WHERE cluster = {quote(cluster)} AND NOT isnan(utilization)),
        {_MATCHED}
        {_spells(rule)}
        SELECT idle_keys.number,
               CASE WHEN num_seen = num_gpus THEN ceil((first_us - begin_us) / 1e6) + {rule.hours * 3600} END
                   AS end_s,
               CASE WHEN chosen.number IS NULL THEN NULL
                    WHEN coalesce(num_seen, 0) <> num_gpus THEN {NOT_AT_ALL}
                    WHEN widest_us > {rule.gap_min * 60e6} THEN {IN_PART} ELSE {WHOLLY} END AS known
        FROM idle_keys LEFT JOIN chosen ON chosen.number = idle_keys.number
        LEFT JOIN seen ON seen.number = idle_keys.number
        LEFT JOIN together ON together.number = idle_keys.number
        ORDER BY idle_keys.number
    """


# Which samples are whose. A list of GPUs has NODE:INDEX or UUIDs; a job of which only the nodes are known has
# all of their GPUs, where these are as many as it had.
_MATCHED = f"""
        slots AS (
            SELECT *, explode(sequence(begin_us // {BUCKET_US}, end_us // {BUCKET_US})) AS bucket
            FROM chosen),
        named AS (
            SELECT number, begin_us, end_us, bucket, explode(gpu_ids) AS id FROM slots),
        placed AS (
            SELECT number, begin_us, end_us, bucket, regexp_extract(id, '^(.+):[0-9]+$', 1) AS node,
                   CAST(regexp_extract(id, ':([0-9]+)$', 1) AS BIGINT) AS gpu
            FROM named WHERE regexp_matches(id, '^.+:[0-9]+$')),
        kinds AS (SELECT node, gpu FROM readings GROUP BY node, gpu),
        on_nodes AS (
            SELECT number, num_gpus, explode(nodes) AS node FROM chosen
            WHERE gpu_ids IS NULL OR len(gpu_ids) = 0),
        whole AS (
            SELECT number, num_gpus, on_nodes.node, gpu, count(*) OVER (PARTITION BY number) AS num_there
            FROM on_nodes JOIN kinds ON kinds.node = on_nodes.node),
        places AS (
            SELECT * FROM placed
            UNION ALL
            SELECT slots.number, begin_us, end_us, bucket, node, gpu
            FROM whole JOIN slots ON slots.number = whole.number
            WHERE num_there = whole.num_gpus),
        measured AS (
            SELECT slots.number, begin_us, end_us, node, gpu, at_us, idle
            FROM slots JOIN readings
              ON readings.job_id = slots.job_id AND readings.bucket = slots.bucket
             AND at_us > begin_us AND at_us <= end_us
            UNION ALL
            SELECT number, begin_us, end_us, readings.node, readings.gpu, at_us, idle
            FROM places JOIN readings
              ON readings.node = places.node AND readings.gpu = places.gpu
             AND readings.bucket = places.bucket AND at_us > begin_us AND at_us <= end_us
            WHERE readings.job_id IS NULL
            UNION ALL
            SELECT number, begin_us, end_us, node, gpu, at_us, idle
            FROM named JOIN readings
              ON readings.gpu_uuid = named.id AND readings.bucket = named.bucket
             AND at_us > begin_us AND at_us <= end_us
            WHERE readings.job_id IS NULL),
"""


def _spells(rule: IdleRule) -> str:
    """Spells in which a GPU was idle, then those in which all of a job's were, and the first that is long."""
    length_us = rule.hours * 3600e6
    return f"""
        steps AS (
            SELECT number, begin_us, end_us, node, gpu, at_us, idle,
                   lag(at_us) OVER (PARTITION BY number, node, gpu ORDER BY at_us) AS before_us,
                   lag(idle) OVER (PARTITION BY number, node, gpu ORDER BY at_us) AS was_idle
            FROM measured),
        seen_gpus AS (
            SELECT number, greatest(max(at_us - coalesce(before_us, begin_us)),
                                    max(end_us) - max(at_us)) AS widest_us
            FROM steps GROUP BY number, node, gpu),
        seen AS (
            SELECT number, count(*) AS num_seen, max(widest_us) AS widest_us FROM seen_gpus GROUP BY number),
        parts AS (
            SELECT number, node, gpu, at_us,
                   sum(CASE WHEN was_idle AND at_us - before_us <= {rule.gap_min * 60e6} THEN 0 ELSE 1 END)
                       OVER (PARTITION BY number, node, gpu ORDER BY at_us) AS spell
            FROM steps WHERE idle),
        spells AS (
            SELECT number, min(at_us) AS first_us, max(at_us) AS last_us
            FROM parts GROUP BY number, node, gpu, spell HAVING max(at_us) - min(at_us) >= {length_us}),
        edges AS (
            SELECT number, first_us AS at_us, 1 AS step FROM spells
            UNION ALL SELECT number, last_us, -1 FROM spells),
        levels AS (
            SELECT number, at_us, sum(step) OVER run AS num_idle, lead(at_us) OVER run AS until_us
            FROM edges
            WINDOW run AS (PARTITION BY number ORDER BY at_us, step DESC)),
        together AS (
            SELECT levels.number, min(at_us) AS first_us
            FROM levels JOIN seen ON seen.number = levels.number
            WHERE num_idle = num_seen AND until_us - at_us >= {length_us} GROUP BY levels.number)
    """
