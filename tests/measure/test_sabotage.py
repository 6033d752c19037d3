"""Fail-closed: each sabotage of a real run gets a verdict of its own and an exit code that is not zero."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hakaru.measure.job import Job, Plan
from hakaru.measure.launch import Layout
from hakaru.measure.launch.local import Local
from hakaru.measure.record import Run
from hakaru.measure.run import measure
from hakaru.measure.truth import throttle
from hakaru.measure.verdict import EXIT_CODES, Verdict
from hakaru.safety.processes import module_command
from tests._cli import hakaru
from tests.measure._runs import sabotage, until_valid

pytestmark = pytest.mark.alone
POINT = {"dtype": ["fp64"], "size": [64]}
ONE_CARD = Plan(("gemm",), {"gemm": POINT}, True, 2.0, devices=("cpu:0",))  # type: ignore[dict-item]
TWO_RANKS = Plan(
    ("all-reduce",), {"all-reduce": {"dtype": ["fp32"], "bytes": [4096]}}, True, 2.0,
    ranks_per_host=2,
)  # fmt: skip


@dataclass(frozen=True)
class Sabotaged:
    """The local launcher, and what happens to the ranks' journals before they are read."""

    spoil: Callable[[Path], None]
    id: str = "local"
    title: str = ""

    def check(self, layout: Layout) -> None:
        return

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Any) -> list[str]:
        problems = Local().run(task, layout, timeout_s, watch)
        self.spoil(task.parent)
        return problems


def run_with(tmp_path: Path, plan: Plan, launcher: Any = None) -> Run:
    return measure(Job.begin(tmp_path, "c", plan), launcher)


def ends_as(run: Run, verdict: Verdict, *words: str) -> None:
    assert run.verdict is verdict, [each.reason for each in run.measurements]
    assert EXIT_CODES[run.verdict] != 0
    reasons = " ".join(each.reason for each in run.measurements)
    for word in words:
        assert word in reasons


def test_nothing_sabotaged_is_good(tmp_path: Path) -> None:
    for plan in (ONE_CARD, TWO_RANKS):
        run = until_valid(lambda plan=plan: run_with(tmp_path, plan), most=10)
        assert run.verdict is Verdict.GOOD, [each.reason for each in run.measurements]


def test_a_killed_rank_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import os, threading
if os.environ.get("RANK") == "1":
    threading.Timer(4, lambda: os.kill(os.getpid(), 9)).start()
"""
    sabotage(monkeypatch, tmp_path / "evil", code)
    from dataclasses import replace

    slow = replace(TWO_RANKS, budget_s=60.0, chosen={"all-reduce": {"dtype": ["fp32", "fp16"]}})
    ends_as(run_with(tmp_path, slow), Verdict.FAILED, "rank 1 was killed by SIGKILL")


def test_a_deleted_result_has_failed(tmp_path: Path) -> None:
    gone = Sabotaged(lambda folder: (folder / "rank-1.jsonl").unlink())
    ends_as(run_with(tmp_path, TWO_RANKS, gone), Verdict.FAILED, "rank 1 left no result")


def test_a_half_written_record_has_failed(tmp_path: Path) -> None:
    def cut(folder: Path) -> None:
        path = folder / "rank-0.jsonl"
        path.write_bytes(path.read_bytes()[:-30])

    ends_as(run_with(tmp_path, ONE_CARD, Sabotaged(cut)), Verdict.FAILED, "half-written")


def test_a_wrong_product_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import torch
true = torch.mm
def wrong(a, b, *, out=None):
    found = true(a, b, out=out)
    found[0, 0] += 1e-3
    return found
torch.mm = wrong
"""
    sabotage(monkeypatch, tmp_path / "evil", code)
    ends_as(run_with(tmp_path, ONE_CARD), Verdict.FAILED, "wrong result", "C·x is off")


def test_a_result_that_changes_from_time_to_time_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import torch
true, calls = torch.mm, []
def flaky(a, b, *, out=None):
    found = true(a, b, out=out)
    calls.append(1)
    found[0, 0] += 1e-12 * len(calls)
    return found
torch.mm = flaky
"""
    sabotage(monkeypatch, tmp_path / "evil", code)
    ends_as(run_with(tmp_path, ONE_CARD), Verdict.FAILED, "two results")


@pytest.fixture
def somebody_else() -> Iterator[None]:
    """A process on each core that has nothing to do with us."""
    hog = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(hog) for _ in range(os.cpu_count() or 1)]
    yield
    for process in hogs:
        process.kill()
        process.wait()


def test_cores_that_somebody_else_loads_are_contaminated(
    tmp_path: Path, somebody_else: None
) -> None:
    ends_as(run_with(tmp_path, ONE_CARD), Verdict.CONTAMINATED, "other processes used")
    ends_as(run_with(tmp_path, TWO_RANKS), Verdict.CONTAMINATED, "other processes used")


def test_ranks_under_a_cpu_quota_are_contaminated(tmp_path: Path) -> None:
    words = ["bench", "run", "all-reduce", "--quick", "--ranks-per-host", "2", "--budget", "3s",
             "--param", "bytes=1048576", "--format", "json", "-w", str(tmp_path)]  # fmt: skip
    with throttle.cpu_quota(0.5) as group:
        command = [*group.prefix, *module_command("hakaru"), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == EXIT_CODES[Verdict.CONTAMINATED], done.stderr
    reasons = {each["reason"] for each in json.loads(done.stdout)["measurements"]}
    assert all("a CPU quota stopped it" in reason for reason in reasons), reasons


def test_a_worker_that_hangs_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, time\nif 'RANK' in os.environ: time.sleep(600)"
    sabotage(monkeypatch, tmp_path / "evil", code)
    from dataclasses import replace

    run = run_with(tmp_path, replace(ONE_CARD, timeout_s=1.0))
    ends_as(run, Verdict.FAILED, "time ran out after 1 s")


def test_another_version_on_one_node_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os
if os.environ.get("RANK") == "1":
    import torch
    torch.__version__ = "2.0.0"
"""
    sabotage(monkeypatch, tmp_path / "evil", code)
    ends_as(run_with(tmp_path, TWO_RANKS), Verdict.FAILED, "torch differs between nodes", "2.0.0")


def test_without_torch_the_command_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hakaru.measure import run as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    result = hakaru("bench", "run", "device", "--quick", "-w", tmp_path, "--format", "json")
    output = json.loads(result.stdout)
    assert result.exit_code == 13 == output["exit_code"]
    assert output["verdict"] == "not measured"
    assert "pip install 'hakaru[measure]'" in output["measurements"][0]["reason"]


def test_without_mpirun_linpack_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = hakaru("bench", "run", "hpl", "--quick", "-w", tmp_path, "--format", "json")
    output = json.loads(result.stdout)
    assert (result.exit_code, output["verdict"]) == (13, "not measured")
    assert "apt-get install" in output["measurements"][0]["reason"]


def test_a_gate_without_its_baseline_lets_nobody_pass(tmp_path: Path) -> None:
    hakaru("bench", "import", __file__, "-w", tmp_path)  # makes the workspace, and is refused
    result = hakaru("bench", "check", "--baseline", "none", "-w", tmp_path, "--format", "json")
    output = json.loads(result.stdout)
    assert (result.exit_code, output["exit_code"], output["verdict"]) == (1, 1, "not measured")
