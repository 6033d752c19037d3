"""The result of all checks: a row for each check and node, and one verdict that fails closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hakaru.measure.node.machine import Absent, Unread
from hakaru.measure.preflight.answers import problem_of
from hakaru.measure.preflight.check import CHECKS, LOOK, STATUSES, Ask, Check, Finding
from hakaru.measure.preflight.facts import HOST_NAME, MOST_TEXT, Node
from hakaru.measure.verdict import EXIT_CODES, Verdict
from hakaru.registry import listed
from hakaru.safety.text import one_line

ALL_NODES = "all nodes"
MOST_NAMES = 8
DECIDES_NOT = "does not decide"


@dataclass(frozen=True)
class Row:
    check: Check
    node: str
    finding: Finding

    def to_json(self) -> dict[str, Any]:
        return {"check": self.check.id, "node": self.node, **asdict(self.finding)}


@dataclass(frozen=True)
class Preflight:
    """Good only where every essential check was made and none failed."""

    ask: Ask
    nodes: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if row.finding.status == "fail"]

    @property
    def unknowns(self) -> list[Row]:
        """Essential checks that could not be made."""
        return [row for row in self._not_measured if row.check.essential]

    @property
    def notes(self) -> list[Row]:
        """Checks that could not be made, and that do not decide."""
        return [row for row in self._not_measured if not row.check.essential]

    @property
    def _not_measured(self) -> list[Row]:
        return [row for row in self.rows if row.finding.status == "not measured"]

    @property
    def verdict(self) -> Verdict:
        decisive = [row for row in self.rows if row.check is not ANSWERED or not _is_good(row)]
        return verdict_of((row.finding.status, row.check.essential) for row in decisive)

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    @property
    def summary(self) -> str:
        """What caused the verdict, and on which nodes, in one sentence."""
        if self.verdict is Verdict.GOOD:
            warnings = self.counts["warn"]
            ready = f"ready for {self.ask.num_ranks:,} ranks; nodes checked: {len(self.nodes):,}"
            parts = [ready, *([f"warnings: {warnings:,}"] if warnings else [])]
            parts += [f"not measured ({DECIDES_NOT}): {_titles(self.notes)}"] if self.notes else []
            return "; ".join(parts)
        rows = self.failures or self.unknowns
        if not rows:
            return "no check applies to these nodes, so that nothing was checked"
        where = listed(dict.fromkeys(row.node for row in rows), MOST_NAMES)
        how = "failed" if self.failures else "could not be checked"
        return f"{how} on {where}: {_titles(rows)}"

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(row.finding.status for row in self.rows)
        return {status: found[status] for status in STATUSES}

    def to_json(self) -> dict[str, Any]:
        checks = {row.check.id: row.check for row in self.rows}
        return {
            "verdict": str(self.verdict),
            "summary": self.summary,
            "ask": {**asdict(self.ask), "num_nodes": self.ask.num_nodes},
            "nodes": list(self.nodes),
            "counts": self.counts,
            "checks": [_described(check) for check in checks.values()],
            "rows": [row.to_json() for row in self.rows],
        }


def verdict_of(rows: Iterable[tuple[str, bool]]) -> Verdict:
    """Of the status of each row and whether its check is essential; without a pass nothing is good."""
    found = set(rows)
    statuses = {status for status, _ in found}
    if "fail" in statuses:
        return Verdict.FAILED
    if ("not measured", True) in found or not statuses & {"pass", "warn"}:
        return Verdict.NOT_MEASURED
    return Verdict.GOOD


def judge(answers: Sequence[Mapping[str, Any]], ask: Ask) -> Preflight:
    """Judge the answers of all nodes: facts from `gather`, or `unanswered` for a node that gave none."""
    problems = [problem_of(answer) for answer in answers]
    nodes = [Node(each) for each, problem in zip(answers, problems, strict=True) if not problem]
    silent = {_name(each): why for each, why in zip(answers, problems, strict=True) if why}
    names = tuple(node.name for node in nodes)
    expected = ask.node_names or (*names, *silent)
    rows = [*_answered(names, silent, expected, ask)]
    known = replace(ask, node_names=tuple(expected))
    if nodes:
        for check in CHECKS:
            targets = nodes if check.scope == "node" else [nodes]
            rows += [_row(check, target, known) for target in targets]
    return Preflight(ask, names, tuple(rows))


ANSWERED = Check(
    "answered",
    "Every node answered",
    "A node that was not checked must never count as ready.",
    "all",
    True,
    lambda nodes, ask: Finding("not measured", "see the rows of this check"),
)


def _answered(
    names: Sequence[str], silent: Mapping[str, str], expected: Sequence[str], ask: Ask
) -> list[Row]:
    """A row for each node without an answer, or one row that says that all answered."""
    reasons = dict(silent)
    short = {_short(name) for name in names} if _all_differ(map(_short, expected)) else set()
    for name in expected:
        if name not in names and _short(name) not in short:
            reasons.setdefault(name, "no answer")
    for name, times in Counter(names).items():
        if times > 1:
            reasons[name] = (
                f"{times} answers from the same node: the tasks were not spread over the nodes"
            )
    rows = [_missing(name, why, ask) for name, why in reasons.items()]
    num_wanted = max(ask.num_nodes, len(set(expected)))
    found = f"{len(set(names)):,} of {num_wanted:,} nodes answered"
    if len(set(names)) < ask.num_nodes and not rows:
        rows = [_missing(ALL_NODES, found, ask)]
    return rows or [Row(ANSWERED, ALL_NODES, Finding("pass", found))]


def _missing(name: str, why: str, ask: Ask) -> Row:
    remote = name in ask.node_names and HOST_NAME.fullmatch(name)
    fix = f"ssh {name} true  # if that works, run on {name}: python -m hakaru.measure.preflight"
    finding = Finding("not measured", why, "an answer from every node", fix if remote else LOOK)
    return Row(ANSWERED, name, _shown(finding))


def _is_good(row: Row) -> bool:
    return row.finding.status in ("pass", "warn")


def _row(check: Check, target: Node | Sequence[Node], ask: Ask) -> Row:
    try:
        finding = check.run(target, ask)
    except Absent as error:
        finding = Finding("n/a", str(error))
    except Unread as error:
        finding = _unread(check, str(error))
    except Exception as error:  # an answer of an unexpected shape is never a pass
        finding = _unread(check, f"the answer has an unexpected form: {error!r}")
    return Row(check, target.name if isinstance(target, Node) else ALL_NODES, _shown(finding))


def _unread(check: Check, why: str) -> Finding:
    return Finding("not measured", why, "" if check.essential else DECIDES_NOT, check.by_hand)


def _titles(rows: Sequence[Row]) -> str:
    return listed(dict.fromkeys(row.check.title for row in rows), MOST_NAMES)


def _shown(finding: Finding) -> Finding:
    """The same without control characters: a node's answer may hold anything."""
    texts = (
        one_line(text)[: 2 * MOST_TEXT] for text in (finding.found, finding.wanted, finding.fix)
    )
    return Finding(finding.status, *texts)


def _described(check: Check) -> dict[str, Any]:
    named = ("id", "title", "why", "scope", "essential")
    return {name: getattr(check, name) for name in named}


def _short(name: str) -> str:
    """gpu01 of gpu01.cluster.example: the launcher and the node may differ in the domain."""
    return name.partition(".")[0]


def _all_differ(names: Iterable[str]) -> bool:
    every = list(names)
    return len(set(every)) == len(every)


def _name(answer: Any) -> str:
    name = answer.get("node") if isinstance(answer, Mapping) else None
    return one_line(str(name or "a node without a name"))[:MOST_TEXT]
