"""Links are judged together: the pair probe's rates name the host, the rank or the link that is slow.

A link is called `n1#0>n2#8`: hosts, and the ranks that took part. Links between hosts are compared with one
another. Links inside a host differ by design (NVLink, one switch, two sockets), so that each is compared with
the same one of the other hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from hakaru.measure.collective._blame import Blame, Link, blame, bottleneck_of, is_slow
from hakaru.measure.collective.pairs import ARROW, NUMBER
from hakaru.measure.record import Measurement, parameters_text
from hakaru.measure.verdict import Verdict

Group = tuple[str, bool]  # the parameters, and whether the links are inside hosts
LEAST_HOSTS = 3  # of two, nobody can say which is the slow one
NOT_COMPARED = "correct and valid; links inside a host are compared between three hosts or more"
UNSURE = "but the repetitions differ too much to tell; measure again when the network is idle"


class Probe(NamedTuple):
    """What was measured of a link: GB/s in the median, and in the best repetition."""

    name: str
    parameters: str
    rate: float
    best: float


Probes = Mapping[str, Probe]  # by the link's name


def blame_links(probes: Iterable[Probe], inside: bool = False) -> Blame | None:
    """What the pair probes between the hosts of a run say together, or those inside them."""
    found = [group for (_, within), group in _groups(probes).items() if within is inside]
    return _blame(found[-1], inside) if found else None


def judge_links(measurements: Sequence[Measurement]) -> list[Measurement]:
    """The measurements with each pair's link judged; the others stay as they are."""
    probes = [probe for each in measurements if (probe := _probe(each)) is not None]
    groups = _groups(probes)
    blames = {group: _blame(own, group[1]) for group, own in groups.items()}
    judged = []
    for each in measurements:
        probe = _probe(each)
        group = _group(probe) if probe else None
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
    return Probe(each.device, parameters_text(each.parameters), each.median, max(each.samples))


def _group(probe: Probe) -> Group:
    source, target = _hosts(probe.name)
    return probe.parameters, source == target


def _groups(probes: Iterable[Probe]) -> dict[Group, dict[str, Probe]]:
    """Those of one group are compared."""
    groups: dict[Group, dict[str, Probe]] = {}
    for each in probes:
        groups.setdefault(_group(each), {})[each.name] = each
    return groups


def _blame(probes: Probes, inside: bool) -> Blame:
    if not inside:
        return _blame_between(probes)
    rates = {_ends(name): each.rate for name, each in probes.items()}
    slow = tuple(
        _ends(name) for name, each in probes.items() if _is_slow(each, _peers(name, probes))
    )
    ring = _ring(probes, _ends)
    return Blame(median(rates.values()), (), slow, *bottleneck_of(ring, rates), tuple(ring))


def _blame_between(probes: Probes) -> Blame:
    """Ranks may have an adapter each: a rank is blamed alone, and its host if all of its ranks are."""
    rates = {_ends(name): each.rate for name, each in probes.items()}
    found = blame(rates, best={_ends(name): each.best for name, each in probes.items()})
    ranks: dict[str, set[str]] = {}
    for end in (end for link in rates for end in link):
        ranks.setdefault(_rank(end)[0], set()).add(end)
    hosts = [host for host, own in ranks.items() if own <= set(found.hosts)]
    single = [end for end in found.hosts if _rank(end)[0] not in hosts]

    def called(end: str) -> str:
        host = _rank(end)[0]
        return host if len(ranks[host]) == 1 else end

    slowest: dict[Link, float] = {}
    for name, each in probes.items():
        slowest[_hosts(name)] = min(each.rate, slowest.get(_hosts(name), each.rate))
    ring = _ring(probes, _hosts)
    links = tuple((called(source), called(target)) for source, target in found.links)
    bottleneck = bottleneck_of(ring, slowest)
    return Blame(found.reference, (*hosts, *single), links, *bottleneck, tuple(ring))


def _peers(name: str, probes: Probes) -> list[float]:
    """The rates of the same link of the other hosts."""
    first: dict[str, int] = {}
    for each in probes:
        for end in _ends(each):
            host, rank = _rank(end)
            first[host] = min(rank, first.get(host, rank))

    def place(called: str) -> tuple[int, ...]:
        return tuple(rank - first[host] for host, rank in map(_rank, _ends(called)))

    own = place(name)
    return [each.rate for each in probes.values() if each.name != name and place(each.name) == own]


def _is_slow(probe: Probe, peers: Sequence[float]) -> bool:
    return len(peers) + 1 >= LEAST_HOSTS and is_slow(probe.best, median(peers))


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
    judged = _compared(each, found.reference, "the median of the hosts' best links")
    ends = (*_hosts(each.device), *_ends(each.device))
    blamed = next((name for name in found.hosts if name in ends), None)
    if blamed is not None:
        reason = f"{blamed} is slow to all its partners; {_share(judged)}"
    elif judged.verdict is Verdict.SLOW:
        reason = f"this link is slow, its ends are not; {_share(judged)}"
    else:
        return judged
    return judged.judged(Verdict.SLOW, reason)


def _judged_inside(each: Measurement, peers: Sequence[float]) -> Measurement:
    if len(peers) + 1 < LEAST_HOSTS:
        return each.judged(Verdict.GOOD, NOT_COMPARED)
    return _compared(each, median(peers), "the same link of the other hosts")


def _compared(each: Measurement, reference: float, what: str) -> Measurement:
    judged = each.judged(Verdict.GOOD, "", reference=reference, compared_with=what)
    if is_slow(max(each.samples), reference):
        return judged.judged(Verdict.SLOW, _share(judged))
    if is_slow(each.median or 0.0, reference):
        return judged.judged(Verdict.NOT_MEASURED, f"{_share(judged)}, {UNSURE}")
    return judged.judged(Verdict.GOOD, _share(judged))


def _share(each: Measurement) -> str:
    return f"{(each.median or 0.0) / (each.reference or 1.0):.0%} of {each.compared_with}"
