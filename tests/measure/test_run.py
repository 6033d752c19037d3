"""A run over several nodes: only suspects are measured again, and a lost node is nobody else's fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.measure import journal
from hakaru.measure._base import load_all
from hakaru.measure.fleet import FIRST_REPETITIONS
from hakaru.measure.job import Job, Plan, unfinished
from hakaru.measure.launch import Layout
from hakaru.measure.meter import UNTESTED, Meter, meter_at
from hakaru.measure.protocol import correlation_of
from hakaru.measure.record import Measurement
from hakaru.measure.run import _forgotten, _of_one_version, _with_more, measure
from hakaru.measure.selftest import last_tests
from hakaru.measure.simulated import simulated_fleet
from hakaru.measure.store import save
from hakaru.measure.task import Item, Task, journal_of
from hakaru.measure.verdict import Verdict
from tests.measure._runs import NOW, measured, run_of

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
    stops_after: int = 1_000  # items
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
        if len(task.items) > self.stops_after:
            task = replace(task, items=task.items[: self.stops_after])
            rank = -1  # whose journal has no end
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
        if rank >= 0:
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


@dataclass
class Queued(Written):
    """Each launch waits for so long and then works for so long."""

    waits_s: float = 0.0
    works_s: float = 0.0
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Any) -> list[str]:
        self.now += self.waits_s
        watch()
        self.now += self.works_s
        return super().run(task, layout, timeout_s, watch)


@pytest.mark.parametrize(("waits_s", "works_s", "num"), [(0, 1, 4), (5000, 1, 4), (0, 5000, 2)])
def test_the_time_in_a_queue_is_not_that_of_the_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits_s: float, works_s: float, num: int
) -> None:
    nodes = Queued(
        lambda host: 96.0 if host == "n5" else 100.0, 0.05, waits_s=waits_s, works_s=works_s
    )
    monkeypatch.setattr("hakaru.measure.run.time", nodes)
    measure(Job.begin(tmp_path, "c", PLAN), nodes)
    assert len(nodes.asked) == num


def test_the_correlation_of_joined_rounds_is_that_of_all_repetitions() -> None:
    first, second = measured(*[100.0] * 3, *[101.0] * 3), measured(*[99.0] * 10, *[102.0] * 10)
    (joined,) = _with_more([first], [second])
    assert joined.correlation == correlation_of(joined.samples) > 0.5


def test_what_slowed_a_device_in_any_round_is_not_forgotten() -> None:
    quota = {"quota": "a CPU quota stopped it 50% of the time"}
    free, bound = measured(100.0, validity={"quota": None}), measured(50.0, validity=quota)
    for rounds in ([free, bound], [bound, free]):
        (joined,) = _with_more(rounds[:1], rounds[1:])
        assert joined.validity == quota


def test_the_meter_is_that_of_each_host(tmp_path: Path) -> None:
    wrong = Meter(tested_at="2026-11-01", problem="the meter was wrong on 2026-11-01")
    nodes = Written(lambda host: 100.0, noise=0.002)
    tested = {"n3": Meter(0.01), "n7": wrong, "login": Meter(0.02)}
    run = measure(Job.begin(tmp_path, "c", PLAN), nodes, tested=tested)
    found = {each.host: each for each in run.measurements}
    assert [host for host, each in found.items() if each.verdict is not Verdict.GOOD] == ["n7"]
    assert found["n7"].reason == wrong.problem
    errors = [found[host].validity["meter"]["error"] for host in ("n0", "n3")]
    assert errors == [None, 0.01]


def test_ranks_on_several_hosts_have_the_worst_of_their_meters() -> None:
    wrong = Meter(problem="the meter was wrong")
    tested = {"n1": Meter(0.01), "n2": Meter(0.03), "n3": wrong}
    assert meter_at("n1,n2", tested) == Meter(0.03)
    assert meter_at("n1,n2,n4", tested) == UNTESTED
    assert meter_at("n3,n4,n1", tested) == wrong


def test_the_last_self_test_of_each_host_counts(lake: Lake) -> None:
    def reading(host: str, error: float, verdict: Verdict, day: int) -> Measurement:
        when = NOW.replace(day=day)
        return measured(
            1.0, benchmark="selftest", quantity="reading", host=host, device="meter",
            verdict=verdict, reason="read wrong", parameters={"truth": "a sleep"},
            started_at=when, ended_at=when, validity={"error": error},
        )  # fmt: skip

    good, failed = Verdict.GOOD, Verdict.FAILED
    save(lake, run_of(reading("n1", 0.3, failed, 1), reading("n2", -0.02, good, 1), id="r1"))
    later = run_of(reading("n1", 0.01, good, 2), reading("n3", 0.0, failed, 2), id="r2")
    save(lake, replace(later, started_at=NOW.replace(day=2)))
    tested = last_tests(lake)
    assert (tested["n1"].error, tested["n2"].error) == (0.01, 0.02)
    assert str(tested["n3"].problem).endswith("(read wrong): hakaru bench selftest on n3")
    assert set(tested) == {"n1", "n2", "n3"}
    theirs = replace(reading("n4", 0.5, failed, 3), parameters={})  # another program's benchmark
    save(lake, run_of(theirs, id="r3", source="superbench"))
    assert last_tests(lake) == tested


def test_a_truth_that_was_read_wrong_must_be_read_right_again(lake: Lake) -> None:
    """A self-test without root does not reach the quota, and says nothing of it."""

    def test(day: int, **verdicts: Verdict) -> None:
        when = NOW.replace(day=day)
        rows = [
            measured(
                1.0, benchmark="selftest", quantity="reading", device="meter", verdict=verdict,
                reason="why", parameters={"truth": truth}, started_at=when, ended_at=when,
                validity={"error": 0.01},
            )
            for truth, verdict in verdicts.items()
        ]  # fmt: skip
        save(lake, replace(run_of(*rows, id=f"r{day}"), started_at=when))

    test(1, sleep=Verdict.GOOD, quota=Verdict.FAILED)
    test(2, sleep=Verdict.GOOD, quota=Verdict.NOT_MEASURED)
    assert "was wrong on 2026-11-01" in str(last_tests(lake)["n1"].problem)
    test(3, sleep=Verdict.NOT_MEASURED, quota=Verdict.GOOD, link=Verdict.CONTAMINATED)
    assert last_tests(lake)["n1"] == Meter(0.01, "2026-11-03", untested=("link",))


def test_what_was_measured_before_an_upgrade_does_not_count_when_the_run_resumes(
    tmp_path: Path,
) -> None:
    points = {"gemm": {"dtype": ["fp64", "fp32"], "size": [512]}}
    job = Job.begin(tmp_path, "c", replace(PLAN, chosen=points, hosts=("n0", "n1"), num_hosts=2))
    old = {host: {"torch": "2.12.0"} for host in ("n0", "n1")}
    first = Written(lambda host: 100.0, noise=0.002, versions=old, stops_after=1)
    assert measure(job, first).verdict is Verdict.FAILED
    second = Written(lambda host: 100.0, noise=0.002)
    run = measure(job, second)
    assert len(second.asked[0][1].items) == 1  # the other item was whole
    assert run.verdict is Verdict.FAILED
    assert (
        "torch differs between attempts: 2.12.0 on n0; 2.13.0 on n0" in run.measurements[0].reason
    )


def test_versions_that_change_between_the_parts_of_a_run_fail_it() -> None:
    """Cards were measured, the run was interrupted, numpy was upgraded, and collectives were measured."""
    before, after = (
        {"host": "n1", "versions": {"numpy": each, "torch": "2.13.0"}} for each in "12"
    )
    parts = [measured(1.0, place=before), measured(1.0, place=after, device="2 ranks"),
             measured(1.0, host="n2", place={"host": "n2", "versions": {"numpy": "2"}})]  # fmt: skip
    found = _of_one_version(parts)
    assert [each.verdict for each in found] == [Verdict.FAILED, Verdict.FAILED, Verdict.GOOD]
    assert found[0].reason == "numpy changed from 1 to 2 during the run; measure anew"
    same = [replace(each, place=before) for each in parts]
    assert _of_one_version(same) == same
    (joined,) = _with_more([measured(1.0, place=before)], [measured(1.0, place=after)])
    assert joined.verdict is Verdict.FAILED


def test_a_journal_without_its_begin_has_failed(tmp_path: Path) -> None:
    """Without it nobody knows the node's versions, which may differ."""
    nodes = Written(lambda host: 100.0, noise=0.002)
    plan = replace(PLAN, hosts=("n0", "n1"), num_hosts=2)

    def spoil(task: Path, *given: Any) -> list[str]:
        Written.run(nodes, task, *given)
        log = journal_of(task.parent, 1)
        log.write_text("".join(log.read_text().splitlines(keepends=True)[1:]))
        return []

    spoiled = SimpleNamespace(id="written", title="", check=nodes.check, run=spoil)
    run = measure(Job.begin(tmp_path, "c", plan), spoiled)
    bad = {each.host: each.reason for each in run.measurements if each.verdict is Verdict.FAILED}
    assert bad["n1"] == "rank 1 did not say what it runs on"


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


@pytest.mark.parametrize(
    "change",
    [{"chosen": []}, {"budget_s": "12"}, {"num_hosts": "2"}, {"devices": [1]}, {"timeout_s": "x"}],
)
def test_a_plan_of_wrong_types_is_damaged(tmp_path: Path, change: dict[str, Any]) -> None:
    job = Job.begin(tmp_path, "c", PLAN)
    (entry,), _ = journal.read(job.folder / "plan.json")
    (job.folder / "plan.json").write_text("")
    journal.append(job.folder / "plan.json", entry | {"plan": entry["plan"] | change})
    with pytest.raises(HakaruError, match="is damaged, so the run cannot be resumed"):
        Job.resume(tmp_path)


@pytest.mark.parametrize(
    "change",
    [{"samples": None}, {"item": 3}, {"problem": {"verdict": "fine"}}, {"started_at": "yesterday"}],
)
def test_a_record_of_another_form_has_failed(tmp_path: Path, change: dict[str, Any]) -> None:
    class Tampered(Written):
        def _write(self, path: Path, rank: int, host: str, task: Task) -> None:
            super()._write(path, rank, host, task)
            entries, _ = journal.read(path)
            path.unlink()
            for each in entries:
                is_its = host == "n1" and each["kind"] == "result"
                journal.append(path, each | change if is_its else each)

    plan = replace(PLAN, hosts=HOSTS[:3], num_hosts=3)
    run = measure(Job.begin(tmp_path, "c", plan), Tampered(lambda host: 100.0, noise=0.002))
    failed = {each.host: each.reason for each in run.measurements if each.verdict is Verdict.FAILED}
    assert list(failed) == ["n1"] and "left a damaged record" in failed["n1"]
