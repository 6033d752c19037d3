"""The ranks that load together: who shares a host, and what they agree on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hakaru.errors import HakaruError
from hakaru.measure._base import WrongResult
from hakaru.measure.context import Ranks
from hakaru.measure.place import host_name
from hakaru.measure.storage._order import Share

T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """The ranks with the host of each; `share` gives every rank what all of them say."""

    ranks: Ranks
    hosts: Sequence[str]

    @classmethod
    def of(cls, ranks: Ranks) -> Group:
        return cls(ranks, share(ranks, host_name()))

    @property
    def share_of_data(self) -> Share:
        return Share(self.ranks.rank, self.ranks.size)

    @property
    def is_first(self) -> bool:
        """Of its host: the one that makes data sets and evicts them."""
        return self.hosts.index(self.hosts[self.ranks.rank]) == self.ranks.rank

    @property
    def leader(self) -> int:
        """The first rank of this host."""
        return self.hosts.index(self.hosts[self.ranks.rank])

    @property
    def num_local(self) -> int:
        return self.hosts.count(self.hosts[self.ranks.rank])

    def share(self, value: Any) -> list[Any]:
        return share(self.ranks, value)

    def agree(self, problem: str | Exception | None) -> None:
        """One rank's problem is everybody's: all of them raise it, and nobody waits for who is gone."""
        is_wrong = isinstance(problem, WrongResult)
        told = None if problem is None else (is_wrong, _worded(problem))
        if found := next((each for each in self.share(told) if each), None):
            raise WrongResult(found[1]) if found[0] else HakaruError(found[1])

    def together(self, act: Callable[[], T]) -> T:
        """Every rank does it, and none goes on before all have; a problem of one is raised by all."""
        try:
            found = act()
        except Exception as error:
            self.agree(error)
            raise
        self.agree(None)
        return found

    def firsts(self, act: Callable[[], T]) -> T | None:
        """The first rank of each host does it; None on the others."""
        return self.together(lambda: act() if self.is_first else None)

    def total(self, value: int | None) -> int | None:
        """The sum over all ranks; unknown where one of them does not know."""
        every = self.share(value)
        return None if None in every else sum(every)

    def of_hosts(self, value: Any) -> list[Any]:
        """What the first rank of each host says, such as the counter of a disk that its ranks share."""
        every = self.share(value)
        firsts = [at for at, host in enumerate(self.hosts) if self.hosts.index(host) == at]
        return [every[at] for at in firsts]


def _worded(problem: str | Exception) -> str:
    """The kernel's refusals name a file and say why; what nobody foresaw keeps the name of its kind."""
    if isinstance(problem, OSError) and problem.strerror:
        where = f"{problem.filename}: " if problem.filename else ""
        return f"{where}{problem.strerror}"
    if isinstance(problem, str | HakaruError | WrongResult):
        return str(problem)
    return f"{type(problem).__name__}: {problem}"


def share(ranks: Ranks, value: Any) -> list[Any]:
    """One process is a group of its own."""
    return list(ranks.share(value)) if ranks.size > 1 else [value]  # type: ignore[attr-defined]
