"""The adversary: takes each answer as the set of jobs behind it, and looks for sums that are few people's.

A set is what the engine selects for an answer; the numbers of the answer must be the counts of that set.
A sum or difference of answers is a vector over the jobs, constant on each atom: jobs that no answer tells
apart. If all atoms are of five people, so is every sum, of however many answers. Else one of fewer people
must be zero on every atom of five, so two pairs of answers are looked for that are equal on those and
differ elsewhere: that finds every combination of up to four.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from hakaru.analyses import Branch, Selection, load_all
from hakaru.analyses._select import FATE
from hakaru.web.filters import AnalysisQuery, Filters
from hakaru.web.privacy import RULES, look, look_at
from hakaru.web.privacy._partition import Chosen, Partition
from hakaru.web.problems import Refused
from hakaru.web.service import Asker

FEWEST = 5  # others: the one who asks knows their own jobs
UNKNOWN = "(unknown)"
FATES = ("started", "abandoned", "pending", "unknown")
HAS = {
    "jobs": "true",
    "waits": "wait_s IS NOT NULL",
    "runs": "run_s IS NOT NULL",
    "requests": "run_s IS NOT NULL AND requested_s IS NOT NULL",
}  # what an answer adds up: counts and hours, or a measure of the jobs that have it
KINDS = f"""
    SELECT year(submitted_local) * 12 + month(submitted_local) - 1 AS month, queue, state, num_pes,
           application, parallelism, coalesce(run_s >= 60, false) AS ran_minute, {FATE} AS fate,
           jobs.user AS holder, {", ".join(f"coalesce({sql}, false) AS {n}" for n, sql in HAS.items())},
           count(*) AS num_jobs, sum(pe_hours) AS hours
    FROM jobs GROUP BY ALL
"""
COLUMNS = (
    "month", "queue", "state", "num_pes", "application", "parallelism", "ran_minute", "fate", "holder", *HAS
)  # fmt: skip
Kind = tuple[Any, ...]  # the values of these


@dataclass
class Adversary:
    """Asks, and keeps the sets of jobs that were added up, as bits over the kinds of jobs."""

    asker: Asker
    cluster: str
    by_file: bool = False
    num_asked: int = 0
    num_answered: int = 0
    answers: dict[str, dict[int, str]] = field(default_factory=lambda: {name: {} for name in HAS})
    _kinds: dict[Kind, tuple[int, int, float]] = field(default_factory=dict)
    _values: dict[Kind, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole = Selection(clusters=(self.cluster,))
        for i, row in enumerate(self.asker.readers.rows(KINDS, whole)):
            self._kinds[_kind(row)] = (i, row["num_jobs"], row["hours"] or 0.0)
        self._values = {kind: _values(kind) for kind in self._kinds}
        (known,) = [each for each in self.asker.clusters().clusters if each.name == self.cluster]
        self._check(self._kinds, known.num_jobs, None, "clusters")
        self.keep(self._kinds, "clusters")

    def ask(self, id: str, **query: Any) -> None:
        """One question; refused or answered, and if it is answered, every row is checked and kept."""
        self.num_asked += 1
        try:
            guarded = self.asker.result(id, AnalysisQuery(cluster=(self.cluster,), **query))
        except Refused:
            return
        self.num_answered += 1
        result = guarded.result
        covered = self._covered(result.selection)
        assert set(covered) == set(self._inside(result.selection)), query
        what = f"{id} {query}"
        space = RULES[id].measure or "jobs"
        if guarded.counts:
            self._check(covered, result.num_used, None, what)
        self.keep(covered, what, space)
        keys = [] if id == "utilisation" else [n for n in result.table.column_names if n in KEYS]
        by_key = _by_key(covered, keys)
        for row in result.rows:
            key = tuple(UNKNOWN if row[name] is None else row[name] for name in keys)
            if guarded.counts or "num_jobs" in row:
                self._check(
                    by_key.get(key, []), row.get("num_jobs"), row.get("pe_hours"), f"{what} {key}"
                )
            self.keep(by_key.get(key, []), f"{what} {key}", space)

    def ask_which(self, id: str, **query: Any) -> None:
        """The same without the numbers: which jobs the answer would add up, far quicker."""
        self.num_asked += 1
        asked = AnalysisQuery(cluster=(self.cluster,), **query)
        try:
            view = look_at(
                self.asker.readers, self.asker.viewer, asked, asked.selection(), load_all().get(id)
            )
        except Refused:
            return
        self.num_answered += 1
        covered = self._inside(view.selection)
        keys = [name for name in KEYS if name in (RULES[id].cells or ())]
        for key, kinds in {(): covered, **_by_key(covered, keys)}.items():
            self.keep(kinds, f"{id} {query} {key}", RULES[id].measure or "jobs")

    def overview(self, **query: Any) -> None:
        """The front page's numbers of a cluster."""
        self.num_asked += 1
        filters = Filters(cluster=(self.cluster,), **query)
        try:
            (found,) = self.asker.overview(filters).clusters
        except Refused:
            return
        self.num_answered += 1
        view = look(self.asker.readers, self.asker.viewer, filters, filters.selection())
        covered = self._covered(view.selection)
        what = f"overview {query}"
        self._check(covered, found.measures.num_jobs, found.measures.pe_hours, what)
        self.keep(covered, what)

    def keep(self, kinds: Iterable[Kind], what: str, space: str = "jobs") -> None:
        """An answer that adds up these jobs, as far as they are others' and have the measure."""
        place = COLUMNS.index(space)
        bits = np.zeros(len(self._kinds), dtype=bool)
        bits[[self._kinds[k][0] for k in kinds if k[place] and _holder(k) != self._own]] = True
        packed = np.packbits(bits, bitorder="little").tobytes()
        self.answers[space].setdefault(int.from_bytes(packed, "little"), what)

    def exposed(self) -> list[str]:
        """Combinations of up to four answers that are of fewer than five people, though not of none."""
        return [each for space in HAS for each in self._exposed(self.answers[space])]

    def _exposed(self, answers: dict[int, str]) -> list[str]:
        atoms = _atoms(answers)
        big = [bits for bits in atoms if self._people(bits) >= FEWEST]
        if len(big) == len(atoms):
            return []  # every sum of answers is one of whole atoms
        return list(self._searched(answers, atoms, big))

    def _searched(self, answers: dict[int, str], atoms: list[int], big: list[int]) -> Iterator[str]:
        """Pairs of answers, added or taken away, that are alike on the big atoms and not elsewhere."""
        lots = random.Random(1)
        weights = {atom: lots.getrandbits(60) for atom in atoms}
        size = {bits: sum(w for a, w in weights.items() if a & bits) for bits in answers}
        on_big = {bits: sum(weights[a] for a in big if a & bits) for bits in answers}
        pairs: dict[int, dict[int, tuple[int, int, int]]] = {}
        listed = [0, *answers]
        size[0] = on_big[0] = 0
        for left, right in combinations(listed, 2):
            for sign in (1, -1):
                found = pairs.setdefault(on_big[left] + sign * on_big[right], {})
                found.setdefault(size[left] + sign * size[right], (left, sign, right))
        for alike in pairs.values():
            for one, other in combinations(alike.values(), 2):
                support = self._support(atoms, one, other)
                if 0 < self._people_or_jobs(support) < FEWEST:
                    yield _described(answers, one, other)

    def _support(self, atoms: list[int], *pairs: tuple[int, int, int]) -> int:
        """Where the first pair less the second is not zero."""
        (a, s, b), (c, t, d) = pairs
        support = 0
        for atom in atoms:
            value = bool(atom & a) + s * bool(atom & b) - bool(atom & c) - t * bool(atom & d)
            support |= atom if value else 0
        return support

    def _covered(self, selection: Selection) -> list[Kind]:
        """The kinds of jobs of a selection, each whole."""
        rows = self.asker.readers.rows(KINDS, selection)
        assert all(row["num_jobs"] == self._kinds[_kind(row)][1] for row in rows)
        return [_kind(row) for row in rows]

    def _inside(self, selection: Selection) -> list[Kind]:
        """The same, worked out apart from the engine."""
        first, last = (_month(day) for day in (selection.since, selection.until))
        values = self._values
        kinds = [
            kind
            for kind, its in values.items()
            if (first is None or first <= its["month"]) and (last is None or its["month"] <= last)
        ]
        return _passing(kinds, values, Branch((), selection.branches))

    def _check(
        self, kinds: Iterable[Kind], num_jobs: int | None, hours: float | None, what: str
    ) -> None:
        """The set is what was counted: its numbers are those of the answer."""
        held = [self._kinds[kind] for kind in kinds]
        assert num_jobs is None or num_jobs == sum(num for _, num, _ in held), what
        expected = sum(hours for _, _, hours in held)
        assert hours is None or abs(hours - expected) <= 1e-6 * max(1.0, expected), what

    @property
    def _own(self) -> str:
        return self.asker.viewer.user or ""

    def _people(self, bits: int) -> int:
        users = {_holder(k) for k, (i, _, _) in self._kinds.items() if bits >> i & 1} - {None}
        logs = Counter(user.split("/")[0] if self.by_file else "" for user in users)
        return max(logs.values(), default=0)

    def _people_or_jobs(self, bits: int) -> float:
        """People; jobs of nobody known are some, and of nobody."""
        return self._people(bits) or (0.5 if bits else 0)


KEYS: dict[str, Callable[[Kind], str]] = {
    "queue": lambda kind: kind[1] or UNKNOWN,
    "state": lambda kind: kind[2] or UNKNOWN,
    "application": lambda kind: kind[4] or UNKNOWN,
    "quarter": lambda kind: f"{kind[0] // 12}Q{kind[0] % 12 // 3 + 1}",
    "parallelism": lambda kind: kind[5] or UNKNOWN,
    "fate": lambda kind: FATES[kind[7] - 1],
}


def _by_key(kinds: Iterable[Kind], names: list[str]) -> dict[Kind, list[Kind]]:
    found: dict[Kind, list[Kind]] = {}
    for kind in kinds:
        found.setdefault(tuple(KEYS[name](kind) for name in names), []).append(kind)
    return found


def _atoms(answers: dict[int, str]) -> list[int]:
    """The jobs that no answer tells apart; what no answer covers stands in no sum."""
    covered = 0
    for bits in answers:
        covered |= bits
    atoms = [covered] if covered else []
    for bits in answers:
        atoms = [part for atom in atoms for part in (atom & bits, atom & ~bits) if part]
    return atoms


def _described(answers: dict[int, str], *pairs: tuple[int, int, int]) -> str:
    (a, s, b), (c, t, d) = pairs
    names = [answers.get(each, "0") for each in (a, b, c, d)]
    return f"({names[0]}) {s:+d} ({names[1]}) - [({names[2]}) {t:+d} ({names[3]})]"


def _values(kind: Kind) -> dict[str, Any]:
    """What the partition's columns are for a kind of jobs."""
    its = dict(zip(COLUMNS, kind, strict=True))
    size = its["num_pes"]
    size_class = None if size is None else (size - 1).bit_length() if size else -1
    return its | {"size_class": size_class, "ran_minute": int(its["ran_minute"])}


def _passing(kinds: list[Kind], values: dict[Kind, dict[str, Any]], branch: Branch) -> list[Kind]:
    kept = [
        k
        for k in kinds
        if all((values[k][t.column] in t.value) == (t.operator == "in") for t in branch.tests)
    ]
    if not branch.branches:
        return kept
    return [kind for each in branch.branches for kind in _passing(kept, values, each)]


def cells_of(partition: Partition, jobs: list[dict[str, Any]]) -> list[list[int]]:
    """Which jobs (by number) each cell holds, worked out from the conditions that the engine gets."""
    values = {(i,): job for i, job in enumerate(jobs)}
    each = [Chosen(partition, row, False) for row in np.eye(partition.tree.last, dtype=bool)]
    return [
        [i for (i,) in _passing(list(values), values, Branch((), cell.branches()))] for cell in each
    ]


def _month(day: str | None) -> int | None:
    return None if day is None else int(day[:4]) * 12 + int(day[5:7]) - 1


def _kind(row: dict[str, Any]) -> Kind:
    return tuple(row[name] for name in COLUMNS)


def _holder(kind: Kind) -> str | None:
    return kind[COLUMNS.index("holder")]  # type: ignore[no-any-return]
