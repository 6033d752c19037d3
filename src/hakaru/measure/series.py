"""One quantity over the runs, with its steps: the series of terminal, API, page and report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure._base import Better, load_all
from hakaru.measure.compare import Cards, Seen, counts, short_uuid, signed_share
from hakaru.measure.history import LEAST_RUNS, History, Suspicion, find_steps
from hakaru.measure.record import Measurement, Run, shown_parameters
from hakaru.measure.statistics import median_interval
from hakaru.measure.verdict import worst
from hakaru.registry import listed as name_some

MOST_SERIES = 40
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
class DeviceSeries:
    """The series of one device, link or group of ranks, and what it is of."""

    benchmark: str
    parameters: dict[str, Any]
    quantity: str
    unit: str
    device_uuid: str | None
    series: Series

    @property
    def title(self) -> str:
        setting = shown_parameters(self.parameters)
        return f"{self.benchmark} {setting} on {self.series.where}: {self.quantity} ({self.unit})"

    def to_json(self) -> dict[str, Any]:
        return {
            "benchmark": self.benchmark,
            "parameters": self.parameters,
            "where": self.series.where,
            "device_uuid": self.device_uuid,
            "quantity": self.quantity,
            "unit": self.unit,
            "sentence": self.series.sentence,
            "changes": [
                {"run": each.point.run, "size": each.size, "worse": each.is_worse,
                 "confirmed": each.is_confirmed}
                for each in self.series.changes
            ],
            "points": [
                {"run": each.run, "at": each.at.isoformat(), "median": each.median,
                 "mark": self.series.mark(each)}
                for each in self.series.points
            ],
        }  # fmt: skip


def build_series(values: Sequence[Value], better: Better, where: str = "") -> Series:
    """One value a run; those labelled `confirm` settle the suspicion before them, and are no points.

    The median of a few devices says nothing of the fleet's: a gate measures one node, and so does the run
    after a card was replaced.
    """
    points: list[Value] = []
    again: dict[int, list[float]] = {}
    most = max((each.num_devices for each in values), default=0)
    whole = [each for each in values if each.median is None or 2 * each.num_devices >= most]
    for each in sorted(whole, key=lambda each: (each.at, each.run)):
        if each.label == CONFIRM and points:
            again.setdefault(len(points) - 1, []).append(_number(each))
        else:
            points.append(each)
    found = find_steps([_number(each) for each in points], better, again)
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
    valid = [each.interval for each in own if counts(each)]
    intervals = [each for each in valid if each is not None]
    ends = (intervals[0].low, intervals[0].high) if intervals else (None, None)
    at = min(each.started_at for each in own)
    verdict = worst(each.verdict for each in own)
    return value_of(run.id, at, run.label, [each.median for each in intervals], ends, verdict)


def find_series(
    runs: Sequence[Run],
    benchmark: str,
    *,
    params: Mapping[str, str] | None = None,
    device: str | None = None,
    quantity: str | None = None,
) -> list[DeviceSeries]:
    """The series of a benchmark that the choice leaves; an error says what there is if it leaves none."""
    own = [
        (run, each)
        for run in runs
        for each in run.measurements
        if each.benchmark == benchmark and not each.is_trial
    ]
    cards = Cards(Seen.of(run, each) for run, each in own)
    groups: dict[tuple[Any, ...], list[tuple[Run, Measurement]]] = {}
    for run, each in own:
        groups.setdefault((each.subject, cards.key(Seen.of(run, each))), []).append((run, each))
    found = [
        _device_series(pairs, cards.name(key))
        for (_, key), pairs in groups.items()
        if _is_chosen(pairs[0][1], params or {}) and _is_named(cards, key, device)
    ]
    return _of_quantity(found, benchmark, quantity, [
        f"{shown_parameters(pairs[0][1].parameters)} on {cards.name(key)}"
        for (_, key), pairs in groups.items()
    ])  # fmt: skip


def _of_quantity(
    found: Sequence[DeviceSeries], benchmark: str, quantity: str | None, known: Sequence[str]
) -> list[DeviceSeries]:
    """Those of the quantity that was asked for, else of the benchmark's first."""
    has = [each.quantity for each in found]
    benchmarks = load_all()
    first = benchmarks.get(benchmark).quantities[0].name if benchmark in benchmarks else ""
    chosen = quantity or (first if first in has else next(iter(has), ""))
    listed = [each for each in found if each.quantity == chosen]
    if not listed:
        there = name_some(sorted(set(known)), 8)
        raise HakaruError(f"no run has {benchmark} with this choice; there is: {there}")
    if len(listed) > MOST_SERIES:
        raise HakaruError(
            f"{benchmark} has {len(listed):,} histories, one a device and setting; choose with --device "
            "and --param"
        )
    return listed


def _is_chosen(each: Measurement, params: Mapping[str, str]) -> bool:
    return all(str(each.parameters.get(name)) == value for name, value in params.items())


def _is_named(cards: Cards, key: str, device: str | None) -> bool:
    """By HOST/DEVICE or DEVICE, as it is called now, or by its UUID."""
    place = cards.place(key)
    return device in (None, place, place.rpartition("/")[2], key, short_uuid(key))


def _device_series(pairs: Sequence[tuple[Run, Measurement]], where: str) -> DeviceSeries:
    newest = pairs[-1][1]
    in_run: dict[str, list[tuple[Run, Measurement]]] = {}
    for run, each in pairs:
        in_run.setdefault(run.id, []).append((run, each))
    values = [value_in(own[0][0], [each for _, each in own]) for own in in_run.values()]
    return DeviceSeries(
        newest.benchmark, dict(newest.parameters), newest.quantity, newest.unit, newest.device_uuid,
        build_series(values, newest.better, where),
    )  # fmt: skip


def _changes(found: History, points: Sequence[Value], better: Better) -> tuple[Change, ...]:
    steps = [Change(points[each.began], each.size, each.is_worse) for each in found.steps]
    open_ = found.open_suspicion
    return (*steps, *([_suspected(open_, points, better)] if open_ else []))


def _suspected(open_: Suspicion, points: Sequence[Value], better: Better) -> Change:
    is_worse = (open_.size < 0) == (better == "higher")
    return Change(points[open_.began], open_.size, is_worse, open_.missing)


def _number(each: Value) -> float:
    return math.nan if each.median is None else each.median
