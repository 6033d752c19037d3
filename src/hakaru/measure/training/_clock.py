"""The clock of a training: marks that a processor takes at once and a card takes when its queue gets there.

(The offsets between the ranks' clocks are in _offsets.py.)
"""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """`mark` notes a moment without stopping anything; after `finish`, `seconds` reads it."""

    def start(self) -> None:
        """Before the first mark of some steps: wait for the device, and see what time it is."""

    def mark(self) -> Any: ...

    def finish(self) -> None:
        """Wait until the device has come to the last mark."""

    def seconds(self, mark: Any) -> float:
        """On this rank's monotonic clock."""


def clock_of(device: str) -> Clock:
    return CardClock(device) if device.startswith("cuda") else HostClock()


class HostClock:
    """Work on a processor is done when the call returns."""

    def start(self) -> None:
        return

    def mark(self) -> float:
        return time.monotonic()

    def finish(self) -> None:
        return

    def seconds(self, mark: float) -> float:
        return mark


class CardClock:
    """Events in the queue of a card; the host runs ahead of them, as in a training that nobody times."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self._zero: Any = None
        self._zero_s = 0.0

    def start(self) -> None:
        self.finish()  # an idle card takes the mark now
        self._zero_s = time.monotonic()
        self._zero = self.mark()

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
