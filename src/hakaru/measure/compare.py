"""Two runs side by side: each quantity of each device, and whether it has surely changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from hakaru.measure._base import Better
from hakaru.measure.record import Measurement, Run
from hakaru.measure.statistics import LEAST_LEVEL, Interval
from hakaru.texts import language

Key = tuple[Any, ...]
FAR_MORE = 1e4
LEAST_CHANGE = 0.01  # of the value before: less is of no use to anybody, however sure it is
WORSE, BETTER, UNSURE, SAME = "worse", "better", "no sure change", "the same"
TOO_FEW = "too few independent repetitions to tell"
ONLY_BEFORE, ONLY_AFTER = "only before", "only after"
COMPARED = (WORSE, BETTER, UNSURE, SAME)


@dataclass(frozen=True)
class Row:
    """One quantity in both runs; `change` is one of COMPARED, or why the two cannot be compared.

    The ends are those of the 95 % interval; null where too few independent repetitions give one.
    """

    benchmark: str
    parameters: dict[str, Any]
    where: str
    quantity: str
    unit: str
    before: float | None
    after: float | None
    ratio: float | None
    change: str
    device_uuid: str | None = None
    model: str = ""
    before_ends: tuple[float, float] | None = None
    after_ends: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_runs(before: Run, after: Run) -> list[Row]:
    """What either run has; a measurement that is not good or slow has no number that counts."""
    cards = Cards(Seen.of(run, each) for run in (before, after) for each in run.measurements)
    first, second = _by_key(before, cards), _by_key(after, cards)
    return [
        _row(first.get(key), second.get(key), cards.name(key[-1]))
        for key in dict.fromkeys([*first, *second])
    ]


class Seen(NamedTuple):
    """A device as a run saw it."""

    run: str
    host: str
    device: str
    uuid: str | None

    @classmethod
    def of(cls, run: Run, each: Measurement) -> Seen:
        return cls(run.id, each.host, each.device, each.device_uuid)

    @property
    def place(self) -> str:
        return f"{self.host}/{self.device}"


class Cards:
    """Which measurements are of one card: by its UUID where that is known, else by its place.

    The number in `cuda:3` changes with CUDA_VISIBLE_DEVICES, and the UUID does not.
    """

    def __init__(self, seen: Iterable[Seen]) -> None:
        """Of the oldest run first: a card is called by its newest place."""
        every = list(dict.fromkeys(seen))
        shared = _shared_uuids(every)
        known = [each for each in every if each.uuid and each.uuid not in shared]
        self._in_run = {(each.run, each.place): str(each.uuid) for each in known}
        self._measured = {(each.run, str(each.uuid)) for each in known}
        self._at_place: dict[str, set[str]] = {}
        for each in known:
            self._at_place.setdefault(each.place, set()).add(str(each.uuid))
        self._places: dict[str, list[str]] = {}
        for each in every:
            self._places.setdefault(self.key(each), []).append(each.place)
        self._owners = Counter(place for own in self._places.values() for place in set(own))

    def key(self, each: Seen) -> str:
        """The card's UUID; where this run does not know it, the only one ever seen in its place."""
        if own := self._in_run.get((each.run, each.place)):
            return own
        there = list(self._at_place.get(each.place, ()))
        is_it = len(there) == 1 and (each.run, there[0]) not in self._measured
        return there[0] if is_it else each.place

    def place(self, key: str) -> str:
        return self._places[key][-1]

    def name(self, key: str) -> str:
        return self.place(key) + self.note(key)

    def note(self, key: str) -> str:
        """As ` (GPU-8f3b1c2d, was n1/cuda:0)`: only where a place does not tell which card it is."""
        place = self.place(key)
        others = [each for each in dict.fromkeys(self._places[key]) if each != place]
        if key == place or (self._owners[place] == 1 and not others):
            return ""
        return f" ({', '.join([short_uuid(key), *(f'was {each}' for each in others[-1:])])})"


def short_uuid(uuid: str) -> str:
    """As `GPU-8f3b1c2d`."""
    return "-".join(uuid.split("-")[:2])


def signed_share(value: float) -> str:
    """As `−4.9 %` or `+4.9 %`; as a factor where it is far more."""
    if not math.isfinite(value):
        return "–"
    if value >= FAR_MORE:
        return f"×{value + 1:.3g}"
    return ("+" if value > 0 else "") + language("en").share(value)


def rank(change: str) -> int:
    """What differs first: worse, a number that is gone or came back, better, then the rest."""
    order = (WORSE, "", BETTER, TOO_FEW, UNSURE, SAME)
    return order.index(change if change in order else "")


def number(each: Measurement | None) -> Interval | None:
    """Its interval where it may be used: it was made, is valid and correct, and is above zero."""
    found = each.interval if each is not None and each.verdict in ("good", "slow") else None
    return found if found is not None and found.median > 0 else None


def _shared_uuids(every: Iterable[Seen]) -> set[str]:
    """UUIDs that several devices of one run have: some drivers fill them with zeros."""
    places: dict[tuple[str, str], set[str]] = {}
    for each in every:
        if each.uuid:
            places.setdefault((each.run, each.uuid), set()).add(each.place)
    return {uuid for (_, uuid), found in places.items() if len(found) > 1}


def _by_key(run: Run, cards: Cards) -> dict[Key, Measurement]:
    kept = [each for each in run.measurements if not each.is_trial]
    # an imported number may have another unit: the two are then not compared
    return {
        (*each.subject, each.unit, each.better, cards.key(Seen.of(run, each))): each
        for each in kept
    }


def _row(first: Measurement | None, second: Measurement | None, where: str) -> Row:
    known = second or first
    assert known is not None
    before, after = number(first), number(second)
    ratio = after.median / before.median if before and after else math.inf
    return Row(
        known.benchmark,
        dict(known.parameters),
        where,
        known.quantity,
        known.unit,
        before.median if before else None,
        after.median if after else None,
        ratio if math.isfinite(ratio) else None,
        _why_not(first, second, before, after) or _change(before, after, known.better),
        known.device_uuid,
        known.model,
        _ends(before),
        _ends(after),
    )


def _ends(found: Interval | None) -> tuple[float, float] | None:
    return (found.low, found.high) if found and found.level >= LEAST_LEVEL else None


def _why_not(
    first: Measurement | None, second: Measurement | None,
    before: Interval | None, after: Interval | None,
) -> str:  # fmt: skip
    """Why there are not two numbers to compare; nothing where there are."""
    if first is None or second is None:
        return ONLY_AFTER if first is None else ONLY_BEFORE
    if before is None:
        return f"{first.verdict} before"
    return f"{second.verdict} after" if after is None else ""


def _change(a: Interval | None, b: Interval | None, better: Better) -> str:
    assert a is not None and b is not None
    if min(a.level, b.level) < LEAST_LEVEL:
        return TOO_FEW
    if a.low <= b.high and b.low <= a.high:
        return UNSURE
    if abs(b.median / a.median - 1) < LEAST_CHANGE:
        return SAME
    return BETTER if (b.median > a.median) == (better == "higher") else WORSE
