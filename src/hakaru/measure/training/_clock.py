"""The clock of a step: marks that a processor takes at once and a card takes when its queue gets there.

(The offsets between the ranks' clocks are in _offsets.py.)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """Between `start` and `finish`, `mark` notes a moment; `seconds` reads it on the monotonic clock."""

    def start(self) -> Any:
        """The first mark of a step."""

    def mark(self) -> Any: ...

    def finish(self) -> None: ...

    def seconds(self, mark: Any) -> float: ...


def clock_of(device: str) -> Clock:
    return CardClock(device) if device.startswith("cuda") else HostClock()


class HostClock:
    """Work on a processor is done when the call returns."""

    def start(self) -> float:
        return time.monotonic()

    def mark(self) -> float:
        return time.monotonic()

    def finish(self) -> None:
        return

    def seconds(self, mark: float) -> float:
        return mark


class CardClock:
    """Events in the queue of a card, so that marks stop neither the host nor the card."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self._zero: Any = None
        self._zero_s = 0.0

    def start(self) -> Any:
        torch.cuda.synchronize(self.device)  # an idle card takes the mark now
        self._zero_s = time.monotonic()
        self._zero = self.mark()
        return self._zero

    def mark(self) -> Any:
        cards: Any = torch.cuda
        event = cards.Event(enable_timing=True)
        event.record()
        return event

    def finish(self) -> None:
        torch.cuda.synchronize(self.device)

    def seconds(self, mark: Any) -> float:
        since: float = self._zero.elapsed_time(mark)
        return self._zero_s + since / 1e3


class Spans:
    """Stretches of time that add up."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._spans: list[tuple[Any, Any]] = []

    @contextmanager
    def timed(self) -> Iterator[None]:
        begin = self.clock.mark()
        yield
        self._spans.append((begin, self.clock.mark()))

    def add(self, begin: Any, end: Any) -> None:
        self._spans.append((begin, end))

    def take(self) -> float:
        """Their sum in seconds, after the clock's `finish`; what follows begins at zero."""
        spans, self._spans = self._spans, []
        return sum(self.clock.seconds(end) - self.clock.seconds(begin) for begin, end in spans)
