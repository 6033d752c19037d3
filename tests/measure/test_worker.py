"""What a worker does with cards: all of them work at once, and repetitions are as many as are needed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest

from hakaru.measure import worker
from hakaru.measure._base import Case
from hakaru.measure.devices import Device
from hakaru.measure.fleet import FIRST_REPETITIONS
from hakaru.measure.protocol import Rule, Timed
from hakaru.measure.task import Item, Task


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the cards were asked to do; each look at the clock takes a second."""
    clock = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    return []


def case(log: list[str], name: str, together: bool = True) -> Timed:
    def note(what: str) -> Callable[[], None]:
        return lambda: log.append(f"{what} {name}")

    return Timed(Case(note("step"), lambda s: {}, lambda: None, note("sync"), together=together))


def test_all_cards_are_loaded_at_once_before_anything_counts(log: list[str]) -> None:
    cases = {name: case(log, name) for name in ("cuda:0", "cuda:1")}
    cards = {name: Device(name, "A100") for name in cases}
    worker._soak(cases, cards, Rule(soak_s=2.0))
    assert log == ["step cuda:0", "step cuda:1", "sync cuda:0", "sync cuda:1"]
    log.clear()
    worker._soak({"cpu:0": case(log, "cpu:0")}, {"cpu:0": Device("cpu:0", "core")}, Rule(soak_s=9))
    assert log == []


def test_the_others_work_while_one_is_timed_and_its_own_queue_is_empty(log: list[str]) -> None:
    cases = {name: case(log, name) for name in "abc"}
    worker._busy_others("b", cases)
    assert log == ["step a", "step c", "sync b"]
    log.clear()
    alone = {name: case(log, name, together=False) for name in "ab"}
    worker._busy_others("a", alone)
    assert log == []


def taken(task: Task, item: Item, seconds: dict[str, float]) -> dict[str, int]:
    """How many repetitions of each device a worker takes, whose steps last so long."""
    clock = {"now": 0.0}
    cases = {}
    for name, step in seconds.items():

        def run(step: float = step) -> None:
            clock["now"] += step * (1 + 0.001 * (int(clock["now"] * 1e4) % 7 - 3))

        cases[name] = Timed(Case(run, lambda s: {}, lambda: None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.perf_counter", lambda: clock["now"])
        worker._repeat(cases, item, task, lambda name: nullcontext())
    return {name: len(each.seconds) for name, each in cases.items()}


def test_repetitions_are_as_many_as_the_controller_asks_for() -> None:
    task = Task("device", (), rule=Rule(budget_s=0.0))
    asked = taken(task, Item("gemm", repetitions=17), {"a": 1.0, "b": 1.0})
    assert asked == {"a": 17, "b": 17}


def test_a_slow_device_is_measured_again_before_it_is_named() -> None:
    task = Task("device", (), rule=Rule(budget_s=1e6, most=400))
    counts = taken(task, Item("gemm"), {"a": 1.0, "b": 2.0})
    assert counts["a"] == FIRST_REPETITIONS < counts["b"] < 20


def test_when_time_is_over_everyone_has_the_first_repetitions() -> None:
    task = Task("device", (), rule=Rule(budget_s=0.0, most=400))
    assert set(taken(task, Item("gemm"), {"a": 1.0, "b": 1.04}).values()) == {FIRST_REPETITIONS}


def test_items_name_the_devices_that_they_are_for() -> None:
    one, two = Item("gemm", devices=("n1/cuda:3",)), Item("memory", devices=("n1/cuda:4",))
    assert one.wants("n1", "cuda:3") and not one.wants("n2", "cuda:3")
    task = Task("device", (one, two), devices=("cuda:0",))
    assert worker._named_devices(task) == ("n1/cuda:3", "n1/cuda:4")
    everywhere = replace(task, items=(one, Item("memory")))
    assert worker._named_devices(everywhere) == ("cuda:0",)
