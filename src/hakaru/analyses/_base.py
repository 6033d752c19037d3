"""What an analysis is: a question, the rules that leave jobs out, and one query over `jobs`.

A query sees these tables and nothing else:

`jobs`      the selected jobs that pass the analysis' rules: the canonical columns, and `grp` (the value
            of `--by`, else 'all'), `weight` (1.0, or the job's GPU-hours), `num_pes` (GPUs or, by the
            cluster's unit, processors), `num_other_pes` (the other of the two), `pe_hours`,
            `parallelism` (single-pe, single-node, multi-node, unknown-nodes),
            `submitted_local` and `ended_local` (the site's clock), `quarter` (2018Q1) and, cheaper
            to group by, `class_number`, `quarter_number` and `ended_quarter_number`, which `_site.py`
            names.
`limits`    `cluster, queue, limit_s, is_known`: the most that a queue lets one ask for: as set, else the
            largest request that the whole log has seen there.
`capacity`  `cluster, since_s, until_s, num_pes`: the size of the machine over time, where known.
`sites`     `cluster, zone, working_from, working_to`: the site's clock, and its hours of work.
`period`    `cluster, since_s, until_s, first_day, last_day`: the chosen period, null where it is open.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hakaru.errors import HakaruError
from hakaru.registry import Registry

ANALYSES: Registry[Analysis] = Registry("analysis")

SUBJECTS = (
    "overview",
    "parallelism",
    "requests",
    "walltime",
    "arrivals",
    "waits",
    "behaviour",
    "load",
)


@dataclass(frozen=True)
class Rule:
    """Jobs for which `sql` is not true are left out; `text` says which ones stay.

    With `of_size`, the other unit (`--unit`) may count what this one leaves out.
    """

    text: str
    sql: str
    of_size: bool = False


@dataclass(frozen=True)
class Param:
    """A parameter of an analysis: a whole number, a number, or one of some words."""

    name: str
    default: int | float | str
    help: str
    choices: tuple[str, ...] = ()
    low: float = 0
    high: float = float("inf")

    def parse(self, value: Any) -> int | float | str:
        if self.choices:
            if value not in self.choices:
                raise HakaruError(f"{self.name} is one of {', '.join(self.choices)}, not {value!r}")
            return str(value)
        whole = isinstance(self.default, int)
        try:
            number = int(value) if whole else float(value)
        except (TypeError, ValueError):
            kind = "whole number" if whole else "number"
            raise HakaruError(f"{self.name} is a {kind}, not {value!r}") from None
        if not math.isfinite(number):
            raise HakaruError(f"{self.name} is a finite number, not {value!r}")
        if not self.low <= number <= self.high:
            raise HakaruError(f"{self.name} is between {self.low:g} and {self.high:g}, not {value}")
        return number


HAS_SIZE = Rule(
    "with a known number of GPUs (or processors), at least one", "num_pes >= 1", of_size=True
)
HAS_RUN = Rule("with a known run time", "run_s IS NOT NULL")
HAS_REQUEST = Rule("with a known requested walltime", "requested_s IS NOT NULL")
HAS_USER = Rule("with a known user", "jobs_all.user IS NOT NULL")
HAS_HOURS = Rule(
    "with a known size and run time, so that their hours are known", "weight IS NOT NULL"
)


@dataclass(frozen=True)
class Analysis:
    """An entry of the registry; the query function's docstring is its description."""

    id: str
    title: str
    answers: str
    figure: str
    subject: str
    query: Callable[..., str]
    description: str
    reproduces: str = ""
    rules: tuple[Rule, ...] = ()
    params: tuple[Param, ...] = ()
    min_run_s: float | None = None
    states: tuple[str, ...] = ()
    groups: bool = True
    weighted: bool = False
    period: Literal["submitted", "present"] = "submitted"

    def sql(self, **params: Any) -> str:
        known = {param.name: param for param in self.params}
        for name in params:
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise HakaruError(f"{self.id} has no parameter {name!r}; it takes: {allowed}")
        values = {n: p.parse(params.get(n, p.default)) for n, p in known.items()}
        return inspect.cleandoc(self.query(**values))


def analysis(
    id: str,
    *,
    title: str,
    answers: str,
    figure: str,
    reproduces: str = "",
    rules: Sequence[Rule] = (),
    params: Sequence[Param] = (),
    min_run_s: float | None = None,
    states: Sequence[str] = (),
    groups: bool = True,
    weighted: bool = False,
    period: Literal["submitted", "present"] = "submitted",
) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """Register a function that returns a query in the shared dialect."""

    def register(query: Callable[..., str]) -> Callable[..., str]:
        ANALYSES.add(
            Analysis(
                id=id,
                title=title,
                answers=answers,
                figure=figure,
                subject=query.__module__.rsplit(".", 1)[-1],
                query=query,
                description=inspect.getdoc(query) or "",
                reproduces=reproduces,
                rules=tuple(rules),
                params=tuple(params),
                min_run_s=min_run_s,
                states=tuple(states),
                groups=groups,
                weighted=weighted,
                period=period,
            )
        )
        return query

    return register


def load_all() -> Registry[Analysis]:
    """All analyses in reading order, every subject of this folder having been imported."""
    import hakaru.analyses as package

    names = [m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")]
    for name in names:
        importlib.import_module(f"hakaru.analyses.{name}")
    # whoever imported a subject before this has registered its analyses first
    ANALYSES.sort(lambda each: _reading_order(each.subject))
    return ANALYSES


def _reading_order(subject: str) -> tuple[int, str]:
    """The order in which the AAIC paper tells it, then the rest."""
    place = SUBJECTS.index(subject) if subject in SUBJECTS else len(SUBJECTS)
    return place, subject
