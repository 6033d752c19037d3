"""Which rows of a table can be shown so that what is withheld is of five people wherever it can be summed.

Sums are known on every line of a table: over its whole, over a quarter, over a class in all quarters. So the
rows withheld on a line must be of five distinct people together, or one more is withheld with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

from hakaru.web.privacy._people import FEWEST, people_among

Key = tuple[str, ...]
ALL = "all"


@dataclass(frozen=True)
class Cells:
    """The users behind each key; a key with jobs of nobody known has none.

    `whole` is the place of the part that is `all` in rows that stand for all others, and `step` that of the
    one along which a cumulative curve rises.
    """

    users: Mapping[Key, set[str]]
    by_file: bool
    whole: int | None
    step: int | None

    def shown(self, keys: Iterable[Key]) -> set[Key]:
        """Those of the keys whose rows may be shown."""
        shown = {key for key in keys if self._people([key]) >= FEWEST}
        before = -1
        while len(shown) != before:
            before = len(shown)
            self._hide_ends(shown)
            self._hide_on_lines(shown)
        return shown

    def _hide_ends(self, shown: set[Key]) -> None:
        """A cumulative curve ends at 1: what comes after its last shown step is of enough people."""
        step = self.step
        if step is None:
            return
        held = tuple(i for i in range(self._num_parts) if i != step)
        for curve in self._lines(self.users, held):
            rising = sorted(curve, key=lambda key: float(key[step]))
            while left := [i for i, key in enumerate(rising) if key in shown]:
                if not self._is_few(rising[left[-1] + 1 :]):
                    break
                shown.remove(rising[left[-1]])

    def _hide_on_lines(self, shown: set[Key]) -> None:
        """With any parts of the key held, the withheld rows are of enough people together."""
        places = range(self._num_parts)
        apart = [key for key in self.users if not self._is_all(key)]
        for held in (held for n in places for held in combinations(places, n)):
            for line in self._lines(apart, held):
                seen = {key for key in line if key in shown}
                while seen and self._is_few([key for key in line if key not in seen]):
                    least = min(seen, key=lambda key: (self._people([key]), key))
                    seen.remove(least)
                    shown.remove(least)

    @property
    def _num_parts(self) -> int:
        return len(next(iter(self.users), ()))

    def _lines(self, keys: Iterable[Key], held: tuple[int, ...]) -> list[list[Key]]:
        """The keys that are alike in the held parts."""
        lines: dict[Key, list[Key]] = {}
        for key in keys:
            lines.setdefault(tuple(key[i] for i in held), []).append(key)
        return list(lines.values())

    def _is_few(self, keys: list[Key]) -> bool:
        """Whether there are jobs under these keys, but of too few people."""
        return bool(keys) and self._people(keys) < FEWEST

    def _people(self, keys: Iterable[Key]) -> int:
        users = {user for key in keys for user in self.users.get(key, ())}
        return people_among(users, self.by_file)

    def _is_all(self, key: Key) -> bool:
        return self.whole is not None and key[self.whole] == ALL
