"""What a finding is: a rule that reads a result's rows, and says its numbers where they are worth it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.texts import Language

Rows = Sequence[Mapping[str, Any]]
Values = dict[str, float]
Rule = Callable[[Rows], "Told | None"]

SHARES = ("share", "share_hours", "share_long", "share_top1", "share_unknown", "share_started")


@dataclass(frozen=True)
class Told:
    """The text's key and its numbers; `formats` says how one is written that its name does not tell."""

    key: str
    values: Values
    formats: Mapping[str, str]


@dataclass(frozen=True)
class Finding:
    """A sentence, the analysis that it comes from, and the numbers behind it."""

    id: str
    text: str
    analysis: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Numbers:
    """A rule of the table of findings: of which analysis, counted by what."""

    id: str
    analysis: str
    weight: str
    rule: Rule


FINDINGS: list[Numbers] = []


def finding(id: str, analysis: str, weight: str = "jobs") -> Callable[[Rule], Rule]:
    """Put a rule into the table, in the order in which it is told."""

    def add(rule: Rule) -> Rule:
        FINDINGS.append(Numbers(id, analysis, weight, rule))
        return rule

    return add


def told(key: str, values: Mapping[str, float | None], **formats: str) -> Told | None:
    """The numbers of a text, or nothing where one of them is not known."""
    known = {name: float(value) for name, value in values.items() if value is not None}
    return Told(key, known, formats) if len(known) == len(values) else None


def written(told: Told, language: Language, jobs: str) -> str:
    """The sentence: each number as its name or its format says, and `{jobs}` for those it counts."""
    texts = {
        name: _written(told.formats.get(name, _format_of(name)), value, language)
        for name, value in told.values.items()
    }
    return language.say("finding", told.key, jobs=jobs, **texts)


def _format_of(name: str) -> str:
    if name in SHARES:
        return "share"
    if name in ("hour", "next_hour", "quiet_hour"):
        return "hour"
    return "weekday" if name.endswith("weekday") else name


def _written(format: str, value: float, language: Language) -> str:
    if format == "hour":
        return language.hour(int(value))
    if format == "weekday":
        return language.weekday(int(value))
    if format == "correlation":
        return language.number(value, 3)
    writers = {
        "share": language.share,
        "times": language.times,
        "duration": language.duration,
        "within": language.within,
    }
    return writers.get(format, language.number)(value)
