"""Proposes a mapping for a log of unknown make, from its column names and its first rows.

A name proposes what a column may be, and its values must agree; what stays unplaced is listed, so that the
reader sees what was left out. The proposal is meant to be read before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hakaru.engine.duckdb import connect, one_row
from hakaru.errors import SourceError
from hakaru.schema import JOBS, STATES
from hakaru.settings import Engine as EngineSettings
from hakaru.sources._base import is_not_utf8
from hakaru.sources.table import _synonyms
from hakaru.sources.table._cells import Raw, number, value
from hakaru.sources.table._looks import Look, look_at
from hakaru.sources.table._mapping import DURATION_UNITS, MEMORY_UNITS, Cell, Shape, kind_of
from hakaru.sources.table._tabular import open_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NUM_ROWS = 10_000
MAX_STATES = 40


@dataclass
class Proposal:
    """The entries of `[columns]` with their remarks, and the looks they rest on."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    looks: dict[str, Look] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)

    def place(self, canonical: str, look: Look, remark: str = "", **extra: Any) -> None:
        self.entries[canonical] = {"column": look.name, **extra}
        self.looks[canonical] = look
        if remark:
            self.remarks[canonical] = remark

    def free(self, looks: Sequence[Look]) -> list[Look]:
        used = {look.name for look in self.looks.values()}
        return [look for look in looks if look.name not in used]


def propose(path: Path) -> str:
    """A mapping for the file as TOML text."""
    con = connect(EngineSettings())
    try:
        return _propose(con, path)
    except duckdb.Error as error:
        hint = (
            "\nTurn it into UTF-8, e.g. with: iconv -f CP932 -t UTF-8" if is_not_utf8(error) else ""
        )
        first = str(error).splitlines()[0]
        raise SourceError(f"{path}: cannot be read as a table: {first}{hint}") from None
    finally:
        con.close()


def _propose(con: DuckDBPyConnection, path: Path) -> str:
    table = open_table(con, path, Shape(), limit=NUM_ROWS)
    names = [name for name in dict.fromkeys(table.names) if name]
    con.execute(f"CREATE TEMP TABLE sample AS {table.select(names)} LIMIT {NUM_ROWS}")
    con.execute("DELETE FROM sample WHERE _reason IS NOT NULL")
    (num_rows,) = one_row(con, "SELECT count(*) FROM sample")
    if num_rows == 0:
        raise SourceError(f"{path}: has no rows from which a mapping could be guessed")
    looks = [look_at(con, Raw(n, table.alias(n), table.type(n))) for n in names]
    return _write(path, num_rows, looks, _place_all(con, looks))


def _place_all(con: DuckDBPyConnection, looks: Sequence[Look]) -> Proposal:
    proposal = Proposal()
    for canonical, synonyms in _synonyms.COLUMNS.items():
        if canonical == "queue":
            _place_queue_as_wait(con, proposal, looks)
        found = _find(canonical, synonyms, proposal.free(looks))
        if found and canonical not in proposal.entries:
            _place(con, proposal, canonical, *found)
        elif canonical in _synonyms.PER_NODE:
            _place_per_node(proposal, canonical, looks)
    _place_id(proposal, looks)
    _place_states(con, proposal)
    return proposal


def _find(
    canonical: str, synonyms: Iterable[str], looks: Sequence[Look]
) -> tuple[Look, str | None] | None:
    """The column that is called by the best synonym and fits, with the unit in its name."""
    for synonym in synonyms:
        for look in looks:
            for key, unit in look.keys:
                if key == synonym and look.fits(canonical):
                    return look, unit
    return None


def _place(
    con: DuckDBPyConnection, proposal: Proposal, canonical: str, look: Look, unit: str | None
) -> None:
    kind = kind_of(canonical)
    extra: dict[str, Any] = {}
    remark = ""
    if kind == "time":
        extra = {**(look.time or {})}
        extra |= _missing(look, "0", "-1") if "unit" in extra else {}
        remark = "or is the day before the month?" if look.ambiguous else ""
    elif kind == "duration":
        extra, remark = _duration(con, proposal, canonical, look, unit)
    elif kind == "memory":
        extra, remark = _memory(look, unit)
    elif kind == "count":
        extra = _missing(look, "-1") if canonical != "exit_code" else {}
        if canonical == "num_gpus" and "num_nodes" in proposal.looks:
            more, remark = _gpus(con, proposal.looks["num_nodes"], look)
            extra |= more
    elif kind == "list":
        extra = _separator(look)
    proposal.place(canonical, look, remark, **extra)


def _missing(look: Look, *words: str) -> dict[str, Any]:
    found = [word for word in look.unset if word in words]
    return {"missing": found} if found else {}


def _gpus(con: DuckDBPyConnection, nodes: Look, gpus: Look) -> tuple[dict[str, Any], str]:
    """A total is a multiple of the number of nodes; what is not must count GPUs per node."""
    a, b = number(gpus.raw), number(nodes.raw)
    if _share(con, f"{a} % {b} <> 0", f"{b} > 1 AND {a} > 0") > 0.1:
        return {"times": nodes.name}, "per node: often no multiple of the nodes"
    return {}, f"taken as the total; if it is per node, add times = {_quoted(nodes.name)}"


def _separator(look: Look) -> dict[str, Any]:
    marks = [mark for mark in (",", ";", "+", " ") if any(mark in x for x in look.examples)]
    return {"separator": marks[0]} if marks and marks[0] != "," else {}


def _memory(look: Look, unit: str | None) -> tuple[dict[str, Any], str]:
    if look.size:
        return {"unit": "size"}, ""
    missing = _missing(look, "-1")
    if unit in MEMORY_UNITS:
        return {"unit": unit} | missing, ""
    if look.highest > 1e8:
        return {"unit": "B"} | missing, "so large that it must be bytes"
    return {"unit": "MiB"} | missing, "no unit is known: MiB is assumed"


def _duration(
    con: DuckDBPyConnection, proposal: Proposal, canonical: str, look: Look, unit: str | None
) -> tuple[dict[str, Any], str]:
    """The unit by the form of the values, the name, or the times in the same rows."""
    if look.duration:
        return {"unit": "duration"}, ""
    missing = _missing(look, *(("0", "-1") if canonical == "requested_s" else ("-1",)))
    if unit in DURATION_UNITS:
        return {"unit": unit} | missing, ""
    found = _unit_by_times(con, proposal, canonical, look)
    if found:
        return {"unit": found} | missing, "" if found == "s" else "as the times in the rows tell"
    return {"unit": "s"} | missing, "no unit is known: seconds are assumed"


def _unit_by_times(
    con: DuckDBPyConnection, proposal: Proposal, canonical: str, look: Look
) -> str | None:
    ends = ("submitted_at", "started_at") if canonical == "wait_s" else ("started_at", "ended_at")
    if not set(ends) <= set(proposal.looks):
        return None
    first, last = (_epoch(proposal, end) for end in ends)
    for unit in ("s", "min", "h", "d"):
        given = f"({number(look.raw)} * {DURATION_UNITS[unit]!r})"
        span = f"({last} - {first})"
        agrees = f"abs({given} - {span}) <= 1 + {DURATION_UNITS[unit]!r} * 0.51"
        if canonical == "requested_s":
            agrees = f"{span} <= 1.1 * {given} + 60"
        if _share(con, agrees, f"{span} > 0") >= 0.9:
            return unit
    return None


def _epoch(proposal: Proposal, canonical: str) -> str:
    """SQL for a placed time as seconds."""
    look, entry = proposal.looks[canonical], proposal.entries[canonical]
    cell = Cell(
        "time",
        (look.name,),
        unit=entry.get("unit"),
        format=entry.get("format"),
        missing=tuple(entry.get("missing", ())),
    )
    found = value(canonical, cell, [look.raw], "UTC")
    return f"epoch({found.sql.replace(f'n_{canonical}', f'({found.number})')})"


def _share(con: DuckDBPyConnection, condition: str, among: str) -> float:
    (share,) = one_row(
        con,
        f"SELECT coalesce(avg(CAST(({condition}) AS INTEGER)), 0) FROM sample WHERE {among}",
    )
    return float(share)


def _place_queue_as_wait(
    con: DuckDBPyConnection, proposal: Proposal, looks: Sequence[Look]
) -> None:
    """In Helios' logs `queue` is not a name but the seconds between submission and start."""
    for look in proposal.free(looks):
        named = any(key == "queue" for key, _ in look.keys)
        if named and look.number and _unit_by_times(con, proposal, "wait_s", look) == "s":
            proposal.place("wait_s", look, "equals start - submission", unit="s")


def _place_per_node(proposal: Proposal, canonical: str, looks: Sequence[Look]) -> None:
    found = _find(canonical, _synonyms.PER_NODE[canonical], proposal.free(looks))
    if found and "num_nodes" in proposal.looks:
        look, unit = found
        extra = _memory(look, unit)[0] if canonical == "memory_mib" else {}
        proposal.place(canonical, look, times=proposal.looks["num_nodes"].name, **extra)


def _place_id(proposal: Proposal, looks: Sequence[Look]) -> None:
    look = proposal.looks.get("job_id")
    if look is None:
        proposal.entries["job_id"] = {"line": True}
        proposal.remarks["job_id"] = "no column of ids was found: the line's number stands for it"
        return
    task = _find("job_id", _synonyms.TASKS, proposal.free(looks))
    if task and look.num_distinct < look.num_known:
        proposal.entries["job_id"] = {"column": [look.name, task[0].name], "join": "."}
        proposal.remarks["job_id"] = "an array's tasks share one number"


def _place_states(con: DuckDBPyConnection, proposal: Proposal) -> None:
    """Translate the words for the state; an exit code stands for it where there is none."""
    look = proposal.looks.get("state")
    if look is None:
        if "exit_code" in proposal.looks:
            code = proposal.looks["exit_code"]
            proposal.place("state", code, "no column of states was found: the exit code tells")
            proposal.states = ['0 = "completed"', '"*" = "failed"']
        return
    text = f"CAST({look.raw.sql} AS VARCHAR)"
    counted = con.execute(
        f"SELECT trim({text}) AS word, count(*) FROM sample WHERE trim({text}) <> '' "
        f"GROUP BY word ORDER BY count(*) DESC, word LIMIT {MAX_STATES}"
    ).fetchall()
    lines = {word: _translation(word, count) for word, count in counted}
    proposal.states = list(dict.fromkeys(lines.values()))
    unknown = [line.startswith("#") for line in proposal.states]
    if any(unknown):
        proposal.states.append(f"# for each … choose one of: {', '.join(STATES)}")
    if all(unknown):
        del proposal.entries["state"]
        proposal.states.insert(0, f"# state = {_quoted(look.name)}  # put this under [columns]")


def _translation(word: str, count: int) -> str:
    key = word.lower().replace(" ", "_").replace("-", "_")
    if key.startswith("cancelled_by_"):  # sacct adds who did it
        return '"cancelled by *" = "cancelled"'
    for state, words in _synonyms.STATES.items():
        if key in words:
            return f"{_quoted(word)} = {_quoted(state)}  # rows: {count:,}"
    return f'# {_quoted(word)} = "…"  # rows: {count:,}'


def _write(path: Path, num_rows: int, looks: Sequence[Look], proposal: Proposal) -> str:
    command = f"hakaru ingest {path.name} --format table --mapping MAPPING.toml --cluster NAME"
    names = [name for name in JOBS.names if name in proposal.entries]
    lines = [
        f"# A mapping proposed for {path.name} from its first {num_rows:,} rows.",
        f"# Check every line, save it as MAPPING.toml, then: {command}",
        "",
        "[columns]",
        *(_entry(name, proposal) for name in names),
        *_required(names, looks),
        *_unplaced(proposal, looks),
    ]
    if any(look.naive for look in proposal.looks.values()):
        lines += ["", "[time]", _ZONE]
    if proposal.states:
        known = any(not line.startswith("#") for line in proposal.states)
        lines += ["", "[states]" if known else "# [states]", *proposal.states]
    return "\n".join(lines) + "\n"


_ZONE = 'zone = "UTC"  # the times tell no offset: put the site\'s zone here, e.g. "Asia/Tokyo"'


def _entry(name: str, proposal: Proposal) -> str:
    entry = proposal.entries[name]
    written = ", ".join(f"{key} = {_toml(item)}" for key, item in entry.items())
    plain = set(entry) == {"column"} and isinstance(entry["column"], str)
    remark = f"  # {proposal.remarks[name]}" if name in proposal.remarks else ""
    return f"{name} = {_toml(entry['column']) if plain else f'{{ {written} }}'}{remark}"


def _required(names: Sequence[str], looks: Sequence[Look]) -> list[str]:
    if {"submitted_at", "started_at"} & set(names):
        return []
    times = ", ".join(_quoted(look.name) for look in looks if look.time is not None)
    hint = f"these columns hold times: {times}" if times else "no column of times was recognised"
    return [f'# submitted_at = "…"  # needed, or started_at; {hint}']


def _unplaced(proposal: Proposal, looks: Sequence[Look]) -> list[str]:
    task = proposal.entries["job_id"].get("column")
    joined = task if isinstance(task, list) else []
    free = [look for look in proposal.free(looks) if look.name not in joined]
    if not free:
        return []
    listed = [
        f"#   {_quoted(look.name)}: " + (", ".join(map(_quoted, look.examples)) or "empty")
        for look in free
    ]
    return ["# Not placed (with values seen):", *listed]


def _toml(item: Any) -> str:
    if isinstance(item, list):
        return f"[{', '.join(_toml(part) for part in item)}]"
    return _quoted(item) if isinstance(item, str) else json.dumps(item)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
