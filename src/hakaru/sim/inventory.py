"""A machine as the lake's `nodes` table has it: which nodes there were, how large, and when they were up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hakaru.sim.machine import KINDS, Change, Group, Kind, Machine
from hakaru.sim.notation import counted

if TYPE_CHECKING:
    from hakaru.lake import Lake
    from hakaru.sim.workload import Workload

FOREVER = 2**62
# The table's own words, then Slurm's (slurm.schedmd.com/sinfo.html) and those of PBS. A node that sleeps
# to save power is woken for a job; one that no longer answers gets none.
_WORDS: Mapping[Kind, str] = {
    "up": "up idle allocated alloc mixed mix completing comp planned plnd reserved resv blocked block "
    "cloud perfctrs npc power_saving power_up powering_up pow_up powered_down pow_dn powering_down "
    "free busy job-exclusive job-busy resv-exclusive",
    "drain": "drained drain draining drng maint maintenance failing failg no_respond not_responding "
    "reboot reboot_issued reboot_requested future futr inval offline provisioning",
    "down": "down fail error err stale",
}
WORDS: Mapping[str, Kind] = {word: kind for kind, words in _WORDS.items() for word in words.split()}
SIGNS: Mapping[str, Kind] = {"*": "drain", "$": "drain", "@": "drain", "^": "drain"}
QUIET_SIGNS = "~#!%-+"  # power saved, planned, and the like
Hardware = tuple[int, str | None]


@dataclass(frozen=True)
class Row:
    """What holds of a node from one moment until another."""

    begin: int
    end: int
    size: int | None
    model: str | None
    kind: Kind

    @property
    def hardware(self) -> Hardware | None:
        return (self.size, self.model) if self.size else None


@dataclass(frozen=True)
class Inventory:
    """The rows of the `nodes` table of one cluster, as plain data."""

    rows: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, lake: Lake, cluster: str) -> Inventory | None:
        """None where the table has no node of the cluster."""
        from hakaru.engine.duckdb import connect, select_files
        from hakaru.schema import NODES
        from hakaru.settings import Engine

        names = ("node", "since", "until", "gpu_model", "num_gpus", "num_cpus", "state")
        with closing(connect(Engine())) as con:
            found = con.execute(
                f"SELECT {', '.join(names)} FROM ({select_files(NODES, lake.files(NODES))}) "
                "WHERE cluster = ? ORDER BY node, since",
                [cluster],
            ).fetchall()
        return cls([dict(zip(names, row, strict=True)) for row in found]) if found else None

    def machine(
        self, unit: str, workload: Workload | None = None, size: int | None = None, **options: Any
    ) -> tuple[Machine | None, tuple[str, ...]]:
        """The machine, none if the table does not say how large its nodes are; and what must be said of it.

        What holds at first is taken to have held before, and what holds at last, where every row has an
        end, to hold on. `size` is that of all nodes, whatever the table says.
        """
        counted: Counter[str] = Counter()
        nodes = _filled(_read(self.rows, unit, counted), size)
        notes = [_count(number, what) for what, number in counted.items()]
        nodes, more = _extended(nodes, workload)
        notes += more
        sized = {name: own for name, own in nodes.items() if any(row.hardware for row in own)}
        if len(sized) < len(nodes):
            noun = "GPUs" if unit == "gpu" else "processors"
            notes.append(
                f"{_nodes(len(nodes) - len(sized))} no {noun} in the nodes table: left out"
            )
        if not sized:
            return None, tuple(notes)
        sized, told = _matched(sized, workload)
        return _machine(sized, **options), (*notes, *told)


def kind_of(state: str | None) -> Kind | None:
    """What a state means for jobs, the worst of its words (`IDLE+DRAIN`); None where one is not known."""
    kinds: list[Kind] = ["up"]
    for word in re.split(r"[+,\s]+(?=\w)", (state or "up").strip().lower()):
        bare = word.rstrip("".join(SIGNS) + QUIET_SIGNS)
        if bare not in WORDS:
            return None
        kinds += [WORDS[bare], *(SIGNS[sign] for sign in word[len(bare) :] if sign in SIGNS)]
    return max(kinds, key=KINDS.index)


def _read(
    rows: Sequence[Mapping[str, Any]], unit: str, counted: Counter[str]
) -> dict[str, list[Row]]:
    """The rows of each node in order of time; what is wrong with them is counted."""
    nodes: dict[str, list[Row]] = {}
    for row in rows:
        begin = _seconds(row["since"])
        end = FOREVER if row["until"] is None else _seconds(row["until"])
        kind = kind_of(row["state"])
        if end <= begin:
            counted["of the nodes table ends before it begins: left out"] += 1
            continue
        if kind is None:
            counted[f"has a state that is not known ({row['state']!r}): taken as up"] += 1
        before = nodes.setdefault(row["node"], [])
        if before and before[-1].end > begin:
            counted["overlaps a later row of its node: while both hold, the later one counts"] += 1
        model = row["gpu_model"] if unit == "gpu" else None
        before.append(Row(begin, end, row[f"num_{unit}s"], model, kind or "up"))
    return nodes


def _filled(nodes: Mapping[str, list[Row]], size: int | None) -> dict[str, list[Row]]:
    """A row that says only how a node is has the size and the model of the row before, or after."""
    filled = {}
    for name, rows in nodes.items():
        sizes = _carried([row.size for row in rows])
        models = _carried([row.model for row in rows])
        if size is not None:
            sizes = [size if each != 0 else 0 for each in sizes]
        filled[name] = [
            replace(row, size=number, model=model)
            for row, number, model in zip(rows, sizes, models, strict=True)
        ]
    return filled


def _carried(values: Sequence[Any]) -> list[Any]:
    last = next((value for value in values if value is not None), None)
    carried = []
    for value in values:
        last = last if value is None else value
        carried.append(last)
    return carried


def _extended(
    nodes: Mapping[str, list[Row]], workload: Workload | None
) -> tuple[dict[str, list[Row]], list[str]]:
    """Nobody knows what was before the table's first moment, nor after its last."""
    rows = [row for own in nodes.values() for row in own]
    if not rows:
        return {}, []
    first, last = min(row.begin for row in rows), max(row.end for row in rows)
    notes = []
    early = 0 if workload is None else int((workload.submit < first).sum())
    if early:
        notes.append(
            f"{counted(early)} submitted before the nodes table begins ({_day(first)}): the machine is "
            "taken to have been as it was then"
        )
    if last < FOREVER:
        notes.append(f"after {_day(last)}, where the nodes table ends, the machine stays as it was")
    extended = {
        name: [replace(row, end=FOREVER) if row.end == last else row for row in own]
        for name, own in nodes.items()
    }
    return extended, notes


def _matched(
    nodes: Mapping[str, list[Row]], workload: Workload | None
) -> tuple[dict[str, list[Row]], list[str]]:
    """Without models where jobs call all of them otherwise: else none of these jobs could ever run."""
    asked = set(workload.names["gpu_model"]) if workload is not None else set()
    models = {row.model for own in nodes.values() for row in own if row.model}
    if not asked or not models or asked & models:
        return dict(nodes), []
    bare = {name: [replace(row, model=None) for row in own] for name, own in nodes.items()}
    note = f"jobs ask for {_some(asked)} and the nodes table knows {_some(models)}: models are not looked at"
    return bare, [note]


def _machine(nodes: Mapping[str, list[Row]], **options: Any) -> Machine:
    """A place for each node and what it was made of; one that was rebuilt has two, open in turn."""
    first = min(row.begin for own in nodes.values() for row in own)
    names = sorted(nodes, key=_natural)
    places: dict[Hardware, list[tuple[str, list[tuple[int, Kind]]]]] = {}
    for name in names:
        held = list(_in_force(nodes[name]))
        for hardware in dict.fromkeys(row.hardware for _, row in held if row and row.hardware):
            states = [(at, _state(row, hardware)) for at, row in held]
            places.setdefault(hardware, []).append((name, states))
    ordered = [place for group in places.values() for place in group]
    begun = [states[0][1] if states[0][0] == first else "drain" for _, states in ordered]
    return Machine(
        tuple(Group(len(group), *hardware) for hardware, group in places.items()),
        changes=tuple(
            sorted(
                (
                    change
                    for number, (_, states) in enumerate(ordered)
                    for change in _changes(number, states, begun[number])
                ),
                key=lambda change: (change.time, change.node),
            )
        ),
        closed=tuple(number for number, kind in enumerate(begun) if kind != "up"),
        names=tuple(name for name, _ in ordered),
        **options,
    )


def _in_force(rows: Sequence[Row]) -> Iterator[tuple[int, Row | None]]:
    """From which moment on which row holds: of those that cover it the one that began last."""
    moments = sorted({moment for row in rows for moment in (row.begin, row.end)} - {FOREVER})
    begun: list[Row] = []
    coming = iter([*rows, None])
    following = next(coming)
    for moment in moments:
        while following is not None and following.begin <= moment:
            begun.append(following)
            following = next(coming)
        while begun and begun[-1].end <= moment:
            begun.pop()
        yield moment, begun[-1] if begun else None


def _state(row: Row | None, hardware: Hardware) -> Kind:
    """A node that is not there, or is made of something else, takes no jobs; those it has may end."""
    return row.kind if row is not None and row.hardware == hardware else "drain"


def _changes(node: int, states: Sequence[tuple[int, Kind]], at_first: Kind) -> Iterator[Change]:
    before = at_first
    for moment, kind in states:
        if kind == "up" != before or KINDS.index(kind) > KINDS.index(before):
            yield Change(moment, node, kind)
            before = kind


def _seconds(moment: datetime) -> int:
    return int(moment.timestamp())


def _day(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _natural(name: str) -> list[tuple[int, str]]:
    """n2 before n10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _nodes(number: int) -> str:
    return "1 node has" if number == 1 else f"{number:,} nodes have"


def _count(number: int, what: str) -> str:
    if number == 1:
        return f"1 row {what}"
    plural = (
        what.replace("ends", "end").replace("it begins", "they begin").replace("has a", "have a")
    )
    return (
        f"{number:,} rows {plural.replace('overlaps', 'overlap').replace('its node', 'their node')}"
    )


def _some(names: set[Any]) -> str:
    return ", ".join(sorted(names)[:3]) + (", …" if len(names) > 3 else "")
