"""Slurm's accounting as `sacct -P` prints it (slurm.schedmd.com/sacct.html): any fields, order and delimiter.

Steps are skipped, a pending array becomes one row a task, and each attempt of a requeued job is a row. Slurm
gives jobs that ended without starting a Start when they were held or refused; they are known by their
lack of nodes. Seen on Slurm 22.05.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.engine.dialect import quote
from hakaru.engine.duckdb import one_row
from hakaru.errors import SourceError
from hakaru.sources import _slurm as slurm
from hakaru.sources._base import Records, first_reason, head, source
from hakaru.sources._inputs import Input
from hakaru.sources.sacct._header import FIELDS, Layout, num_fields, parse, without_header
from hakaru.sources.sacct._lines import SECOND_EXPORT
from hakaru.sources.sacct._records import cell, records
from hakaru.sources.sacct._times import (
    TIMES,
    in_order,
    readings,
    reasons_backwards,
    reasons_without_zone,
    zone_of,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

REQUIRED = (("JobID", "JobIDRaw"), ("State",), ("Submit",))
# column of the query below, and the fields it may come from, the first that the header has
TEXTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("id", ("jobid", "jobidraw")),
    ("user", ("user",)),
    ("account", ("account",)),
    ("partition", ("partition",)),
    ("qos", ("qos",)),
    ("name", ("jobname",)),
    ("state_text", ("state",)),
    ("exit_text", ("exitcode",)),
    ("alloc_nodes", ("allocnodes",)),
    ("nodes_text", ("nnodes", "reqnodes")),
    ("alloc_cpus", ("alloccpus",)),
    ("cpus_text", ("ncpus", "reqcpus")),
    ("alloc_tres", ("alloctres",)),
    ("req_tres", ("reqtres",)),
    ("req_mem", ("reqmem",)),
    ("limit_clock", ("timelimit",)),
    ("limit_minutes", ("timelimitraw",)),
    ("elapsed_clock", ("elapsed",)),
    ("elapsed_seconds", ("elapsedraw",)),
    ("node_list", ("nodelist",)),
    *((f"{name.lower()}_text", (name.lower(),)) for name in TIMES),
)
NOTHING = ("", "Unknown", "None", "None assigned", "N/A", "INVALID", "UNLIMITED", "Partition_Limit")
NO_TIME = (*NOTHING, "0")  # Slurm's database has second 0 for unset
STEP = r"^[0-9]+([_+][0-9]+)?\."
# What may hold one of the words above and mean it.
WORDS = ("user", "account", "partition", "qos", "name")


@source("sacct", title="Slurm: text of sacct -P, any fields and delimiter")
class Sacct:
    takes = ("fields",)

    @staticmethod
    def recognises(path: Path, head: str) -> bool:
        layout = parse(head)
        return layout is not None and len(_missing(layout)) <= 1

    @staticmethod
    def read(
        con: DuckDBPyConnection, path: Path, cluster: str, options: Mapping[str, Any]
    ) -> Records:
        layout = _checked_layout(path, options.get("fields"))
        if layout.position("cluster"):
            _check_one_cluster(con, path, layout)
        return Records(sql=_query(path, layout, zone_of(con, path, layout, options)))

    @staticmethod
    def advise(con: DuckDBPyConnection, log: Input) -> list[str]:
        """How to split a file that holds two exports."""
        (line,) = one_row(
            con,
            f"SELECT min(line) FROM staged_rejects WHERE file = {quote(log.name)} "
            f"AND starts_with(reason, {quote(SECOND_EXPORT)})",
        )
        if line is None:
            return []
        begins = f"{log.shown}: a second export begins in line {line}."
        if not log.is_plain:
            return [f"{begins} Write the two to files of their own, and read both"]
        whole, stem = shlex.quote(log.shown), Path(log.shown).stem
        first, second = (shlex.quote(f"{stem}-{number}.txt") for number in (1, 2))
        return [
            f"{begins} Split the file and read both parts:\n"
            f"      head -n {line - 1} {whole} > {first}\n      tail -n +{line} {whole} > {second}"
        ]


def _missing(layout: Layout) -> list[str]:
    return [
        " or ".join(names)
        for names in REQUIRED
        if not layout.position(*(name.lower() for name in names))
    ]


def _layout_of(path: Path, text: str, fields: str | None) -> Layout:
    layout = parse(text)
    if fields and layout and len(_missing(layout)) <= 1:
        raise SourceError(f"{path}: has a header ({layout.header[:120]!r}): leave out --fields")
    found = without_header(text, fields) if fields else layout
    if found:
        return found
    first = next((row for row in text.split("\n") if row.strip()), "")[:120]
    if fields:
        raise SourceError(
            f"{path}: no line has the {len(fields.split(','))} fields of --fields with a job's id in its "
            f"place{_found_fields(text)}. Name all fields in their order. It begins: {first!r}"
        )
    raise SourceError(
        f"{path}: its first line is not a header of sacct -P: {first!r}. If it was written with -n "
        "(--noheader), name its fields as they were given to sacct -o: --fields JobID,User,State,…\n"
        f"Otherwise remove -n and add -P, for example:\n  {slurm.COMMAND}"
    )


def _found_fields(text: str) -> str:
    found = num_fields(text)
    if found is None:
        return ", whatever the delimiter"
    num, delimiter = found
    return (
        f"; found {num} fields between {delimiter if delimiter.isprintable() else repr(delimiter)}"
    )


def _checked_layout(path: Path, fields: str | None) -> Layout:
    layout = _layout_of(path, head(path), fields)
    _check_known(layout, fields)
    if missing := _missing(layout):
        where = "--fields" if fields else "the header"
        raise SourceError(
            f"{path}: {where} lacks {', '.join(missing)}; it has {', '.join(layout.names)}. "
            f"A job needs an id, a state and a time of submission; ask for them, for example:\n"
            f"  {slurm.COMMAND}"
        )
    return layout


def _check_known(layout: Layout, fields: str | None) -> None:
    """A header may have the fields of a later Slurm; a person's list may have mistakes."""
    unknown = [name for name in layout.names if fields and name.lower() not in FIELDS]
    if unknown:
        raise SourceError(
            f"--fields: sacct has no field {unknown[0]!r}; write them as in sacct -o, for example:\n"
            f"  --fields {slurm.COMMAND.split('-o ')[1]}"
        )


def _check_one_cluster(con: DuckDBPyConnection, path: Path, layout: Layout) -> None:
    """Clusters number their jobs alike: two in one file would overwrite each other."""
    name = cell(layout, "cluster")
    rows = con.execute(
        f"SELECT DISTINCT {name} AS name FROM ({records(path, layout)}) "
        f"WHERE _stray IS NULL AND _fold IS NOT NULL AND {name} <> '' ORDER BY name"
    ).fetchall()
    names = [str(name) for (name,) in rows]
    if len(names) > 1:
        raise SourceError(
            f"{path}: holds jobs of {len(names)} clusters ({', '.join(names[:5])}), whose ids are not "
            f"unique together. Write one file a cluster (sacct -M {names[0]} …) and ingest each "
            "with its own --cluster."
        )


def _query(path: Path, layout: Layout, zone: str | None) -> str:
    id = cell(layout, "jobid", "jobidraw")
    texts = ", ".join(_text(layout, column, fields) for column, fields in TEXTS)
    return f"""
        WITH named AS (
            SELECT _line, _text, _stray, _fold, _folded, len(_cells) AS num_cells, {texts}
            FROM ({records(path, layout)})
            WHERE _stray IS NOT NULL OR NOT coalesce(regexp_matches({id}, '{STEP}'), false)),
        parsed AS MATERIALIZED (
            SELECT *, {in_order()} FROM (SELECT *, {_values(zone)} FROM named)),
        -- A resize ends the record and opens one with a new Submit, but with the Start of the first.
        resized AS (SELECT DISTINCT id, "end" FROM parsed WHERE word = 'RESIZING'),
        jobs AS (
            SELECT p.*, r.id IS NOT NULL AS goes_on, {_started(layout)} AS began,
                   {_reason(layout, zone)} AS _reason
            FROM parsed AS p LEFT JOIN resized AS r
            ON p.id = r.id AND p.submit = r."end" AND p.start < p.submit)
        SELECT _line, _text, _reason,
               unnest(CASE WHEN _reason IS NULL AND tasks IS NOT NULL THEN tasks ELSE [id] END) AS job_id,
               nullif(regexp_extract(id, '^([0-9]+)_', 1), '') AS array_id,
               "user", account, partition AS queue, qos, name,
               -- a deadline that passed before the start is a wait given up
               CASE WHEN word = 'DEADLINE' AND began IS NULL THEN 'cancelled' ELSE state END AS state,
               CASE WHEN state = 'completed' OR exit_code > 0 THEN exit_code END AS exit_code,
               num_nodes, num_gpus, CASE WHEN num_gpus > 0 THEN gpu_model END AS gpu_model, num_cpus,
               {_memory()} AS memory_mib, nullif(requested_s, 0) AS requested_s,
               submit AS submitted_at, eligible AS eligible_at,
               CASE WHEN goes_on THEN submit ELSE began END AS started_at,
               CASE WHEN state NOT IN ('pending', 'running') THEN "end" END AS ended_at,
               CASE WHEN NOT goes_on THEN epoch(began) - epoch(submit) END AS wait_s,
               {_run(layout)} AS run_s, nodes,
               unnest([nullif(CAST(_folded AS BIGINT), 0)]) AS _folded  -- once, however many tasks it has
        FROM jobs
    """


def _text(layout: Layout, column: str, fields: tuple[str, ...]) -> str:
    """A field as text, null where Slurm says that there is nothing."""
    text = cell(layout, *fields)
    if column in WORDS:
        return f"nullif(rtrim({text}, chr(10)), '') AS \"{column}\""
    nothing = NO_TIME if fields[0] in map(str.lower, TIMES) else NOTHING
    return f"CASE WHEN trim({text}) NOT IN {nothing} THEN trim({text}) END AS {column}"


def _values(zone: str | None) -> str:
    word = slurm.state_word("state_text")
    tres = "coalesce(alloc_tres, req_tres)"
    minutes = "TRY_CAST(limit_minutes AS BIGINT) * 60"
    values = {
        "word": word,
        "state": slurm.state(word),
        "exit_code": slurm.exit_code("exit_text"),
        **readings(zone),
        "num_nodes": _first_count("alloc_nodes", "nodes_text", slurm.tres(tres, "node")),
        "num_cpus": _first_count("alloc_cpus", "cpus_text", slurm.tres(tres, "cpu")),
        "num_gpus": slurm.num_gpus(tres),
        "gpu_model": f"coalesce({slurm.gpu_model(tres)}, {slurm.gpu_model('req_tres')})",
        "tres_mib": slurm.mib(slurm.tres(tres, "mem")),
        "requested_s": f"coalesce({minutes}, {slurm.duration_s('limit_clock')})",
        "elapsed_s": f"coalesce(TRY_CAST(elapsed_seconds AS DOUBLE), {slurm.duration_s('elapsed_clock')})",
        "nodes": slurm.node_names("node_list"),
        "tasks": f"CASE WHEN contains(id, '[') THEN {slurm.task_ids('id')} END",
    }
    return ", ".join(f'{sql} AS "{name}"' for name, sql in values.items())


def _first_count(*texts: str) -> str:
    """Allocated counts are 0 before the start; the requested one stands beside them."""
    return f"coalesce({', '.join(f'nullif({slurm.count(text)}, 0)' for text in texts)})"


def _memory() -> str:
    """The allocation's total, else ReqMem, which before 21.08 was a CPU (`c`) or a node (`n`); 0 is all."""
    times = "CASE right(req_mem, 1) WHEN 'c' THEN num_cpus WHEN 'n' THEN num_nodes ELSE 1 END"
    asked = slurm.mib("rtrim(req_mem, 'cn')")
    return f"coalesce(nullif(tres_mib, 0), nullif({asked} * {times}, 0))"


def _started(layout: Layout) -> str:
    """Start, unless the job ended without: held and refused jobs have one, but never had nodes."""
    if layout.position("nodelist"):
        without = "node_list IS NULL"
    elif layout.position("allocnodes"):
        without = f"{slurm.count('alloc_nodes')} = 0"
    else:
        without = "alloc_tres IS NULL" if layout.position("alloctres") else "false"
    ended = "state NOT IN ('pending', 'running')"
    return f"CASE WHEN state = 'pending' OR ({ended} AND {without}) THEN NULL ELSE p.start END"


def _run(layout: Layout) -> str:
    """Slurm's own Elapsed, which leaves out suspensions; that of a running job is not its run time yet."""
    known = "began IS NOT NULL" if layout.position("start") else "elapsed_s > 0"
    ended = '"end" IS NOT NULL' if layout.position("end") else "true"
    return f"""
        CASE WHEN state IN ('pending', 'running') THEN NULL
             WHEN goes_on THEN epoch("end") - epoch(submit)
             WHEN {known} AND {ended} THEN coalesce(elapsed_s, epoch("end") - epoch(began)) END
    """


def _split_by_commas(layout: Layout) -> list[tuple[str, str]]:
    """Values of TRES hold commas, which sacct does not quote, so fields behind them are misplaced."""
    if layout.delimiter != "," or not any("tres" in name.lower() for name in layout.names):
        return []
    reason = "commas inside AllocTRES or ReqTRES split the row; write it again with --delimiter='|'"
    is_split = f"num_cells > {layout.width} AND submit_text IS NOT NULL AND p.submit IS NULL"
    return [(is_split, quote(reason))]


def _reason(layout: Layout, zone: str | None) -> str:
    width = len(layout.names)
    found = f"num_cells - {int(layout.trailing)}"
    shown = "left({0}, 60)"
    values = [
        (
            f"{text} IS NOT NULL AND {value} IS NULL",
            f"'{field} is not {what}: ' || {shown.format(text)}",
        )
        for field, text, value, what in (
            *((name, f"{name.lower()}_text", f'p."{name.lower()}"', "a time") for name in TIMES),
            ("ExitCode", "exit_text", "exit_code", "CODE:SIGNAL"),
            ("Timelimit", "coalesce(limit_minutes, limit_clock)", "requested_s", "a duration"),
            ("Elapsed", "coalesce(elapsed_seconds, elapsed_clock)", "elapsed_s", "a duration"),
            ("AllocNodes", "alloc_nodes", slurm.count("alloc_nodes"), "a number"),
            ("NNodes", "nodes_text", slurm.count("nodes_text"), "a number"),
            ("AllocCPUS", "alloc_cpus", slurm.count("alloc_cpus"), "a number"),
            ("NCPUS", "cpus_text", slurm.count("cpus_text"), "a number"),
            ("NodeList", "node_list", "nodes", "a list of nodes"),
        )
    ]
    id_grammar = quote(rf"[0-9]+([_+][0-9]+)?|{slurm.TASKS}")
    return first_reason(
        [
            ("_stray IS NOT NULL", "_stray"),
            (
                f"_fold IS NULL AND num_cells < {layout.width}",
                f"'expected {width} fields, found ' || {found}",
            ),
            (
                "_fold IS NULL",
                f"'expected {width} fields, found ' || {found} || "
                "'; write with --delimiter=$''\\x1f'' and JobName last'",
            ),
            ("p.id IS NULL", "'JobID is missing'"),
            (
                "contains(p.id, '...')",
                "'the array is cut short; write with SLURM_BITSTR_LEN=0: ' || "
                f"{shown.format('p.id')}",
            ),
            (
                f"NOT regexp_full_match(p.id, {id_grammar}) OR len(tasks) = 0",
                f"'JobID is not a job: ' || {shown.format('p.id')}",
            ),
            ("state_text IS NULL", "'State is missing'"),
            ("state IS NULL", f"'State is not one of Slurm''s: ' || {shown.format('state_text')}"),
            ("submit_text IS NULL", "'Submit is missing'"),
            *_split_by_commas(layout),
            *([] if zone else reasons_without_zone()),
            *values,
            *reasons_backwards(zone),
            (
                "len(list_filter(nodes, lambda n: contains(n, '['))) > 0",
                f"'NodeList is not a list of nodes: ' || {shown.format('node_list')}",
            ),
        ]
    )
