"""Loading, copies and compute on one time axis (TSUBAME's Fig. 2), and how much hides behind compute.

Compute and copies come from torch's profiler, loading from the workers' own clocks, and waiting from the
training loop; loading is hidden as long as training does not wait. time.monotonic() is one clock for all
processes of a machine; marks in the trace give the distance of the profiler's clock from it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hakaru.measure.context import torch
from hakaru.measure.numbers import share
from hakaru.measure.storage._intervals import (
    Spans,
    clipped,
    fewer,
    hidden_share,
    length,
    spans_of,
)

LANES = ("loading", "copy", "compute", "waiting")
MOST_EVENTS = 2_000
LEAST_LOADING = 0.01  # of the window, before it is worth a word what of it is hidden
MARK = "hakaru: step"
TO_DEVICE = "Memcpy HtoD"
NOT_COMPUTE = ("Memcpy", "Memset")
NO_COPY = "There is no copy: the processor computes on the batch where the loader left it."


@dataclass(frozen=True)
class Timeline:
    """Spans of each lane in seconds of time.monotonic(), within the steps that were profiled."""

    begin: float
    end: float
    lanes: Mapping[str, Spans]
    is_on_card: bool

    @property
    def hidden(self) -> dict[str, float | None]:
        """The share of the loading that training does not wait for, and of the copies behind compute.

        None where there is nothing to hide.
        """
        exposed = hidden_share(self.lanes["loading"], self.lanes["waiting"])
        is_worth_it = self._share("loading") >= LEAST_LOADING
        return {
            "loading": 1 - exposed if exposed is not None and is_worth_it else None,
            "copy": hidden_share(self.lanes["copy"], self.lanes["compute"]),
        }

    @property
    def sentence(self) -> str:
        hidden, waited = self.hidden, f"training waits for data {share(self._share('waiting'))}"
        if hidden["loading"] is None:
            words = f"Loading takes next to nothing of these steps; {waited} of the time."
        else:
            words = f"{share(hidden['loading'])} of the loading hides behind compute; {waited} of the time."
        if hidden["copy"] is not None:
            return (
                f"{words} {share(hidden['copy'])} of the copies to the device hide behind compute."
            )
        return words if self.is_on_card else f"{words} {NO_COPY}"

    def _share(self, lane: str) -> float:
        """Of the window that a lane covers."""
        total = self.end - self.begin
        return length(self.lanes[lane]) / total if total > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        hidden = {n: None if v is None else round(v, 4) for n, v in self.hidden.items()}
        return {
            "lanes": list(LANES),
            "events": self._events(),
            "hidden": hidden,
            "sentence": self.sentence,
        }

    def _events(self) -> list[list[float]]:
        """Lane, begin and end in ms from the first step on; few enough to draw."""
        most = MOST_EVENTS // len(LANES)
        return [
            [lane, round((start - self.begin) * 1e3, 3), round((end - self.begin) * 1e3, 3)]
            for lane, name in enumerate(LANES)
            for start, end in fewer(self.lanes[name], most).tolist()
        ]


def make_timeline(
    loading: Iterable[tuple[float, float]],
    waiting: Iterable[tuple[float, float]],
    profiled: Profiled,
    is_on_card: bool,
    num_warm_up: int = 0,
) -> Timeline | None:
    """All lanes cut to the profiled steps but for the first few; None where the trace has no compute."""
    if len(profiled.marks) <= num_warm_up or not len(profiled.compute):
        return None
    begin, end = profiled.marks[num_warm_up], profiled.end
    found = {
        "loading": spans_of(loading),
        "copy": profiled.copy,
        "compute": profiled.compute,
        "waiting": spans_of(waiting),
    }
    lanes = {name: clipped(spans, begin, end) for name, spans in found.items()}
    return Timeline(begin, end, lanes, is_on_card)


@dataclass
class Profiled:
    """What torch's profiler saw of some steps, in seconds of time.monotonic()."""

    marks: list[float] = field(default_factory=list)  # the begin of each step
    end: float = 0.0
    compute: Spans = field(default_factory=lambda: np.empty((0, 2)))
    copy: Spans = field(default_factory=lambda: np.empty((0, 2)))

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around all of a step, its waiting for data included."""
        with torch().profiler.record_function(MARK):
            self.marks.append(time.monotonic())
        yield
        self.end = time.monotonic()

    def take(self, events: Iterable[Any]) -> None:
        """Sort the profiler's events into lanes; its times are in µs of a clock of its own."""
        listed = list(events)
        starts = sorted(each.time_range.start / 1e6 for each in listed if each.name == MARK)
        # a mark is noted a moment after its event began: the least distance is the truest
        pairs = zip(self.marks, starts, strict=False)
        apart = min((noted - start for noted, start in pairs), default=None)
        if apart is None:
            return
        self.compute = _spans(listed, _is_compute, apart)
        self.copy = _spans(listed, _is_copy, apart)


@contextmanager
def profiling(device: str) -> Iterator[Profiled]:
    """Profile the steps inside; the lanes are there after the block."""
    activities = torch().profiler.ProfilerActivity
    wanted = [activities.CPU] + ([activities.CUDA] if device != "cpu" else [])
    found = Profiled()
    with torch().profiler.profile(activities=wanted) as profile:
        yield found
        if device != "cpu":
            torch().cuda.synchronize(device)
    found.take(profile.events())


def _spans(events: Iterable[Any], is_wanted: Any, apart: float) -> Spans:
    on_card = [each for each in events if _on_card(each)]
    chosen = [each for each in (on_card or events) if is_wanted(each)]
    return spans_of(
        (each.time_range.start / 1e6 + apart, each.time_range.end / 1e6 + apart) for each in chosen
    )


def _on_card(event: Any) -> bool:
    return bool(event.device_type.name != "CPU")


def _is_compute(event: Any) -> bool:
    if _on_card(event):  # kernels
        return not event.name.startswith(NOT_COMPUTE) and event.name != MARK
    return bool(event.name.startswith("aten::"))


def _is_copy(event: Any) -> bool:
    return _on_card(event) and event.name.startswith(TO_DEVICE)
