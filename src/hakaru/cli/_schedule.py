"""A schedule on the terminal and in a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.cli._output import without_nan, writing
from hakaru.cli._render import as_columns
from hakaru.cli._table import Column, Line, table_lines, wrapped
from hakaru.errors import HakaruError
from hakaru.safety.text import spreadsheet_table

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim import Policy, Schedule

RECORDED = (
    "recorded: what the log says of these jobs; the rules that it was scheduled by are not known (--replay "
    "holds the two side by side)"
)
ENDINGS = (".csv", ".parquet", ".json")
SHOWN = {
    "num_unstarted": "jobs that never start",
    "mean_wait_s": "wait, mean",
    "median_wait_s": "wait, median",
    "p95_wait_s": "wait, 95th percentile",
    "p99_wait_s": "wait, 99th percentile",
    "mean_bounded_slowdown": "bounded slowdown, mean",
    "median_bounded_slowdown": "bounded slowdown, median",
    "utilisation": "machine in use",
    "idle_while_waiting": "machine idle while jobs wait",
    "fragmentation": "machine free in pieces too small",
    "gini_wait": "inequality of users' mean waits (Gini)",
    "worst_user_wait_s": "mean wait of the worst-off user",
    "pe_hours_lost": "{unit}-hours lost to restarts",
}


@dataclass(frozen=True)
class Told:
    """A schedule, and what is said beside it."""

    schedule: Schedule
    policy: Policy
    cluster: str
    unit: str
    machine: str
    rules: Sequence[str] = ()


def schedule_lines(
    told: Told, width: int, by: Sequence[str] = (), zone: str = "UTC"
) -> Iterator[Line]:
    """What was played, the metrics, why jobs waited, and what was left out and assumed."""
    from hakaru.sim import measure, measure_by, why_waited
    from hakaru.sim.replay import recorded_measures

    yield f"{told.cluster} under {told.policy.id}: {told.policy.title}", "bold"
    yield f"{_jobs(len(told.schedule.start))} on {told.machine}", ""
    metrics = measure(told.schedule)
    if never := int(metrics["num_unstarted"]):
        words = "job never starts" if never == 1 else "jobs never start"
        yield f"{never:,} {words} under these rules: every wait below is of the others", "bold"
    for note in _unasked(told):
        for text in wrapped(note, width):
            yield text, "dim"
    yield "", ""
    recorded = recorded_measures(told.schedule)
    yield from table_lines(_metrics(metrics, told.unit, recorded), 1, width)
    if recorded:
        for text in wrapped(RECORDED, width):
            yield text, "dim"
    for name in by:
        yield "", ""
        table = measure_by(told.schedule, name, zone)
        yield from table_lines(as_times(table), 1, width)
    why = why_waited(told.schedule)
    yield "", ""
    if why.num_rows:
        titles = ["why jobs waited", "jobs", "share of jobs", "share of waiting"]
        columns = [replace(c, name=t) for c, t in zip(as_times(why), titles, strict=True)]
        yield from table_lines(columns, 1, width)
    else:
        yield "no job waits", ""
    yield "", ""
    for note in notes(told)[len(_unasked(told)) :]:
        for text in wrapped(note, width):
            yield text, "dim"


def notes(told: Told) -> list[str]:
    """What must be said beside the numbers."""
    from hakaru.sim.notation import write_note
    from hakaru.sim.workload import UNASKED, notes_on

    workload = told.schedule.workload
    lines = [f"left out {number:,}: {reason}" for reason, number in workload.left_out.items()]
    lines += [
        f"assumed: {write_note(number, note)}"
        for note, number in notes_on(workload, told.schedule.machine).items()
        if not note.startswith(UNASKED)
    ]
    return [*_unasked(told), *lines, *told.rules]


def _unasked(told: Told) -> list[str]:
    """What jobs without a request are taken to ask for: every estimate stands on it."""
    from hakaru.sim.notation import write_note
    from hakaru.sim.workload import UNASKED

    found = told.schedule.workload.notes.items()
    return [f"assumed: {write_note(number, n)}" for n, number in found if n.startswith(UNASKED)]


def _jobs(number: int) -> str:
    return f"{number:,} job" + ("" if number == 1 else "s")


def as_times(table: pa.Table) -> list[Column]:
    """The columns with seconds and shares as a person reads them."""
    from hakaru.sim.words import duration, share

    columns = []
    for column, values in zip(as_columns(table), table.columns, strict=True):
        name = column.name
        if name.endswith("_s"):
            cells = [duration(value) for value in values.to_pylist()]
            columns.append(Column(name.removesuffix("_s"), cells))
        elif name.startswith("share"):
            columns.append(Column(name, [share(value) for value in values.to_pylist()]))
        elif name == "rank_correlation":
            columns.append(replace(column, cells=[c.replace("-", "−") for c in column.cells]))
        else:
            columns.append(column)
    return columns


def format_of(output: Path) -> str:
    if output.suffix.lower() not in ENDINGS:
        raise HakaruError(f"{output}: cannot tell its format; end it in {', '.join(ENDINGS)}")
    return output.suffix.lower()


def write_schedule(told: Told, output: Path, log_start: int | None) -> None:
    """The jobs' times; `log_start` is where an SWF's seconds count from."""
    rows = (
        _since_start(told.schedule, log_start) if log_start is not None else _dated(told.schedule)
    )
    format = format_of(output)
    with writing(output):
        if format == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(rows, output)
        elif format == ".csv":
            _write_csv(rows, output)
        else:
            output.write_text(_to_json(told, rows), encoding="utf-8")


def _metrics(
    measured: Mapping[str, float], unit: str, recorded: Mapping[str, float]
) -> list[Column]:
    from hakaru.sim.words import value_text

    name = "GPU" if unit == "gpu" else "processor"
    shown = [id for id in SHOWN if not id.startswith("num_") or measured[id]]
    columns = [
        Column("metric", [_of_whole(id, SHOWN[id].format(unit=name)) for id in shown], False),
        Column("simulated", [value_text(id, measured[id]) for id in shown]),
    ]
    if not recorded:
        return columns
    cells = [value_text(id, recorded[id]) if id in recorded else "" for id in shown]
    return [*columns, Column("recorded", cells)]


def _of_whole(metric: str, title: str) -> str:
    """What-if and advice tell of the machine in the weeks that they compare; here it is all of the time."""
    from hakaru.sim.advise.case import OF_WHOLE_REPLAY

    return f"{title}, whole replay" if metric in ("utilisation", *OF_WHOLE_REPLAY[:2]) else title


def _since_start(schedule: Schedule, log_start: int) -> pa.Table:
    """As the published schedules of SWF logs have it, in the log's order."""
    import pyarrow as pa

    ids = schedule.workload.table["job_id"].cast(pa.int64())
    starts = pa.array(schedule.start - log_start, pa.int64(), mask=schedule.start < 0)
    return pa.table({"job_id": ids, "start": starts}).sort_by("job_id")


def _dated(schedule: Schedule) -> pa.Table:
    import pyarrow as pa

    from hakaru.sim.store import node_names

    rows, seconds = schedule.table(), pa.timestamp("s", "UTC")
    nodes = node_names(schedule)
    return pa.table(
        {
            "job_id": rows["job_id"],
            "start": rows["started_at"].cast(seconds),
            "end": rows["ended_at"].cast(seconds),
            "nodes": pa.nulls(rows.num_rows, pa.list_(pa.string())) if nodes is None else nodes,
            "why": rows["why_waited"],
        }
    )


def _as_text(rows: pa.Table) -> pa.Table:
    """Times as ISO 8601, and the nodes of a job in one cell."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    for name, values in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_timestamp(values.type):
            values = pc.strftime(values.cast(pa.timestamp("s")), format="%Y-%m-%dT%H:%M:%SZ")
        elif pa.types.is_list(values.type):
            values = pc.binary_join(values, " ")
        columns[name] = values
    return pa.table(columns)


def _write_csv(rows: pa.Table, output: Path) -> None:
    import pyarrow.csv as csv

    with open(output, "wb") as file:
        file.write((",".join(rows.column_names) + "\n").encode())
        csv.write_csv(
            spreadsheet_table(_as_text(rows)), file, csv.WriteOptions(include_header=False)
        )


def _to_json(told: Told, rows: pa.Table) -> str:
    from hakaru.sim import measure, why_waited

    document: dict[str, Any] = {
        "cluster": told.cluster,
        "policy": told.policy.id,
        "machine": told.machine,
        "notes": notes(told),
        "metrics": measure(told.schedule),
        "why_waited": why_waited(told.schedule).to_pylist(),
        "schedule": _as_text(rows).to_pylist(),
    }
    return json.dumps(without_nan(document), ensure_ascii=False, allow_nan=False) + "\n"
