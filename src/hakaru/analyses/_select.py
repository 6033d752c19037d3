"""Which jobs an analysis sees: the selection, the rules that leave jobs out, and the counting of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hakaru.analyses._base import HAS_HOURS, Analysis, Rule
from hakaru.engine.where import (
    EVERYTHING,
    Condition,
    compared_columns,
    compared_texts,
    end_of,
    parse_moment,
    parse_where,
)
from hakaru.errors import FilterError
from hakaru.schema import JOBS, STATES, Column, Type

DERIVED = (
    Column("num_pes", "bigint", "GPUs or, where most hours need none (`--unit`), processors."),
    Column("pe_hours", "double", "GPU-hours: the size times the run time.", "h"),
    Column(
        "parallelism",
        "string",
        "single-pe, single-node or multi-node; unknown-nodes where the log does not say how many.",
    ),
    Column("quarter", "string", "Quarter of the submission on the site's clock, as 2018Q1."),
    Column("weekday", "bigint", "Day of the submission on the site's clock: 0 Monday to 6 Sunday."),
    Column("hour", "bigint", "Hour of the submission on the site's clock, 0 to 23."),
)
COLUMNS: dict[str, Type] = {c.name: c.type for c in (*JOBS.columns, *DERIVED)}
GROUPS = (
    "cluster", "user", "account", "queue", "qos", "application", "state", "gpu_model", "num_gpus",
    "num_nodes", "num_cpus", "num_pes", "parallelism", "quarter",
)  # fmt: skip
WEIGHTS = ("jobs", "gpu-hours")


OPERATORS = {
    "=": "{column} = {{0}}",
    "<": "{column} < {{0}}",
    "<=": "{column} <= {{0}}",
    ">": "{column} > {{0}}",
    ">=": "{column} >= {{0}}",
    "contains": "contains(lower({column}), lower({{0}}))",
}
FATE = (
    "CASE WHEN started_at IS NOT NULL THEN 1 "
    "WHEN ended_at IS NOT NULL AND state IN ('cancelled', 'failed', 'killed') THEN 2 "
    "WHEN ended_at IS NULL AND state = 'pending' THEN 3 ELSE 4 END"
)  # started, abandoned, pending, unknown
# what only a program compares with, and only with a list of values
STEPS = {
    "fate": FATE,
    "ran_minute": "CASE WHEN run_s >= 60 THEN 1 ELSE 0 END",
    "month": "(year(submitted_local) * 12 + month(submitted_local) - 1)",
    "size_class": "CASE WHEN num_pes < 1 THEN -1 ELSE CAST(ceil(log2(num_pes)) AS BIGINT) END",
}
Listed = tuple[str | int | None, ...]


@dataclass(frozen=True)
class Check:
    """One comparison of a column with a value; a value of None asks for what is unknown.

    The operators `in` and `not in` take several values, None among them for what is unknown. They also
    work on `month` (of the submission on the site's clock, counted from the year 0), on `size_class` (the
    power of two that `num_pes` reaches: 0 is one, 1 two, 2 three or four; -1 is none), on `ran_minute` (1
    for a run of 60 s or more) and on `fate` (what became of the wait: started, abandoned, pending, unknown).
    """

    column: str
    value: str | float | int | Listed | None
    operator: str = "="

    def condition(self) -> Condition:
        if self.operator == "in":
            return self._among()
        if self.operator == "not in":
            among = self._among()
            return Condition(f"NOT coalesce({among.sql}, false)", among.values)
        kind = COLUMNS.get(self.column)
        if kind not in ("string", "bigint", "double"):
            raise FilterError(f"cannot filter by {self.column!r}")
        if self.operator not in OPERATORS or (self.operator == "contains" and kind != "string"):
            raise FilterError(f"cannot compare {self.column} with {self.operator!r}")
        if self.value is None:
            return Condition(f"jobs_all.{self.column} IS NULL")
        if isinstance(self.value, str) != (kind == "string"):
            raise FilterError(f"{self.column} is a {kind}, not {self.value!r}")
        column = f"jobs_all.{self.column}"
        if isinstance(self.value, tuple):
            raise FilterError(
                f"cannot compare {self.column} with several values by {self.operator!r}"
            )
        return Condition(OPERATORS[self.operator].format(column=column), (self.value,))

    def _among(self) -> Condition:
        if not isinstance(self.value, tuple) or (
            self.column not in STEPS and COLUMNS.get(self.column) != "string"
        ):
            raise FilterError(f"cannot look for {self.column!r} in {self.value!r}")
        column = STEPS.get(self.column, f"jobs_all.{self.column}")
        known = tuple(value for value in self.value if value is not None)
        places = ", ".join(f"{{{i}}}" for i in range(len(known)))
        tests = [f"{column} IN ({places})"] if known else []
        tests += [f"{column} IS NULL"] if None in self.value else []
        return Condition(f"({' OR '.join(tests) or 'false'})", known)


@dataclass(frozen=True)
class Branch:
    """Jobs that pass all the tests and, where it has branches of its own, one of those."""

    tests: tuple[Check, ...]
    branches: tuple[Branch, ...] = ()

    def condition(self) -> Condition:
        found = EVERYTHING
        for test in self.tests:
            found &= test.condition()
        return found & any_of(self.branches) if self.branches else found


def any_of(branches: Sequence[Branch]) -> Condition:
    """True for the jobs of one branch or another."""
    first, *others = (Condition(f"({b.sql})", b.values) for b in (x.condition() for x in branches))
    for each in others:
        first |= each
    return Condition(f"({first.sql})", first.values)


@dataclass(frozen=True)
class Selection:
    """Which jobs, counted how. `min_run_s` and `states` replace the analysis' own rules.

    `where` is a person's text, `checks` are a program's; where there are `branches`, one must hold.
    """

    clusters: tuple[str, ...] = ()
    where: str | None = None
    checks: tuple[Check, ...] = ()
    branches: tuple[Branch, ...] = ()
    since: str | None = None
    until: str | None = None
    min_run_s: float | None = None
    states: tuple[str, ...] = ()
    by: str | None = None
    weight: str = "jobs"

    def check(self) -> None:
        for state in self.states:
            if state not in (*STATES, "any"):
                raise FilterError(f"there is no state {state!r}; known: {', '.join(STATES)}, any")
        if self.by is not None and self.by not in GROUPS:
            raise FilterError(f"cannot group by {self.by!r}; known: {', '.join(GROUPS)}")
        if self.weight not in WEIGHTS:
            raise FilterError(f"cannot count by {self.weight!r}; known: {', '.join(WEIGHTS)}")
        if self.min_run_s is not None and not 0 <= self.min_run_s < math.inf:
            raise FilterError("--min-run is a number of seconds, 0 or more")


def absent_values(
    selection: Selection, values_of: Callable[[str], Collection[str]]
) -> list[tuple[str, str, list[str]]]:
    """What `where` compares a column with that no job has: column, value, and what jobs have.

    Only of columns that one groups by: of a job's id or node nobody expects to see them all.
    """
    if not selection.where:
        return []
    parse_where(selection.where, "jobs_all", COLUMNS)  # refuses what is no filter
    found = []
    for column, value in compared_texts(selection.where):
        if column in GROUPS and COLUMNS[column] == "string":
            known = sorted(values_of(column))
            found += [(column, value, known)] if value not in known else []
    return found


def text_columns(where: str) -> list[str]:
    """The text columns that a filter compares."""
    parse_where(where, "jobs_all", COLUMNS)  # refuses what is no filter
    return [column for column in compared_columns(where) if COLUMNS[column] == "string"]


def condition_of(selection: Selection, zones: Mapping[str, str], period: str) -> Condition:
    """The filters as one condition; dates are read in each cluster's own zone."""
    condition = EVERYTHING
    for check in selection.checks:
        condition &= check.condition()
    if selection.branches:
        condition &= any_of(selection.branches)
    if selection.where:
        condition &= _where_in_each_zone(selection.where, zones)
    if selection.since:
        test = "submitted_at >= {0}"
        if period == "present":
            test = (
                "(coalesce(ended_at, started_at, submitted_at) >= {0} "
                "OR ended_at IS NULL AND state IN ('pending', 'running'))"
            )
        condition &= _in_each_zone(test, selection.since, parse_moment, zones)
    if selection.until:
        condition &= _in_each_zone("submitted_at < {0}", selection.until, end_of, zones)
    return condition


def _where_in_each_zone(text: str, zones: Mapping[str, str]) -> Condition:
    """The filter, or one for each cluster where their zones make other moments of its times."""
    parsed = {name: parse_where(text, "jobs_all", COLUMNS, zone) for name, zone in zones.items()}
    first = next(iter(parsed.values()))
    if all(each == first for each in parsed.values()):
        return first
    either = Condition("false")
    for name, each in parsed.items():
        either |= Condition(f"(cluster = '{name}')") & each
    return Condition(f"({either.sql})", either.values)


def _in_each_zone(
    test: str, text: str, parse: Callable[[str, str], datetime], zones: Mapping[str, str]
) -> Condition:
    moments = {name: parse(text, zone) for name, zone in zones.items()}
    if len(set(moments.values())) == 1:
        return Condition(test, (next(iter(moments.values())),))
    cases = " OR ".join(
        f"(cluster = '{name}' AND {test.format(f'{{{i}}}')})" for i, name in enumerate(moments)
    )
    return Condition(f"({cases})", tuple(moments.values()))


def rules_of(analysis: Analysis, selection: Selection) -> tuple[Rule, ...]:
    """The analysis' rules, with its least run time and states unless others were chosen."""
    return analysis.rules + chosen_rules(counted(analysis, selection))


def counted(analysis: Analysis, selection: Selection) -> Selection:
    """The selection with the analysis' own least run time and states where it chooses none."""
    least = analysis.min_run_s if selection.min_run_s is None else selection.min_run_s
    states = tuple(selection.states or analysis.states)
    return replace(selection, min_run_s=least, states=states)


def chosen_rules(selection: Selection) -> tuple[Rule, ...]:
    """The rules that the selection itself makes: its least run time, known hours, and states."""
    rules = []
    min_run_s, states = selection.min_run_s, selection.states
    if min_run_s:
        rules.append(Rule(f"that ran for at least {min_run_s:g} s", f"run_s >= {min_run_s!r}"))
    if selection.weight != "jobs":
        rules.append(HAS_HOURS)
    if states and "any" not in states:
        listed = ", ".join(f"'{state}'" for state in states)
        rules.append(Rule(f"that are {' or '.join(states)}", f"state IN ({listed})"))
    return tuple(rules)


def passing(rules: Sequence[Rule]) -> str:
    """SQL that is true for the jobs, seen as `jobs_all`, which all rules keep."""
    return " AND ".join(f"({rule.sql})" for rule in rules) or "true"


def counting(rules: Sequence[Rule]) -> str:
    """How many jobs each rule leaves out of what is left before it, by its place; −1 are those that stay."""
    cases = " ".join(
        f"WHEN NOT coalesce({rule.sql}, false) THEN {i}" for i, rule in enumerate(rules)
    )
    fails = f"CASE {cases} ELSE -1 END" if rules else "-1"
    return f"""
        SELECT fails, count(*) AS num_jobs
        FROM (SELECT {fails} AS fails FROM jobs_selected AS jobs_all) AS tested GROUP BY fails
    """
