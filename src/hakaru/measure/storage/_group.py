"""The ranks that load together: who shares a host, and what they agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.context import Ranks
from hakaru.measure.place import host_name
from hakaru.measure.storage._order import Share


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

    def agree(self, problem: str | None) -> None:
        """One rank's problem is everybody's: all of them raise it, and nobody waits for who is gone."""
        if found := next((each for each in self.share(problem) if each), None):
            raise HakaruError(found)

    def total(self, value: int | None) -> int | None:
        """The sum over all ranks; unknown where one of them does not know."""
        every = self.share(value)
        return None if None in every else sum(every)

    def of_hosts(self, value: Any) -> list[Any]:
        """What the first rank of each host says, such as the counter of a disk that its ranks share."""
        every = self.share(value)
        firsts = [at for at, host in enumerate(self.hosts) if self.hosts.index(host) == at]
        return [every[at] for at in firsts]


def share(ranks: Ranks, value: Any) -> list[Any]:
    """One process is a group of its own."""
    return list(ranks.share(value)) if ranks.size > 1 else [value]  # type: ignore[attr-defined]
