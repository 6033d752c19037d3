"""One small registry, so that what is declared once appears everywhere it is needed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from hakaru.errors import HakaruError

KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\+\+)?")  # easy++ has its name from the literature


class Named(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Named)


MOST_NAMES = 40


def hint(name: str, known: Iterable[str], most: int = MOST_NAMES) -> str:
    """What a mistyped name may have meant, else the names that there are, `most` of them."""
    names = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), names, n=3)
    if near:
        return f"did you mean {' or '.join(names[each] for each in near)}?"
    return f"known: {listed(names.values(), most)}"


def listed(names: Iterable[str], most: int = MOST_NAMES) -> str:
    """`a, b, c and 5 more`: the first of the names, and how many are left unsaid."""
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return (", ".join(every[:most]) or "none") + more


class Registry(Generic[T]):
    """Things of one kind by their kebab-case id, in the order in which they were declared or sorted."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._items: dict[str, T] = {}

    def add(self, item: T) -> T:
        if not KEBAB.fullmatch(item.id):
            raise ValueError(f"{self.kind} id {item.id!r} is not kebab-case")
        if item.id in self._items:
            raise ValueError(f"{self.kind} {item.id!r} is registered twice")
        self._items[item.id] = item
        return item

    def sort(self, key: Callable[[T], Any]) -> None:
        """Put them in order; those of one key stay as they were declared."""
        self._items = {item.id: item for item in sorted(self._items.values(), key=key)}

    def get(self, id: str) -> T:
        if id in self._items:
            return self._items[id]
        raise HakaruError(f"there is no {self.kind} {id!r}; {hint(id, self._items)}")

    def ids(self) -> list[str]:
        return list(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, id: object) -> bool:
        return id in self._items
