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
from hakaru.web.filters import AnalysisQuery, Filters
from hakaru.web.privacy import RULES, look, look_at
from hakaru.web.problems import Refused
from hakaru.web.service import Asker

FEWEST = 5
UNKNOWN = "(unknown)"
KINDS = """
    SELECT year(submitted_local) * 12 + month(submitted_local) - 1 AS month, queue, state, num_pes,
           application, jobs.user AS holder, count(*) AS num_jobs, sum(pe_hours) AS hours
    FROM jobs GROUP BY ALL
"""
Kind = tuple[Any, ...]  # month, queue, state, num_pes, application, user


@dataclass
class Adversary:
    """Asks, and keeps the sets of jobs that were counted, as bits over the kinds of jobs."""

    asker: Asker
    cluster: str
    by_file: bool = False
    num_asked: int = 0
    num_answered: int = 0
    answers: dict[int, str] = field(default_factory=dict)
    _kinds: dict[Kind, tuple[int, int, float]] = field(default_factory=dict)
    _values: dict[Kind, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole = Selection(clusters=(self.cluster,))
        for i, row in enumerate(self.asker.readers.rows(KINDS, whole)):
            self._kinds[_kind(row)] = (i, row["num_jobs"], row["hours"] or 0.0)
        self._values = {kind: _values(kind) for kind in self._kinds}
        (known,) = [each for each in self.asker.clusters().clusters if each.name == self.cluster]
        self._keep(self._kinds, known.num_jobs, None, "clusters")

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
        if guarded.counts:
            self._keep(covered, result.num_used, None, f"{id} {query}")
        names = [name for name in result.table.column_names if name in KEYS]
        by_key = _by_key(covered, names)
        for row in result.rows:
            key = tuple(UNKNOWN if row[name] is None else row[name] for name in names)
            self._keep(by_key[key], row["num_jobs"], row["pe_hours"], f"{id} {query} {key}")

    def ask_which(self, id: str, **query: Any) -> None:
        """The same without the numbers: which jobs the answer would count, far quicker."""
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
        sets = {(): covered, **_by_key(covered, [name for name in KEYS if name in RULES[id].cells])}
        for key, kinds in sets.items():
            self._keep(
                kinds, sum(self._kinds[kind][1] for kind in kinds), None, f"{id} {query} {key}"
            )

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
        self._keep(covered, found.measures.num_jobs, found.measures.pe_hours, f"overview {query}")

    def exposed(self) -> list[str]:
        """Combinations of up to four answers that are of fewer than five people, though not of none."""
        atoms = self._atoms()
        people = {atom: self._people(bits) for atom, bits in atoms.items()}
        big = [bits for atom, bits in atoms.items() if people[atom] >= FEWEST]
        if len(big) == len(atoms):
            return []  # every sum of answers is one of whole atoms
        return list(self._searched(list(atoms.values()), big))

    def _searched(self, atoms: list[int], big: list[int]) -> Iterator[str]:
        """Pairs of answers, added or taken away, that are alike on the big atoms and not elsewhere."""
        lots = random.Random(1)
        weights = {atom: lots.getrandbits(60) for atom in atoms}
        size = {bits: sum(w for a, w in weights.items() if a & bits) for bits in self.answers}
        on_big = {bits: sum(weights[a] for a in big if a & bits) for bits in self.answers}
        pairs: dict[int, dict[int, tuple[int, int, int]]] = {}
        listed = [0, *self.answers]
        size[0] = on_big[0] = 0
        for left, right in combinations(listed, 2):
            for sign in (1, -1):
                found = pairs.setdefault(on_big[left] + sign * on_big[right], {})
                found.setdefault(size[left] + sign * size[right], (left, sign, right))
        for alike in pairs.values():
            for one, other in combinations(alike.values(), 2):
                support = self._support(atoms, one, other)
                if 0 < self._people_or_jobs(support) < FEWEST:
                    yield self._told(one, other)

    def _support(self, atoms: list[int], *pairs: tuple[int, int, int]) -> int:
        """Where the first pair less the second is not zero."""
        (a, s, b), (c, t, d) = pairs
        support = 0
        for atom in atoms:
            value = bool(atom & a) + s * bool(atom & b) - bool(atom & c) - t * bool(atom & d)
            support |= atom if value else 0
        return support

    def _told(self, *pairs: tuple[int, int, int]) -> str:
        (a, s, b), (c, t, d) = pairs
        names = [self.answers.get(each, "0") for each in (a, b, c, d)]
        return f"({names[0]}) {s:+d} ({names[1]}) - [({names[2]}) {t:+d} ({names[3]})]"

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

    def _keep(
        self, kinds: Iterable[Kind], num_jobs: int | None, hours: float | None, told: str
    ) -> None:
        """The set is what was counted: its numbers are those of the answer."""
        held = [self._kinds[kind] for kind in kinds]
        assert num_jobs is None or num_jobs == sum(num for _, num, _ in held), told
        expected = sum(hours for _, _, hours in held)
        assert hours is None or abs(hours - expected) <= 1e-6 * max(1.0, expected), told
        if num_jobs is not None or hours is not None:
            bits = np.zeros(len(self._kinds), dtype=bool)
            bits[[i for i, _, _ in held]] = True
            packed = np.packbits(bits, bitorder="little").tobytes()
            self.answers.setdefault(int.from_bytes(packed, "little"), told)

    def _atoms(self) -> dict[int, int]:
        """The jobs that no answer tells apart, by number."""
        atoms = [(1 << len(self._kinds)) - 1]
        for bits in self.answers:
            atoms = [part for atom in atoms for part in (atom & bits, atom & ~bits) if part]
        # what no answer covers stands in no sum
        covered = 0
        for bits in self.answers:
            covered |= bits
        return {i: atom for i, atom in enumerate(atoms) if atom & covered}

    def _people(self, bits: int) -> int:
        users = {kind[-1] for kind, (i, _, _) in self._kinds.items() if bits >> i & 1} - {None}
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
}


def _by_key(kinds: Iterable[Kind], names: list[str]) -> dict[Kind, list[Kind]]:
    found: dict[Kind, list[Kind]] = {}
    for kind in kinds:
        found.setdefault(tuple(KEYS[name](kind) for name in names), []).append(kind)
    return found


def _values(kind: Kind) -> dict[str, Any]:
    """What the partition's columns are for a kind of jobs."""
    month, queue, state, size, application, _ = kind
    size_class = None if size is None else (size - 1).bit_length() if size else -1
    named = {"month": month, "queue": queue, "state": state, "application": application}
    return named | {"size_class": size_class}


def _passing(kinds: list[Kind], values: dict[Kind, dict[str, Any]], branch: Branch) -> list[Kind]:
    kept = [k for k in kinds if all(values[k][t.column] in t.value for t in branch.tests)]
    if not branch.branches:
        return kept
    return [kind for each in branch.branches for kind in _passing(kept, values, each)]


def _month(day: str | None) -> int | None:
    return None if day is None else int(day[:4]) * 12 + int(day[5:7]) - 1


def _kind(row: dict[str, Any]) -> Kind:
    return tuple(row[n] for n in ("month", "queue", "state", "num_pes", "application", "holder"))
