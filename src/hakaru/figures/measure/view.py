"""A run as it is shown: its measurements with their intervals, light enough for thousands of cards."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from hakaru.measure._base import Better
from hakaru.measure.documents import Document, parse_document, read_object
from hakaru.measure.meter import Meter
from hakaru.measure.record import OWN, parameters_text, shown_parameters
from hakaru.measure.verdict import Verdict, worst

if TYPE_CHECKING:
    from hakaru.measure.record import Measurement, Run

ARROW, RANKS = ">", "ranks"
TOGETHER = ("rank", RANKS)  # how the name of a group of ranks ends
HPL = "hpl"
# their rows carry a document of what a number cannot hold; of all others none is kept
WITH_DOCUMENTS = ("scaling", "strategies", "loading", "data-size")
READING_BYTES = 400
MOST_PROBLEM = 400
VALID = (Verdict.GOOD, Verdict.SLOW)  # their numbers count


@dataclass(frozen=True, slots=True)
class Reading:
    """One quantity of one device, link or group of ranks; `parameters` is JSON as it is stored.

    So is `validity`, which only the rows of WITH_DOCUMENTS keep; rows of one text share it.
    """

    benchmark: str
    parameters: str
    quantity: str
    unit: str
    better: Better
    host: str
    device: str
    model: str
    verdict: Verdict
    reason: str
    num_repetitions: int
    median: float | None = None
    low: float | None = None
    high: float | None = None
    reference: float | None = None
    compared_with: str = ""
    validity: str = field(default="", repr=False, compare=False)

    @property
    def facts(self) -> Document:
        """The document of its row, which stands among its validity; empty where it cannot be read."""
        return parse_document(self.validity)

    @property
    def options(self) -> Mapping[str, Any]:
        return parse_object(self.parameters)

    @property
    def shown(self) -> str:
        return shown_parameters(self.options)

    @property
    def what(self) -> str:
        """As `gemm fp64 size 1024`; of a search, which trial."""
        trial = self.options.get("trial")
        return f"{self.benchmark} {self.shown if trial is None else f'trial {trial}'}".strip()

    @property
    def where(self) -> str:
        if self.is_card:
            return f"{self.host} {self.device}"
        return self.device if self.is_link else f"{self.benchmark} on {self.device}"

    @property
    def is_trial(self) -> bool:
        """Whether it is a step of a search, which no verdict rests on."""
        return "trial" in self.options

    @property
    def is_link(self) -> bool:
        return ARROW in self.device

    @property
    def is_card(self) -> bool:
        """One device of one host, neither a link nor ranks that work together."""
        together = self.device.endswith(TOGETHER) or self.benchmark == HPL
        return not together and not self.is_link

    @property
    def is_valid(self) -> bool:
        return self.verdict in VALID and self.median is not None

    @property
    def deficit(self) -> float | None:
        """What it lacks against what it was compared with, as a share; negative where it is better."""
        if not self.median or not self.reference:
            return None
        if self.better == "higher":
            return 1 - self.median / self.reference
        return 1 - self.reference / self.median

    @property
    def num_ranks(self) -> int | None:
        ranks = self.options.get(RANKS)
        if isinstance(ranks, int) and ranks > 0:
            return ranks
        first = self.device.partition(" ")[0]
        return int(first) if first.isdigit() and len(first) < 9 else None


@dataclass(frozen=True)
class RunView:
    """A run and its readings."""

    id: str
    cluster: str
    started_at: datetime
    readings: tuple[Reading, ...]
    source: str = OWN
    label: str | None = None
    left_out: tuple[str, ...] = ()
    meters: Mapping[str, Meter] = field(default_factory=dict)  # by host
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: Run) -> RunView:
        validities = {
            each.host: each.validity for each in reversed(run.measurements) if each.samples
        }
        return cls(
            run.id, run.cluster, run.started_at, tuple(map(_reading, run.measurements)), run.source,
            run.label, run.left_out, meters_of(validities), run.notes,
        )  # fmt: skip

    @cached_property
    def verdict(self) -> Verdict:
        return worst(each.verdict for each in self.judged)

    @cached_property
    def judged(self) -> tuple[Reading, ...]:
        """What the verdict rests on."""
        return tuple(each for each in self.readings if not each.is_trial)

    @cached_property
    def cards(self) -> tuple[Reading, ...]:
        return tuple(each for each in self.readings if each.is_card)

    @property
    def nbytes(self) -> int:
        """About what it takes in memory."""
        shared = {id(each.validity): len(each.validity) for each in self.readings}
        return READING_BYTES * len(self.readings) + sum(shared.values())


def meters_of(validities: Mapping[str, Mapping[str, Any]]) -> dict[str, Meter]:
    """Each host's meter, which all of its rows carry; those of ranks on several hosts carry the worst."""
    meters = {host: _meter(validity.get("meter")) for host, validity in validities.items()}
    alone = meters.keys() - {host for host in meters if "," in host}
    return {host: each for host, each in meters.items()
            if host in alone or not alone.issuperset(host.split(","))}  # fmt: skip


def _meter(found: Any) -> Meter:
    meter = found if isinstance(found, Mapping) else {}
    error, tested_at, untested = (meter.get(name) for name in ("error", "tested_at", "untested"))
    return Meter(
        float(error) if isinstance(error, int | float) and isfinite(error) else None,
        str(tested_at)[:40] if tested_at else None,
        str(meter.get("problem") or "")[:MOST_PROBLEM] or None,
        tuple(str(each)[:MOST_PROBLEM] for each in untested) if isinstance(untested, list | tuple) else (),
    )  # fmt: skip


@lru_cache(maxsize=16_384)
def parse_object(text: str) -> Mapping[str, Any]:
    """A JSON object, read once for all the cards that share it; anything else is empty."""
    return read_object(text)


def document_of(benchmark: str, validity: Mapping[str, Any]) -> str:
    """The validity of a run at hand as it would be stored, of benchmarks with documents only."""
    return json.dumps(dict(validity), sort_keys=True) if benchmark in WITH_DOCUMENTS else ""


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key by which node2 comes before node10."""
    parts = re.split(r"([0-9]{1,15})", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]


def _reading(each: Measurement) -> Reading:
    interval = each.interval
    return Reading(
        benchmark=each.benchmark,
        parameters=parameters_text(each.parameters),
        quantity=each.quantity,
        unit=each.unit,
        better=each.better,
        host=each.host,
        device=each.device,
        model=each.model,
        verdict=each.verdict,
        reason=each.reason,
        num_repetitions=len(each.samples),
        median=interval.median if interval else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        reference=each.reference,
        compared_with=each.compared_with,
        validity=document_of(each.benchmark, each.validity),
    )
