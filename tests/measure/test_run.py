"""A run over several nodes: only suspects are measured again, and a lost node is nobody else's fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.measure import journal
from hakaru.measure._base import load_all
from hakaru.measure.fleet import FIRST_REPETITIONS
from hakaru.measure.job import Job, Plan, unfinished
from hakaru.measure.launch import Layout
from hakaru.measure.run import _forgotten, measure
from hakaru.measure.simulated import simulated_fleet
from hakaru.measure.task import Item, Task, journal_of
from hakaru.measure.verdict import Verdict
from tests.measure._runs import NOW, measured

HOSTS = tuple(f"n{at}" for at in range(200))
PLAN = Plan(("gemm",), {"gemm": {"dtype": ["fp64"], "size": [512]}}, hosts=HOSTS, num_hosts=200)
VERSIONS = {"torch": "2.13.0"}


@dataclass
class Written:
    """A launcher that writes the journals of nodes with one card each, as workers would."""

    rate: Callable[[str], float]
    noise: float = 0.015
    id: str = "written"
    title: str = ""
    asked: list[tuple[tuple[str, ...], Task]] = field(default_factory=list)
    missing: tuple[str, ...] = ()
    killed_in_round: int = 0
    died: str = ""
    wrong: tuple[str, ...] = ()
    no_devices: bool = False
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    random: Any = field(default_factory=lambda: np.random.default_rng(3))

    def check(self, layout: Layout) -> None:
        return

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Any) -> list[str]:
        read = Task.read(task)
        self.asked.append((layout.hosts, read))
        for rank, host in enumerate(layout.hosts):
            if host not in self.missing:
                self._write(journal_of(task.parent, rank), rank, host, read)
        return []

    def _write(self, path: Path, rank: int, host: str, task: Task) -> None:
        place = {"host": host, "versions": self.versions.get(host, VERSIONS)}
        device = {"id": "cuda:0", "model": "A100"}
        devices = [] if self.no_devices else [device]
        journal.append(path, {"kind": "begin", "rank": rank, "place": place, "devices": devices})
        failed = {"verdict": "failed", "reason": "wrong result"}
        if self.died:
            journal.append(path, {"kind": "died", "device": "any", "reason": self.died})
        if rank == 0 and len(self.asked) == self.killed_in_round:
            return
        for item in [] if self.no_devices else task.items:
            if not item.wants(host, "cuda:0"):
                continue
            noise = self.noise * self.random.standard_normal(item.repetitions)
            rates = self.rate(host) * (1 + noise)
            journal.append(path, {
                "kind": "result", "item": item.id, "benchmark": item.benchmark,
                "parameters": item.parameters, "host": host, "device": "cuda:0",
                "device_uuid": None, "model": "A100", "started_at": NOW.isoformat(),
                "ended_at": NOW.isoformat(), "samples": {"rate": list(rates)},
                "problem": failed if host in self.wrong else None,
                "validity": {},
            })  # fmt: skip
        journal.append(path, {"kind": "end", "rank": rank})


@pytest.fixture(autouse=True)
def _registered() -> None:
    load_all()


def test_only_the_suspects_are_measured_again_and_then_decided(tmp_path: Path) -> None:
    nodes = Written(lambda host: 95.0 if host == "n5" else 100.0)
    run = measure(Job.begin(tmp_path, "c", PLAN), nodes)
    everyone, *rounds = nodes.asked
    assert everyone[0] == HOSTS and everyone[1].items[0].repetitions == FIRST_REPETITIONS
    assert rounds
    for hosts, task in rounds:
        assert "n5" in hosts and len(hosts) < len(HOSTS)
        assert task.items[0].devices == tuple(f"{host}/cuda:0" for host in hosts)
    verdicts = {each.host: each.verdict for each in run.measurements}
    assert [host for host, verdict in verdicts.items() if verdict is Verdict.SLOW] == ["n5"]
    slow = next(each for each in run.measurements if each.host == "n5")
    made = [FIRST_REPETITIONS, *(task.items[0].repetitions for _, task in rounds)]
    assert len(slow.samples) == sum(made)
    assert "each bound is wrong in 0.1% of cases" in slow.reason


def test_a_run_names_whom_the_proven_procedure_names(tmp_path: Path) -> None:
    fleet = simulated_fleet(11, num_cards=200, slow=3, spread=0.01, correlation=0.5)

    class Cards(Written):
        def _write(self, path: Path, rank: int, host: str, task: Task) -> None:
            card = np.array([int(host[1:])])
            self.rates = fleet.measure(card, task.items[0].repetitions)[0]
            self.random = self
            super()._write(path, rank, host, task)

        def standard_normal(self, num: int) -> np.ndarray:
            return self.rates - 1

    run = measure(Job.begin(tmp_path, "c", PLAN), Cards(lambda host: 1.0, noise=1.0))
    slow = {each.host for each in run.measurements if each.verdict is Verdict.SLOW}
    assert slow == {f"n{card}" for card in np.flatnonzero(fleet.slow)}


def test_a_rank_that_dies_in_a_later_round_has_failed(tmp_path: Path) -> None:
    nodes = Written(lambda host: 95.0 if host == "n5" else 100.0, killed_in_round=2)
    run = measure(Job.begin(tmp_path, "c", PLAN), nodes)
    assert run.verdict is Verdict.FAILED
    victim = nodes.asked[1][0][0]
    failed = {each.host: each.reason for each in run.measurements if each.verdict is Verdict.FAILED}
    assert list(failed) == [victim] and "ended before it was done" in failed[victim]
    assert len(run.measurements) == 200


def test_missing_cards_are_not_forgotten_when_the_run_resumes(tmp_path: Path) -> None:
    job = Job.begin(tmp_path, "c", PLAN)
    reason = "the PCI bus has 8 GPUs and torch sees 7"
    for _ in range(2):
        nodes = Written(lambda host: 100.0, noise=0.002, died=reason)
        run = measure(job, nodes)
        assert len(nodes.asked) == 1
        assert run.verdict is Verdict.FAILED
        assert reason in run.measurements[0].reason


def test_a_benchmark_of_which_all_is_left_out_is_not_measured() -> None:
    items = [Item("all-reduce", {"bytes": size}) for size in (1, 2)]
    left = {"All-reduce: it needs two ranks": {each.id for each in items}}
    lacking = _forgotten(items, [], left)
    assert [each.verdict for each in lacking] == [Verdict.NOT_MEASURED] * 2
    assert "needs two ranks" in lacking[0].reason
    one = measured(benchmark="all-reduce", parameters={"bytes": 1, "ranks": 2})
    assert _forgotten(items, [one], left) == []
    assert len(_forgotten(items, [one], {})) == 1


def test_a_quiet_fleet_is_measured_once(tmp_path: Path) -> None:
    nodes = Written(lambda host: 100.0, noise=0.002)
    assert measure(Job.begin(tmp_path, "c", PLAN), nodes).verdict is Verdict.GOOD
    assert len(nodes.asked) == 1


def test_a_node_that_is_gone_has_failed_and_the_others_are_judged(tmp_path: Path) -> None:
    nodes = Written(lambda host: 100.0, noise=0.002, missing=("n7",))
    run = measure(Job.begin(tmp_path, "c", PLAN), nodes)
    assert run.verdict is Verdict.FAILED
    verdicts = [each.verdict for each in run.measurements]
    assert (verdicts.count(Verdict.GOOD), verdicts.count(Verdict.FAILED)) == (199, 1)
    failed = next(each for each in run.measurements if each.verdict is Verdict.FAILED)
    assert "rank 7 left no result" in failed.reason


def test_a_node_with_another_version_has_failed_alone(tmp_path: Path) -> None:
    nodes = Written(lambda host: 100.0, noise=0.002, versions={"n3": {"torch": "2.12.0"}})
    run = measure(Job.begin(tmp_path, "c", PLAN), nodes)
    bad = {each.host: each.reason for each in run.measurements if each.verdict is Verdict.FAILED}
    assert list(bad) == ["n3"]
    assert "2.12.0 on n3" in bad["n3"]


def test_a_run_that_lost_a_rank_is_not_taken_for_done_when_it_resumes(tmp_path: Path) -> None:
    """The first attempt never had n7; all is measured again, and its loss is not forgotten."""
    job = Job.begin(tmp_path, "c", PLAN)
    gone = Written(lambda host: 100.0, noise=0.002, missing=("n7",))
    assert measure(job, gone).verdict is Verdict.FAILED
    back = Written(lambda host: 100.0, noise=0.002)
    run = measure(job, back)
    assert len(back.asked) == 1
    assert run.verdict is Verdict.GOOD
    assert len(run.measurements) == 200


def test_a_wrong_result_stays_wrong_when_the_run_resumes(tmp_path: Path) -> None:
    job = Job.begin(tmp_path, "c", PLAN)
    nodes = Written(lambda host: 100.0, noise=0.002, wrong=("n4",))
    assert measure(job, nodes).verdict is Verdict.FAILED
    again = Written(lambda host: 100.0, noise=0.002)
    run = measure(job, again)
    assert again.asked == []  # everybody has every item
    assert [each.host for each in run.measurements if each.verdict is Verdict.FAILED] == ["n4"]


def test_a_run_that_is_under_way_is_not_resumed_by_another(tmp_path: Path) -> None:
    job = Job.begin(tmp_path, "c", PLAN)
    assert unfinished(tmp_path) == [job.id]
    with job.locked():
        assert unfinished(tmp_path) == []
        with pytest.raises(HakaruError, match="still being measured"):
            measure(job, Written(lambda host: 100.0))


def test_what_no_device_measured_is_not_measured(tmp_path: Path) -> None:
    nodes = Written(lambda host: 100.0, no_devices=True)
    run = measure(Job.begin(tmp_path, "c", PLAN), nodes)
    assert run.verdict is Verdict.NOT_MEASURED
    assert "check --device" in run.measurements[0].reason


@pytest.mark.parametrize("text", ["", "x", '{"plan": {}}'])
def test_a_damaged_plan_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    job = Job.begin(tmp_path, "c", PLAN)
    (job.folder / "plan.json").write_text("")
    journal.append(job.folder / "plan.json", {"plan": text})
    with pytest.raises(HakaruError, match="is damaged, so the run cannot be resumed"):
        Job.resume(tmp_path)
