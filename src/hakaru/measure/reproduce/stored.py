"""The rows of a run as a comparison asks for them: numbers that count, else the reason why there are none.

A stored run may come from anywhere: parameters and what stands beside the numbers are read as `Document`s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hakaru.measure._base import BENCHMARKS, load_all
from hakaru.measure.compare import LEAST_CHANGE
from hakaru.measure.documents import Document
from hakaru.measure.numbers import amount, counted
from hakaru.measure.protocol import correlation_of
from hakaru.measure.record import COUNTS, Measurement, Run, shown_parameters
from hakaru.measure.statistics import LEAST_LEVEL, Interval, median_interval
from hakaru.measure.storage._counters import FileSystem
from hakaru.measure.verdict import ORDER

Match = Mapping[str, Any]
MAY_BE_ZERO = ("stall", "au", "from_device")  # all else is a time or a rate
DEVICE, NETWORK, UNSEEN = "from the device", "over the network", "unknown"
STORAGE = (DEVICE, NETWORK)  # where bytes come from that say something of storage
UNLABELLED = "not labelled"


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

    def trials(self, benchmark: str) -> list[Measurement]:
        """The steps of its search."""
        return [e for e in self.run.measurements if e.is_trial and e.benchmark == benchmark]

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
        """Why there is no number: what bad rows say, if need be those of a study that broke off whole."""
        bad = [each for each in self.rows if each.benchmark == benchmark and not counts(each)]
        model = {name: value for name, value in wanted.items() if name == "model"}
        near = [each for each in bad if fits(each, wanted)]
        return NotMeasured(self._why(benchmark, wanted, near or [e for e in bad if fits(e, model)]))

    def _why(self, benchmark: str, wanted: Match, bad: Sequence[Measurement]) -> str:
        if bad:
            worst = min(bad, key=lambda each: ORDER.index(each.verdict))
            told = "its numbers are not above 0" if worst.verdict in COUNTS else worst.reason
            return f"{benchmark} {worst.verdict}: {told or 'no reason is stored'}"
        load_all()
        title = BENCHMARKS.get(benchmark).title if benchmark in BENCHMARKS else benchmark
        texts = [text for text in self.run.left_out if text.startswith(f"{title}:")]
        asked = shown_parameters({k: v for k, v in wanted.items() if not isinstance(v, tuple)})
        nothing = f"run {self.run.id} has no {benchmark}{f' with {asked}' if asked else ''}"
        return "; ".join([nothing, *texts])


def fits(each: Measurement, wanted: Match) -> bool:
    """Whether it has these parameters, or one of several values; of a model only its name counts."""
    for name, value in wanted.items():
        own = each.parameters.get(name)
        known = base_name(own) if name == "model" else own
        if known not in (value if isinstance(value, tuple) else (value,)):
            return False
    return True


def base_name(model: Any) -> str:
    """`resnet50` of `resnet50@image=64`."""
    return str(model).partition("@")[0]


def counts(each: Measurement) -> bool:
    """A number that may stand for the machine: made, valid and correct."""
    median = each.median
    if each.verdict not in COUNTS or median is None or not math.isfinite(median):
        return False
    return median > 0 or (median == 0 and each.quantity in MAY_BE_ZERO)


def interval_of(each: Measurement) -> Interval:
    found = each.interval
    if found is None:
        raise NotMeasured(f"{each.benchmark} has no repetitions")
    return found


def is_above(first: Measurement, second: Measurement) -> bool | None:
    """Whether the first median is surely the larger by 1 % or more; None where nobody can tell.

    Variants of one study are timed in turn, so that their repetitions are compared pair by pair.
    """
    if not all(each > 0 for each in (*first.samples, *second.samples)):
        return None
    if _are_in_turn(first, second):
        ratios = [one / two for one, two in zip(first.samples, second.samples, strict=True)]
        return _is_more(median_interval(ratios, correlation=correlation_of(ratios)))
    a, b = interval_of(first), interval_of(second)
    level = min(a.level, b.level)
    return _is_more(Interval(a.median / b.median, a.low / b.high, a.high / b.low, level))


def _are_in_turn(first: Measurement, second: Measurement) -> bool:
    is_one_study = (first.benchmark, first.started_at) == (second.benchmark, second.started_at)
    return is_one_study and len(first.samples) == len(second.samples)


def _is_more(ratio: Interval) -> bool | None:
    if ratio.level < LEAST_LEVEL:
        return None
    if ratio.low > 1:
        return ratio.median > 1 + LEAST_CHANGE
    return False if ratio.high <= 1 + LEAST_CHANGE else None


def facts(each: Measurement) -> Document:
    """What a benchmark stored beside its numbers, such as `fit` or `communication`."""
    return Document(each.validity)


def options(each: Measurement) -> Document:
    """Its parameters."""
    return Document(each.parameters)


def origin(each: Measurement, label: str) -> str:
    """Where bytes came from.

    A network file system does not say it: what left this machine's memory before came over the network.
    """
    if label != UNSEEN:
        return label or UNLABELLED
    kind = facts(each).text("filesystem")
    was_evicted = each.validity.get("cold_problem") == ""
    return NETWORK if was_evicted and FileSystem(kind, None, kind).is_remote else UNSEEN


def reading(each: Measurement) -> str:
    """As `4.12 ms`."""
    return amount(interval_of(each).median, each.unit)


def num_hosts(each: Measurement) -> int:
    """How many hosts its ranks are on."""
    return options(each).whole("hosts") or each.host.count(",") + 1


def num_ranks(each: Measurement) -> int:
    return options(each).whole("ranks") or 1


def is_processor(each: Measurement) -> bool:
    """Whether it ran on cores and not on cards."""
    return (
        each.model.startswith("processor") or "core of " in each.model or "cores of " in each.model
    )


def machine_text(each: Measurement) -> str:
    """As `4 ranks on 1 host, core of AMD EPYC`."""
    ranks, hosts = counted(num_ranks(each), "rank"), counted(num_hosts(each), "host")
    return f"{ranks} on {hosts}, {each.model.removesuffix(' ranks')}"


def shared_devices(each: Measurement) -> str:
    """As `3 ranks share 2 cores`; empty where each rank has a device of its own, or nobody knows."""
    hardware = Document(each.place).part("hardware")
    if is_processor(each):
        num, one = hardware.whole("num_usable"), "core"
    else:
        num, one = len(hardware.items("gpus")), "GPU"
    a_host = -(-num_ranks(each) // num_hosts(each))
    if not num or a_host <= num:
        return ""
    where = "" if num_hosts(each) == 1 else " of each host"
    return f"{a_host:,} ranks share the {counted(num, one)}{where}"
