"""The marks of a training step as they are taken, and later, when the device has come to them, its times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hakaru.measure.training._clock import Clock
from hakaru.measure.training._times import StepTimes

Span = tuple[Any, Any]  # two marks


@dataclass(frozen=True)
class Exchange:
    """A bucket of gradients: when it was ready and finished, and what it put on the wire."""

    ready: Any
    finished: Any
    num_bytes: int


@dataclass(frozen=True)
class StepMarks:
    """One step; nothing in it has been read from the clock yet."""

    begin: Any
    data: Any
    backward: Any
    end: Any
    forward: list[Span]
    waits: list[Span]
    exchanges: list[Exchange]

    def times(self, clock: Clock) -> StepTimes:
        """After the clock's `finish`."""
        data_s = clock.seconds(self.data)
        return StepTimes(
            clock.seconds(self.begin),
            data_s,
            data_s + length_s(self.forward, clock),
            clock.seconds(self.backward),
            clock.seconds(self.end),
            tuple(clock.seconds(each.ready) for each in self.exchanges),
            tuple(clock.seconds(each.finished) for each in self.exchanges),
            tuple(each.num_bytes for each in self.exchanges),
            length_s(self.waits, clock),
        )


def length_s(spans: list[Span], clock: Clock) -> float:
    """Their sum in seconds."""
    return sum(clock.seconds(end) - clock.seconds(begin) for begin, end in spans)


class Spans:
    """Stretches of time that add up."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._spans: list[Span] = []

    @contextmanager
    def timed(self) -> Iterator[None]:
        begin = self.clock.mark()
        yield
        self._spans.append((begin, self.clock.mark()))

    def add(self, begin: Any, end: Any) -> None:
        self._spans.append((begin, end))

    def take(self) -> list[Span]:
        """Those of the step; the next begins without any."""
        spans, self._spans = self._spans, []
        return spans


class Buckets:
    """The exchanges of a step, in the order in which their gradients were ready."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._begun: list[tuple[Any, int]] = []
        self._finished: dict[int, Any] = {}

    def begin(self, num_bytes: int) -> int:
        self._begun.append((self.clock.mark(), num_bytes))
        return len(self._begun) - 1

    def end(self, bucket: int) -> None:
        self._finished[bucket] = self.clock.mark()

    def take(self) -> list[Exchange]:
        """Those of the step; the next begins without any."""
        begun, finished = self._begun, self._finished
        self._begun, self._finished = [], {}
        return [
            Exchange(ready, finished[at], num_bytes) for at, (ready, num_bytes) in enumerate(begun)
        ]
