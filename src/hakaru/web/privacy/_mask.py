"""A result as its viewer may see it, and what was withheld of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hakaru.analyses import UNKNOWN, Result, passing, rules_of
from hakaru.web.models import Withheld
from hakaru.web.privacy._look import FEW, View
from hakaru.web.privacy._machine import shown_times, whole_days
from hakaru.web.privacy._people import FEWEST, holders_sql, num_people, per_file
from hakaru.web.privacy._rounded import is_share, nulled, rounded
from hakaru.web.privacy._rows import RULES, Rule
from hakaru.web.privacy._shown import ALL, Cells, Key
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers

if TYPE_CHECKING:
    import pyarrow as pa

COUNTS = ("num_jobs", "num_gaps", "num_pairs", "num_within", "pe_hours", "busy_pe_hours")
OF_CELLS = f"Jobs are counted in groups of {FEWEST} or more people."
PARTIAL = "Jobs of groups that fit these conditions only in part are left out."
OF_WHOLE = (
    f"Rows of {FEW}, what would reveal them, and all counts are withheld; shares are rounded."
)


@dataclass(frozen=True)
class Guarded:
    """A result that the viewer may see; `counts` says whether the numbers of jobs beside it may be seen.

    It is `complete` where no row is withheld and no job left out for the sake of others.
    """

    result: Result
    withheld: Withheld | None = None
    counts: bool = True
    complete: bool = True


def guard_result(readers: Readers, view: View, result: Result) -> Guarded:
    """What the viewer may see of a result that was made of the view's selection."""
    if view.own:
        return Guarded(result)
    rule = RULES[result.analysis.id]
    _refuse_parameters(view, result)
    if view.scope == "whole":
        return _Mask(readers, view, result, rule).guarded()
    return _one_row(view, result, rule) if rule.row else _of_cells(view, result, rule)


def _refuse_parameters(view: View, result: Result) -> None:
    defaults = {param.name: param.default for param in result.analysis.params}
    moved = [name for name, value in result.params.items() if value != defaults[name]]
    if moved:
        kept = ", ".join(f"param.{name}={defaults[name]}" for name in moved)
        raise Refused(
            f"another value of {', '.join(moved)} could pick out a person among others",
            f"Keep {kept}, or ask of your own jobs with user={view.viewer.user}.",
        )


def _of_cells(view: View, result: Result, rule: Rule) -> Guarded:
    """A table of whole cells: all its counts and hours, but no single job's."""
    by_jobs = result.selection.weight == "jobs"
    gone = list(rule.single) if by_jobs else [*rule.single, "num_jobs"]
    if "hours" not in view.measures:
        gone += ["pe_hours"] if by_jobs else ["pe_hours", "share"]
    why = f"{OF_CELLS} {PARTIAL}" if view.is_partial else OF_CELLS
    withheld = Withheld(num_rows=0, columns=gone, why=why) if gone or view.is_partial else None
    shown = replace(result, table=nulled(result.table, gone))
    return Guarded(shown, withheld, by_jobs, not view.is_partial)


def _one_row(view: View, result: Result, rule: Rule) -> Guarded:
    """The row over all jobs of the cells, without counts and what gives counts."""
    assert rule.row is not None
    if rule.measure not in view.measures:
        raise Refused(f"{FEW} stand behind this figure", "Ask of your own jobs.")
    name, value = rule.row
    kept = [row[name] == value for row in result.rows]
    table = result.table.filter(kept)
    gone = [
        each for each in table.column_names if each in (*COUNTS, *rule.single) or is_share(each)
    ]
    why = f"{OF_CELLS} {PARTIAL}" if view.is_partial else OF_CELLS
    shown = rounded(nulled(table, gone), result.num_selected, (), ())
    withheld = Withheld(num_rows=len(kept) - table.num_rows, columns=gone, why=why)
    return Guarded(replace(result, table=shown), withheld, False, not view.is_partial)


@dataclass(frozen=True)
class _Mask:
    """A table of the whole cluster."""

    readers: Readers
    view: View
    result: Result
    rule: Rule

    def guarded(self) -> Guarded:
        """Enough people behind all jobs that count, then behind every row; no counts."""
        if num_people(self.readers, self.view.selection, self._ruled) < FEWEST:
            raise Refused(
                f"{self.result.analysis.id} is about jobs of {FEW}", "Ask of your own jobs."
            )
        table = self._enough()
        num_gone = self.result.table.num_rows - table.num_rows
        sums = self._telling_sums()
        hidden = (*COUNTS, *self.rule.single, *sums)
        gone = [name for name in hidden if name in table.column_names]
        num_jobs = self.result.num_selected
        shown = rounded(nulled(table, gone), num_jobs, self._keys, self.rule.amounts)
        withheld = Withheld(num_rows=num_gone, columns=gone, why=OF_WHOLE)
        return Guarded(
            replace(self.result, table=shown), withheld, False, not num_gone and not sums
        )

    def _telling_sums(self) -> tuple[str, ...]:
        """The means that, taken from those of all jobs, are of the few people whose jobs are left out."""
        if not self.rule.sums:
            return ()
        kept = passing(rules_of(self.result.analysis, self.view.selection))
        left = f"(SELECT * FROM jobs AS jobs_all WHERE run_s > 0 AND NOT coalesce({kept}, false))"
        num = num_people(self.readers, self.view.selection, left)
        return self.rule.sums if 0 < num < FEWEST else ()

    @property
    def _ruled(self) -> str:
        """The jobs that the analysis counts, as its own rules leave them; by hours, those that have any."""
        rules = rules_of(self.result.analysis, self.view.selection)
        return f"(SELECT * FROM jobs AS jobs_all WHERE {passing(rules)} AND weight > 0)"

    @property
    def _keys(self) -> dict[str, str]:
        """The group first, then the analysis' own keys."""
        own = self.rule.keys(self.result.params)
        return {"grp": "grp", **own} if self.result.analysis.groups else own

    def _enough(self) -> pa.Table:
        """The rows of enough people, without those that would give the withheld ones away."""
        if self.rule.machine:
            kept = shown_times(self.readers, self.view.selection, self.result)
            return whole_days(self.result.table.filter(kept))
        rows = self.result.rows
        keys = [self._key(row) for row in rows]
        shown = self._cells.shown(keys)
        kept = [key in shown or _is_empty(row) for key, row in zip(keys, rows, strict=True)]
        return self.result.table.filter(kept)

    @property
    def _cells(self) -> Cells:
        """Who stands behind each row: one companion query over the row's own keys."""
        names = list(self._keys)
        whole = names.index("class") if self.rule.whole else None
        users: dict[Key, set[str]] = {}
        source = self.rule.source.format(ruled=self._ruled)
        for row in self.readers.rows(holders_sql(self._keys, source), self.view.selection):
            key = tuple(_text(row[f"key_{i}"]) for i in range(len(names)))
            of_all = [] if whole is None else [(*key[:whole], ALL, *key[whole + 1 :])]
            for each in (key, *of_all):
                known = users.setdefault(each, set())
                known.update([row["holder"]] if row["holder"] is not None else [])
        return Cells(
            users=users,
            by_file=per_file(self.readers, self.view.selection.clusters),
            whole=whole,
            step=names.index(self.rule.step) if self.rule.step else None,
        )

    def _key(self, row: Mapping[str, Any]) -> Key:
        own = [name for name in self._keys if name != "grp"]
        values = [_text(row[name]) for name in own]
        if not self.result.analysis.groups:
            return tuple(values)
        return (ALL if self.view.selection.by is None else _text(row["cluster"]), *values)


def _is_empty(row: Mapping[str, Any]) -> bool:
    """Whether the row counts no job, and so shows nobody."""
    return row.get("num_jobs") == 0


def _text(value: Any) -> str:
    """One text for a value from either query; a float by its first digits."""
    if value is None:
        return UNKNOWN
    return f"{value:.9g}" if isinstance(value, float) else str(value)
