"""A result without the rows and cells that stand for fewer than five people, and what was withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hakaru.analyses import UNKNOWN, Analysis, Result, passing, rules_of
from hakaru.web.models import Withheld
from hakaru.web.privacy._look import View
from hakaru.web.privacy._people import FEWEST, holders_sql, num_people, people_sql, per_file
from hakaru.web.privacy._rows import RULES, Rule
from hakaru.web.privacy._shown import ALL, Cells, Key
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers

if TYPE_CHECKING:
    import pyarrow as pa

WHY = (
    f"rows of fewer than {FEWEST} people, what would give them away, and cells that show one job "
    "are withheld"
)


@dataclass(frozen=True)
class Guarded:
    """A result that the viewer may see; the counts beside it are withheld where they would tell too much."""

    result: Result
    withheld: Withheld | None = None
    counts: bool = True


def guard_result(readers: Readers, view: View, result: Result) -> Guarded:
    """What the viewer may see of a result that was made of the view's selection."""
    rule = rule_of(view, result.analysis)
    if rule is None:
        return Guarded(result)
    _refuse_thresholds(rule, result)
    return _Mask(readers, view, result, rule).guarded()


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


def _refuse_thresholds(rule: Rule, result: Result) -> None:
    defaults = {param.name: param.default for param in result.analysis.params}
    moved = [
        name
        for name, value in result.params.items()
        if name not in rule.params and value != defaults[name]
    ]
    if moved:
        kept = ", ".join(f"param.{name}={defaults[name]}" for name in moved)
        raise Refused(
            f"another value of {', '.join(moved)} could find a single job among others'",
            f"Keep {kept}, or ask of your own jobs, where every value is allowed.",
        )


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
        masked = replace(self.result, table=_without(table, single))
        counts = not num_gone and self._counts_are_safe()
        why = WHY if counts else f"{WHY}, and so are the numbers of jobs behind the table"
        withheld = Withheld(num_rows=num_gone, columns=single, why=why)
        return Guarded(masked, withheld if single or not counts else None, counts)

    @property
    def _ruled(self) -> str:
        """The jobs that the analysis counts, as its own rules leave them."""
        rules = rules_of(self.result.analysis, self.view.selection)
        return f"(SELECT * FROM jobs AS jobs_all WHERE {passing(rules)})"

    @property
    def _source(self) -> str:
        return self.rule.source.format(ruled=self._ruled)

    @property
    def _keys(self) -> dict[str, str]:
        """The group first, then the analysis' own keys."""
        own = self.rule.keys(self.result.params)
        return {"grp": "grp", **own} if self.result.analysis.groups else own

    def _enough(self) -> pa.Table:
        """The rows of enough people, without those that would give the withheld ones away."""
        keys = [self._key(row) for row in self.result.rows]
        shown = self._cells.shown(keys)
        return self.result.table.filter([key in shown for key in keys])

    @property
    def _cells(self) -> Cells:
        """Who stands behind each row: one companion query over the row's own keys."""
        names = list(self._keys)
        whole = names.index("class") if self.rule.whole else None
        users: dict[Key, set[str]] = {}
        for row in self.readers.rows(holders_sql(self._keys, self._source), self.view.selection):
            key = tuple(_text(row[f"key_{i}"]) for i in range(len(names)))
            of_all = [] if whole is None else [(*key[:whole], ALL, *key[whole + 1 :])]
            for each in (key, *of_all):
                known = users.setdefault(each, set())
                known.update([row["holder"]] if row["holder"] is not None else [])
        return Cells(
            users=users,
            by_file=per_file(self.readers, self.view.selection.clusters),
            grouped=self.result.analysis.groups and self.view.selection.by is not None,
            whole=whole,
            step=names.index(self.rule.step) if self.rule.step else None,
        )

    def _key(self, row: Mapping[str, Any]) -> Key:
        analysis, by = self.result.analysis, self.view.selection.by
        own = [name for name in self._keys if name != "grp"]
        values = [_text(row[name]) for name in own]
        if not analysis.groups:
            return tuple(values)
        return (_text(_group_cell(row, by)), *values)

    def _counts_are_safe(self) -> bool:
        """Whether those whom each of the rules leaves out are nobody, or many."""
        if not any(entry.num_jobs for entry in self.result.left_out):
            return True
        rules = rules_of(self.result.analysis, self.view.selection)
        fails = " ".join(
            f"WHEN NOT coalesce({rule.sql}, false) THEN {i}" for i, rule in enumerate(rules)
        )
        tested = f"(SELECT *, CASE {fails} ELSE -1 END AS fails FROM jobs AS jobs_all)"
        free = replace(self.view.selection, min_run_s=None, states=(), weight="jobs")
        by_file = per_file(self.readers, free.clusters)
        found = self.readers.rows(people_sql({"fails": "fails"}, tested, by_file), free)
        return all(row["num_people"] >= FEWEST for row in found)


def _group_cell(row: Mapping[str, Any], by: str | None) -> Any:
    """The cell that names the group; ungrouped, all rows are of the group `all`."""
    if by is None:
        return ALL
    name = f"group_{by}" if f"group_{by}" in row else by
    return UNKNOWN if row[name] is None else row[name]


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
