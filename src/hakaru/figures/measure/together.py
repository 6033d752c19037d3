"""What was timed together: the quantities of one setting, and the document that came with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hakaru.figures.measure.view import Reading, RunView
from hakaru.measure.documents import Document
from hakaru.measure.numbers import amount, counted, interval_text
from hakaru.measure.verdict import Verdict, worst

NONE = "none"
MOST_NAME = 60


@dataclass(frozen=True)
class Timed:
    """The rows of one benchmark that share parameters and ranks, by quantity."""

    readings: Mapping[str, Reading]

    @cached_property
    def first(self) -> Reading:
        return next(iter(self.readings.values()))

    @cached_property
    def options(self) -> Document:
        return Document(self.first.options)

    @cached_property
    def facts(self) -> Document:
        """The first document that says something: the rows mostly carry the same."""
        return next((each.facts for each in self.readings.values() if each.facts), Document())

    @property
    def ranks(self) -> int:
        return self.first.num_ranks or 1

    @property
    def model(self) -> str:
        return name_of(self.options, "model")

    @property
    def is_valid(self) -> bool:
        return any(each.is_valid for each in self.readings.values())

    @property
    def verdict(self) -> Verdict:
        return worst(each.verdict for each in self.readings.values())

    @property
    def doubt(self) -> str:
        """Why its numbers do not count; nothing where they do."""
        if self.is_valid:
            return ""
        why = f": {self.first.reason}" if self.first.reason else ""
        return f"This measurement does not count, as it is {self.first.verdict}{why}."

    def valid(self, quantity: str) -> Reading | None:
        found = self.readings.get(quantity)
        return found if found is not None and found.is_valid else None

    def value(self, quantity: str) -> float | None:
        found = self.valid(quantity)
        return found.median if found else None


def timed_of(view: RunView, *benchmarks: str) -> list[Timed]:
    groups: dict[tuple[str, str, str, str], dict[str, Reading]] = {}
    for each in view.readings:
        if each.benchmark in benchmarks:
            key = (each.benchmark, each.parameters, each.host, each.device)
            groups.setdefault(key, {})[each.quantity] = each
    return [Timed(readings) for readings in groups.values()]


def name_of(options: Document, name: str) -> str:
    """A word of the parameters, as `resnet50`."""
    return options.text(name, MOST_NAME) or "?"


def strategy_name(options: Document) -> str:
    """As `ddp, fp16 gradients, 4 micro-batches`: what is switched off goes unsaid."""
    compression = options.text("compression", MOST_NAME)
    micro, steps = options.whole("microbatches") or 0, options.whole("accumulate") or 1
    words = [
        name_of(options, "strategy"),
        f"{compression} gradients" if compression not in ("", NONE) else "",
        f"{steps:,} batches a step" if steps > 1 else "",
        counted(micro, "micro-batch", "micro-batches") if micro else "",
    ]
    return ", ".join(filter(None, words))


def with_interval(each: Reading) -> str:
    """As `1,204 samples/s (1,190 to 1,221)`."""
    interval = interval_text(each.low, each.high)
    return amount(each.median, each.unit) + (f" ({interval})" if interval else "")


def ends_of(points: Iterable[tuple[float, Reading]]) -> list[tuple[float, float, float]]:
    """Where each interval stands and reaches from and to."""
    return [(x, each.low, each.high) for x, each in points
            if each.low is not None and each.high is not None]  # fmt: skip


def distinct(texts: Iterable[str], most: int) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text][:most]


def unique(names: Sequence[str]) -> list[str]:
    """Names of which none is another's: a number is added to those that are."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found
