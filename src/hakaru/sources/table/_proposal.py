"""A proposed mapping while it is put together, and as TOML text with its remarks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakaru.schema import JOBS
from hakaru.sources.table._looks import Look

ZONE = '# zone = "Asia/Tokyo"  # put the site\'s time zone here'


@dataclass
class Proposal:
    """The entries of `[columns]` with their remarks, the looks they rest on, and what is not sure."""

    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    looks: dict[str, Look] = field(default_factory=dict)
    unsure: dict[str, str] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)
    start: str | None = None

    def place(self, canonical: str, look: Look, remark: str = "", **extra: Any) -> None:
        self.entries[canonical] = {"column": look.name, **extra}
        self.looks[canonical] = look
        if remark:
            self.remarks[canonical] = remark

    def doubt(self, canonical: str, why: str) -> None:
        """What a reader should check, a column; of several reasons the first."""
        self.unsure.setdefault(canonical, why)

    def free(self, looks: Sequence[Look]) -> list[Look]:
        used = {look.name for look in self.looks.values()}
        return [look for look in looks if look.name not in used]


def write(
    path: Path, num_rows: int, looks: Sequence[Look], proposal: Proposal, examples: Sequence[str]
) -> str:
    """The mapping as TOML; what is not sure and how rows would be read stand in comments before it."""
    name = shlex.quote(str(path))
    command = f"hakaru ingest {name} --format table --mapping MAPPING.toml --cluster NAME"
    lines = [
        f"# A mapping proposed for {path.name} from its "
        + ("only row." if num_rows == 1 else f"first {num_rows:,} rows."),
        f"# Check every line, save it as MAPPING.toml, then: {command}",
        *_unsure(proposal),
        *examples,
        "",
        *mapping_lines(looks, proposal),
    ]
    return "\n".join(lines) + "\n"


def mapping_lines(looks: Sequence[Look], proposal: Proposal) -> list[str]:
    names = [name for name in JOBS.names if name in proposal.entries]
    lines = [
        "[columns]",
        *(_entry(name, proposal) for name in names),
        *_required(names, looks),
        *_unplaced(proposal, looks),
    ]
    lines += _time_section(proposal)
    if proposal.states:
        known = any(not line.startswith("#") for line in proposal.states)
        lines += ["", "[states]" if known else "# [states]", *proposal.states]
    return lines


def _unsure(proposal: Proposal) -> list[str]:
    if not proposal.unsure:
        return []
    listed = [f"#   {name}: {why}" for name, why in proposal.unsure.items()]
    return ["#", "# Not sure, check these first:", *listed]


def _time_section(proposal: Proposal) -> list[str]:
    lines = ["", "[time]", ZONE]
    if proposal.start == "1970-01-01":
        lines.append(
            'start = "1970-01-01"  # the times count from the log\'s beginning: put its date here'
        )
    elif proposal.start:
        lines.append(f"start = {quoted(proposal.start)}  # times are days as spreadsheets count")
    return lines


def _entry(name: str, proposal: Proposal) -> str:
    entry = proposal.entries[name]
    written = ", ".join(f"{key} = {_toml(item)}" for key, item in entry.items())
    plain = set(entry) == {"column"}
    remark = f"  # {proposal.remarks[name]}" if name in proposal.remarks else ""
    return f"{name} = {_toml(entry['column']) if plain else f'{{ {written} }}'}{remark}"


def _required(names: Sequence[str], looks: Sequence[Look]) -> list[str]:
    if {"submitted_at", "started_at"} & set(names):
        return []
    times = ", ".join(quoted(look.name) for look in looks if look.time is not None)
    hint = f"these columns hold times: {times}" if times else "no column of times was recognised"
    return [f'# submitted_at = "…"  # needed, or started_at; {hint}']


def _unplaced(proposal: Proposal, looks: Sequence[Look]) -> list[str]:
    used = {name for entry in proposal.entries.values() for name in _sources(entry)}
    free = [look for look in proposal.free(looks) if look.name not in used]
    if not free:
        return []
    listed = [
        f"#   {quoted(look.name)}: " + (", ".join(map(quoted, look.examples)) or "empty")
        for look in free
    ]
    return ["# Not placed (with values seen):", *listed]


def _sources(entry: dict[str, Any]) -> list[str]:
    column = entry.get("column", [])
    return [*(column if isinstance(column, list) else [column]), entry.get("times", "")]


def _toml(item: Any) -> str:
    if isinstance(item, list):
        return f"[{', '.join(_toml(part) for part in item)}]"
    return quoted(item) if isinstance(item, str) else json.dumps(item)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
