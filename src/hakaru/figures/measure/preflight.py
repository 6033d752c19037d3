"""The last preflight as it was written into the workspace: what is not a pass first, then the rest.

Checks have their titles and statuses their words, as on the terminal.
"""

from __future__ import annotations

import json
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hakaru.measure.folders import preflight_file

MOST_BYTES = 20_000_000
MOST_ROWS = 300
MOST_TEXT = 400
STATUSES = ("fail", "not measured", "warn", "pass", "n/a")  # what to act on first
QUIET = ("pass", "n/a")
UNREAD = "preflight.json cannot be read"


@dataclass(frozen=True)
class Row:
    """A check on a node, or one that passed on several of them."""

    check: str
    node: str
    status: str
    found: str
    wanted: str
    fix: str


@dataclass(frozen=True)
class Table:
    made_at: datetime
    verdict: str
    summary: str
    counts: dict[str, int]
    rows: tuple[Row, ...]
    num_left_out: int
    problem: str = ""

    @property
    def loud(self) -> tuple[Row, ...]:
        """What to act on, or to know: `rows` begins with it."""
        return tuple(row for row in self.rows if row.status not in QUIET)

    @property
    def quiet(self) -> tuple[Row, ...]:
        """What passed or does not apply: `rows` ends with it."""
        return tuple(row for row in self.rows if row.status in QUIET)


def read_preflight(workspace: Path) -> Table | None:
    """The latest; None where none was made. One that cannot be read says so and passes nothing."""
    try:
        raw, modified = _read(preflight_file(workspace))
    except FileNotFoundError:
        return None
    except OSError:
        raw, modified = None, datetime.now(UTC)
    made_at = _moment(raw, modified)
    if not isinstance(raw, dict) or not isinstance(raw.get("rows"), list):
        return Table(made_at, "not measured", "", {}, (), 0, UNREAD)
    titles = _titles(raw.get("checks"))
    rows = [_row(each, titles) for each in raw["rows"] if isinstance(each, dict)]
    shown = _shown(rows)
    return Table(
        made_at,
        _text(raw.get("verdict")) or "not measured",
        _text(raw.get("summary")),
        dict(Counter(row.status for row in rows)),
        tuple(shown[:MOST_ROWS]),
        max(0, len(shown) - MOST_ROWS),
    )


def _read(path: Path) -> tuple[object, datetime]:
    """What it says, nothing where that is no JSON, and when it was written."""
    found = path.stat()
    modified = datetime.fromtimestamp(found.st_mtime, UTC)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
        return None, modified
    try:
        return json.loads(path.read_text(encoding="utf-8")), modified
    except (ValueError, RecursionError):
        return None, modified


def _moment(raw: object, modified: datetime) -> datetime:
    """When it was made: as it says, else the file's time."""
    stated = raw.get("made_at") if isinstance(raw, dict) else None
    try:
        found = datetime.fromisoformat(str(stated))
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return modified


def _titles(checks: object) -> dict[str, str]:
    """The checks' titles by their ids."""
    listed = checks if isinstance(checks, list) else []
    known = [each for each in listed if isinstance(each, dict)]
    return {_text(each.get("id")): _text(each.get("title")) for each in known}


def _row(each: dict[str, Any], titles: Mapping[str, str]) -> Row:
    names = ("check", "node", "status", "found", "wanted", "fix")
    row = Row(*(_text(each.get(name)) for name in names))
    # a status of another word is not a pass
    status = row.status if row.status in STATUSES else "not measured"
    return replace(row, check=titles.get(row.check) or row.check, status=status)


def _shown(rows: Sequence[Row]) -> list[Row]:
    """All that is not a pass, then a line for each check of what passed or does not apply."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status in QUIET:
            groups.setdefault((row.check, row.status), []).append(row)
    shown = [row for row in rows if row.status not in QUIET]
    shown += [_together(group) for group in groups.values()]
    return sorted(shown, key=lambda row: STATUSES.index(row.status))


def _together(rows: Sequence[Row]) -> Row:
    first = rows[0]
    if len(rows) == 1:
        return first
    same = len({row.found for row in rows}) == 1
    found = first.found if same else f"{first.found}; others differ"
    return Row(first.check, f"{len(rows):,} nodes", first.status, found, first.wanted, "")


def _text(value: object) -> str:
    return str(value)[:MOST_TEXT] if isinstance(value, str | int | float) else ""
