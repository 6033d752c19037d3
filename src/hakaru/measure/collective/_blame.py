"""Who is to blame for a slow exchange: a host whose links are all slow, or one link between healthy hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

SLOW_BELOW = 0.8  # of the median of the hosts' best links
MOST_NAMED = 8
Link = tuple[str, str]


@dataclass(frozen=True)
class Blame:
    """What the pair probe says: slow hosts, slow links, and the link that bounds the ring."""

    reference: float
    hosts: tuple[str, ...]
    links: tuple[Link, ...]
    bottleneck: Link | None
    bottleneck_rate: float | None
    ring: tuple[str, ...]

    @property
    def sentence(self) -> str:
        parts = [f"{host} is slow to all its partners" for host in self.hosts]
        parts += [f"the link from {a} to {b} is slow" for a, b in self.links]
        if self.bottleneck and self.bottleneck_rate is not None:
            source, target = self.bottleneck
            bound = f"is bound by {source} to {target} at {self.bottleneck_rate:.3g} GB/s"
            parts.append(f"the ring {self._walk} {bound}")
        return "; ".join(parts)

    @property
    def _walk(self) -> str:
        """The order of the ring; of a long one its beginning."""
        more = ["…"] if len(self.ring) > MOST_NAMED else []
        return " → ".join([*self.ring[:MOST_NAMED], *more, self.ring[0]])


def is_slow(best: float, reference: float) -> bool:
    """Whether even the best repetition is below the limit.

    A bad link is slow each time; one that was busy with other traffic now and then is not.
    """
    return best < SLOW_BELOW * reference


def blame(
    rates: Mapping[Link, float], ring: Sequence[str] = (), best: Mapping[Link, float] | None = None
) -> Blame:
    """Judge directed links by their rates in GB/s, and by those of their best repetitions if they are given.

    `ring` is the order in which all-reduce walks.
    """
    fastest: dict[str, float] = {}
    for link, rate in rates.items():
        for host in link:
            fastest[host] = max(rate, fastest.get(host, rate))
    hosts = list(fastest)
    reference = median(fastest.values()) if fastest else 0.0
    slow = {link for link, rate in (best or rates).items() if is_slow(rate, reference)}
    # with two hosts nobody can say which of them it is
    slow_hosts = _slow_to_all(rates, slow) if len(hosts) >= 3 else set()
    blamed = tuple(host for host in hosts if host in slow_hosts)
    links = tuple(link for link in rates if link in slow and not set(link) & slow_hosts)
    order = tuple(dict.fromkeys(ring)) or tuple(hosts)
    return Blame(reference, blamed, links, *bottleneck_of(order, rates), order)


def _slow_to_all(links: Iterable[Link], slow: set[Link]) -> set[str]:
    """Hosts of which all that they send, or all that they receive, is slow, with two partners at least."""
    found: set[str] = set()
    for end in (0, 1):
        own: dict[str, list[bool]] = {}
        for link in links:
            own.setdefault(link[end], []).append(link in slow)
        found |= {host for host, each in own.items() if len(each) >= 2 and all(each)}
    return found


def bottleneck_of(
    order: Sequence[str], rates: Mapping[Link, float]
) -> tuple[Link | None, float | None]:
    around = [(a, b) for a, b in zip(order, [*order[1:], *order[:1]], strict=True) if a != b]
    known = {link: rates[link] for link in around if link in rates}
    if not known:
        return None, None
    link = min(known, key=lambda each: known[each])
    return link, known[link]
