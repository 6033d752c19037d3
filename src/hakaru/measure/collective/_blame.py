"""Who is to blame for a slow exchange: a host whose links are all slow, or one link between healthy hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def blame(rates: Mapping[Link, float], ring: Sequence[str] = ()) -> Blame:
    """Judge directed links by their rates in GB/s; `ring` is the order in which all-reduce walks."""
    hosts = list(dict.fromkeys(name for link in rates for name in link))
    best = [max(rate for link, rate in rates.items() if host in link) for host in hosts]
    reference = median(best) if best else 0.0
    slow = {link for link, rate in rates.items() if rate < SLOW_BELOW * reference}
    blamed = tuple(host for host in hosts if _is_slow(host, rates, slow))
    # with two hosts nobody can say which of them it is
    if len(hosts) < 3:
        blamed = ()
    links = tuple(link for link in rates if link in slow and not set(link) & set(blamed))
    order = tuple(dict.fromkeys(ring)) or tuple(hosts)
    bottleneck, rate = bottleneck_of(order, rates)
    return Blame(reference, blamed, links, bottleneck, rate, order)


def _is_slow(host: str, rates: Mapping[Link, float], slow: set[Link]) -> bool:
    """All that it sends, or all that it receives, is slow, and there are two partners at least."""
    for end in (0, 1):
        own = [link for link in rates if link[end] == host]
        if len(own) >= 2 and all(link in slow for link in own):
            return True
    return False


def bottleneck_of(
    order: Sequence[str], rates: Mapping[Link, float]
) -> tuple[Link | None, float | None]:
    around = [(a, b) for a, b in zip(order, [*order[1:], *order[:1]], strict=True) if a != b]
    known = {link: rates[link] for link in around if link in rates}
    if not known:
        return None, None
    link = min(known, key=lambda each: known[each])
    return link, known[link]
