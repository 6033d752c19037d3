"""AAIC's CSV: thirteen whole numbers a line (Takizawa et al.; github.com/aistairc/aaic-workload).

`gpus` counts GPUs per node. Ids hold within one file, so jobs whose ids are LOG/ID go to one file a log.
The format has four queues, five ways to end and no word for unknown: other jobs are left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.errors import HakaruError
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
from hakaru.formats.aaic import COLUMNS, QUEUES, STATES
from hakaru.formats.logs import SEPARATOR, log_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

HEADER = ", ".join(COLUMNS)
MOST_LOGS = 500
LOG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

# SQL of a condition, and of the reason for which such a job cannot be written
CANNOT: tuple[tuple[str, str], ...] = (
    (
        f"NOT coalesce(queue IN {QUEUES}, false)",
        f"'the queue is not one of {', '.join(QUEUES)}'",
    ),
    (
        f"NOT coalesce(state IN {STATES}, false)",
        "'the state ' || coalesce(state, '(unknown)') || ' has no termcode'",
    ),
    ("NOT coalesce(num_gpus >= 1, false)", "'no GPU, or an unknown number'"),
    ("NOT coalesce(num_nodes >= 1, false)", "'no node, or an unknown number'"),
    ("num_gpus % num_nodes <> 0", "'the GPUs do not divide evenly by the nodes'"),
    ("started_at IS NULL", "'no start'"),
    ("ended_at IS NULL", "'no end'"),
    ("wait_s IS NULL OR run_s IS NULL", "'no wait or run time'"),
    ("requested_s IS NULL", "'no requested walltime'"),
    ('"user" IS NULL', "'no user'"),
    ("account IS NULL", "'no account'"),
    ("epoch(submitted_at) < 1", "'submitted before 1970'"),
)
NOT_HELD = (
    *("array_id", "qos", "name", "application", "modules", "exit_code", "gpu_model", "num_cpus"),
    *("memory_mib", "eligible_at", "nodes", "gpu_ids"),
)


@export_format("aaic", title="AAIC's CSV files", endings=[".csv.gz", ".csv"])
def write(con: DuckDBPyConnection, jobs: str, site: Site, target: Target) -> Outcome:
    """One file, or one a log; ids and names that are numbers stay, others are numbered."""
    left_out = _define_rows(con, jobs)
    logs = _logs(con)
    if logs and target.file and len(logs) > 1:
        raise HakaruError(
            f"the jobs come from {len(logs)} logs whose ids hold within one file: "
            f"name a folder instead of {target.file}"
        )
    _define_named(con, per_log=bool(logs))
    keep_ids = all_whole(con, "aaic_named", "id") and _unique(con)
    user, group = (number_names(con, "aaic_named", c, 0, "log") for c in ("person", "team"))
    mark = "synthetic-" if site.synthetic else ""
    files = {}
    for log in logs or [""]:
        name = target.file or (f"aaicwl-{mark}{log}.csv.gz" if log else f"{mark}{site.name}.csv.gz")
        path = target.folder / name
        files[name] = write_lines(con, path, [HEADER], _lines(keep_ids, log, user, group))
    return Outcome(
        files=files,
        left_out=left_out,
        changed=_changed(con),
        replaced=_replaced(keep_ids, user, group),
        not_held=NOT_HELD,
        holds_settings=False,
        holds_synthetic=False,
    )


def _define_rows(con: DuckDBPyConnection, jobs: str) -> dict[str, int]:
    """The view `aaic_rows` of what can be written; gives how many jobs each reason leaves out."""
    cases = " ".join(f"WHEN {condition} THEN {reason}" for condition, reason in CANNOT)
    judged = f"SELECT *, CASE {cases} END AS reason FROM {jobs}"
    con.execute(
        f"CREATE OR REPLACE TEMP VIEW aaic_rows AS SELECT * FROM ({judged}) WHERE reason IS NULL"
    )
    counted = con.execute(
        f"SELECT reason, count(*) FROM ({judged}) WHERE reason IS NOT NULL "
        "GROUP BY reason ORDER BY count(*) DESC, reason"
    )
    return dict(counted.fetchall())


def _logs(con: DuckDBPyConnection) -> list[str]:
    """The logs, where every job's id is LOG/ID with a LOG that can name a file; else none."""
    found = con.execute(
        "SELECT DISTINCT CASE WHEN regexp_full_match(job_id, '[^/]+/[^/]+') "
        f"THEN {log_of('job_id')} ELSE '' END FROM aaic_rows ORDER BY 1 LIMIT {MOST_LOGS + 1}"
    ).fetchall()
    logs = [log for (log,) in found]
    usable = len(logs) <= MOST_LOGS and all(LOG.fullmatch(log) for log in logs)
    return logs if usable else []


def _define_named(con: DuckDBPyConnection, per_log: bool) -> None:
    """The rows with `log`, and id, user and account without the log's name before them."""
    log = log_of("job_id") if per_log else "''"

    def bare(column: str) -> str:
        cut = f"substr({column}, length({log}) + 2)"
        return (
            f"CASE WHEN starts_with({column}, {log} || '{SEPARATOR}') THEN {cut} ELSE {column} END"
        )

    con.execute(
        f"""
        CREATE OR REPLACE TEMP VIEW aaic_named AS
        SELECT *, {log} AS log, {bare("job_id") if per_log else "job_id"} AS id,
               {bare('"user"') if per_log else '"user"'} AS person,
               {bare("account") if per_log else "account"} AS team FROM aaic_rows
        """
    )


def _unique(con: DuckDBPyConnection) -> bool:
    twice = "SELECT 1 FROM aaic_named GROUP BY log, id HAVING count(*) > 1 LIMIT 1"
    return not con.execute(twice).fetchall()


def _cells(user: Numbers, group: Numbers) -> list[str]:
    """SQL of the numbers after the id."""
    queue, state = (
        f"CASE {column} {' '.join(f'WHEN {quote(name)} THEN {i}' for i, name in enumerate(names))} END"
        for column, names in (("queue", QUEUES), ("state", STATES))
    )
    return [
        *(user.sql, group.sql, queue, "num_nodes", "num_gpus // num_nodes"),
        *("greatest(1, CAST(round(requested_s) AS BIGINT))", state),
        *(seconds(name) for name in ("submitted_at", "started_at", "ended_at")),
        *(f"CAST(round({name}) AS BIGINT)" for name in ("wait_s", "run_s")),
    ]


def _lines(keep_ids: bool, log: str, user: Numbers, group: Numbers) -> Lines:
    """A log's lines by their ids, or numbered by submission."""
    chosen = f"(SELECT * FROM aaic_named WHERE log = {quote(log)})" if log else "aaic_named"
    id, cells = "CAST(id AS BIGINT)", _cells(user, group)
    return Lines(
        rows=f"{chosen} {user.join} {group.join}",
        cells=[id, *cells] if keep_ids else cells,
        separator=", ",
        order=(id, id) if keep_ids else (SUBMITTED, "submitted_at, id"),
        number_from=None if keep_ids else 0,
    )


def _changed(con: DuckDBPyConnection) -> dict[str, int]:
    times = [f"epoch({name})" for name in ("submitted_at", "started_at", "ended_at")]
    fractions = is_fraction(*times, "requested_s", "wait_s", "run_s")
    (rounded,) = one_row(con, f"SELECT count_if({fractions}) FROM aaic_rows")
    return positive({"times or durations were rounded to whole seconds": rounded})


def _replaced(keep_ids: bool, user: Numbers, group: Numbers) -> dict[str, str]:
    replaced = {} if keep_ids else {"job_id": "numbered from 0 in each file, by time of submission"}
    for name, numbers in (("user", user), ("account", group)):
        if not numbers.kept:
            replaced[name] = "numbered from 0 in each file, by first appearance"
    return replaced
