"""Lanes on one time axis: clocks are aligned by marks, and cards and processors are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.measure.storage._intervals import spans_of
from hakaru.measure.storage._timeline import (
    LANES,
    MARK,
    MOST_EVENTS,
    Profiled,
    Timeline,
    make_timeline,
    profiling,
)


@dataclass
class Event:
    """As torch's profiler gives it, in µs."""

    name: str
    begin: float
    end: float
    device: str = "CPU"

    @property
    def time_range(self) -> Any:
        return SimpleNamespace(start=self.begin, end=self.end)

    @property
    def device_type(self) -> Any:
        return SimpleNamespace(name=self.device)


def profiled(events: list[Event], marks: list[float], end: float) -> Profiled:
    found = Profiled(marks=marks, end=end)
    found.take(events)
    return found


def test_compute_of_a_processor_is_put_on_the_monotonic_clock() -> None:
    """The profiler's 0 is at 100 s; the second mark was noted late."""
    events = [
        Event(MARK, 0, 10), Event("aten::conv2d", 1e6, 3e6),
        Event(MARK, 4e6, 4.1e6), Event("aten::mm", 5e6, 6e6), Event("Optimizer.step", 0, 9e6),
    ]  # fmt: skip
    found = make_timeline(
        [(100.5, 102)], [(101.5, 103)], profiled(events, [100.0, 104.2], 107.0), is_on_card=False
    )
    assert found is not None
    assert found.lanes["compute"].tolist() == [[101, 103], [105, 106]]
    assert found.hidden == {"loading": pytest.approx(2 / 3), "copy": None}
    assert "66.7 % of the loading hides behind compute" in found.sentence
    assert "training waits for data 21.4 % of the time" in found.sentence
    assert "There is no copy" in found.sentence


def test_the_first_steps_are_before_the_window_and_nothing_is_after_it() -> None:
    events = [Event(MARK, 0, 1), Event("aten::mm", 0, 9e6), Event(MARK, 4e6, 4.1e6)]
    seen = profiled(events, [0.0, 4.0], 8.0)
    found = make_timeline([(1, 5), (7, 12)], [(0, 3)], seen, is_on_card=False, num_warm_up=1)
    assert found is not None
    assert (found.begin, found.end) == (4.0, 8.0)
    assert found.lanes["loading"].tolist() == [[4, 5], [7, 8]]
    assert found.lanes["compute"].tolist() == [[4, 8]]
    assert found.hidden["loading"] == 1.0
    assert "training waits for data 0.0 % of the time" in found.sentence
    assert make_timeline([], [], seen, is_on_card=False, num_warm_up=2) is None


def test_next_to_no_loading_has_nothing_to_hide() -> None:
    seen = profiled([Event(MARK, 0, 1), Event("aten::mm", 0, 9e6)], [0.0], 10.0)
    found = make_timeline([(1, 1.05)], [], seen, is_on_card=False)
    assert found is not None
    assert found.hidden["loading"] is None
    assert "hides" not in found.sentence
    assert "next to nothing" in found.sentence


def test_kernels_and_copies_of_a_card() -> None:
    events = [
        Event(MARK, 0, 10), Event("aten::conv2d", 0, 5e6),
        Event("sgemm", 1e6, 3e6, "CUDA"), Event("Memcpy HtoD (Pinned -> Device)", 2e6, 4e6, "CUDA"),
        Event("Memcpy DtoH", 0, 1e6, "CUDA"), Event("Memset (Device)", 4e6, 5e6, "CUDA"),
    ]  # fmt: skip
    found = make_timeline([], [], profiled(events, [0.0], 5.0), is_on_card=True)
    assert found is not None
    assert found.lanes["compute"].tolist() == [[1, 3]]
    assert found.lanes["copy"].tolist() == [[2, 4]]
    assert found.hidden == {"loading": None, "copy": 0.5}
    assert "50.0 % of the copies to the device hide behind compute" in found.sentence


def test_a_trace_without_compute_gives_no_timeline() -> None:
    assert make_timeline([], [], profiled([Event(MARK, 0, 1)], [0.0], 1.0), False) is None
    assert make_timeline([], [], Profiled(), False) is None


def test_json_has_few_events_and_times_from_the_first_step_on() -> None:
    many = spans_of((at, at + 0.5) for at in range(5000))
    lanes = {"loading": many, "copy": spans_of([]), "compute": many, "waiting": spans_of([(1, 2)])}
    document = Timeline(0.0, 5000.0, lanes, is_on_card=False).to_json()
    assert document["lanes"] == list(LANES)
    assert 0 < len(document["events"]) <= MOST_EVENTS
    assert document["events"][-1] == [3, 1000.0, 2000.0]
    assert document["hidden"] == {"loading": pytest.approx(0.9998), "copy": None}


def test_torch_s_own_profiler_is_understood() -> None:
    torch = pytest.importorskip("torch")
    with profiling("cpu") as found:
        for _ in range(3):
            with found.step():
                torch.ones(64, 64) @ torch.ones(64, 64)
    timeline = make_timeline([], [(found.marks[0], found.end)], found, is_on_card=False)
    assert timeline is not None
    assert len(found.marks) == 3
    compute = timeline.lanes["compute"]
    assert len(compute) > 0
    assert found.marks[0] - 0.001 <= compute[:, 0].min()
    assert compute[:, 1].max() <= found.end + 0.001
