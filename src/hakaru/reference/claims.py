"""The numbers a paper prints, and whether the log gives them again.

A claim names an analysis and a cell of its table. It holds when the computed value, rounded as the paper
rounds, is what the paper prints; or lies where the paper's words say. Where paper and log are known
to contradict each other, the claim carries the log's value and the reason, and says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

from hakaru.errors import HakaruError

Verdict = Literal["same", "differs", "known difference", "not in the log"]
REDUCE: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "mean": lambda values: sum(values) / len(values),
}


@dataclass(frozen=True)
class Claim:
    """One printed number: where it stands, and how the log answers it."""

    where: str
    says: str
    published: str
    analysis: str = ""
    column: str = ""
    row: Mapping[str, Any] = field(default_factory=dict)
    reduce: str = ""
    scale: float = 1.0
    relation: str = "="
    than: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    why_not: str = ""
    known: str = ""
    known_why: str = ""


@dataclass(frozen=True)
class Judged:
    claim: Claim
    computed: str
    verdict: Verdict


def load_claims(paper: str) -> list[Claim]:
    """The claims of a paper, as `reference/PAPER_paper.toml` lists them."""
    resource = files("hakaru.reference") / f"{paper}_paper.toml"
    if not resource.is_file():
        raise HakaruError(f"there is no list of claims for {paper!r}; known: aaic")
    listed = tomllib.loads(resource.read_text(encoding="utf-8"))["claim"]
    return [Claim(**entry) for entry in listed]


def judge(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> Judged:
    """Compare a claim with the rows of its analysis."""
    if claim.why_not:
        return Judged(claim, claim.why_not, "not in the log")
    if claim.relation == "within":
        return _judge_interval(claim, rows)
    value = _value(claim, claim.row, rows)
    if value is None:
        return Judged(claim, "no such row", "differs")
    if claim.than is not None:
        other = _value(claim, claim.than, rows)
        if other is None:
            return Judged(claim, "no such row", "differs")
        shown = f"{_readable(value)} against {_readable(other)}"
        return Judged(claim, shown, _verdict(_holds(value, claim.relation, other)))
    if claim.relation == "=":
        shown = value if isinstance(value, str) else _rounded_like(claim.published, value)
        if claim.known and shown == claim.known:
            return Judged(claim, f"{shown}: {claim.known_why}", "known difference")
        return Judged(claim, shown, _verdict(shown == claim.published))
    bound = float(claim.published.replace(",", ""))
    return Judged(claim, _readable(value), _verdict(_holds(value, claim.relation, bound)))


def _judge_interval(claim: Claim, rows: Sequence[Mapping[str, Any]]) -> Judged:
    """A random sample's value is right when it lies among the values of other samples."""
    found = [row for row in _matching(claim.row, rows) if row["mean"] is not None]
    if not found:
        return Judged(claim, "no such row", "differs")
    row = found[0]
    low, high = row["low"], row["high"]
    inside = low <= float(claim.published) <= high
    return Judged(claim, f"{row['mean']:.3f} [{low:.3f}, {high:.3f}]", _verdict(inside))


def _value(claim: Claim, where: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Any:
    found = [row for row in _matching(where, rows) if row.get(claim.column) is not None]
    if not found:
        return None
    if claim.reduce in ("argmin", "argmax"):
        pick = min if claim.reduce == "argmin" else max
        best = pick(found, key=lambda row: row[claim.column])
        return str(next(iter(best.values())))
    if isinstance(found[0][claim.column], str):
        return found[0][claim.column]
    values = [row[claim.column] * claim.scale for row in found]
    return REDUCE[claim.reduce](values) if claim.reduce else values[0]


def _matching(
    where: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    def fits(row: Mapping[str, Any]) -> bool:
        return all(
            row[name] in wanted if isinstance(wanted, list) else row[name] == wanted
            for name, wanted in where.items()
        )

    return [row for row in rows if fits(row)]


def _readable(value: float) -> str:
    """Four digits, and large numbers whole: 0.4703, 53,231."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _rounded_like(published: str, value: float) -> str:
    """The value with as many decimals, and the thousands' commas, that the paper prints."""
    decimals = len(published.partition(".")[2])
    return f"{value:,.{decimals}f}"


def _holds(value: float, relation: str, bound: float) -> bool:
    return {"<": value < bound, ">": value > bound, ">=": value >= bound, "<=": value <= bound}[
        relation
    ]


def _verdict(holds: bool) -> Verdict:
    return "same" if holds else "differs"
