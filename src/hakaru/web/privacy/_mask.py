"""A result without the rows and cells that stand for fewer than five people, and what was withheld."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hakaru.analyses import UNKNOWN, Analysis, Result, rules_of
from hakaru.web.models import Withheld
from hakaru.web.privacy._look import View
from hakaru.web.privacy._people import FEWEST, num_people, people_sql, per_file
from hakaru.web.privacy._rows import RULES, Rule
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers

if TYPE_CHECKING:
    import pyarrow as pa

Key = tuple[str, ...]
WHY = f"rows of fewer than {FEWEST} people, and cells that show one job, are withheld"
ALL = "all"


@dataclass(frozen=True)
class Guarded:
    """A result that the viewer may see; the counts beside it are withheld where they would tell too much."""

    result: Result
    withheld: Withheld | None = None
    counts: bool = True


def guard_result(readers: Readers, view: View, result: Result) -> Guarded:
    """What the viewer may see of a result that was made of the view's selection."""
    rule = rule_of(view, result.analysis)
    return Guarded(result) if rule is None else _Mask(readers, view, result, rule).guarded()


def rule_of(view: View, analysis: Analysis) -> Rule | None:
    """How the people behind the analysis' rows are counted, None where all is the viewer's to see.

    An analysis that shows single people, or of which nobody has said how to count them, is refused.
    """
    if view.own:
        return None
    rule = RULES.get(analysis.id)
    if rule is None or (rule.machine and _is_narrowed(view)):
        raise Refused(
            f"{analysis.id} would show fewer than {FEWEST} people",
            f"Ask of your own jobs with user={view.viewer.user}, or ask an operator.",
        )
    return rule


def _is_narrowed(view: View) -> bool:
    selection = view.selection
    return bool(selection.checks or selection.states or selection.by not in (None, "cluster"))


@dataclass(frozen=True)
class _Mask:
    readers: Readers
    view: View
    result: Result
    rule: Rule

    def guarded(self) -> Guarded:
        """Enough people behind all jobs that count, then behind every row."""
        if num_people(self.readers, self.view.selection, self._ruled) < FEWEST:
            raise Refused(
                f"after its rules, {self.result.analysis.id} stands on fewer than {FEWEST} people",
                "Choose a longer period or fewer conditions.",
            )
        table = self.result.table if self.rule.machine else self._enough()
        num_gone = self.result.table.num_rows - table.num_rows
        single = [name for name in self.rule.single if name in table.column_names]
        withheld = Withheld(num_rows=num_gone, columns=single, why=WHY)
        masked = replace(self.result, table=_without(table, single))
        return Guarded(masked, withheld if num_gone or single else None, self._counts_are_safe())

    @property
    def _ruled(self) -> str:
        """The jobs that the analysis counts, as its own rules leave them."""
        rules = rules_of(self.result.analysis, self.view.selection)
        passing = " AND ".join(f"({rule.sql})" for rule in rules) or "true"
        return f"(SELECT * FROM jobs AS jobs_all WHERE {passing})"

    @property
    def _source(self) -> str:
        return self.rule.source.format(ruled=self._ruled)

    @property
    def _keys(self) -> dict[str, str]:
        """The group first, then the analysis' own keys."""
        own = self.rule.keys(self.result.params)
        return {"grp": "grp", **own} if self.result.analysis.groups else own

    def _enough(self) -> pa.Table:
        """The rows of enough people; one more goes where the rest of a group would give the others away."""
        people = self._people()
        keys = [self._key(row) for row in self.result.rows]
        found = [people.get(key, 0) for key in keys]
        keep = [num >= FEWEST for num in found]
        for group in self._too_easy(people):
            shown = [
                i
                for i, key in enumerate(keys)
                if keep[i] and _group(key) == group and not _is_all(key)
            ]
            if shown:
                keep[min(shown, key=lambda i: found[i])] = False
        return self.result.table.filter(keep)

    def _people(self) -> dict[Key, int]:
        """People of each row; a row `all` has those of its whole group."""
        counted = self._count(self._keys)
        if self.rule.whole:
            names = list(self._keys)
            for i, name in enumerate(names):
                if name == "class":
                    kept = {n: sql for n, sql in self._keys.items() if n != name}
                    for key, num in self._count(kept).items():
                        counted[(*key[:i], ALL, *key[i:])] = num
        return counted

    def _count(self, keys: Mapping[str, str]) -> dict[Key, int]:
        sql = people_sql(keys, self._source, per_file(self.readers, self.view.selection.clusters))
        rows = self.readers.rows(sql, self.view.selection)
        return {
            tuple(_text(row[f"key_{i}"]) for i in range(len(keys))): row["num_people"]
            for row in rows
        }

    def _too_easy(self, people: Mapping[Key, int]) -> Iterator[str]:
        """Groups whose withheld rows together are of too few people: the sum of the others tells them."""
        small: dict[str, int] = {}
        for key, num in people.items():
            if num < FEWEST and not _is_all(key):
                small[_group(key)] = small.get(_group(key), 0) + num
        # a person in two rows counts twice here: at least twice as many must stand behind the rest
        return (group for group, num in small.items() if num < 2 * FEWEST)

    def _key(self, row: Mapping[str, Any]) -> Key:
        analysis, by = self.result.analysis, self.view.selection.by
        own = [name for name in self._keys if name != "grp"]
        values = [_text(row[name]) for name in own]
        if not analysis.groups:
            return tuple(values)
        return (_text(_group_cell(row, by)), *values)

    def _counts_are_safe(self) -> bool:
        """Whether those whom the rules leave out are nobody, or many."""
        left = sum(entry.num_jobs for entry in self.result.left_out)
        if not left:
            return True
        rules = rules_of(self.result.analysis, self.view.selection)
        passing = " AND ".join(f"coalesce({rule.sql}, false)" for rule in rules)
        outside = f"(SELECT * FROM jobs AS jobs_all WHERE NOT ({passing}))"
        free = replace(self.view.selection, min_run_s=None, states=(), weight="jobs")
        return num_people(self.readers, free, outside) >= FEWEST


def _group_cell(row: Mapping[str, Any], by: str | None) -> Any:
    """The cell that names the group; ungrouped, all rows are of the group `all`."""
    if by is None:
        return ALL
    name = f"group_{by}" if f"group_{by}" in row else by
    return UNKNOWN if row[name] is None else row[name]


def _group(key: Key) -> str:
    return key[0] if key else ""


def _is_all(key: Key) -> bool:
    return ALL in key[1:]


def _text(value: Any) -> str:
    """One text for a value from either query; a float by its first digits."""
    if value is None:
        return UNKNOWN
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _without(table: pa.Table, columns: list[str]) -> pa.Table:
    import pyarrow as pa

    for name in columns:
        place = table.column_names.index(name)
        kind = table.schema.field(name).type
        table = table.set_column(place, name, pa.nulls(table.num_rows, kind))
    return table
