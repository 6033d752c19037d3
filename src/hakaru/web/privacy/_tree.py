"""The tree that cuts a cluster's jobs into cells of six or more people each.

Each node is cut by the first column, of those left, that makes two parts of enough people. Columns with
few values come first: what the last ones cannot tell apart is then a small share of the jobs. Values of
too few people are put together, one after the other, until they are enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hakaru.web.privacy._people import FEWEST

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Part = tuple[list[int], Ints]  # values, and the rows that have them


@dataclass(frozen=True)
class Node:
    """The cells `first` to before `last`; its parts hold values (by number) of one column each."""

    first: int
    last: int
    column: int = -1
    parts: tuple[tuple[tuple[int, ...], Node], ...] = ()


@dataclass(frozen=True)
class Holders:
    """Who holds jobs of which values: a row for each combination of values, user and measures.

    `codes` has a column for each column of the jobs, its values by number; `users` are numbers too, -1
    where unknown; `logs` is the log of each row's user, where a log numbers its users anew, else 0.
    `measures` tells for each measure which rows have it.
    """

    codes: Ints
    users: Ints
    logs: Ints
    measures: Sequence[Bools]

    def people(self, rows: Ints, parts: Ints, num: int) -> Ints:
        """People in each of `num` parts of the rows: the most in any one log; nobody known is nobody."""
        import numpy as np

        known = self.users[rows] >= 0
        num_logs, num_users = int(self.logs.max(initial=0)) + 1, int(self.users.max(initial=0)) + 1
        in_log = parts[known] * num_logs + self.logs[rows][known]
        held = np.unique(in_log * num_users + self.users[rows][known])
        counts = np.bincount(held // num_users, minlength=num * num_logs)
        return np.asarray(counts.reshape(num, num_logs).max(axis=1))

    def enough(self, rows: Ints, parts: Ints, num: int) -> Bools:
        """Whether each part is of enough people, and so is what it has of each measure, unless nothing."""
        import numpy as np

        found: Bools = self.people(rows, parts, num) >= FEWEST
        for measure in self.measures:
            has = measure[rows]
            none = np.bincount(parts[has], minlength=num) == 0
            found &= none | (self.people(rows[has], parts[has], num) >= FEWEST)
        return found

    def is_enough(self, rows: Ints) -> bool:
        import numpy as np

        return bool(self.enough(rows, np.zeros(len(rows), dtype=np.int64), 1)[0])

    def num_people(self, rows: Ints) -> int:
        import numpy as np

        return int(self.people(rows, np.zeros(len(rows), dtype=np.int64), 1)[0])


@dataclass
class _Tally:
    """The same for rows that come one value after the other, without counting them all anew each time."""

    holders: Holders
    values: list[int] = field(default_factory=list)
    _users: dict[int, set[int]] = field(default_factory=dict)
    _logs: dict[int, Counter[int]] = field(default_factory=dict)

    def add(self, values: list[int], rows: Ints) -> None:
        self.values += values
        for at, has in enumerate((None, *self.holders.measures)):
            chosen = rows if has is None else rows[has[rows]]
            if not len(chosen):
                continue
            users = self._users.setdefault(at, set())
            logs = self._logs.setdefault(at, Counter())
            held = zip(self.holders.users[chosen], self.holders.logs[chosen], strict=True)
            for user, log in {each for each in held if each[0] >= 0 and each[0] not in users}:
                users.add(user)
                logs[log] += 1

    def is_enough(self) -> bool:
        return all(max(logs.values(), default=0) >= FEWEST for logs in self._logs.values())


@dataclass
class Grower:
    """Grows the tree from its root, and gives each row the number of its cell."""

    holders: Holders
    cells: Ints
    _num_cells: int = field(default=0, init=False)

    def grow(self, rows: Ints, column: int = 0) -> Node:
        """The tree of these rows, cut by this column and those after it."""
        while column < self.holders.codes.shape[1]:
            if len(parts := self._split(rows, column)) > 1:
                return self._branch(column, parts)
            column += 1
        self.cells[rows] = self._num_cells
        self._num_cells += 1
        return Node(self._num_cells - 1, self._num_cells)

    def _branch(self, column: int, parts: list[Part]) -> Node:
        first = self._num_cells
        grown = tuple((tuple(values), self.grow(rows, column + 1)) for values, rows in parts)
        return Node(first, self._num_cells, column, grown)

    def _split(self, rows: Ints, column: int) -> list[Part]:
        """The column's values in parts of enough people; one part where they cannot be told apart."""
        import numpy as np

        values, parts = np.unique(self.holders.codes[rows, column], return_inverse=True)
        if len(values) < 2:
            return [(values.tolist(), rows)]
        enough = self.holders.enough(rows, parts, len(values))
        order = np.argsort(parts, kind="stable")
        pieces = np.split(rows[order], np.cumsum(np.bincount(parts))[:-1])
        found = [([int(values[i])], pieces[i]) for i in np.flatnonzero(enough)]
        small = [([int(values[i])], pieces[i]) for i in np.flatnonzero(~enough)]
        return sorted(self._gathered(found, small), key=lambda part: part[0])

    def _gathered(self, found: list[Part], small: list[Part]) -> list[Part]:
        """The small values, the last first, as many as are enough; the rest join the smallest part."""
        import numpy as np

        tally = _Tally(self.holders)
        pending: list[Part] = []
        while small or (pending and found):
            if not small:
                small = [min(found, key=lambda part: (self.holders.num_people(part[1]), part[0]))]
                found = [part for part in found if part[0] != small[0][0]]
            pending.append(small.pop())
            tally.add(*pending[-1])
            if tally.is_enough():
                found.append((sorted(tally.values), np.concatenate([rows for _, rows in pending])))
                tally, pending = _Tally(self.holders), []
        return found


def numbered(column: Any) -> tuple[list[Any], Ints]:
    """An Arrow column's values in order, the unknown one last, and for each row the number of its value."""
    import numpy as np
    import pyarrow as pa

    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = encoded.dictionary.to_pylist()
    order = sorted(range(len(values)), key=lambda i: (values[i] is None, values[i]))
    places = np.empty(len(values), dtype=np.int64)
    places[order] = np.arange(len(values))
    indices = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    return [values[i] for i in order], places[indices] if len(values) else indices
