"""Ground truth: a throttled device is named, shaped links read right, and the slow host is blamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.measure import selftest
from hakaru.measure.collective._judge import Probe, blame_links
from hakaru.measure.job import Job, Plan
from hakaru.measure.launch import Layout
from hakaru.measure.launch._base import Start, rank_variables, run_all, worker_variables
from hakaru.measure.launch.namespaces import Namespaces
from hakaru.measure.place import host_name
from hakaru.measure.record import Run
from hakaru.measure.run import measure
from hakaru.measure.store import save
from hakaru.measure.truth import links, throttle
from hakaru.measure.verdict import Verdict
from hakaru.safety.processes import module_command
from tests.measure._runs import until_valid

pytestmark = pytest.mark.alone
PAIRS = Plan(("pairs",), {"pairs": {"bytes": [8 << 20]}}, True, 10.0)


@dataclass(frozen=True)
class OneAfterAnother:
    """Nodes that share this machine, and so are measured in turn; each has words before its command."""

    nodes: dict[str, Sequence[str]]
    id: str = "in-turn"
    title: str = ""

    def check(self, layout: Layout) -> None:
        return

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Any) -> list[str]:
        problems = []
        for rank, (name, prefix) in enumerate(self.nodes.items()):
            place = rank_variables(rank, len(self.nodes), 0, 1) | {"HAKARU_HOST": name}
            command = [*prefix, *module_command("hakaru.measure.worker", str(task))]
            start = Start(name, command, worker_variables() | place, task.parent / f"{name}.log")
            problems += run_all([start], timeout_s, watch)
        return problems


def test_a_device_under_a_cpu_quota_is_named_and_the_others_are_not(tmp_path: Path) -> None:
    plan = Plan(
        ("gemm",), {"gemm": {"dtype": ["fp64"], "size": [256]}}, True, 60.0,
        devices=("cpu:0",), hosts=("n1", "n2", "n3"), num_hosts=3,
    )  # fmt: skip
    with throttle.cpu_quota(0.5) as group:
        nodes = OneAfterAnother({"n1": (), "n2": group.prefix, "n3": ()})
        run = until_valid(lambda: measure(Job.begin(tmp_path, "c", plan), nodes))
    found = {each.host: each for each in run.measurements}
    others = median(found[name].median or 0.0 for name in ("n1", "n3"))
    assert (found["n2"].median or 0.0) / others == pytest.approx(0.5, rel=0.1)
    assert found["n2"].verdict is Verdict.SLOW, found["n2"].reason
    assert "a CPU quota stopped it" in found["n2"].reason
    for name in ("n1", "n3"):  # which a noisy machine may leave undecided
        assert found[name].verdict in (Verdict.GOOD, Verdict.NOT_MEASURED), found[name].reason


def probe(folder: Path, rates: float | Sequence[float], num: int) -> tuple[Run, list[str]]:
    with links.hosts(num, rates) as hosts:
        names = [host.name for host in hosts]
        launcher = Namespaces(hosts, {})
        plan = Plan(**{**vars(PAIRS), "hosts": tuple(names), "num_hosts": num, "ranks_per_host": 1})
        run = until_valid(lambda: measure(Job.begin(folder, "c", plan), launcher))
        return run, names


@pytest.mark.parametrize("rate_mbit", [200.0, 1000.0])
def test_a_shaped_link_reads_within_a_tenth_of_its_rate(tmp_path: Path, rate_mbit: float) -> None:
    run, _ = probe(tmp_path, rate_mbit, 2)
    assert len(run.measurements) == 2
    for each in run.measurements:
        assert each.median is not None, each.reason
        assert each.median * 8e3 == pytest.approx(rate_mbit, rel=0.1)


def test_the_slow_host_of_four_is_blamed_and_the_others_are_not(tmp_path: Path) -> None:
    run, names = probe(tmp_path, [1000.0, 1000.0, 200.0, 1000.0], 4)
    found = blame_links(
        Probe(each.device, "", each.median or 0.0, max(each.samples)) for each in run.measurements
    )
    assert found is not None
    assert (found.hosts, found.links) == ((names[2],), ())
    assert found.bottleneck is not None
    assert names[2] in found.bottleneck
    for each in run.measurements:
        wanted = Verdict.SLOW if names[2] in each.device else Verdict.GOOD
        assert each.verdict is wanted, each.reason


def test_the_meter_knows_its_own_error(lake: Lake) -> None:
    run = until_valid(lambda: selftest.self_test("c"))
    assert run.verdict is Verdict.GOOD, [e.reason for e in run.measurements]
    errors = {each.parameters["truth"]: each.validity["error"] for each in run.measurements}
    assert set(errors) == {"a sleep", "a core under a quota", "a shaped link"}
    save(lake, run)
    meter = selftest.last_tests(lake)[host_name()]
    assert meter.error == max(map(abs, errors.values()))
    assert str(meter.tested_at).startswith(f"{run.started_at:%Y-%m-%d}")


def test_a_meter_that_is_wrong_says_so(monkeypatch: pytest.MonkeyPatch, lake: Lake) -> None:
    wrong: dict[str, Callable[[], tuple[float, list[float], str]]] = {
        "a sleep": lambda: (50.0, [65.0, 66.0, 64.0], "ms")
    }
    monkeypatch.setattr(selftest, "TRUTHS", wrong)
    run = until_valid(lambda: selftest.self_test("c"))
    assert run.verdict is Verdict.FAILED
    assert "+30.0%" in run.measurements[0].reason
    save(lake, run)
    meter = selftest.last_tests(lake)[host_name()]
    assert meter.error is None and "the meter was wrong" in str(meter.problem)


def test_what_cannot_be_made_here_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable() -> tuple[float, list[float], str]:
        raise links.Unavailable("needs root")

    monkeypatch.setattr(selftest, "TRUTHS", {"a shaped link": unavailable})
    run = selftest.self_test("c")
    assert (run.verdict, run.measurements[0].reason) == (Verdict.NOT_MEASURED, "needs root")
