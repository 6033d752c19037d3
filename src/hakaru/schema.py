"""The canonical tables: columns, types, units and meaning. The one source of truth.

Units live in the names, times are UTC, and unknown is null. The data dictionary in
`docs/reference/tables.md` is generated from this file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Type = Literal["string", "bigint", "double", "boolean", "timestamp", "list<string>"]

STATES = (
    "pending",
    "running",
    "completed",
    "failed",
    "timeout",
    "cancelled",
    "killed",
    "out_of_memory",
    "node_failed",
    "preempted",
)
# every share of jobs or hours that completed, failed and so on is of those that have ended
OPEN = ("pending", "running")
ENDED = tuple(state for state in STATES if state not in OPEN)
FAILED = ("failed", "out_of_memory", "node_failed")
LOST = tuple(state for state in ENDED if state != "completed")  # whose hours are lost


@dataclass(frozen=True)
class Column:
    name: str
    type: Type
    meaning: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the lake: its key, its columns, and which of two rows with one key is kept.

    `prefer` lists SQL expressions, most important first; the row with the greater values wins. Ties
    go to the row that knows more columns. The order in which rows arrive never matters. `final` is
    the SQL condition of a row that should not change any more, and `lasting` has the conditions of
    columns whose values are settled before that: two rows with different settled values of a column
    are a conflict.
    """

    name: str
    meaning: str
    key: tuple[str, ...]
    time: str
    columns: tuple[Column, ...]
    prefer: tuple[str, ...] = ()
    final: str = ""
    lasting: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def arrow(self) -> pa.Schema:
        import pyarrow as pa

        types = {
            "string": pa.string(),
            "bigint": pa.int64(),
            "double": pa.float64(),
            "boolean": pa.bool_(),
            "timestamp": pa.timestamp("us", tz="UTC"),
            "list<string>": pa.list_(pa.string()),
        }
        return pa.schema([pa.field(c.name, types[c.type]) for c in self.columns])


def qualified(expression: str, table: Table, alias: str) -> str:
    """The expression with its columns, not its quoted words, taken from `alias`."""

    def qualify(found: re.Match[str]) -> str:
        word = found.group()
        return f'{alias}."{word}"' if word in table.names else word

    return re.sub(r"'[^']*'|\w+", qualify, expression)


JOBS = Table(
    name="jobs",
    meaning="One row a job; a requeued attempt is a row of its own.",
    key=("cluster", "job_id", "submitted_at"),
    time="submitted_at",
    prefer=("CASE state WHEN 'pending' THEN 0 WHEN 'running' THEN 1 ELSE 2 END", "ended_at"),
    final="coalesce(state, '') NOT IN ('pending', 'running')",
    # whose job it is never changes; when and where it started does not once it has
    lasting={
        **dict.fromkeys(("user", "array_id"), "true"),
        **dict.fromkeys(("started_at", "nodes", "gpu_ids"), "coalesce(state, '') <> 'pending'"),
    },
    columns=(
        Column("cluster", "string", "The cluster's name in this workspace."),
        Column(
            "job_id",
            "string",
            "The scheduler's id; LOG/ID where ids are unique within one log file only.",
        ),
        Column("array_id", "string", "The array that the job is a task of."),
        Column("user", "string", "Who submitted it; LOG/USER where ids are per file."),
        Column("account", "string", "The group, account or project that is charged."),
        Column("queue", "string", "The queue or partition."),
        Column("qos", "string", "Quality of service."),
        Column("name", "string", "The job's name."),
        Column("application", "string", "The framework or application, where known."),
        Column("modules", "list<string>", "Environment modules that the job loaded."),
        Column(
            "state",
            "string",
            "How it stands or ended: " + ", ".join(STATES) + "; null = the log does not say.",
        ),
        Column(
            "exit_code",
            "bigint",
            "The exit status, or 128 + the signal that ended it. Null for a job that did not complete and "
            "of which sacct says 0:0.",
        ),
        Column("num_nodes", "bigint", "Nodes allocated, or requested while it waits.", "nodes"),
        Column("num_gpus", "bigint", "GPUs in total over all nodes; 0 where it has none.", "GPUs"),
        Column("gpu_model", "string", "Model of the GPUs."),
        Column("num_cpus", "bigint", "CPU cores or processors in total.", "CPUs"),
        Column("memory_mib", "double", "Memory in total over all nodes.", "MiB"),
        Column("requested_s", "double", "Walltime asked for; null = unlimited or unknown.", "s"),
        Column("submitted_at", "timestamp", "When it was submitted.", "UTC"),
        Column("eligible_at", "timestamp", "When holds and dependencies were over.", "UTC"),
        Column("started_at", "timestamp", "When it started; null if it never did.", "UTC"),
        Column("ended_at", "timestamp", "When it ended; null while it waits or runs.", "UTC"),
        Column("wait_s", "double", "Submit to start: as recorded, else derived.", "s"),
        Column("run_s", "double", "Run time: as recorded, else derived.", "s"),
        Column("nodes", "list<string>", "Names of the nodes."),
        Column("gpu_ids", "list<string>", "GPUs used, as NODE:INDEX or UUID."),
    ),
)

SAMPLES = Table(
    name="samples",
    meaning="One row a GPU and moment: what telemetry measured.",
    key=("cluster", "node", "gpu", "sampled_at"),
    time="sampled_at",
    columns=(
        Column("cluster", "string", "The cluster's name in this workspace."),
        Column("node", "string", "The node's name."),
        Column("gpu", "bigint", "Index of the GPU in its node."),
        Column("sampled_at", "timestamp", "When it was measured.", "UTC"),
        Column("gpu_uuid", "string", "The GPU's UUID."),
        Column("utilization", "double", "Share of time in which a kernel ran.", "0–1"),
        Column("memory_used_mib", "double", "GPU memory in use.", "MiB"),
        Column("memory_total_mib", "double", "GPU memory in total.", "MiB"),
        Column("power_w", "double", "Power drawn.", "W"),
        Column("sm_active", "double", "Share of multiprocessors that were active.", "0–1"),
        Column("job_id", "string", "The job, where the exporter says."),
    ),
)

NODES = Table(
    name="nodes",
    meaning="One row a node and span of time in which it stayed the same.",
    key=("cluster", "node", "since"),
    time="since",
    columns=(
        Column("cluster", "string", "The cluster's name in this workspace."),
        Column("node", "string", "The node's name."),
        Column("since", "timestamp", "From when on this holds.", "UTC"),
        Column("until", "timestamp", "Until when it held; null = still.", "UTC"),
        Column("gpu_model", "string", "Model of its GPUs."),
        Column("num_gpus", "bigint", "GPUs in the node.", "GPUs"),
        Column("num_cpus", "bigint", "CPU cores in the node.", "CPUs"),
        Column("memory_mib", "double", "Memory of the node.", "MiB"),
        Column("state", "string", "up, down or drained."),
    ),
)

RUNS = Table(
    name="runs",
    meaning="One row a benchmark measurement: one quantity of one device or group of ranks.",
    key=(
        *("cluster", "run_id", "started_at", "benchmark"),
        *("parameters", "host", "device", "quantity"),
    ),
    time="started_at",
    prefer=("ended_at",),
    columns=(
        Column("cluster", "string", "The cluster's name in this workspace."),
        Column("run_id", "string", "The run that it is part of: one call of `hakaru bench`."),
        Column("started_at", "timestamp", "When the measurement began.", "UTC"),
        Column("ended_at", "timestamp", "When it ended.", "UTC"),
        Column("source", "string", "hakaru, or the program that an import came from."),
        Column("label", "string", "The name that the run was given."),
        Column("benchmark", "string", "What was measured."),
        Column("parameters", "string", "Parameters, as JSON with sorted keys."),
        Column("host", "string", "The host, or the hosts of a group of ranks."),
        Column("device", "string", "The device, such as cuda:3 or cpu:0, or the group of ranks."),
        Column("device_uuid", "string", "The GPU's UUID, where there is one."),
        Column("quantity", "string", "The quantity that was measured."),
        Column("unit", "string", "Its unit."),
        Column("better", "string", "higher or lower."),
        Column("num_repetitions", "bigint", "Repetitions after warm-up."),
        Column("median", "double", "Median over the repetitions, in the quantity's unit."),
        Column("low", "double", "Lower end of the median's 95 % interval."),
        Column("high", "double", "Upper end of the median's 95 % interval."),
        Column("spread", "double", "Interquartile range, in the quantity's unit."),
        Column("raw", "string", "Every repetition, as JSON."),
        Column("reference", "double", "What it was compared with, in the quantity's unit."),
        Column(
            "compared_with", "string", "What the reference is: a baseline, or the other devices."
        ),
        Column("verdict", "string", "good, slow, failed, contaminated or not measured."),
        Column("reason", "string", "Why the verdict is what it is."),
        Column(
            "validity",
            "string",
            "What else the machine did meanwhile (pressure, steal, throttling, clocks), as JSON.",
        ),
        Column(
            "place",
            "string",
            "Hardware, topology, software versions, command and environment, as JSON.",
        ),
    ),
)

OPTION = "option"  # the source of what a person says of a cluster when a log is read: --zone
CLUSTERS = Table(
    name="clusters",
    meaning="What the sources' headers say of a cluster; `hakaru.toml` has the last word.",
    key=("cluster", "source", "file"),
    time="",
    prefer=("said_at",),
    columns=(
        Column("cluster", "string", "The cluster's name in this workspace."),
        Column("source", "string", "The source that said so."),
        Column("file", "string", "The file whose header said so; - is standard input."),
        Column("said_at", "timestamp", "When it was read; a file's last word stands.", "UTC"),
        Column("facts", "string", "Settings as JSON, with the names that `hakaru.toml` uses."),
    ),
)

INGESTS = Table(
    name="ingests",
    meaning="One row an ingest: what was read, and what became of it.",
    key=("ingest_id",),
    time="started_at",
    columns=(
        Column("ingest_id", "string", "Unique id of the ingest."),
        Column("cluster", "string", "The cluster it went to."),
        Column("source", "string", "The source that read it."),
        Column(
            "inputs",
            "list<string>",
            "The files or addresses read; a pipe with a mark of its contents.",
        ),
        Column("synthetic", "boolean", "Whether the data was generated."),
        Column("started_at", "timestamp", "When it began.", "UTC"),
        Column("ended_at", "timestamp", "When its rows were committed.", "UTC"),
        Column("num_read", "bigint", "Records read.", "rows"),
        Column("num_new", "bigint", "Records that were not there before.", "rows"),
        Column("num_updated", "bigint", "Records that replaced a lesser one.", "rows"),
        Column("num_unchanged", "bigint", "Records that were there already.", "rows"),
        Column("num_repeated", "bigint", "Records that stood twice in the input.", "rows"),
        Column(
            "num_conflicts", "bigint", "Records that contradict another of the same job.", "rows"
        ),
        Column("num_dropped", "bigint", "Conflicting records that were dropped.", "rows"),
        Column("num_rejected", "bigint", "Records that could not be read.", "rows"),
    ),
)

REJECTS = Table(
    name="rejects",
    meaning="One row a record that could not be read when its file was last ingested.",
    key=("cluster", "file", "line"),
    time="",
    columns=(
        Column("cluster", "string", "The cluster it was meant for."),
        Column("file", "string", "The file's name; - is standard input."),
        Column("line", "bigint", "The line in the file, from 1."),
        Column("source", "string", "The source that read it."),
        Column("reason", "string", "What is wrong with it."),
        Column("text", "string", "The record's beginning, as it stands in the file."),
    ),
)

TABLES = {t.name: t for t in (JOBS, SAMPLES, NODES, RUNS, CLUSTERS, INGESTS, REJECTS)}
