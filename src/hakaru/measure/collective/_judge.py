"""Links are judged together: the pair probe's rates name the host or the link that is slow.

A link is called `n1#0>n2#8`: hosts, and the ranks that took part. Links between hosts are compared with one
another. Links inside a host differ by design (NVLink, one switch, two sockets), so that each is compared with
the same one of the other hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from hakaru.measure.collective._blame import SLOW_BELOW, Blame, Link, blame, bottleneck_of
from hakaru.measure.collective.pairs import ARROW, NUMBER
from hakaru.measure.record import Measurement, parameters_text
from hakaru.measure.verdict import Verdict

Probe = tuple[str, str, float]  # the link's name, the parameters as text, GB/s
Group = tuple[str, bool]  # the parameters, and whether the links are inside hosts
LEAST_HOSTS = 3  # of two, nobody can say which is the slow one
NOT_COMPARED = "correct and valid; links inside a host are compared between three hosts or more"


def blame_links(probes: Iterable[Probe], inside: bool = False) -> Blame | None:
    """What the pair probes between the hosts of a run say together, or those inside them."""
    found = [group for (_, within), group in _groups(probes).items() if within is inside]
    return _blame(found[-1], inside) if found else None


def judge_links(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The measurements with each pair's link judged; the others stay as they are."""
    probes = [probe for each in measurements if (probe := _probe(each)) is not None]
    groups = _groups(probes)
    blames = {group: _blame(rates, group[1]) for group, rates in groups.items()}
    judged = []
    for each in measurements:
        probe = _probe(each)
        group = _group(*probe[:2]) if probe else None
        if group is None:
            judged.append(each)
        elif group[1]:
            judged.append(_judged_inside(each, _peers(each.device, groups[group])))
        else:
            judged.append(_judged(each, blames[group]))
    return judged


def _probe(each: Measurement) -> Probe | None:
    is_link = each.benchmark == "pairs" and ARROW in each.device
    if not is_link or each.verdict is not Verdict.GOOD or not each.median:
        return None
    return each.device, parameters_text(each.parameters), each.median


def _group(name: str, parameters: str) -> Group:
    source, target = _hosts(name)
    return parameters, source == target


def _groups(probes: Iterable[Probe]) -> dict[Group, dict[str, float]]:
    """The rates by the link's name; those of one group are compared."""
    groups: dict[Group, dict[str, float]] = {}
    for name, parameters, rate in probes:
        groups.setdefault(_group(name, parameters), {})[name] = rate
    return groups


def _blame(rates: Mapping[str, float], inside: bool) -> Blame:
    if not inside:
        return blame({_hosts(name): rate for name, rate in rates.items()}, _ring(rates, _hosts))
    links = {_ends(name): rate for name, rate in rates.items()}
    slow = tuple(_ends(name) for name, rate in rates.items() if _is_slow(rate, _peers(name, rates)))
    ring = _ring(rates, _ends)
    return Blame(median(rates.values()), (), slow, *bottleneck_of(ring, links), tuple(ring))


def _peers(name: str, rates: Mapping[str, float]) -> list[float]:
    """The rates of the same link of the other hosts."""
    first: dict[str, int] = {}
    for each in rates:
        for end in _ends(each):
            host, rank = _rank(end)
            first[host] = min(rank, first.get(host, rank))

    def place(called: str) -> tuple[int, ...]:
        return tuple(rank - first[host] for host, rank in map(_rank, _ends(called)))

    own = place(name)
    return [rate for each, rate in rates.items() if each != name and place(each) == own]


def _is_slow(rate: float, peers: Sequence[float]) -> bool:
    return len(peers) + 1 >= LEAST_HOSTS and rate < SLOW_BELOW * median(peers)


def _ring(names: Iterable[str], called_by: Callable[[str], Link]) -> list[str]:
    """The order in which all-reduce walks: that of the ranks."""
    ranks: dict[str, int] = {}
    for name in names:
        for end, called in zip(_ends(name), called_by(name), strict=True):
            ranks.setdefault(called, _rank(end)[1] if NUMBER in end else len(ranks))
    return sorted(ranks, key=ranks.__getitem__)


def _ends(name: str) -> Link:
    source, _, target = name.partition(ARROW)
    return source, target


def _hosts(name: str) -> Link:
    """Between hosts it is the host that is blamed, whichever of its ranks took part."""
    source, target = (_rank(end)[0] for end in _ends(name))
    return source, target


def _rank(end: str) -> tuple[str, int]:
    host, _, number = end.partition(NUMBER)
    return host, int(number) if number.isdecimal() else 0


def _judged(each: Measurement, found: Blame) -> Measurement:
    ends = _hosts(each.device)
    share = (each.median or 0.0) / found.reference
    reason = f"{share:.0%} of the median of the hosts' best links"
    compared = {
        "reference": found.reference,
        "compared_with": "the median of the hosts' best links",
    }
    for name in found.hosts:
        if name in ends:
            reason = f"{name} is slow to all its partners; {reason}"
            return each.judged(Verdict.SLOW, reason, **compared)
    if ends in found.links:
        return each.judged(
            Verdict.SLOW, f"this link is slow, its ends are not; {reason}", **compared
        )
    return each.judged(Verdict.GOOD, reason, **compared)


def _judged_inside(each: Measurement, peers: Sequence[float]) -> Measurement:
    rate = each.median or 0.0
    if len(peers) + 1 < LEAST_HOSTS:
        return each.judged(Verdict.GOOD, NOT_COMPARED)
    compared = {"reference": median(peers), "compared_with": "the same link of the other hosts"}
    reason = f"{rate / median(peers):.0%} of the same link of the other hosts"
    verdict = Verdict.SLOW if _is_slow(rate, peers) else Verdict.GOOD
    return each.judged(verdict, reason, **compared)
