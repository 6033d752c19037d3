"""How measurements are judged: devices against their peers, anything against a baseline.

A measurement comes in as *good* if it was made, is valid and is correct. What it is compared with, and how
surely, is part of the verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from hakaru.measure import gpu
from hakaru.measure.baseline import CORRELATED_FROM, Baseline, Part, can_be_repeated
from hakaru.measure.fleet import (
    CONFIDENCE,
    MOST_REPETITIONS,
    Limits,
    Named,
    State,
    assess,
    name_slow,
)
from hakaru.measure.record import CHECK_UNIT, Measurement, Subject
from hakaru.measure.statistics import LEAST_LEVEL
from hakaru.measure.verdict import Verdict
from hakaru.registry import listed

EXPLAINS = 0.5  # of what a core lacks: others that took so much are the likelier reason
BASELINE = "baseline "  # and its name, of what it was compared with
SURE = f"each bound is wrong in {1 - CONFIDENCE:.1%} of cases"
NOISY = "too noisy a quantity to be compared with the baseline"
ALONE = "correct and valid; there is nothing to compare it with yet"


def judge_devices(measurements: Sequence[Measurement], limits: Limits) -> list[Measurement]:
    """Compare each device with the others of its model."""
    judged = [checked(each) for each in measurements]
    for places in _fleets(judged):
        fleet = [judged[at] for at in places]
        for at, verdict in zip(places, _judge_fleet(fleet, limits), strict=True):
            judged[at] = verdict
    return [by_its_record(each) for each in judged]


def by_its_record(each: Measurement) -> Measurement:
    """What the link, the driver and the quota say of a device, whatever its peers do."""
    return _with_others(_with_quota(_with_faults(_with_link(each))))


def checked(each: Measurement) -> Measurement:
    """A good measurement must have repetitions, all of them numbers above 0; a share may be 0."""
    least = 0.0 if each.unit == CHECK_UNIT else math.ulp(0.0)
    wrong = sum(not least <= value < math.inf for value in each.samples)
    if each.verdict is not Verdict.GOOD or (each.samples and not wrong):
        return each
    if not each.samples:
        return each.judged(Verdict.NOT_MEASURED, "the result has no repetitions")
    reason = f"{wrong} of {len(each.samples)} repetitions are not numbers above 0"
    return each.judged(Verdict.FAILED, reason)


def wanted_again(
    measurements: Sequence[Measurement], limits: Limits
) -> list[tuple[Measurement, int]]:
    """What the next round measures, and how many repetitions of it: the suspects, as `inspect` does."""
    wanted = []
    for places in _fleets(measurements):
        fleet = [measurements[at] for at in places]
        if len(fleet) > 1:
            more = assess([_rates(each) for each in fleet], limits).next_round
            wanted += [(each, int(num)) for each, num in zip(fleet, more, strict=True) if num]
    return wanted


def judge_by(
    measurements: Sequence[Measurement], baseline: Baseline, limits: Limits, part: Part = ""
) -> list[Measurement]:
    """Compare with a baseline; what was asked for of it and the run lacks is not measured."""
    known = {entry.subject[:2] for entry in baseline.entries}
    found = {each.subject[:2] for each in measurements if baseline.find(each.subject)}
    beside = known & found
    kept = [each for each in measurements if not _is_beside(each, baseline, beside)]
    judged = [
        _with_others(_against(each, baseline, limits)) if can_be_repeated(each) else each
        for each in kept
    ]
    return [*judged, *_lacking(kept, baseline, part)]


def _is_beside(each: Measurement, baseline: Baseline, beside: set[tuple[str, str]]) -> bool:
    """Whether the run has it of the baseline's model too, and this is of another: nobody asked for that."""
    asked = each.verdict is not Verdict.GOOD or baseline.find(each.subject) is not None
    return not asked and each.subject[:2] in beside


def _lacking(
    measurements: Sequence[Measurement], baseline: Baseline, part: Part
) -> Iterator[Measurement]:
    """What the baseline has and the run has not, or not on as many devices of a host."""
    models = {each.model for each in measurements}
    of_others = {each.subject[:2] for each in measurements if baseline.find(each.subject) is None}
    for entry in baseline.gated:
        own = {(e.host, e.device) for e in measurements if e.subject == entry.subject}
        hosts = Counter(host for host, _ in own)
        is_asked = part != "measured" and not (part and entry.model not in models)
        if not hosts and is_asked and entry.subject[:2] not in of_others:
            yield entry.missing()
        for host, count in hosts.items():
            if count < entry.num_devices and part != "devices":
                reason = f"{count} of {entry.num_devices} devices were measured"
                yield entry.missing(host).judged(Verdict.FAILED, reason)


def _fleets(measurements: Sequence[Measurement]) -> list[list[int]]:
    """The places of those that are compared with one another."""
    fleets: dict[Subject, list[int]] = {}
    for at, each in enumerate(measurements):
        if checked(each).verdict is Verdict.GOOD:
            fleets.setdefault(each.subject, []).append(at)
    return list(fleets.values())


def _judge_fleet(fleet: Sequence[Measurement], limits: Limits) -> list[Measurement]:
    if len(fleet) < 2:
        return [each.judged(Verdict.GOOD, ALONE) for each in fleet]
    rates = [_rates(each) for each in fleet]
    medians = [median(rate) for rate in rates]
    judged = []
    for at, (each, found) in enumerate(zip(fleet, name_slow(rates, limits), strict=True)):
        others = median(m for place, m in enumerate(medians) if place != at)
        reason = _reason(found)
        judged.append(
            each.judged(
                found.state.verdict,
                reason + _cause(each, found.state.verdict),
                reference=others if each.better == "higher" else 1 / others,
                compared_with=f"{len(fleet) - 1} other device{'s' if len(fleet) > 2 else ''} of its model",
            )
        )
    return judged


def _reason(found: Named) -> str:
    low, high = found.low, found.high
    if found.state is State.NOT_MEASURED:
        return "too few repetitions to compare it with its peers"
    if found.state is State.SLOW:
        return f"{found.deficit:.1%} slower than its peers ({low:.1%} to {high:.1%}, {SURE})"
    if found.state is State.GOOD:
        return f"at most {max(high, 0):.1%} slower than its peers ({SURE})"
    many = "about" if found.needed < MOST_REPETITIONS else "more than"
    noisy = low <= -1 or high >= 1
    range_text = (
        "its repetitions differ too much"
        if noisy
        else f"{_way(low)} to {_way(high)} than its peers"
    )
    return (
        f"undecided: {range_text}; {many} {found.needed} repetitions would decide it, and it has "
        f"{found.repetitions}. Measure again with a larger --budget on a quieter machine"
    )


def _way(deficit: float) -> str:
    return f"{abs(deficit):.1%} {'slower' if deficit > 0 else 'faster'}"


def _cause(each: Measurement, verdict: Verdict) -> str:
    """What the record itself says of the reason."""
    known = [each.validity.get(name) for name in ("quota", "throttled")]
    return "".join(f"; {what}" for what in known if what and verdict is Verdict.SLOW)


def _with_link(each: Measurement) -> Measurement:
    """A card on a narrow link, or far below what its link carries, is slow whatever its peers do."""
    link = each.validity.get("link")
    if not isinstance(link, dict):
        return each
    limit = each.validity.get("link_limit_gbytes_s")
    problem = gpu.link_problem(link) or gpu.copy_problem(limit, each.median)
    if problem is None:
        return _with_unread(each, gpu.unread_of_link(link))
    if not _is_compared(each):
        return each
    reason = f"{problem}; {each.reason}" if each.verdict is Verdict.SLOW else problem
    return each.judged(Verdict.SLOW, reason)


def _with_unread(each: Measurement, unread: str | None) -> Measurement:
    """A good card of which something is not known says so."""
    if unread is None or each.verdict is not Verdict.GOOD:
        return each
    return replace(each, reason=f"{each.reason}; {unread}")


def _with_faults(each: Measurement) -> Measurement:
    """A card that its cooling or power supply slows down is slow, also if all its peers are."""
    clocks = each.validity.get("clocks")
    if not isinstance(clocks, dict):
        return each
    what = str(each.validity.get("throttled"))
    if not gpu.is_faulty(clocks):
        return _with_unread(each, gpu.unread_of_clocks(clocks))
    if not _is_compared(each) or what in each.reason:
        return each
    reason = f"{what}; {each.reason}" if each.verdict is Verdict.SLOW else what
    return each.judged(Verdict.SLOW, reason)


def _with_quota(each: Measurement) -> Measurement:
    """Under a CPU quota the numbers are not the device's, unless free peers show what it costs."""
    quota = each.validity.get("quota")
    if not quota or each.verdict is Verdict.SLOW or not _is_compared(each):
        return each
    return each.judged(Verdict.CONTAMINATED, f"{quota}; measure it without the quota")


def _with_others(each: Measurement) -> Measurement:
    """Where others took a good part of what a core lacks, it is not the core that is slow."""
    taken, ratio = each.validity.get("taken"), each.share_of_reference
    if each.verdict is not Verdict.SLOW or not taken or ratio is None:
        return each
    if taken < EXPLAINS * (1 - ratio):
        return each
    why = f"others took {taken:.1%} of its cores meanwhile: measure again when it is idle"
    return each.judged(Verdict.CONTAMINATED, f"{each.reason}; {why}")


def _is_compared(each: Measurement) -> bool:
    """Whether its numbers are valid and correct, and its peers had their say, be it undecided."""
    undecided = each.verdict is Verdict.NOT_MEASURED and bool(each.samples)
    return undecided or each.verdict in (Verdict.GOOD, Verdict.SLOW)


def _against(each: Measurement, baseline: Baseline, limits: Limits) -> Measurement:
    entry = baseline.find(each.subject)
    if each.verdict not in (Verdict.GOOD, Verdict.SLOW):
        return each
    if entry is not None and entry.is_noisy:
        return replace(each, reason=f"{each.reason}; {NOISY} {baseline.name}")
    if each.interval is None or each.interval.low <= 0:
        return each.judged(Verdict.NOT_MEASURED, "the number is zero, negative or missing")
    if entry is None:
        reason = _unknown(each, baseline)
        return each.judged(Verdict.NOT_MEASURED, reason)
    if not entry.fits(each):
        reason = f"the baseline {baseline.name} has it in {entry.unit}, {entry.better} being better"
        return each.judged(Verdict.NOT_MEASURED, reason)
    ratio, best = _ratio(each, entry.median), _ratio(each, entry.median, "best")
    worst = _ratio(each, entry.median, "worst")
    tolerance = limits.tolerance
    compared = {"reference": entry.median, "compared_with": BASELINE + baseline.name}
    share = f"{ratio:.1%} of the baseline {baseline.name}"
    is_slow = best < 1 - tolerance
    if each.interval.level < LEAST_LEVEL and not is_slow:
        num = len(each.samples)
        alike = ", each much like the one before" if num >= CORRELATED_FROM else ""
        reason = f"{share}, but too few repetitions to tell: {num}{alike}"
        return each.judged(Verdict.NOT_MEASURED, reason, **compared)
    if ratio >= 1 - tolerance and worst >= 1 - max(limits.must_find, tolerance):
        slow_here = each.verdict is Verdict.SLOW  # slower than its peers stays slow
        reason = f"{share}; {each.reason}" if slow_here else share
        return replace(each.judged(each.verdict, reason), **compared)  # type: ignore[arg-type]
    if is_slow:
        reason = f"{share}, and {1 - tolerance:.0%} is the least allowed"
        return each.judged(Verdict.SLOW, reason + _cause(each, Verdict.SLOW), **compared)
    reason = f"{share}, but the repetitions differ too much to tell; measure again with a larger --budget"
    return each.judged(Verdict.NOT_MEASURED, reason, **compared)


def _unknown(each: Measurement, baseline: Baseline) -> str:
    """Why the baseline has nothing to compare it with."""
    alike = [entry.model for entry in baseline.entries if entry.subject[:2] == each.subject[:2]]
    if models := [model for model in dict.fromkeys(alike) if model != each.model]:
        return (
            f"the baseline {baseline.name} has it of {listed(models, 3)}, and this is {each.model}"
        )
    return f"the baseline {baseline.name} has no {each.benchmark} with these parameters"


def _ratio(each: Measurement, reference: float, end: str = "") -> float:
    """How much of the reference is reached, 1 being all: by the median, or at an end of its interval."""
    interval = each.interval
    assert interval is not None
    ends = {"": interval.median, "best": interval.high, "worst": interval.low}
    if each.better == "higher":
        return ends[end] / reference
    ends |= {"best": interval.low, "worst": interval.high}
    return reference / ends[end]


def _rates(each: Measurement) -> list[float]:
    return [value if each.better == "higher" else 1 / value for value in each.samples]
