"""Standard Workload Format 2.2 (Feitelson et al.; cs.huji.ac.il/labs/parallel/workload/swf.html).

Eighteen numbers a line after a `;` header, -1 for unknown, in the order of submission. On a GPU cluster a
processor is a GPU. The cluster's settings stand in a note of the header, where Hakaru finds them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.export._base import (
    Outcome,
    Site,
    Target,
    export_format,
    is_fraction,
    positive,
    seconds,
)
from hakaru.export._lines import SUBMITTED, Lines, write_lines
from hakaru.export._numbers import Numbers, all_whole, number_names
from hakaru.formats.logs import count_logs
from hakaru.formats.metadata import FACTS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# The standard knows three ways to end; what is over its time or memory did not complete.
STATUS = {
    "completed": 1,
    "failed": 0,
    "timeout": 0,
    "out_of_memory": 0,
    "node_failed": 0,
    "cancelled": 5,
    "killed": 5,
    "preempted": 5,
}
READS_AS = {1: "completed", 0: "failed", 5: "cancelled"}
NOT_HELD = (
    *("array_id", "qos", "name", "modules", "exit_code", "num_nodes", "gpu_model", "eligible_at"),
    *("nodes", "gpu_ids"),
)
MOST_HEADER = 50_000  # readers look for the header at the beginning of the file
NUMBERED = ("uid", "gid", "executable")


@export_format("swf", title="Standard Workload Format", endings=[".swf.gz", ".swf"])
def write(con: DuckDBPyConnection, jobs: str, site: Site, target: Target) -> Outcome:
    """One file; numbers that are in use stay, names become numbers."""
    left_out = _define_rows(con, jobs, site)
    file = target.file or f"{site.name}.swf.gz"
    keep_ids = _ids_rise(con)
    numbers = {column: number_names(con, "swf_rows", column, 1) for column in NUMBERED}
    queues = _queue_numbers(con)
    header, names_fit = _header(con, _joined(con, site), queues)
    lines = _lines(keep_ids, numbers, _fields(numbers, queues))
    count = write_lines(con, target.folder / file, header, lines)
    return Outcome(
        files={file: count},
        left_out=left_out,
        changed=_changed(con, site),
        replaced=_replaced(keep_ids, numbers, names_fit),
        not_held=(*NOT_HELD, "num_cpus" if site.unit == "gpu" else "num_gpus"),
    )


def _define_rows(con: DuckDBPyConnection, jobs: str, site: Site) -> dict[str, int]:
    """The view `swf_rows`, with what the lines need; gives how many jobs are left out, and why."""
    status = " ".join(f"WHEN '{state}' THEN {code}" for state, code in STATUS.items())
    waited, ran = "epoch(started_at) - epoch(submitted_at)", "epoch(ended_at) - epoch(started_at)"
    con.execute(
        f"""
        CREATE OR REPLACE TEMP VIEW swf_rows AS
        SELECT *, {seconds("submitted_at")} AS submit_s, {site.pes} AS pes,
               "user" AS uid, account AS gid, application AS executable,
               CASE WHEN gave_up THEN epoch(ended_at) - epoch(submitted_at)
                    ELSE coalesce(wait_s, {waited}) END AS waited_s,
               CASE WHEN gave_up THEN 0 ELSE coalesce(run_s, {ran}) END AS ran_s
        FROM (SELECT *, coalesce(status = 5 AND started_at IS NULL AND ended_at IS NOT NULL, false)
                        AS gave_up
              FROM (SELECT *, CASE state {status} ELSE -1 END AS status FROM {jobs}))
        WHERE epoch(submitted_at) >= 0
        """
    )
    (early,) = one_row(con, f"SELECT count(*) FROM {jobs} WHERE epoch(submitted_at) < 0")
    return positive({"submitted before 1970": early})


def _joined(con: DuckDBPyConnection, site: Site) -> Site:
    """Users of several logs get numbers of their own, and one file holds them: its header says so."""
    (num_logs,) = one_row(con, f"SELECT {count_logs('uid', 'job_id')} FROM swf_rows")
    joined = site.settings.users_per_file or num_logs > 1
    return replace(site, settings=replace(site.settings, users_per_file=joined))


def _ids_rise(con: DuckDBPyConnection) -> bool:
    """Whether ids are numbers that rise from job to job, as the standard's counter does."""
    if not all_whole(con, "swf_rows", "job_id"):
        return False
    (falls,) = one_row(
        con,
        "SELECT count_if(id <= before) FROM (SELECT id, lag(id) OVER () AS before FROM "  # streams
        "(SELECT CAST(job_id AS BIGINT) AS id FROM swf_rows ORDER BY submit_s, id))",
    )
    return not falls


def _queue_numbers(con: DuckDBPyConnection) -> dict[str, int]:
    """A number for each queue: its own if its name is one, else the next that is free."""
    found = con.execute("SELECT DISTINCT queue FROM swf_rows WHERE queue IS NOT NULL ORDER BY 1")
    names = [name for (name,) in found.fetchall()]
    taken = {name: int(name) for name in names if re.fullmatch(r"0|[1-9][0-9]{0,8}", name)}
    free = (number for number in range(1, 2 * len(names) + 2) if number not in taken.values())
    return taken | {name: next(free) for name in names if name not in taken}


def _fields(numbers: Mapping[str, Numbers], queues: Mapping[str, int]) -> list[str]:
    """SQL of the fields after the first."""
    queue = " ".join(f"WHEN {quote(name)} THEN {n}" for name, n in queues.items())
    allocated = (
        "CASE WHEN gave_up THEN 0 WHEN started_at IS NULL AND run_s IS NULL THEN -1 "
        "ELSE coalesce(pes, -1) END"
    )
    asked = f"CASE WHEN requested_s IS NULL THEN -1 ELSE greatest(1, {_whole('requested_s')}) END"
    memory = _whole("memory_mib * 1024 / nullif(pes, 0)")
    return [
        *("submit_s - min_submit_s", _whole("waited_s"), _whole("ran_s"), allocated, "-1", "-1"),
        *("coalesce(pes, -1)", asked, memory, "status"),
        *(f"coalesce({numbers[column].sql}, -1)" for column in NUMBERED),
        *(f"CASE queue {queue} ELSE -1 END" if queue else "-1", "-1", "-1", "-1"),
    ]


def _lines(keep_ids: bool, numbers: Mapping[str, Numbers], fields: Sequence[str]) -> Lines:
    joins = " ".join(numbers[column].join for column in NUMBERED)
    first_s = "(SELECT min(submit_s) AS min_submit_s FROM swf_rows)"
    id = "CAST(job_id AS BIGINT)"
    return Lines(
        rows=f"swf_rows {joins} CROSS JOIN {first_s}",
        cells=[id, *fields] if keep_ids else fields,
        separator=" ",
        order=(SUBMITTED, id if keep_ids else "job_id"),
        number_from=None if keep_ids else 1,
    )


def _whole(column: str) -> str:
    return f"coalesce(CAST(round({column}) AS BIGINT), -1)"


def _header(
    con: DuckDBPyConnection, site: Site, queues: Mapping[str, int]
) -> tuple[list[str], bool]:
    """The header's lines, and whether the queues' names have room in them."""
    count, first_s, last_s = one_row(
        con,
        "SELECT count(*), min(submit_s), max(epoch(coalesce(ended_at, started_at, submitted_at))) "
        "FROM swf_rows",
    )
    zone = site.settings.zone
    fields: list[tuple[str, Any]] = [
        ("Version", "2.2"),
        ("Installation", site.name),
        ("Conversion", f"hakaru {version('hakaru')}"),
        ("MaxJobs", count),
        ("MaxRecords", count),
        ("UnixStartTime", first_s or 0),
        *([("TimeZoneString", zone)] if site.settings.has_zone else []),
        ("StartTime", _clock(first_s, zone)),
        ("EndTime", _clock(last_s, zone)),
        *_size(site),
        ("MaxQueues", len(queues)),
    ]
    names = [("Queue", f"{n} {_queue_name(name)}") for name, n in queues.items() if name != str(n)]
    notes = [("Note", note) for note in _notes(site)]
    lines = [[f"; {key}: {value}" for key, value in part] for part in (fields, names, notes)]
    fits = sum(len(line) for line in lines[1]) < MOST_HEADER
    return [*lines[0], *(lines[1] if fits else []), *lines[2], ";"], fits


def _clock(moment_s: float | None, zone: str) -> str:
    moment = datetime.fromtimestamp(moment_s or 0, UTC).astimezone(ZoneInfo(zone))
    return moment.strftime("%a %b %d %H:%M:%S %Z %Y")


def _size(site: Site) -> list[tuple[str, int]]:
    """The largest size the machine had; the note has it over time."""
    spans = {"MaxNodes": site.settings.nodes, "MaxProcs": site.settings.size(site.unit)}
    return [(name, max(span.count for span in each)) for name, each in spans.items() if each]


def _queue_name(name: str) -> str:
    """A name as `Queue:` lines can hold it: one word, or words behind a dash."""
    text = re.sub(r"\s+-\s+", "-", " ".join(name.split()))
    return f"- {text}" if " " in text else text


def _notes(site: Site) -> list[str]:
    gpu = site.unit == "gpu"
    merged = [state for state, code in STATUS.items() if READS_AS[code] != state]
    own = site.facts()
    sizes = {"cpus": own.get(f"{site.unit}s"), "cpus_per_node": own.get(f"{site.unit}s_per_node")}
    facts = own | {"unit": "cpu"} | sizes
    facts = {k: v for k, v in facts.items() if not k.startswith("gpus") and v is not None}
    return [
        f"a processor (fields 5 and 8) is a {'GPU' if gpu else 'CPU'}",
        "status 0 and 5 also stand for " + ", ".join(f"{s} ({STATUS[s]})" for s in merged),
        *(["synthetic: generated data, not the log of a machine"] if site.synthetic else []),
        f"{FACTS} {json.dumps(facts, sort_keys=True)}",
    ]


def _changed(con: DuckDBPyConnection, site: Site) -> dict[str, int]:
    """How many jobs read back otherwise, by what is different."""
    states = con.execute(
        "SELECT state, count(*) FROM swf_rows WHERE state IS NOT NULL GROUP BY state ORDER BY state"
    ).fetchall()
    merged: dict[str, int | None] = {
        f"state {state} becomes {READS_AS.get(STATUS.get(state, -1), 'unknown')}": count
        for state, count in states
        if READS_AS.get(STATUS.get(state, -1)) != state
    }
    checks = _checks(site)
    picks = ", ".join(f"count_if(coalesce({sql}, false))" for _, sql in checks)
    counts = one_row(con, f"SELECT {picks} FROM swf_rows")
    found = {what: count for (what, _), count in zip(checks, counts, strict=True)}
    return positive(merged | found)


def _checks(site: Site) -> Sequence[tuple[str, str]]:
    """What is lost, and SQL for the jobs that lose it."""
    ran, waited = "epoch(ended_at) - epoch(started_at)", "epoch(started_at) - epoch(submitted_at)"
    several = f"ceil(pes / {site.pes_per_node}) > 1" if site.pes_per_node else "NULL"
    return (
        (
            "times or durations were rounded to whole seconds",
            is_fraction("epoch(submitted_at)", "waited_s", "ran_s", "requested_s"),
        ),
        ("the start becomes submit + recorded wait", f"abs(wait_s - ({waited})) >= 1"),
        ("the end becomes start + recorded run time", f"abs(run_s - ({ran})) >= 1"),
        ("an unknown wait becomes start - submit", "wait_s IS NULL AND started_at IS NOT NULL"),
        (
            "an unknown run time becomes end - start",
            "run_s IS NULL AND started_at IS NOT NULL AND ended_at IS NOT NULL",
        ),
        (
            "the end is lost, as they never started and were not cancelled",
            "started_at IS NULL AND ended_at IS NOT NULL AND NOT gave_up",
        ),
        ("0 processors read as unknown", "pes = 0"),
        (
            "cancelled at their start with no processors, they read as never started",
            "status = 5 AND NOT gave_up AND round(ran_s) = 0 AND coalesce(pes, 0) = 0",
        ),
        (
            "whether they span nodes is told from their size, and differs",
            f"pes > 1 AND num_nodes IS NOT NULL AND (num_nodes > 1) IS DISTINCT FROM ({several})",
        ),
    )


def _replaced(keep_ids: bool, numbers: Mapping[str, Numbers], names_fit: bool) -> dict[str, str]:
    replaced = {} if keep_ids else {"job_id": "numbered from 1, by time of submission"}
    for name, column in (("user", "uid"), ("account", "gid"), ("application", "executable")):
        if not numbers[column].kept:
            replaced[name] = "numbered from 1, by first appearance"
    if not names_fit:
        replaced["queue"] = "numbered; the names do not fit into the header"
    return replaced
