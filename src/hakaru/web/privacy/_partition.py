"""The one fixed partition of a cluster's jobs, from which a user's questions are answered.

It is made from the lake alone and never from a question. An answer covers the cells that lie wholly inside
its conditions, so that sums and differences of any answers are made of whole cells: of six people or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hakaru.analyses import STEPS, Branch, Check, Selection, Session
from hakaru.formats.logs import log_of
from hakaru.web.privacy._people import FEWEST, per_file
from hakaru.web.privacy._tree import Grower, Holders, Node, numbered
from hakaru.web.readers import Readers

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

COLUMNS = (
    "queue", "state", "ran_minute", "parallelism", "size_class", "month", "application", "fate",
)  # fmt: skip
# Names that people choose, as many as they like. A name of fewer than six people can make no cell of its
# own, so all of these are one value, which is no answer to any condition.
NAMES = ("queue", "application")
OTHER = object()
# What is summed or ranked, and which jobs have it: in every cell they are of six people or none.
MEASURES = {
    "hours": "pe_hours > 0",
    "waits": "wait_s IS NOT NULL",
    "runs": "run_s IS NOT NULL",
    "requests": "run_s IS NOT NULL AND requested_s IS NOT NULL",
}
Wanted = Mapping[str, Callable[[Any], bool]]


@dataclass(frozen=True)
class Partition:
    """The cells: `alone` has, for each column, the number of the value that all jobs of a cell have.

    Where they have several it is -1, and the cell answers no condition on that column: which values they
    are would tell of one person's job. For the same reason such a cell may hold any value.
    """

    values: Mapping[str, list[Any]]
    alone: Mapping[str, NDArray[np.int64]]
    tree: Node
    measures: frozenset[str]

    @property
    def nbytes(self) -> int:
        return sum(int(each.nbytes) for each in self.alone.values())

    def choose(self, wanted: Wanted, keys: Sequence[str] = ()) -> Chosen:
        """The cells all of whose jobs are wanted, and that hold one value of each key."""
        import numpy as np

        inside = np.ones(self.tree.last, dtype=bool)
        possible = inside.copy()
        for name, test in wanted.items():
            values, alone = self.values[name], self.alone[name]
            passes = [bool(test(value)) for value in values]
            may_pass = [bool(test(value)) or not _is_shown(name, value) for value in values]
            inside &= np.array([*passes, False])[alone]  # the last is of -1
            possible &= np.array([*may_pass, True])[alone]
        for key in keys:
            inside &= self.alone["month" if key == "quarter" else key] >= 0
        return Chosen(self, inside, bool((possible & ~inside).any()))

    def values_of(self, column: str) -> list[Any]:
        """The values that a question can be asked for: there is a cell of each alone."""
        return self.choose({}).values_of(column)


@dataclass(frozen=True)
class Chosen:
    """Some cells; `is_partial` where others may hold wanted jobs, which are left out.

    It follows from values that answers show, and so tells nothing that they do not.
    """

    partition: Partition
    inside: NDArray[np.bool_]
    is_partial: bool

    def __bool__(self) -> bool:
        return bool(self.inside.any())

    def values_of(self, column: str) -> list[Any]:
        """The values of which one of these cells is alone."""
        found = sorted({int(value) for value in self.partition.alone[column][self.inside]} - {-1})
        return [self.partition.values[column][i] for i in found]

    def branches(self) -> tuple[Branch, ...]:
        """As data for the engine, with whole branches of the tree in one; none where all cells are chosen."""
        found = self._branch(self.partition.tree, ())
        return () if found is None or found == Branch(()) else (found,)

    def _branch(self, node: Node, tests: tuple[Check, ...]) -> Branch | None:
        inside = self.inside[node.first : node.last]
        if not inside.any():
            return None
        if inside.all():
            return Branch(tests)
        found = [self._branch(part, (self._test(node, values),)) for values, part in node.parts]
        return Branch(tests, tuple(each for each in found if each is not None))

    def _test(self, node: Node, values: tuple[int, ...]) -> Check:
        name = COLUMNS[node.column]
        known = self.partition.values[name]
        if known[-1] is OTHER and len(known) - 1 in values:
            return Check(
                name, tuple(known[i] for i in range(len(known)) if i not in values), "not in"
            )
        return Check(name, tuple(known[i] for i in values), "in")


def size_bounds(size_class: int) -> tuple[int, int]:
    """The least and the greatest size of a class: 1, 2, 3 to 4, 5 to 8, and so on; -1 is none."""
    if size_class < 1:
        return size_class + 1, size_class + 1
    return 2 ** (size_class - 1) + 1, 2**size_class


def partition_of(readers: Readers, cluster: str) -> Partition | None:
    """The cluster's partition in the lake's present version; None where too few people ran jobs."""
    by_file = per_file(readers, (cluster,))

    def make(session: Session) -> Partition | None:
        held = session.ask(_holders_sql(by_file), Selection(clusters=(cluster,)))
        return partitioned(held, by_file)

    return readers.ask(("partition", cluster, by_file), make)


def partitioned(held: pa.Table, by_file: bool) -> Partition | None:
    """The partition of jobs that are held as the table says: a row a combination of values and holder."""
    import numpy as np

    numbers = {name: _numbered(held, name) for name in COLUMNS}
    codes = np.stack([codes for _, codes in numbers.values()], axis=1)
    holders, known = _holders(held, codes, by_file)
    everything = np.arange(len(codes))
    if not holders.is_enough(everything):
        return None
    cells = np.zeros(len(codes), dtype=np.int64)
    tree = Grower(holders, cells).grow(everything)
    values = {name: values for name, (values, _) in numbers.items()}
    alone = {
        name: _alone(codes[:, i], cells, tree.last, values[name]) for i, name in enumerate(COLUMNS)
    }
    return Partition(values, alone, tree, known)


def _is_shown(column: str, value: Any) -> bool:
    """Whether a question can ask for the value: none asks for what is unknown, or for short runs."""
    return value is not None and (column != "ran_minute" or bool(value))


def _numbered(held: pa.Table, name: str) -> tuple[list[Any], NDArray[np.int64]]:
    """A column's values, and each row's by number; the last is OTHER where there are names of few people."""
    import numpy as np

    values, codes = numbered(held[name])
    if name not in NAMES:
        return values, codes
    rare = np.asarray(held[f"{name}_is_rare"].to_numpy(zero_copy_only=False), dtype=bool)
    if not rare.any():
        return values, codes
    if values[-1] is None and (codes[~rare] < len(values) - 1).all():
        values = values[:-1]  # it stood for the rare ones
    return [*values, OTHER], np.where(rare, len(values), codes)


def _alone(
    codes: NDArray[np.int64], cells: NDArray[np.int64], num: int, values: Sequence[Any]
) -> NDArray[np.int64]:
    """The one value of each cell, -1 where it has several, as OTHER has."""
    import numpy as np

    least, most = np.full(num, np.iinfo(np.int64).max), np.full(num, -1)
    np.minimum.at(least, cells, codes)
    np.maximum.at(most, cells, codes)
    is_one = least == most
    if values[-1] is OTHER:
        is_one &= most < len(values) - 1
    return np.where(is_one, most, -1)


def _holders(
    held: pa.Table, codes: NDArray[np.int64], by_file: bool
) -> tuple[Holders, frozenset[str]]:
    """The rows for the tree, and the measures that enough people have: no other is ever shown."""
    import numpy as np

    names, users = numbered(held["holder"])
    unknown = names.index(None) if None in names else -1
    first = [(name or "").split("/", 1)[0] if by_file else "" for name in names]
    logs = np.array([sorted(set(first)).index(each) for each in first], dtype=np.int64)[users]
    users = np.where(users == unknown, -1, users)
    has = {name: np.asarray(held[name].to_numpy(zero_copy_only=False)) for name in MEASURES}
    alone = Holders(codes, users, logs, ())
    known = [name for name, rows in has.items() if alone.num_people(np.flatnonzero(rows)) >= FEWEST]
    return replace(alone, measures=[has[name] for name in known]), frozenset(known)


def _holders_sql(by_file: bool) -> str:
    columns = [
        f"{STEPS.get(name, f'jobs.{name}')} AS {name}" for name in COLUMNS if name not in NAMES
    ]
    names = [
        f"CASE WHEN {name}_held.is_common THEN jobs.{name} END AS {name}, "
        f"{name}_held.is_common IS NULL AS {name}_is_rare"
        for name in NAMES
    ]
    measures = [f"coalesce({sql}, false) AS {name}" for name, sql in MEASURES.items()]
    return f"""
        SELECT DISTINCT {", ".join([*names, *columns, "jobs.user AS holder", *measures])}
        FROM jobs {" ".join(_join_common(name, by_file) for name in NAMES)}
    """


def _join_common(name: str, by_file: bool) -> str:
    """Joins the names that enough people have; of several logs, those of the fullest count."""
    log = log_of("jobs.user") if by_file else "''"
    return f"""
        LEFT JOIN (
            SELECT common_name, true AS is_common
            FROM (SELECT jobs.{name} AS common_name, {log} AS log, count(DISTINCT jobs.user) AS num
                  FROM jobs GROUP BY jobs.{name}, {log}) AS counted
            GROUP BY common_name HAVING max(num) >= {FEWEST}
        ) AS {name}_held ON jobs.{name} IS NOT DISTINCT FROM {name}_held.common_name
    """
