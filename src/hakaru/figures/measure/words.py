"""A run in words: the verdict, how many of each, the worst by name, and how far the meter can be trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from hakaru.figures.measure.view import Reading, RunView, natural
from hakaru.measure.numbers import UNKNOWN as UNKNOWN
from hakaru.measure.numbers import amount as amount
from hakaru.measure.numbers import counted as counted
from hakaru.measure.numbers import interval_text as interval_text
from hakaru.measure.numbers import share as share
from hakaru.measure.record import OWN
from hakaru.measure.store import SELFTEST
from hakaru.measure.verdict import ORDER, Verdict, worst
from hakaru.registry import listed

MOST_NAMED, MOST_LINKS, MOST_HOSTS, MOST_WRONG = 12, 6, 4, 2
TEST_IT = "hakaru bench selftest"


@dataclass(frozen=True)
class Named:
    """A device, link or group of ranks that is not good, and why; `also` are its other complaints."""

    where: str
    reading: Reading
    also: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        return self.reading.verdict

    @property
    def what(self) -> str:
        return self.reading.what

    @property
    def reason(self) -> str:
        return self.reading.reason


@dataclass(frozen=True)
class Summary:
    """What a person reads first."""

    verdict: Verdict
    sentence: str
    counts: dict[Verdict, int]
    worst: tuple[Named, ...]
    num_unnamed: int
    meter: str


def summarise(view: RunView) -> Summary:
    counts = Counter(each.verdict for each in view.judged)
    bad = _named(view.judged)
    return Summary(
        view.verdict,
        _sentence(view, counts),
        {verdict: counts[verdict] for verdict in ORDER if counts[verdict]},
        tuple(bad[:MOST_NAMED]),
        max(0, len(bad) - MOST_NAMED),
        meter_text(view),
    )


def meter_text(view: RunView) -> str:
    """How far the numbers can be trusted; nothing where there are none."""
    if view.source != OWN:
        as_reported = (
            f"The numbers are as {view.source} reported them; Hakaru did not measure them."
        )
        return " ".join(
            [as_reported, *([f"Notes: {'; '.join(view.notes)}."] if view.notes else [])]
        )
    if all(each.benchmark == SELFTEST for each in view.readings) and view.readings:
        return "This run is the self-test: the meter measured what is known."
    if not view.meters:
        return ""
    if wrong := [each.problem for each in view.meters.values() if each.problem]:
        return listed(wrong, MOST_WRONG)
    tested = {each.error: each for each in view.meters.values() if each.error is not None}
    if not tested:
        return f"The meter has not been tested: {TEST_IT}"
    largest = max(tested)
    meter = tested[largest]
    when = f" of {meter.tested_at[:10]}" if meter.tested_at else ""
    lacks = (
        f"; without a valid test: {listed(meter.untested, MOST_NAMED)}" if meter.untested else ""
    )
    accuracy = (
        f"The meter itself was off by {share(largest)} at most in its last self-test{when}{lacks}."
    )
    untested = [host for host, each in view.meters.items() if each.error is None]
    others = f" It has not been tested on {listed(untested, MOST_HOSTS)}: {TEST_IT}"
    return accuracy + (others if untested else "")


def in_zone(at: datetime, zone: str) -> datetime:
    """The site's time; UTC's where the site's is before the first year or after the last."""
    try:
        return at.astimezone(ZoneInfo(zone))
    except OverflowError:
        return at.astimezone(UTC)


def behind(each: Reading) -> str:
    """How it stands to what it was compared with; nothing where that is not known."""
    if each.deficit is None or not each.compared_with:
        return ""
    way = "slower" if each.deficit >= 0 else "faster"
    return f"{share(abs(each.deficit))} {way} than {each.compared_with}"


def _sentence(view: RunView, counts: Counter[Verdict]) -> str:
    """As `3 of 1,024 devices are slow. Of 4,230 measurements 4,218 are good and 12 are slow.`"""
    if not view.judged:
        return "Nothing was measured."
    first = [text for text in (_of_cards(view), _of_links(view)) if text]
    if len(counts) == 1:
        (verdict,) = counts
        all = (
            f"All {len(view.judged):,} measurements" if len(view.judged) > 1 else "One measurement"
        )
        return " ".join([*first, f"{all}: {verdict}."])
    many = ", ".join(f"{counts[v]:,} {v}" for v in reversed(ORDER) if counts[v])
    return " ".join([*first, f"Measurements: {many}."])


def _of_cards(view: RunView) -> str:
    devices: dict[tuple[str, str], list[Verdict]] = {}
    for each in view.cards:
        devices.setdefault((each.host, each.device), []).append(each.verdict)
    return _of_many([worst(each) for each in devices.values()], "device")


def _of_links(view: RunView) -> str:
    return _of_many([each.verdict for each in view.readings if each.is_link], "link")


def _of_many(verdicts: Sequence[Verdict], what: str) -> str:
    counts = Counter(verdicts)
    if not verdicts:
        return ""
    every = ", ".join(f"{counts[v]:,} {v}" for v in ORDER if counts[v])
    alone = "all good" if set(counts) == {Verdict.GOOD} else every
    return f"Of {counted(len(verdicts), what)}: {alone}."


def _named(readings: Sequence[Reading]) -> list[Named]:
    """Everything that is not good, each place once, the worst first; links of one cause are one."""
    places: dict[str, list[Reading]] = {}
    for each in readings:
        if each.verdict is not Verdict.GOOD:
            key = each.reason.partition(";")[0] if each.is_link else each.where
            places.setdefault(key, []).append(each)
    ordered = sorted(places.items(), key=lambda item: (*_badness(item[1]), natural(item[0])))
    return [_name(sorted(bad, key=lambda each: _badness([each]))) for _, bad in ordered]


def _badness(readings: Sequence[Reading]) -> tuple[int, bool, float]:
    """By verdict; then devices before links, and who lacks more before who lacks less."""
    return (
        min(ORDER.index(each.verdict) for each in readings),
        readings[0].is_link,
        -max(each.deficit or 0.0 for each in readings),
    )


def _name(bad: Sequence[Reading]) -> Named:
    if bad[0].is_link:
        many = f"{counted(len(bad), 'link')}: " if len(bad) > 1 else ""
        return Named(many + listed((each.device for each in bad), MOST_LINKS), bad[0])
    # a setting once, whichever of its quantities
    settings = dict.fromkeys(f"{each.what} ({each.verdict})" for each in bad)
    return Named(bad[0].where, bad[0], tuple(settings)[1 : MOST_NAMED + 1])
