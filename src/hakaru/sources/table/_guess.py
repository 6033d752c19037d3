"""Proposes a mapping for a log of unknown make, from its column names and its first rows.

A name proposes what a column may be, and its values must agree; what stays unplaced is listed, so that the
reader sees what was left out. The proposal is meant to be read before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from hakaru.engine.duckdb import connect, one_row
from hakaru.errors import SourceError
from hakaru.schema import STATES
from hakaru.settings import Engine as EngineSettings
from hakaru.sources._base import is_not_utf8
from hakaru.sources._encoding import utf8_advice
from hakaru.sources.table import _synonyms, _units
from hakaru.sources.table._cells import Raw
from hakaru.sources.table._ids import place_id
from hakaru.sources.table._looks import Look, look_at
from hakaru.sources.table._mapping import DURATION_UNITS, UNITS, Shape, kind_of
from hakaru.sources.table._preview import preview
from hakaru.sources.table._proposal import Proposal, mapping_lines, quoted, write
from hakaru.sources.table._tabular import open_table, wide_advice

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NUM_ROWS = 10_000
MAX_STATES = 40
TIMES = tuple(name for name in _synonyms.COLUMNS if kind_of(name) == "time")
# a job with more than this would be the largest on earth: the column is something else
MOST = {"num_nodes": 200_000, "num_gpus": 200_000, "num_cpus": 50_000_000}


def propose(path: Path) -> str:
    """A mapping for the file as TOML text."""
    con = connect(EngineSettings())
    try:
        return _propose(con, path)
    except duckdb.Error as error:
        first = str(error).splitlines()[0]
        if is_not_utf8(error):
            first = utf8_advice(path) or "some of its lines are not UTF-8 text; remove or mend them"
        raise SourceError(f"{path}: cannot be read as a table: {first}") from None
    finally:
        con.close()


def _propose(con: DuckDBPyConnection, path: Path) -> str:
    table = open_table(con, path, Shape(), limit=NUM_ROWS)
    if advice := wide_advice(len(table.names)):
        raise SourceError(f"{path}: cannot be read as a table: {advice}")
    names = [name for name in dict.fromkeys(table.names) if name]
    con.execute(f"CREATE TEMP TABLE sample AS {table.select(names)} LIMIT {NUM_ROWS}")
    con.execute("DELETE FROM sample WHERE _reason IS NOT NULL")
    (num_rows,) = one_row(con, "SELECT count(*) FROM sample")
    if num_rows == 0:
        raise SourceError(f"{path}: has no rows from which a mapping could be guessed")
    looks = [look_at(con, Raw(n, table.alias(n), table.type(n))) for n in names]
    proposal = _place_all(con, looks)
    examples, rejected = preview(con, path, table, "\n".join(mapping_lines(looks, proposal)))
    if rejected:
        proposal.doubt("rows", rejected)
    return write(path, num_rows, looks, proposal, examples)


def _place_all(con: DuckDBPyConnection, looks: Sequence[Look]) -> Proposal:
    proposal = Proposal()
    for canonical, synonyms in _synonyms.COLUMNS.items():
        if canonical == "queue":
            _place_offsets(proposal, looks)
            _place_queue_as_wait(con, proposal, looks)
        found = _find(canonical, synonyms, proposal.free(looks))
        if found and canonical not in proposal.entries:
            if canonical != "num_gpus" or not _units.is_share(con, proposal, found[0]):
                _place(con, proposal, canonical, *found)
        elif canonical in _synonyms.PER_NODE:
            _place_per_node(proposal, canonical, looks)
    _move_limit(con, proposal, looks)
    place_id(con, proposal, looks)
    _place_states(con, proposal)
    _note_misfits(proposal, looks)
    _note_disagreement(con, proposal)
    _note_no_start(proposal)
    _note_zone(proposal)
    return proposal


def _find(
    canonical: str, synonyms: Iterable[str], looks: Sequence[Look]
) -> tuple[Look, str | None] | None:
    """The column that is called by the best synonym and fits, with the unit in its name."""
    for synonym in synonyms:
        for look in looks:
            unit = _match(look, canonical, synonym)
            if unit is not None and look.fits(canonical) and _is_sane(look, canonical):
                return look, unit or None
    return None


def _match(look: Look, canonical: str, synonym: str) -> str | None:
    """The unit in a name that matches ("" without one), or None.

    A unit must be one of the column's: `node_hour` is not a number of nodes.
    """
    fitting = UNITS.get(kind_of(canonical), ())
    for key, unit in look.keys:
        if key == synonym and (unit is None or unit in fitting):
            return unit or ""
    return None


def _is_sane(look: Look, canonical: str) -> bool:
    return look.highest <= MOST.get(canonical, look.highest)


def _place(
    con: DuckDBPyConnection, proposal: Proposal, canonical: str, look: Look, unit: str | None
) -> None:
    kind = kind_of(canonical)
    extra: dict[str, Any] = {}
    remark = ""
    if kind == "time":
        extra = {**(look.time or {})}
        extra |= _units.missing(look, "0", "-1") if "unit" in extra else {}
        if look.ambiguous:
            remark = "or is the day before the month?"
            proposal.doubt(canonical, "month/day or day/month?")
    elif kind == "duration":
        extra, remark = _units.duration(con, proposal, canonical, look, unit)
    elif kind == "memory":
        extra, remark = _units.memory(proposal, look, unit)
    elif kind == "count" and canonical != "exit_code":
        extra, remark = _units.count(con, proposal, canonical, look)
    elif kind == "list":
        extra = _separator(look)
    proposal.place(canonical, look, remark, **extra)


def _separator(look: Look) -> dict[str, Any]:
    marks = [mark for mark in (",", ";", "+", " ") if any(mark in x for x in look.examples)]
    return {"separator": marks[0]} if marks and marks[0] != "," else {}


def _place_offsets(proposal: Proposal, looks: Sequence[Look]) -> None:
    """Times that count from the log's beginning, where it has no other times."""
    if set(TIMES) & set(proposal.entries):
        return
    found: dict[str, Look] = {}
    for canonical in TIMES:
        free = [look for look in looks if look.offset and look not in found.values()]
        for synonym in _synonyms.COLUMNS[canonical]:
            named = [look for look in free if _match(look, canonical, synonym) is not None]
            if named and canonical not in found:
                found[canonical] = named[0]
    # the greatest tells the unit of them all
    offset = max(found.values(), key=lambda look: look.highest).offset if found else None
    if offset is None:
        return
    for canonical, look in found.items():
        unit = next((u for _, u in look.keys if u in DURATION_UNITS), None)
        extra = {"unit": unit or offset["unit"], **_units.missing(look, "-1")}
        proposal.place(canonical, look, **extra)
    proposal.start = offset["start"]
    first = next(iter(found))
    if proposal.start == "1970-01-01":
        proposal.doubt(
            "times",
            f"{quoted(found[first].name)} and the like are relative (read in {offset['unit']}): set "
            "[time] start, or every date is of 1970",
        )


def _place_queue_as_wait(
    con: DuckDBPyConnection, proposal: Proposal, looks: Sequence[Look]
) -> None:
    """In Helios' logs `queue` is not a name but the seconds between submission and start."""
    for look in proposal.free(looks):
        named = any(key == "queue" for key, _ in look.keys)
        if named and look.number and _units.agreeing(con, proposal, "wait_s", look) == ["s"]:
            proposal.place("wait_s", look, "equals start - submission", unit="s")


def _place_per_node(proposal: Proposal, canonical: str, looks: Sequence[Look]) -> None:
    found = _find(canonical, _synonyms.PER_NODE[canonical], proposal.free(looks))
    if found and "num_nodes" in proposal.looks:
        look, unit = found
        extra = _units.memory(proposal, look, unit)[0] if canonical == "memory_mib" else {}
        proposal.place(canonical, look, times=proposal.looks["num_nodes"].name, **extra)


def _move_limit(con: DuckDBPyConnection, proposal: Proposal, looks: Sequence[Look]) -> None:
    """`wall_time` is a run time in some logs and the limit in others: end − start decides."""
    look, share = proposal.looks.get("run_s"), _units.agreement(con, proposal, "run_s")
    if look is None or share is None or share >= 0.5 or "requested_s" in proposal.entries:
        return
    if "wall" not in "".join(look.words):
        return
    fitting = _units.agreeing(con, proposal, "requested_s", look)
    if fitting:
        del proposal.entries["run_s"], proposal.looks["run_s"]
        proposal.remarks.pop("run_s", None)
        proposal.unsure.pop("run_s", None)
        proposal.place("requested_s", look, "longer than end - start: the limit", unit=fitting[0])
        proposal.doubt("requested_s", f"{quoted(look.name)} could be the run time")
        other = _find("run_s", _synonyms.COLUMNS["run_s"], proposal.free(looks))
        if other:
            _place(con, proposal, "run_s", *other)


def _place_states(con: DuckDBPyConnection, proposal: Proposal) -> None:
    """Translate the words for the state; an exit code stands for it where there is none."""
    look = proposal.looks.get("state")
    if look is None:
        if "exit_code" in proposal.looks:
            code = proposal.looks["exit_code"]
            proposal.place("state", code, "no column of states was found: by the exit code")
            proposal.states = ['0 = "completed"', '"*" = "failed"']
        return
    text = f"CAST({look.raw.sql} AS VARCHAR)"
    counted = con.execute(
        f"SELECT trim({text}) AS word, count(*) FROM sample WHERE trim({text}) <> '' "
        f"GROUP BY word ORDER BY count(*) DESC, word LIMIT {MAX_STATES}"
    ).fetchall()
    known = {word: _state_of(word) for word, _ in counted}
    _mend_terminated(proposal, known)
    lines = [_translation(word, known[word], count) for word, count in counted]
    proposal.states = list(dict.fromkeys(lines))
    unknown = [line.startswith("#") for line in proposal.states]
    if any(unknown):
        proposal.states.append(f"# for each … choose one of: {', '.join(STATES)}")
        proposal.doubt("state", "some words are not known: see [states]")
    if all(unknown):
        del proposal.entries["state"]
        proposal.states.insert(0, f"# state = {quoted(look.name)}  # put this under [columns]")


def _state_of(word: str) -> str | None:
    key = word.lower().replace(" ", "_").replace("-", "_")
    if key.startswith("cancelled_by_"):  # sacct adds who did it
        return "cancelled"
    return next((state for state, words in _synonyms.STATES.items() if key in words), None)


def _mend_terminated(proposal: Proposal, known: dict[str, str | None]) -> None:
    """Where no other word says that a job ended well, `Terminated` does (Alibaba's PAI)."""
    for word in known:
        if word.lower() == "terminated" and "completed" not in known.values():
            known[word] = "completed"
            proposal.doubt("state", f"{quoted(word)} is taken as completed, since no other word is")


def _translation(word: str, state: str | None, count: int) -> str:
    if state == "cancelled" and word.lower().startswith("cancelled by "):
        return '"cancelled by *" = "cancelled"'
    if state:
        return f"{quoted(word)} = {quoted(state)}  # rows: {count:,}"
    return f'# {quoted(word)} = "…"  # rows: {count:,}'


def _note_misfits(proposal: Proposal, looks: Sequence[Look]) -> None:
    """Columns that are called like a number but hold something else."""
    for canonical in MOST:
        named = [
            look for look in proposal.free(looks) if look.number and _is_called(look, canonical)
        ]
        if named and canonical not in proposal.entries:
            why = _misfit(named[0], canonical)
            things = {"num_nodes": "nodes", "num_gpus": "GPUs", "num_cpus": "CPUs"}[canonical]
            proposal.doubt(
                canonical, f"{quoted(named[0].name)} does not look like a number of {things}: {why}"
            )


def _misfit(look: Look, canonical: str) -> str:
    if not look.whole:
        return "some are not whole"
    if look.is_index(canonical):
        return "some are 0, so it may say which one"
    return "some are negative" if look.lowest < -1 else "some are too large"


def _is_called(look: Look, canonical: str) -> bool:
    return any(_match(look, canonical, name) == "" for name in _synonyms.COLUMNS[canonical])


def _note_disagreement(con: DuckDBPyConnection, proposal: Proposal) -> None:
    for canonical, ends in (("run_s", "end - start"), ("wait_s", "start - submission")):
        share = _units.agreement(con, proposal, canonical)
        if share is not None and share < _units.AGREE:
            name = quoted(proposal.looks[canonical].name)
            proposal.doubt(canonical, f"{name} is not {ends} in {1 - share:.0%} of the rows")


def _note_zone(proposal: Proposal) -> None:
    """No table says where its site is: a guess would be wrong in silence."""
    if any(look.naive for look in proposal.looks.values()):
        proposal.doubt("zone", "the times have no offset: set [time] zone, or add --zone")
    else:
        proposal.doubt("zone", "hours are shown in UTC unless you set [time] zone or add --zone")


def _note_no_start(proposal: Proposal) -> None:
    placed = set(proposal.entries)
    if not {"started_at", "wait_s"} & placed and not {"ended_at", "run_s"} <= placed:
        proposal.doubt("started_at", "no column says when jobs start: waits stay unknown")
