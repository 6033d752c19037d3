"""A result as a figure reads it: its groups, its keys, what it counts, and the jobs behind each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hakaru.analyses import missing_remarks
from hakaru.figures import _labels as labels
from hakaru.figures import _where as where
from hakaru.figures.theme import Theme
from hakaru.texts import Language

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.analyses import Result

MAX_GROUPS = 8
ALL = "all"


@dataclass(frozen=True)
class Frame:
    """The rows of the groups that are drawn; `group` names their column, where there is one."""

    result: Result
    words: Language
    group: str | None
    groups: tuple[Any, ...]
    num_groups: int
    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, result: Result, words: Language) -> Frame:
        by = result.selection.by
        if by is None or not result.analysis.groups or not result.table.num_rows:
            return cls(result, words, None, (ALL,), 1, result.rows)
        column = result.table.column_names[0]
        names = result.table.column(0).unique().to_pylist()
        kept = _largest(result, column, names)
        rows = [row for row in _of_groups(result.table, column, kept) if row[column] in kept]
        return cls(result, words, column, tuple(kept), len(names), rows)

    @property
    def columns(self) -> list[str]:
        return list(self.result.table.column_names)

    @property
    def measure(self) -> str:
        """What was counted: jobs, or their GPU-hours."""
        return "pe_hours" if self.result.selection.weight == "gpu-hours" else "num_jobs"

    @property
    def known_measure(self) -> str:
        """What was counted or, where the counts are withheld, its share."""
        withheld = all(row[self.measure] is None for row in self.rows)
        return "share" if withheld and "share" in self.columns else self.measure

    def of_group(self, group: Any) -> list[dict[str, Any]]:
        if self.group is None:
            return self.rows
        return [row for row in self.rows if row[self.group] == group]

    def keys(self, column: str) -> list[Any]:
        """The values of a key in the order of the table; with groups, sorted where they can be."""
        found = list(dict.fromkeys(row[column] for row in self.rows))
        if self.group is None or not _has_order(column):
            return found
        return sorted(found, key=lambda each: (each is None, each))

    def name(self, group: Any) -> str:
        """What a group's series is called: the group or, where nothing is grouped, the cluster."""
        if self.group is None:
            return ", ".join(self.result.selection.clusters)
        return labels.name(self.by, group, self.words)

    def say(self, key: str, /, **values: object) -> str:
        return self.words.say("figure", key, **values)

    def label(self, column: str) -> str:
        return labels.label(column, self.words)

    def key_name(self, column: str, value: Any) -> str:
        return labels.name(column, value, self.words)

    @property
    def by(self) -> str:
        return self.result.selection.by or ""

    def colours(self, theme: Theme) -> dict[Any, str]:
        """A colour for each group; without groups, the cluster's own."""
        if self.group is None:
            return {ALL: theme.colour("cluster", ",".join(self.result.selection.clusters))}
        return theme.colours(self.by, self.groups)

    def where(self, row: dict[str, Any], *keys: str, more: Sequence[str | None] = ()) -> str | None:
        """The jobs behind a row: those of its group and its keys that the rules let pass."""
        parts = [where.of_key(self.result, key, row[key]) for key in keys]
        if self.group is not None:
            parts.append(where.equals(self.by, row[self.group]))
        return where.conjunction([*parts, *more, *where.of_rules(self.result)])

    def cut(self, what: str, drawn: int, total: int, column: str = "") -> str:
        """The note that not all is drawn; a column is named as one types it, or as it is called."""
        names = {"by": column, "key": column, "label": self.label(column)}
        return self.say(f"cut_{what}", drawn=drawn, total=f"{total:,}", **names)

    def item(self, value: Any, where: str | None, **more: Any) -> dict[str, Any]:
        """A data item: its value and, where it can be said, the jobs behind it."""
        return {"value": value} | ({"where": where} if where else {}) | more


def notes_of(frame: Frame) -> list[str]:
    """How many jobs the figure rests on, who was left out and why, and which groups are not drawn."""
    result = frame.result
    lines = [frame.say("synthetic")] if result.synthetic else []
    if lines and len(result.selection.clusters) > 1:
        lines = [f"{', '.join(result.synthetic_clusters)}: {lines[0]}"]
    lines += missing_remarks(result.missing, frame.words)
    lines.append(
        frame.say(
            "used",
            clusters=", ".join(result.selection.clusters),
            num_used=f"{result.num_used:,}",
            num_selected=f"{result.num_selected:,}",
        )
    )
    for entry in result.left_out:
        if entry.num_jobs:
            rule = frame.words.rule(entry.rule)
            lines.append(frame.say("left_out", num_jobs=f"{entry.num_jobs:,}", rule=rule))
    if frame.num_groups > len(frame.groups):
        lines.append(frame.cut("groups", len(frame.groups), frame.num_groups, frame.by))
    return lines


def _largest(result: Result, column: str, names: list[Any]) -> list[Any]:
    """The groups that count most, in the order of the table."""
    if len(names) <= MAX_GROUPS:
        return names
    measure = _size_column(result)
    if measure is None:
        return names[:MAX_GROUPS]
    table = result.table.select([column, measure])
    table = table.rename_columns(["name", "size"]).group_by("name").aggregate([("size", "sum")])
    sizes = dict(zip(table["name"].to_pylist(), table["size_sum"].to_pylist(), strict=True))
    top = sorted(names, key=lambda each: -(sizes[each] or 0))[:MAX_GROUPS]
    return [each for each in names if each in top]


def _size_column(result: Result) -> str | None:
    first = ["pe_hours"] if result.selection.weight == "gpu-hours" else []
    counts = [each for each in result.table.column_names[1:] if each.startswith("num_")]
    known = result.table.column_names
    return next((each for each in (*first, "num_jobs", *counts) if each in known), None)


def _of_groups(table: pa.Table, column: str, kept: list[Any]) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    chosen = pc.is_in(table[column], pa.array(kept, table.schema.field(column).type))
    return list(table.filter(chosen).to_pylist())


def _has_order(column: str) -> bool:
    return column in ("quarter", "hour", "weekday", "run_h") or column.startswith("num_")
