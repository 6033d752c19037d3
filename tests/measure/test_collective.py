"""Collectives around their numbers: missing cards, strangers on them, and plans that do not fit them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from hakaru.measure import condition, devices, journal, validity
from hakaru.measure import run as runs
from hakaru.measure._base import load_all
from hakaru.measure.collect import gather
from hakaru.measure.collective import _worker, operations
from hakaru.measure.devices import Device
from hakaru.measure.job import Job, Plan
from hakaru.measure.launch import Layout
from hakaru.measure.protocol import Rule
from hakaru.measure.task import Item, Place, Task, journal_of
from hakaru.measure.verdict import Verdict
from tests.measure._runs import NOW, measured

ITEM = Item("all-reduce", {"dtype": "fp32", "bytes": 4096})


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    load_all()
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@dataclass
class Together:
    """The second of two ranks on one host; each says what this one says, or what is given."""

    device: Device
    others: Any = None
    rank: int = 1
    size: int = 2

    def share(self, value: Any) -> list[Any]:
        return [value if self.others is None else self.others, value]


@pytest.fixture
def eight_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The PCI bus has them; nothing of the environment hides any."""
    monkeypatch.setattr(devices, "_cards_on_bus", lambda sys_pci: {"NVIDIA": 8})
    for name in (*devices.VISIBLE, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("eight_cards")
def test_ranks_without_their_cards_have_failed(tmp_path: Path) -> None:
    _worker.measure_ranks(Task("ranks", (ITEM,), rule=Rule()), tmp_path, Place())
    found = gather(tmp_path, 1)
    assert found.is_broken
    assert "torch sees 0" in str(found.problem_of(None))


@pytest.mark.usefixtures("eight_cards")
def test_processors_are_measured_where_they_are_asked_for(tmp_path: Path) -> None:
    _worker.measure_ranks(Task("ranks", (ITEM,), ("cpu",), Rule()), tmp_path, Place())
    assert not gather(tmp_path, 1).is_broken


def cards(*numbers: int) -> list[Device]:
    return [Device("cuda:0", "A100", uuid=f"GPU-{at}") for at in numbers]


@pytest.mark.usefixtures("eight_cards")
@pytest.mark.parametrize(("seen", "is_missing"), [(range(7), False), (range(6), True)])
def test_the_cards_of_a_host_are_those_that_any_of_its_ranks_sees(
    monkeypatch: pytest.MonkeyPatch, seen: range, is_missing: bool
) -> None:
    monkeypatch.setattr(_worker, "find_devices", lambda names: cards(7))
    ranks: Any = Together(cards(7)[0], cards(*seen))
    problem = _worker._missing_gpus((), ranks, ["n1", "n1"])
    assert ("torch sees 7" in str(problem)) is is_missing
    problem = _worker._missing_gpus((), ranks, ["n1", "n2"])  # the others' cards do not count
    assert "torch sees 1" in str(problem)


@pytest.mark.parametrize(
    ("listed", "reason"),
    [([4711], None), ([4711, 4712], "n1/cuda:0: other processes are on the card: [4712]")],
)
def test_strangers_on_a_card_contaminate_and_this_runs_ranks_do_not(
    monkeypatch: pytest.MonkeyPatch, listed: list[int], reason: str | None
) -> None:
    monkeypatch.setattr(condition.gpu, "read_processes", lambda uuid: [os.getpid(), *listed])
    monkeypatch.setattr(_worker, "_measured", lambda *given: _worker.Found({"": {"busbw": [1.0]}}))
    monkeypatch.setattr(_worker.validity, "problems", lambda *given: [])
    ranks: Any = Together(cards(0)[0])
    problem = _worker._measure(ITEM, Rule(), ranks, ["n1", "n1"], {4711})["problem"]
    assert problem == (reason and {"verdict": Verdict.CONTAMINATED, "reason": reason})


def report(**more: Any) -> dict[str, Any]:
    """What a rank reports of an undisturbed measurement, with what a test changes."""
    counters = dict.fromkeys((field.name for field in fields(validity.Reading)), 0.0)
    span = validity.Reading(**(counters | {"wall_s": 10.0} | more.pop("span", {})))
    usual = {"problem": None, "machine": "m1", "span": span, "cores": 8, "where": "n1/cuda:0",
             "others": None, "clocks": {}}  # fmt: skip
    return usual | more


@pytest.mark.parametrize(
    ("second", "verdict", "reason"),
    [
        ({}, None, ""),
        ({"span": {"throttled_s": 4.0}}, Verdict.CONTAMINATED, "a CPU quota stopped it 20% of the time"),
        ({"machine": "m2", "span": {"throttled_s": 4.0}}, Verdict.CONTAMINATED, "stopped it 40%"),
        ({"clocks": {"slowed_by": ["power cap"]}}, None, ""),
        ({"where": "n2/cuda:3", "clocks": {"slowed_by": ["hardware slowdown"]}}, Verdict.SLOW,
         "n2/cuda:3: the driver slows it down: hardware slowdown"),
    ],
)  # fmt: skip
def test_what_holds_back_one_rank_holds_back_all(
    second: dict[str, Any], verdict: Verdict | None, reason: str
) -> None:
    found = _worker._problem([report(), report(**second)])
    assert (found and found["verdict"]) == verdict
    assert reason in (found or {"reason": ""})["reason"]


@pytest.mark.parametrize("num", [11, 64, 1000])
def test_the_pattern_is_the_same_however_it_is_made(num: int) -> None:
    """A rank sees at once where data of another rank, or of another place, has arrived."""
    for rank, begin in ((0, 0), (3, 0), (2, 17)):
        places = (torch.arange(num) + begin) * 7 + rank * 13
        expected = (places % operations.PERIOD == 0).to(torch.float16)
        assert torch.equal(operations.pattern(num, rank, torch.float16, "cpu", begin), expected)
    parts = [operations.pattern(num, rank, torch.float32, "cpu") for rank in range(5)]
    assert torch.equal(operations.summed(num, 5, torch.float32, "cpu"), torch.stack(parts).sum(0))


@dataclass
class Exchanged:
    """A launcher that writes what two ranks with a card each would, or that one rank leaves all out."""

    device: str = "cuda:0"
    looks: int = 1
    id: str = "exchanged"
    title: str = ""

    def check(self, layout: Layout) -> None:
        return

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Any) -> list[str]:
        for rank in range(layout.num_ranks):
            log = journal_of(task.parent, rank)
            card = {"id": self.device, "model": "A100"}
            begin = {"place": {"host": "n1", "versions": {}}, "devices": [card]}
            journal.append(log, {"kind": "begin", "rank": rank} | begin)
            for item in Task.read(task).items if rank == 0 else ():
                journal.append(log, self.entry(item, layout.num_ranks))
            journal.append(log, {"kind": "end", "rank": rank})
        for _ in range(self.looks):
            watch()
        return []

    def entry(self, item: Item, num: int) -> dict[str, Any]:
        entry = {
            "item": item.id,
            "benchmark": item.benchmark,
            "device": f"{num} ranks",
            "hosts": ["n1"] * num,
        }
        benchmark = load_all().get(item.benchmark)
        if num == 1 and benchmark.family != "storage":
            return entry | {"kind": "left-out", "reason": "a collective needs two ranks or more"}
        return entry | {
            "kind": "result", "parameters": item.parameters | {"ranks": num}, "host": "n1",
            "device_uuid": None, "model": "A100", "started_at": NOW.isoformat(),
            "ended_at": NOW.isoformat(), "samples": {each.name: [1.0] * 6 for each in benchmark.quantities},
            "subjects": {}, "problem": None, "validity": {},
        }  # fmt: skip


BY_NAME = Plan(
    ("all-reduce",), {"all-reduce": {"dtype": ["fp32"], "bytes": [4096]}}, True, ranks_per_host=2
)


@pytest.mark.parametrize(
    ("device", "on_gpu", "verdict"),
    [("cuda:0", False, Verdict.NOT_MEASURED), ("cuda:0", True, Verdict.GOOD), ("cpu:0", False, Verdict.GOOD)],
)  # fmt: skip
def test_cards_measured_by_a_plan_for_processors_are_not_measured(
    tmp_path: Path, device: str, on_gpu: bool, verdict: Verdict
) -> None:
    run = runs.measure(Job.begin(tmp_path, "c", replace(BY_NAME, on_gpu=on_gpu)), Exchanged(device))
    assert {each.verdict for each in run.measurements} == {verdict}
    if verdict is Verdict.NOT_MEASURED:
        assert "add --device cuda, and --ranks-per-host" in run.measurements[0].reason


@pytest.mark.parametrize(
    ("names", "verdict"), [((), Verdict.GOOD), (("collective",), Verdict.NOT_MEASURED),
                           (("pairs", "gemm"), Verdict.NOT_MEASURED)],
)  # fmt: skip
def test_a_machine_with_one_card_is_good_unless_a_collective_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], verdict: Verdict
) -> None:
    def devices_of(job: Job, *_: Any) -> list[Any]:
        return [measured(1.0, benchmark=each.benchmark, parameters=each.parameters)
                for each in job.plan.items("device")]  # fmt: skip

    monkeypatch.setattr(devices, "find_devices", lambda names: cards(0))
    monkeypatch.setattr(runs, "_measure_devices", devices_of)
    monkeypatch.setattr(runs, "_measure_machine", lambda *given: [])
    run = runs.measure(Job.begin(tmp_path, "c", Plan(names, on_gpu=True)), Exchanged())
    assert run.verdict is verdict
    assert sum("two ranks or more" in text for text in run.left_out) >= (1 if names else 2)


def test_the_progress_of_a_run_is_read_once_a_second_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    read = journal.read
    monkeypatch.setattr(runs.journal, "read", lambda path: looks.append(path) or read(path))
    runs.measure(Job.begin(tmp_path, "c", BY_NAME), Exchanged("cpu:0", looks=50))
    assert len(looks) <= 1 + 2  # one by the watch, and both ranks' at the end
