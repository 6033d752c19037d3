"""A cluster's last preflight as it was written into the workspace: what is not a pass first, then the rest.

Checks have their titles and statuses their words, as on the terminal.
"""

from __future__ import annotations

import json
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hakaru.errors import SettingsError
from hakaru.measure.folders import preflight_file, preflight_files
from hakaru.measure.preflight import verdict_of
from hakaru.measure.verdict import Verdict, worst

MOST_BYTES = 20_000_000
MOST_ROWS = 300
MOST_TEXT = 400
STATUSES = ("fail", "not measured", "warn", "pass", "n/a")  # what to act on first
QUIET = ("pass", "n/a")


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
    cluster: str
    made_at: datetime
    verdict: str
    summary: str
    counts: dict[str, int]
    rows: tuple[Row, ...]
    num_left_out: int
    where: str = ""
    problem: str = ""

    @property
    def loud(self) -> tuple[Row, ...]:
        """What to act on, or to know: `rows` begins with it."""
        return tuple(row for row in self.rows if row.status not in QUIET)

    @property
    def quiet(self) -> tuple[Row, ...]:
        """What passed or does not apply: `rows` ends with it."""
        return tuple(row for row in self.rows if row.status in QUIET)

    @property
    def quiet_text(self) -> str:
        passed = sum(row.status == "pass" for row in self.quiet)
        return f"{passed} passed, {len(self.quiet) - passed} do not apply"


def read_preflight(workspace: Path, cluster: str | None) -> Table | None:
    """The latest of a cluster, or of the only one that has any; None where none was made.

    One that cannot be read says so and passes nothing.
    """
    path = _path(workspace, cluster)
    if path is None:
        return None
    try:
        raw, modified = _read(path)
    except FileNotFoundError:
        return None
    except OSError:
        raw, modified = None, datetime.now(UTC)
    name, made_at = path.stem.removeprefix("preflight-"), _moment(raw, modified)
    if not isinstance(raw, dict) or not isinstance(raw.get("rows"), list):
        problem = f"{path.name} cannot be read"
        return Table(name, made_at, Verdict.NOT_MEASURED, "", {}, (), 0, "", problem)
    checks = _checks(raw.get("checks"))
    rows = [_row(each) for each in raw["rows"]]
    shown = _shown(rows)
    stated, found = _stated(raw), _judged(rows, checks)
    return Table(
        name,
        made_at,
        worst((stated, found)),
        _text(raw.get("summary")),
        dict(Counter(row.status for row in rows)),
        tuple(_titled(row, checks) for row in shown[:MOST_ROWS]),
        max(0, len(shown) - MOST_ROWS),
        _where(raw),
        "" if stated is found else f"{path.name} says {stated}, its rows say {found}",
    )


def _path(workspace: Path, cluster: str | None) -> Path | None:
    if cluster is None:
        known = preflight_files(workspace)
        return known[0] if len(known) == 1 else None
    with suppress(SettingsError):  # a name that is not allowed has no file
        return preflight_file(workspace, cluster)
    return None


def _stated(raw: Mapping[str, Any]) -> Verdict:
    """The verdict that the file states; another word is none."""
    try:
        return Verdict(_text(raw.get("verdict")))
    except ValueError:
        return Verdict.NOT_MEASURED


def _judged(rows: Sequence[Row], checks: Mapping[str, Mapping[str, Any]]) -> Verdict:
    """The verdict that the rows give; a check of which nothing is known is essential."""
    return verdict_of(
        (row.status, checks.get(row.check, {}).get("essential") is not False) for row in rows
    )


def _where(raw: Mapping[str, Any]) -> str:
    """`128 nodes by slurm`; nothing where the file does not say."""
    nodes, launcher = raw.get("nodes"), _text(raw.get("launcher"))
    if not isinstance(nodes, list) or not launcher:
        return ""
    return f"{len(nodes):,} node{'s' if len(nodes) != 1 else ''} by {launcher}"


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


def _checks(checks: object) -> dict[str, dict[str, Any]]:
    """What the file says of the checks, by their ids."""
    listed = checks if isinstance(checks, list) else []
    return {_text(each.get("id")): each for each in listed if isinstance(each, dict)}


def _row(each: object) -> Row:
    """What is no row, or has a status of another word, is not a pass."""
    said = each if isinstance(each, dict) else {}
    names = ("check", "node", "status", "found", "wanted", "fix")
    row = Row(*(_text(said.get(name)) for name in names))
    return row if row.status in STATUSES else replace(row, status="not measured")


def _titled(row: Row, checks: Mapping[str, Mapping[str, Any]]) -> Row:
    return replace(row, check=_text(checks.get(row.check, {}).get("title")) or row.check)


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
