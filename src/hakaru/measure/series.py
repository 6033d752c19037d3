"""One quantity over the runs, with its steps: the series of terminal, API, page and report."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure._base import Better
from hakaru.measure.choice import (
    Own,
    measured_by,
    of_quantity,
    on_device,
    settings_of,
    with_parameters,
)
from hakaru.measure.compare import Cards, number, signed_share
from hakaru.measure.history import LEAST_RUNS, STEP, History, Suspicion, find_steps
from hakaru.measure.record import Measurement, Run, shown_parameters
from hakaru.measure.statistics import Interval, median_interval
from hakaru.measure.verdict import worst
from hakaru.registry import listed

MOST_SERIES = 40  # of settings, and of devices where each one is listed
FEW_DEVICES = 8  # of a setting, of which each one is listed
MOST_CHANGED = 12  # of many devices with changes, those that are listed; the others are named
MOST_NAMED = 8
NEAR = 2  # runs by which the same change may seem to begin earlier on one device
LINK, RANKS = ">", (" ranks", " rank")  # in the name of a device that is none
CONFIRM = "confirm"  # the label of a run that was made to settle a suspicion


@dataclass(frozen=True)
class Value:
    """What one run says of a quantity: one value, of several devices their median.

    A run has no median where none of its measurements counts, and then `verdict` says why.
    """

    run: str
    at: datetime
    median: float | None
    low: float | None = None
    high: float | None = None
    num_devices: int = 1
    label: str | None = None
    verdict: str = ""


@dataclass(frozen=True)
class Change:
    """A step that was confirmed, or a change that waits for new measurements; `size` is a share."""

    point: Value
    size: float
    is_worse: bool
    missing: int = 0  # values that would settle it

    @property
    def is_confirmed(self) -> bool:
        return not self.missing

    @property
    def short(self) -> str:
        return f"{self._moved}, {'confirmed' if self.is_confirmed else 'suspected'}"

    @property
    def text(self) -> str:
        since = f"{self._moved}, from {self.point.at:%Y-%m-%d} on."
        if self.is_confirmed:
            return f"Confirmed: {since}"
        times = "once more" if self.missing == 1 else f"{self.missing} more times"
        return f"Suspected: {since} To settle it, measure {times} with --label {CONFIRM}."

    @property
    def _moved(self) -> str:
        return f"{signed_share(self.size)}, {'worse' if self.is_worse else 'better'}"


@dataclass(frozen=True)
class Series:
    """The points and changes of a quantity; runs that settle a suspicion or of few devices are no points."""

    points: tuple[Value, ...]
    changes: tuple[Change, ...]
    num_runs: int  # with a value, since the last step
    is_short: bool  # these are too few to tell
    where: str = ""  # the device, if it is of one alone
    num_partial: int = 0  # runs that measured fewer than half of the devices

    @property
    def known(self) -> list[Value]:
        return [each for each in self.points if each.median is not None]

    @property
    def sentence(self) -> str:
        parts = [each.text for each in self.changes]
        if self.is_short:
            since = " since then" if parts else ""
            parts.append(
                f"Too few runs to tell a change{since}: {self.num_runs} of at least {LEAST_RUNS}."
            )
        text = " ".join(parts) or "No change."
        if not self.num_partial:
            return text
        runs = "1 run" if self.num_partial == 1 else f"{self.num_partial:,} runs"
        return f"{text} Left out: {runs} of fewer than half of the devices."

    def mark(self, point: Value) -> str:
        """What there is to see at a point."""
        found = [each.short for each in self.changes if each.point is point]
        return "; ".join(found) or point.verdict


@dataclass(frozen=True)
class Others:
    """The devices behind a median that have no series of their own in the list."""

    num: int  # that have not changed, or only as the median has
    num_short: int  # of these, whose runs are too few to tell
    changed: tuple[str, ...]  # beyond those that are listed
    what: str  # as `other devices`

    @property
    def lines(self) -> list[str]:
        found = []
        if self.changed:
            names = listed(self.changed, MOST_NAMED)
            found.append(f"{len(self.changed):,} {self.what} changed on their own too: {names}.")
        if self.num:
            found.append(
                f"{self.num:,} {self.what}: {self._quiet}; --device HOST/DEVICE shows one."
            )
        return found

    @property
    def _quiet(self) -> str:
        if self.num_short == self.num:
            return "too few runs to tell a change"
        few = f" ({self.num_short:,} with too few runs to tell)" if self.num_short else ""
        return f"no change of their own{few}"


@dataclass(frozen=True)
class DeviceSeries:
    """The series of one device, link or group of ranks, or the median over several, and what it is of."""

    benchmark: str
    parameters: dict[str, Any]
    quantity: str
    unit: str
    device_uuid: str | None
    series: Series
    where: str
    num_devices: int = 1
    others: Others | None = None

    @property
    def title(self) -> str:
        setting = shown_parameters(self.parameters)
        return f"{self.benchmark} {setting} on {self.where}: {self.quantity} ({self.unit})"

    def to_json(self) -> dict[str, Any]:
        others = self.others
        return {
            "benchmark": self.benchmark,
            "parameters": self.parameters,
            "where": self.where,
            "num_devices": self.num_devices,
            "device_uuid": self.device_uuid,
            "quantity": self.quantity,
            "unit": self.unit,
            "sentence": self.series.sentence,
            "others": others and {"num": others.num, "num_too_few_runs": others.num_short,
                                  "changed": list(others.changed)},
            "changes": [
                {"run": each.point.run, "size": each.size, "worse": each.is_worse,
                 "confirmed": each.is_confirmed}
                for each in self.series.changes
            ],
            "points": [
                {"run": each.run, "at": each.at.isoformat(), "median": each.median,
                 "num_devices": each.num_devices, "mark": self.series.mark(each)}
                for each in self.series.points
            ],
        }  # fmt: skip


def build_series(values: Sequence[Value], better: Better, where: str = "") -> Series:
    """One value a run; those labelled `confirm` settle the suspicion before them, and are no points.

    The median of a few devices says nothing of the fleet's: a gate measures one node, and so does the run
    after a card was replaced. Few are fewer than half of those of a run before: a cluster may have grown.
    """
    points: list[Value] = []
    again: dict[int, list[float]] = {}
    ordered = sorted(values, key=lambda each: (each.at, each.run))
    most = accumulate((each.num_devices for each in ordered), max)
    whole = [
        each
        for each, seen in zip(ordered, most, strict=True)
        if each.median is None or 2 * each.num_devices >= seen
    ]
    for each in whole:
        if each.label == CONFIRM and points:
            again.setdefault(len(points) - 1, []).append(_median(each))
        else:
            points.append(each)
    found = find_steps([_median(each) for each in points], better, again)
    return Series(
        tuple(points), _changes(found, points, better), found.num_runs, found.is_short, where,
        len(values) - len(whole),
    )  # fmt: skip


def value_of(
    run: str, at: datetime, label: str | None, medians: Sequence[float],
    ends: tuple[float | None, float | None] = (None, None), verdict: str = "",
) -> Value:  # fmt: skip
    """A run's value from the medians of its devices; `ends` are the interval of a single one."""
    known = [each for each in medians if math.isfinite(each) and each > 0]
    if not known:
        return Value(run, at, None, num_devices=0, label=label, verdict=verdict)
    if len(known) > 1:
        found = median_interval(known)
        return Value(run, at, found.median, found.low, found.high, len(known), label)
    low, high = (known[0] if end is None else end for end in ends)
    return Value(run, at, known[0], low, high, 1, label)


def value_in(run: Run, own: Sequence[Measurement]) -> Value:
    """The value of these measurements of a run."""
    return _value(run, own, [number(each) for each in own])


def find_series(
    runs: Sequence[Run],
    benchmark: str,
    *,
    params: Mapping[str, str] | None = None,
    device: str | None = None,
    quantity: str | None = None,
) -> list[DeviceSeries]:
    """The series of a benchmark that the choice leaves; a part of it that no run has is an error.

    Of several devices first their median, then each one, or of many those that changed on their own.
    """
    own, cards = measured_by(runs, benchmark)
    own = with_parameters(own, benchmark, params)
    own = on_device(own, cards, benchmark, device)
    own = of_quantity(own, benchmark, quantity)
    groups = _groups(own)
    num = sum(map(len, groups.values()))
    if (num if device else len(groups)) > MOST_SERIES:
        raise HakaruError(_too_many(own, benchmark, num if device else len(groups), device))
    if device:
        return [_series(pairs, cards.name(card)) for group in groups.values()
                for card, pairs in group.items()]  # fmt: skip
    return [each for group in groups.values()
            for each in _of_group(group, cards, num <= MOST_SERIES)]  # fmt: skip


Group = dict[str, list[tuple[Own, Interval | None]]]  # what a subject has of each card


def _groups(own: Sequence[Own]) -> dict[Any, Group]:
    """By subject and card; a card that never had a number that counts is none, where others are."""
    groups: dict[Any, Group] = {}
    for pair in own:
        cards = groups.setdefault((*pair.each.subject, pair.each.unit, pair.each.better), {})
        cards.setdefault(pair.card, []).append((pair, number(pair.each)))
    heard = {subject: {card: pairs for card, pairs in cards.items() if any(found for _, found in pairs)}
             for subject, cards in groups.items()}  # fmt: skip
    return {subject: cards for subject, cards in heard.items() if cards} or groups


def _too_many(own: Sequence[Own], benchmark: str, num: int, device: str | None) -> str:
    settings = settings_of(own)
    by = f" and --param: {settings}" if settings else ""
    if device:
        return (
            f"--device {device} has {num:,} histories of {benchmark}; choose with HOST/DEVICE{by}"
        )
    by = f"--param: {settings}" if settings else "--device"
    return f"{benchmark} has {num:,} histories of different settings or models; choose with {by}"


def _of_group(group: Group, cards: Cards, with_all: bool) -> list[DeviceSeries]:
    """The median over the devices of a subject, then devices; of one device its series alone."""
    single = [_series(pairs, cards.name(card)) for card, pairs in group.items()]
    if len(single) == 1:
        return single
    whole = [pair for pairs in group.values() for pair in pairs]
    whole.sort(key=lambda pair: (pair[0].run.started_at, pair[0].run.id))
    newest = whole[-1][0].each
    fleet = replace(
        _series(whole), where=_many(newest, len(single)), num_devices=len(single), device_uuid=None
    )
    if with_all and len(single) <= FEW_DEVICES:
        return [fleet, *single]
    changed = [each for each in single if _has_own_change(each.series, fleet.series)]
    changed.sort(key=lambda each: -max(abs(change.size) for change in each.series.changes))
    shown, named = changed[:MOST_CHANGED], changed[MOST_CHANGED:]
    return [replace(fleet, others=_others(single, shown, named, newest)), *shown]


def _others(
    single: Sequence[DeviceSeries], shown: Sequence[DeviceSeries], named: Sequence[DeviceSeries],
    newest: Measurement,
) -> Others:  # fmt: skip
    known = {each.where for each in (*shown, *named)}
    quiet = [each for each in single if each.where not in known]
    num_short = sum(each.series.is_short and not each.series.changes for each in quiet)
    noun = _noun(newest)
    return Others(
        len(quiet), num_short, tuple(each.where for each in named),
        f"other {noun}" if shown else noun,
    )  # fmt: skip


def _has_own_change(series: Series, fleet: Series) -> bool:
    """Whether it changed when the median over all did not, or by clearly more or less."""
    times = [each.at for each in fleet.points]

    def is_shared(change: Change) -> bool:
        began = bisect_left(times, change.point.at)
        return any(
            abs(change.size - each.size) < STEP / 2
            and abs(began - bisect_left(times, each.point.at)) <= NEAR
            for each in fleet.changes
        )

    return not all(map(is_shared, series.changes))


def _many(each: Measurement, num: int) -> str:
    """As `1,024 devices of A100`."""
    of = "" if LINK in each.device else f" of {each.model.removesuffix(' ranks')}"
    return f"{num:,} {_noun(each)}{of}"


def _noun(each: Measurement) -> str:
    if LINK in each.device:
        return "links"
    return "groups of ranks" if each.device.endswith(RANKS) else "devices"


def _series(pairs: Sequence[tuple[Own, Interval | None]], where: str = "") -> DeviceSeries:
    newest = pairs[-1][0].each
    in_run: dict[str, list[tuple[Own, Interval | None]]] = {}
    for pair in pairs:
        in_run.setdefault(pair[0].run.id, []).append(pair)
    values = [
        _value(own[0][0].run, [pair.each for pair, _ in own], [found for _, found in own])
        for own in in_run.values()
    ]
    return DeviceSeries(
        newest.benchmark, dict(newest.parameters), newest.quantity, newest.unit, newest.device_uuid,
        build_series(values, newest.better, where), where,
    )  # fmt: skip


def _value(run: Run, own: Sequence[Measurement], found: Sequence[Interval | None]) -> Value:
    """Of measurements and their intervals; None stands for one that does not count."""
    known = [each for each in found if each is not None]
    ends = (known[0].low, known[0].high) if known else (None, None)
    at = min(each.started_at for each in own)
    verdict = worst(each.verdict for each in own)
    return value_of(run.id, at, run.label, [each.median for each in known], ends, verdict)


def _changes(found: History, points: Sequence[Value], better: Better) -> tuple[Change, ...]:
    steps = [Change(points[each.began], each.size, each.is_worse) for each in found.steps]
    open_ = found.open_suspicion
    return (*steps, *([_suspected(open_, points, better)] if open_ else []))


def _suspected(open_: Suspicion, points: Sequence[Value], better: Better) -> Change:
    is_worse = (open_.size < 0) == (better == "higher")
    return Change(points[open_.began], open_.size, is_worse, open_.missing)


def _median(each: Value) -> float:
    return math.nan if each.median is None else each.median
