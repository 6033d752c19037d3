"""In which unit a column of an unknown log is written: by its name, its values, and the other columns.

What the rows say counts more than a name: a duration must agree with end − start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hakaru.engine.duckdb import one_row
from hakaru.sources.table._cells import number, value
from hakaru.sources.table._looks import AT_LEAST_ONE, Look
from hakaru.sources.table._mapping import DURATION_UNITS, MEMORY_UNITS, Cell
from hakaru.sources.table._proposal import Proposal, quoted
from hakaru.sources.table._synonyms import NAMED_UNITS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

AGREE = 0.9
# of units that agree alike, the more usual one
ORDER = ("s", "min", "h", "ms", "d", "us", "ns")
SHORTEST_LIMIT_S, LONGEST_LIMIT_S = 60, 400 * 86400
MOST_GPUS_A_NODE = 64
# the greatest memory of a job that is still believed, in MiB: 20 TiB; and one that is too little
MOST_MIB, LEAST_MIB = 20 * 2.0**20, 4096
Found = tuple[dict[str, Any], str]


def missing(look: Look, *words: str) -> dict[str, Any]:
    found = [word for word in look.unset if word in words]
    return {"missing": found} if found else {}


def duration(
    con: DuckDBPyConnection, proposal: Proposal, canonical: str, look: Look, unit: str | None
) -> Found:
    """The unit of a duration, and a remark; what is not sure is noted in the proposal."""
    if look.duration:
        return {"unit": "duration"}, ""
    unset = missing(look, *(("0", "-1") if canonical == "requested_s" else ("-1",)))
    named = unit if unit in DURATION_UNITS else NAMED_UNITS.get("".join(look.words))
    fitting = agreeing(con, proposal, canonical, look)
    if named and (not fitting or named in fitting):
        return {"unit": named} | unset, ""
    if fitting:
        return {"unit": fitting[0]} | unset, _told(proposal, canonical, fitting, named)
    alike = _unit_of_times(proposal)
    proposal.doubt(canonical, f"the unit of {quoted(look.name)} is unknown")
    if alike in ("ms", "us", "ns"):
        return {"unit": alike} | unset, f"no unit is known: {alike} is assumed, as in the times"
    return {"unit": "s"} | unset, "no unit is known: seconds are assumed"


def _told(proposal: Proposal, canonical: str, agreeing: list[str], named: str | None) -> str:
    unit, *others = agreeing
    if named:
        proposal.doubt(canonical, f"its name says {named}, but start and end say {unit}")
        return f"not {named}: start and end say {unit}"
    if others and canonical == "requested_s":
        proposal.doubt(canonical, f"{unit} fits, but so does {' and '.join(others)}")
    return "" if unit == "s" else "as the times in the rows show"


def _unit_of_times(proposal: Proposal) -> str | None:
    units = [proposal.entries[n].get("unit") for n in proposal.entries if n.endswith("_at")]
    return units[0] if units and len(set(units)) == 1 else None


def agreeing(con: DuckDBPyConnection, proposal: Proposal, canonical: str, look: Look) -> list[str]:
    """The units in which most rows agree with the times beside them, the best first."""
    if spans(proposal, canonical) is None:
        return []
    shares = {unit: _agreement(con, proposal, canonical, look, unit) for unit in ORDER}
    if canonical == "requested_s":
        # a longer unit always fits too: take the shortest, unless it makes no sensible limit
        sensible = [
            unit
            for unit in DURATION_UNITS
            if SHORTEST_LIMIT_S <= look.middle * DURATION_UNITS[unit] <= LONGEST_LIMIT_S
        ]
        return [unit for unit in sensible if shares[unit] >= AGREE]
    best = sorted(ORDER, key=lambda unit: -shares[unit])
    return [unit for unit in best[:1] if shares[unit] >= AGREE]


def agreement(con: DuckDBPyConnection, proposal: Proposal, canonical: str) -> float | None:
    """The share of the rows whose recorded duration is that between its two times."""
    entry, look = proposal.entries.get(canonical), proposal.looks.get(canonical)
    if entry is None or look is None or spans(proposal, canonical) is None:
        return None
    if entry.get("unit") not in DURATION_UNITS:
        return None
    return _agreement(con, proposal, canonical, look, entry["unit"])


def _agreement(
    con: DuckDBPyConnection, proposal: Proposal, canonical: str, look: Look, unit: str
) -> float:
    scale = DURATION_UNITS[unit]
    given, span = f"({number(look.raw)} * {scale!r})", spans(proposal, canonical)
    agrees = f"abs({given} - {span}) <= 1 + {scale!r} * 0.51"
    if canonical == "requested_s":
        agrees = f"{span} <= 1.1 * {given} + 60"
    return share(con, agrees, f"{span} > 2 AND {number(look.raw)} > 0")


def spans(proposal: Proposal, canonical: str) -> str | None:
    """SQL for the seconds between the two times that a duration lies between."""
    ends = ("submitted_at", "started_at") if canonical == "wait_s" else ("started_at", "ended_at")
    if not set(ends) <= set(proposal.looks):
        return None
    first, last = (_epoch(proposal, end) for end in ends)
    return f"({last} - {first})"


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


def share(con: DuckDBPyConnection, condition: str, among: str) -> float:
    (found,) = one_row(
        con,
        f"SELECT coalesce(avg(CAST(({condition}) AS INTEGER)), 0) FROM sample WHERE {among}",
    )
    return float(found)


def count(con: DuckDBPyConnection, proposal: Proposal, canonical: str, look: Look) -> Found:
    """Whole pieces, or per cent of them (100 is one GPU, as in Alibaba's PAI)."""
    unset, n = missing(look, "-1"), number(look.raw)
    if look.is_singular:
        proposal.doubt(canonical, f"{quoted(look.name)} may say which one, not how many")
    if canonical in AT_LEAST_ONE and "0" in look.unset:
        unset = missing(look, "0", "-1")
        proposal.doubt(canonical, f"{quoted(look.name)} is 0 in some rows, read as unknown")
    if look.middle >= 100 and share(con, f"{n} % 100 <> 0", f"{n} > 0") == 0:
        proposal.doubt(canonical, f"all of {quoted(look.name)} are hundreds: read as per cent")
        return {"times": 0.01} | unset, "per cent: 100 is one"
    if canonical == "num_gpus" and "num_nodes" in proposal.looks and "total" not in look.words:
        found, remark = gpus(con, proposal, proposal.looks["num_nodes"], look)
        return found | unset, remark
    return unset, ""


def is_share(con: DuckDBPyConnection, proposal: Proposal, look: Look) -> bool:
    """Whether GPUs are counted in per cent and shared: a job of this table has whole ones."""
    n = number(look.raw)
    in_quarters = share(con, f"{n} % 25 <> 0", f"{n} > 0") == 0
    if look.middle < 25 or not in_quarters or share(con, f"{n} % 100 <> 0", f"{n} > 0") == 0:
        return False
    proposal.doubt("num_gpus", f"{quoted(look.name)} looks like per cent of a GPU: not placed")
    return True


def gpus(con: DuckDBPyConnection, proposal: Proposal, nodes: Look, look: Look) -> Found:
    """A total is a multiple of the number of nodes; what is not must count GPUs per node."""
    a, b = number(look.raw), number(nodes.raw)
    if share(con, f"{a} % {b} <> 0", f"{b} > 1 AND {a} > 0") > 0.1:
        return {"times": nodes.name}, "per node: often no multiple of the nodes"
    if share(con, f"{a} > {MOST_GPUS_A_NODE} * {b}", f"{b} > 0") > 0:
        proposal.doubt("num_gpus", f"some jobs have more than {MOST_GPUS_A_NODE} GPUs on a node")
    if nodes.highest > 1:
        proposal.doubt("num_gpus", f"total, or per {quoted(nodes.name)}?")
    return {}, f"taken as the total; if it is per node, add times = {quoted(nodes.name)}"


def memory(proposal: Proposal, look: Look, unit: str | None) -> Found:
    if look.size:
        return _slurm_memory(proposal, look)
    unset = missing(look, "-1")
    if unit in MEMORY_UNITS:
        return {"unit": unit} | unset, ""
    for size, factor in (("GB", LEAST_MIB), ("MiB", MOST_MIB), ("KiB", MOST_MIB * 1024)):
        if look.highest < factor:
            proposal.doubt("memory_mib", f"the unit of {quoted(look.name)} is unknown")
            return {"unit": size} | unset, f"no unit is known: {size} is assumed, by the values"
    return {"unit": "B"} | unset, "so large that it must be bytes"


def _slurm_memory(proposal: Proposal, look: Look) -> Found:
    """ReqMem of older Slurms: `4Gn` is a node's, `4Gc` a CPU's."""
    ends = {example[-1:] for example in look.examples}
    counted = {"n": "num_nodes", "c": "num_cpus"}.get(ends.pop()) if len(ends) == 1 else None
    if counted and counted in proposal.looks:
        times = proposal.looks[counted].name
        return {"unit": "size", "times": times}, f"Slurm's ReqMem, times {quoted(times)}"
    if {"n", "c"} & {example[-1:] for example in look.examples}:
        proposal.doubt("memory_mib", "Slurm's ReqMem is per node (n) or per CPU (c): add times")
    return {"unit": "size"}, ""
