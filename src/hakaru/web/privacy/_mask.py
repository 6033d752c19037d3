"""A result as its viewer may see it, and what was withheld of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hakaru.analyses import Analysis, Result, Selection, passing, rules_of
from hakaru.web.models import Withheld
from hakaru.web.privacy._look import FEW, View
from hakaru.web.privacy._people import FEWEST, num_people
from hakaru.web.privacy._rounded import nulled, rounded, without_spread
from hakaru.web.privacy._rows import RULES, Rule
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers

if TYPE_CHECKING:
    import pyarrow as pa

COUNTS = ("num_jobs", "num_gaps", "pe_hours", "busy_pe_hours")
OF_CELLS = f"Jobs are counted in groups of {FEWEST} or more people."
BESIDE_OTHERS = "share_at_max"
PARTIAL = "Jobs of groups that fit these conditions only in part may be left out."
OF_WHOLE = f"Counts, shares and what could show {FEW} are withheld."


@dataclass(frozen=True)
class Guarded:
    """A result that the viewer may see; `counts` says whether the numbers of jobs beside it may be seen.

    It is `complete` where no job can have been left out for the sake of others.
    """

    result: Result
    withheld: Withheld | None = None
    counts: bool = True
    complete: bool = True


def guard_result(readers: Readers, view: View, result: Result) -> Guarded:
    """What the viewer may see of a result that was made of the view's selection."""
    if view.own:
        return Guarded(result if view.viewer.sees_all else _without_others(result))
    rule = RULES[result.analysis.id]
    _refuse_parameters(view, result)
    if view.scope == "whole" and not is_of_many(readers, result.analysis, view.selection):
        raise Refused(f"{result.analysis.id} is about jobs of {FEW}", "Ask about your own jobs.")
    if rule.measure and rule.measure not in view.measures:
        raise Refused(f"{FEW} stand behind this figure", "Ask about your own jobs.")
    if view.scope == "whole" or rule.measure:
        return _statistics(view, result, rule)
    return _counts(view, result, rule)


def _without_others(result: Result) -> Result:
    """A user's own jobs, not held against the largest request of others where no limit is set."""
    table = result.table
    if BESIDE_OTHERS not in table.column_names:
        return result
    if all(row["share_with_known_limit"] == 1 for row in result.rows):
        return result
    return replace(result, table=nulled(table, [BESIDE_OTHERS]))


def _refuse_parameters(view: View, result: Result) -> None:
    defaults = {param.name: param.default for param in result.analysis.params}
    moved = [name for name, value in result.params.items() if value != defaults[name]]
    if moved:
        kept = ", ".join(f"param.{name}={defaults[name]}" for name in moved)
        raise Refused(
            f"another value of {', '.join(moved)} could pick out a person among others",
            f"Keep {kept}, or ask about your own jobs with user={view.viewer.user}.",
        )


def is_of_many(readers: Readers, analysis: Analysis, selection: Selection) -> bool:
    """Whether enough people stand behind a figure of whole clusters, in each of them."""
    kept = passing(rules_of(analysis, selection))
    source = RULES[analysis.id].source.format(
        ruled=f"(SELECT * FROM jobs AS jobs_all WHERE {kept})"
    )
    each = [replace(selection, clusters=(name,)) for name in selection.clusters]
    return all(num_people(readers, one, source) >= FEWEST for one in each)


def _counts(view: View, result: Result, rule: Rule) -> Guarded:
    """A table of whole cells: all its counts and hours, but no single job's."""
    by_jobs = result.selection.weight == "jobs"
    gone = list(rule.single) if by_jobs else [*rule.single, "num_jobs"]
    if "hours" not in view.measures:
        gone += ["pe_hours"] if by_jobs else ["pe_hours", "share"]
    gone = [name for name in gone if name in result.table.column_names]
    withheld = _withheld(view, 0, gone) if gone or view.is_partial else None
    shown = replace(result, table=nulled(result.table, gone))
    counts = by_jobs and "num_jobs" not in gone
    return Guarded(shown, withheld, counts, not view.is_partial)


def _statistics(view: View, result: Result, rule: Rule) -> Guarded:
    """Means and medians, rounded, without counts and what gives counts."""
    table = _kept(result, rule)
    hidden = (*COUNTS, *rule.single)
    gone = [name for name in table.column_names if name in hidden or name.startswith("share")]
    withheld = _withheld(view, result.table.num_rows - table.num_rows, gone)
    table = without_spread(table, rule.spread, rule.count)
    shown = replace(result, table=rounded(nulled(table, gone)))
    return Guarded(shown, withheld, False, not view.is_partial)


def _kept(result: Result, rule: Rule) -> pa.Table:
    if rule.row is None:
        return result.table
    name, value = rule.row
    return result.table.filter([row[name] == value for row in result.rows])


def _withheld(view: View, num_rows: int, columns: list[str]) -> Withheld:
    why = OF_WHOLE if view.scope == "whole" else OF_CELLS
    return Withheld(
        num_rows=num_rows, columns=columns, why=f"{why} {PARTIAL}" if view.is_partial else why
    )
