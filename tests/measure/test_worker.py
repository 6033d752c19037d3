"""What a worker does with cards: all of them work at once, and repetitions are as many as are needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.measure import journal, worker
from hakaru.measure._base import Case, load_all
from hakaru.measure.context import Context
from hakaru.measure.device import gemm
from hakaru.measure.devices import Device, cores
from hakaru.measure.fleet import FIRST_REPETITIONS
from hakaru.measure.protocol import Rule, Timed
from hakaru.measure.task import Item, Task
from hakaru.measure.validity import Reading


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
    warm: set[str] = set()
    worker._soak(cases, cards, Rule(soak_s=2.0), {}, warm)
    assert log == ["step cuda:0", "step cuda:1", "sync cuda:0", "sync cuda:1"]
    log.clear()
    worker._soak(cases, cards, Rule(soak_s=2.0), {}, warm)  # the next item finds them warm
    cores = {"cpu:0": Device("cpu:0", "core")}
    worker._soak({"cpu:0": case(log, "cpu:0")}, cores, Rule(soak_s=9), {}, warm)
    assert log == []


def test_the_others_work_while_one_is_timed_and_its_own_queue_is_empty(log: list[str]) -> None:
    cases = {name: case(log, name) for name in "abc"}
    worker._load_other_cards("b", cases, {})
    assert log == [*["step a"] * 2, *["step c"] * 2, "sync b"]  # still at work when b's block ends
    log.clear()
    alone = {name: case(log, name, together=False) for name in "ab"}
    worker._load_other_cards("a", alone, {})
    assert log == []


@dataclass
class Node:
    """Cards of one model that take so long for a step; some fail after so many steps."""

    seconds: dict[str, float]
    fails_after: dict[str, int] = field(default_factory=dict)
    together: bool = False
    stopped: float = 0.0  # share of the time, by a quota
    now: float = 0.0
    log: list[str] = field(default_factory=list)

    def prepare(self, context: Context) -> Case:
        name, steps = context.device.id, itertools.count()

        def step() -> None:
            number = next(steps)
            if number >= self.fails_after.get(name, math.inf):
                raise RuntimeError("CUDA error: uncorrectable ECC error")
            self.log.append(name)
            self.now += self.seconds[name] * (1 + 0.02 * (7 * number % 5 - 2))

        return Case(step, lambda s: {"rate": 1 / s}, lambda: None, together=self.together)

    def read_now(self, cores: object = ()) -> Reading:
        self.log.append("read")
        return Reading(
            self.now, self.now, 0.0, 0.0, self.stopped * self.now, None, None, None, None
        )


def measured(node: Node, log: Path, repetitions: int = 0) -> dict[str, dict[str, Any]]:
    """What the journal says of each card after one item on all of them."""
    cards = [Device(name, "A100") for name in node.seconds]
    task = Task("device", (), rule=Rule(budget_s=50.0, most=60))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.perf_counter", lambda: node.now)
        patch.setattr(worker.validity, "read_now", node.read_now)
        patch.setattr(worker, "BENCHMARKS", SimpleNamespace(get=lambda _: node))
        patch.setattr(worker, "contamination", lambda *_: [])
        patch.setattr(worker, "state_under_load", lambda *_: {})
        worker.measure_item(task, Item("gemm", repetitions=repetitions), cards, log, set())
    entries, _ = journal.read(log)
    return {each["device"]: each for each in entries}


@pytest.mark.parametrize("after", [0, 5, 10])
@pytest.mark.parametrize("repetitions", [0, 20])
def test_the_error_of_one_card_is_its_own(tmp_path: Path, after: int, repetitions: int) -> None:
    """In its preparation, in the first repetitions, and while all are measured again."""
    node = Node({"cuda:0": 1.0, "cuda:1": 1.0, "cuda:2": 1.5}, {"cuda:1": after})
    found = measured(node, tmp_path / "log", repetitions)
    failed = found.pop("cuda:1")
    assert failed["problem"]["verdict"] == "failed"
    assert "uncorrectable ECC error" in failed["problem"]["reason"]
    assert failed["samples"] == {}
    for each in found.values():
        assert each["problem"] is None and len(each["samples"]["rate"]) >= FIRST_REPETITIONS


@pytest.mark.parametrize("cards", [["cuda:0"], ["cuda:0", "cuda:1"]])
def test_where_every_card_fails_each_has_its_reason(tmp_path: Path, cards: list[str]) -> None:
    found = measured(Node(dict.fromkeys(cards, 1.0), dict.fromkeys(cards, 8)), tmp_path / "log")
    assert set(found) == set(cards)
    assert all("uncorrectable ECC error" in each["problem"]["reason"] for each in found.values())


def test_a_card_that_fails_beside_another_is_the_one_that_failed(tmp_path: Path) -> None:
    node = Node({"cuda:0": 1.0, "cuda:1": 1.0}, {"cuda:1": 6}, together=True)
    found = measured(node, tmp_path / "log", repetitions=6)
    assert [found[name]["problem"] is None for name in node.seconds] == [True, False]


def test_groups_of_cores_share_their_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a whole group of sixteen may be faster than another by where its data lies."""
    made: list[object] = []

    class Counted(gemm.Matrices):
        def __init__(self, *of: Any) -> None:
            super().__init__(*of)
            made.append(1)

    load_all()
    monkeypatch.setattr(gemm, "Matrices", Counted)
    monkeypatch.setattr(worker, "MOST_AT_ONCE", 1)
    first = cores()[0]
    devices = [first, replace(first, id="cpu:again"), replace(first, id="cpu:once-more")]
    item = Item("gemm", {"dtype": "fp64", "size": 64})
    task = Task("device", (item,), rule=Rule(budget_s=0.1, block_s=0.001))
    worker._measure_all(task, devices, tmp_path / "log", {})
    entries, _ = journal.read(tmp_path / "log")
    assert [each["device"] for each in entries] == [each.id for each in devices]
    assert len(made) == 1


def test_what_a_quota_took_is_kept_for_the_judge(tmp_path: Path) -> None:
    (free,) = measured(Node({"cuda:0": 1.0}), tmp_path / "free").values()
    assert free["validity"]["quota"] is None
    (bound,) = measured(Node({"cuda:0": 1.0}, stopped=0.5), tmp_path / "bound").values()
    assert bound["problem"] is None
    assert bound["validity"]["quota"] == "a CPU quota stopped it 50% of the time"


def test_the_others_get_their_work_after_the_counters_are_read(tmp_path: Path) -> None:
    node = Node({"cuda:0": 1.0, "cuda:1": 1.0}, together=True)
    measured(node, tmp_path / "log", repetitions=1)
    turns = node.log[node.log.index("read") + 1 : -1]  # without the readings of the whole machine
    first = ["read", "cuda:1", "cuda:1", "cuda:0", "read"]
    assert turns == [*first, "read", "cuda:0", "cuda:0", "cuda:1", "read"]


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
        worker._repeat(cases, item, task, lambda name: nullcontext(), {})
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


@pytest.mark.parametrize(
    ("narrow_from", "most", "num"), [(0, 400, 32), (101, 400, 104), (101, 60, 60)]
)
def test_who_is_decided_goes_on_until_its_interval_is_narrow(
    narrow_from: int, most: int, num: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight that resemble one another by chance are no reason to call a gate's number unknown."""
    monkeypatch.setattr(Timed, "is_narrow", lambda timed, width: len(timed.seconds) >= narrow_from)
    task = Task("device", (), rule=Rule(budget_s=1e6, most=most))
    assert taken(task, Item("gemm"), {"a": 1.0, "b": 1.0}) == {"a": num, "b": num}


def test_items_name_the_devices_that_they_are_for() -> None:
    one, two = Item("gemm", devices=("n1/cuda:3",)), Item("memory", devices=("n1/cuda:4",))
    assert one.wants("n1", "cuda:3") and not one.wants("n2", "cuda:3")
    task = Task("device", (one, two), devices=("cuda:0",))
    assert worker._named_devices(task) == ("n1/cuda:3", "n1/cuda:4")
    everywhere = replace(task, items=(one, Item("memory")))
    assert worker._named_devices(everywhere) == ("cuda:0",)
