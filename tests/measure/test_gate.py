"""What must never pass for good: closed pipes, runs that go on elsewhere, and options that are ignored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.measure import run as runs
from hakaru.measure.baseline import make_baseline
from hakaru.measure.job import Job, Plan
from hakaru.measure.store import list_runs, save
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.measure._runs import measured, run_of

PLAN = Plan(("gemm",), {"gemm": {"dtype": ["fp64"], "size": [64]}}, True, 2.0, devices=("cpu:0",))


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_reader_that_goes_away_makes_nothing_good(lake: Lake, verdict: Verdict) -> None:
    save(lake, run_of(measured(1.0, verdict=verdict), id="r1"))
    hakaru("bench", "baseline", "b", "--run", "r1", "-w", lake.workspace)
    words = [sys.executable, "-m", "hakaru", "bench", "check", "--baseline", "b", "--run", "r1"]
    code = "import sys, subprocess, os; r, w = os.pipe(); os.close(r); "
    code += (
        f"sys.exit(subprocess.run({[*words, '-w', str(lake.workspace)]!r}, stdout=w).returncode)"
    )
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode != 0


def test_a_run_goes_on_only_where_it_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAKARU_HOST", "n1")
    job = Job.begin(tmp_path, "c", PLAN)
    assert Job.resume(tmp_path).id == job.id
    monkeypatch.setenv("HAKARU_HOST", "n2")
    with pytest.raises(Exception, match="was begun on n1: resume it there"):
        Job.resume(tmp_path)


@pytest.mark.parametrize("option", [["--baseline", "b"], ["--label", "x"], ["--budget", "5s"]])
def test_options_beside_resume_are_refused(lake: Lake, option: list[str]) -> None:
    save(lake, run_of(measured(1.0), id="r1"))
    hakaru("bench", "baseline", "b", "--run", "r1", "-w", lake.workspace)
    Job.begin(lake.workspace, "c", PLAN)
    result = hakaru("bench", "run", "--resume", *option, "-w", lake.workspace)
    assert result.exit_code == 1
    assert f"leave out {option[0]}" in result.output


@pytest.mark.parametrize(
    "change", [{"budget_s": 0}, {"budget_s": "x"}, {"budget_s": float("nan")}, {"label": "a\nb"}]
)
def test_a_plan_that_was_tampered_with_is_damaged(tmp_path: Path, change: dict[str, Any]) -> None:
    job = Job.begin(tmp_path, "c", PLAN)
    entries, _ = runs.journal.read(job.folder / "plan.json")
    (job.folder / "plan.json").unlink()
    entry = entries[0] | {"plan": entries[0]["plan"] | change}
    runs.journal.append(job.folder / "plan.json", entry)
    with pytest.raises(Exception, match="is damaged"):
        Job.resume(tmp_path)


def test_a_run_that_measured_nothing_leaves_nothing_behind(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "find_spec", lambda name: None)
    result = hakaru("bench", "run", "gemm", "--quick", "-w", lake.workspace)
    assert result.exit_code == 13
    assert "pip install 'hakaru[measure]'" in result.output
    assert list_runs(lake) == []


def test_a_check_measures_only_the_models_of_its_baseline() -> None:
    from hakaru.cli.bench.check import _devices_of
    from hakaru.measure.devices import numa_nodes

    node = numa_nodes()[0]
    baseline = make_baseline("b", run_of(measured(1.0, place={"model": node.model})))
    assert node.id in _devices_of(baseline)
    assert not any(name.startswith("cpu:") for name in _devices_of(baseline))
    assert _devices_of(make_baseline("b", run_of(measured(1.0)))) == ()


def test_hints_lead_to_the_same_workspace(lake: Lake) -> None:
    save(lake, run_of(measured(1.0), id="r1"))
    shown = hakaru("bench", "show", "r1", "-w", lake.workspace).output
    assert f"hakaru bench baseline NAME --run r1 -w {lake.workspace}" in shown.replace("\n", " ")
