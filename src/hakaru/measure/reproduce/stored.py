"""The rows of a run as a comparison asks for them: numbers that count, else the reason why there are none."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hakaru.measure._base import BENCHMARKS, load_all
from hakaru.measure.compare import LEAST_CHANGE
from hakaru.measure.record import COUNTS, Measurement, Run, shown_parameters
from hakaru.measure.statistics import LEAST_LEVEL, Interval
from hakaru.measure.verdict import ORDER
from hakaru.texts import language

Match = Mapping[str, Any]


class NotMeasured(Exception):
    """Why the run has no number for a finding. `is_lacking` is False where this size of machine has none."""

    def __init__(self, why: str, measured: str = "", is_lacking: bool = True) -> None:
        super().__init__(why)
        self.measured, self.is_lacking = measured, is_lacking


class Stored:
    """The measurements of a run, without the steps of a search."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.rows = [each for each in run.measurements if not each.is_trial]

    def matching(self, benchmark: str, quantity: str, **wanted: Any) -> list[Measurement]:
        """The rows of these parameters, whatever their verdict."""
        own = [each for each in self.rows if each.benchmark == benchmark]
        return [each for each in own if each.quantity == quantity and fits(each, wanted)]

    def every(self, benchmark: str, quantity: str, **wanted: Any) -> list[Measurement]:
        """The rows with numbers that count; where there are none, NotMeasured says why."""
        found = self.matching(benchmark, quantity, **wanted)
        good = [each for each in found if counts(each)]
        if not good:
            raise self.lacking(benchmark, wanted)
        return good

    def one(self, benchmark: str, quantity: str, **wanted: Any) -> Measurement:
        """The row of these parameters. A bad row is never passed over for a good one of other settings."""
        found = self.matching(benchmark, quantity, **wanted)
        if not found or not all(map(counts, found)):
            raise self.lacking(benchmark, wanted)
        return found[-1]

    def lacking(self, benchmark: str, wanted: Match) -> NotMeasured:
        """Why there is no number: what the bad rows say, also those of items that were not even begun."""
        own = [each for each in self.rows if each.benchmark == benchmark]
        bad = [each for each in own if not counts(each) and fits(each, wanted, or_unknown=True)]
        return NotMeasured(self._why(benchmark, wanted, bad))

    def _why(self, benchmark: str, wanted: Match, bad: Sequence[Measurement]) -> str:
        if bad:
            worst = min(bad, key=lambda each: ORDER.index(each.verdict))
            return f"{benchmark} {worst.verdict}: {worst.reason or 'no reason is stored'}"
        load_all()
        title = BENCHMARKS.get(benchmark).title if benchmark in BENCHMARKS else benchmark
        texts = [text for text in self.run.left_out if text.startswith(f"{title}:")]
        asked = shown_parameters(wanted)
        nothing = f"run {self.run.id} has no {benchmark}{f' with {asked}' if asked else ''}"
        return "; ".join([nothing, *texts])


def fits(each: Measurement, wanted: Match, or_unknown: bool = False) -> bool:
    """Whether it has these parameters; of a model the name counts, and not the sizes behind its @."""
    for name, value in wanted.items():
        own = each.parameters.get(name)
        if own is None and or_unknown:
            continue
        if (base_name(own) if name == "model" else own) != value:
            return False
    return True


def base_name(model: Any) -> str:
    """`resnet50` of `resnet50@image=64`."""
    return str(model).partition("@")[0]


def counts(each: Measurement) -> bool:
    """A number that may stand for the machine: made, valid and correct."""
    return each.verdict in COUNTS and each.median is not None and math.isfinite(each.median)


def interval_of(each: Measurement) -> Interval:
    found = each.interval
    if found is None:
        raise NotMeasured(f"{each.benchmark} has no repetitions")
    return found


def is_above(first: Measurement, second: Measurement) -> bool | None:
    """Whether the first median is surely the larger by 1 % or more; None where nobody can tell."""
    a, b = interval_of(first), interval_of(second)
    if min(a.level, b.level) < LEAST_LEVEL or (a.low <= b.high and b.low <= a.high):
        return None
    return a.median > b.median * (1 + LEAST_CHANGE)


def is_below_limit(each: Measurement, limit: float) -> bool | None:
    """Whether the whole interval is on one side of a limit."""
    found = interval_of(each)
    if found.level < LEAST_LEVEL:
        return None
    return True if found.high <= limit else False if found.low > limit else None


def facts(each: Measurement, *path: str) -> Any:
    """What a benchmark stored beside its numbers, such as `fit` or `communication`, `bytes`; None without."""
    found: Any = each.validity
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None


def amount(value: float, unit: str = "") -> str:
    """Four digits, and large numbers whole."""
    text = f"{value:,.0f}" if abs(value) >= 999.95 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def shown_share(value: float) -> str:
    return language("en").share(value)


def reading(each: Measurement) -> str:
    """As `4.12 ms`."""
    return amount(interval_of(each).median, each.unit)


def many(num: int, one: str) -> str:
    return f"{num:,} {one if num == 1 else f'{one}s'}"


def num_hosts(each: Measurement) -> int:
    """How many hosts its ranks are on."""
    found = number(each.parameters.get("hosts"))
    return int(found) if found else each.host.count(",") + 1


def num_ranks(each: Measurement) -> int:
    return int(number(each.parameters.get("ranks")) or 1)


def is_processor(each: Measurement) -> bool:
    """Whether it ran on cores and not on cards."""
    return "core of " in each.model or "cores of " in each.model


def machine_text(each: Measurement) -> str:
    """As `4 ranks on 1 host, core of AMD EPYC`."""
    model = each.model.removesuffix(" ranks")
    return f"{many(num_ranks(each), 'rank')} on {many(num_hosts(each), 'host')}, {model}"


def shared_devices(each: Measurement) -> str:
    """As `3 ranks share 2 cores`; empty where each rank has a device of its own, or nobody knows."""
    hardware = each.place.get("hardware")
    known = hardware if isinstance(hardware, Mapping) else {}
    if is_processor(each):
        num, one = number(known.get("num_usable")), "core"
    else:
        num, one = number(len(known.get("gpus") or ())), "GPU"
    a_host = -(-num_ranks(each) // num_hosts(each))
    if not num or a_host <= num:
        return ""
    where = "" if num_hosts(each) == 1 else " of each host"
    return f"{a_host} ranks share the {many(int(num), one)}{where}"
