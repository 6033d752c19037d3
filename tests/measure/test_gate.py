"""What must never pass for good: closed pipes, runs that go on elsewhere, and options that are ignored."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hakaru.cli.bench._options import time_left
from hakaru.cli.bench._report import run_lines
from hakaru.lake import Lake
from hakaru.measure import folders
from hakaru.measure import run as runs
from hakaru.measure.baseline import make_baseline
from hakaru.measure.job import Job, Plan
from hakaru.measure.record import Run
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


def test_an_older_run_does_not_pass_for_one_that_measured_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(lake, replace(run_of(measured(100.0)), label="night"))
    assert hakaru("bench", "baseline", "ok", "--run", "r1", "-w", lake.workspace).exit_code == 0
    monkeypatch.setattr(runs, "find_spec", lambda name: None)
    words = ["--cluster", "c", "--label", "night", "-w", lake.workspace]
    result = hakaru("bench", "run", "gemm", "--quick", *words)
    assert result.exit_code == 13
    assert "pip install 'hakaru[measure]'" in result.output
    judged = hakaru("bench", "check", "--baseline", "ok", "--run", "night", "-w", lake.workspace)
    assert judged.exit_code == 13, judged.output


def test_a_check_measures_only_the_models_of_its_baseline() -> None:
    from hakaru.cli.bench.check import _devices_of
    from hakaru.measure.devices import numa_nodes

    node = numa_nodes()[0]
    baseline = make_baseline("b", run_of(measured(1.0, place={"model": node.model})))
    assert node.id in _devices_of(baseline)
    assert not any(name.startswith("cpu:") for name in _devices_of(baseline))
    assert _devices_of(make_baseline("b", run_of(measured(1.0)))) == ()


def test_a_stored_run_is_judged_whole(lake: Lake) -> None:
    save(lake, run_of(measured(*[100.0] * 6)))
    hakaru("bench", "baseline", "ok", "--run", "r1", "-w", lake.workspace)
    words = ["--baseline", "ok", "--run", "r1", "-w", lake.workspace]
    result = hakaru("bench", "check", *words, "--device", "cpuu:0", "--nodes", "2")
    assert result.exit_code == 1
    assert "--run judges a stored run as it is; leave out --device, --nodes" in result.output
    judged = hakaru("bench", "check", *words)
    assert judged.exit_code == 0
    assert "of baseline" in judged.output and "100.0%" in judged.output
    assert "Make it a baseline" not in judged.output


def test_a_baseline_that_replaces_another_says_so(lake: Lake) -> None:
    for name in ("r1", "r2"):
        save(lake, run_of(measured(*[100.0] * 6), id=name))
    first, second = (
        hakaru("bench", "baseline", "ok", "--run", name, "-w", lake.workspace).output
        for name in ("r1", "r2")
    )
    assert "replaces" not in first
    assert "It replaces the one of run r1, made 20" in second
    (lake.workspace / "baselines/ok.json").write_text("{")  # made anew, as its error advises
    anew = hakaru("bench", "baseline", "ok", "--run", "r1", "-w", lake.workspace)
    assert anew.exit_code == 0 and "replaces" not in anew.output


def test_hints_lead_to_the_same_workspace(lake: Lake) -> None:
    save(lake, run_of(measured(1.0), id="r1"))
    shown = hakaru("bench", "show", "r1", "-w", lake.workspace).output
    assert f"hakaru bench baseline NAME --run r1 -w {lake.workspace}" in shown.replace("\n", " ")


@pytest.mark.parametrize(
    ("code", "is_drained"),
    [(0, False), (12, False), (1, False), (10, True), (11, True), (13, True), (127, True)],
)
def test_the_epilog_of_the_guide_drains_bad_nodes_only(
    tmp_path: Path, code: int, is_drained: bool
) -> None:
    text = (Path(__file__).parents[2] / "docs/bring-into-service.md").read_text()
    script = text.partition("```sh\n")[2].partition("```")[0]
    called = tmp_path / "called"
    for path, body in {
        "/shared/hakaru/bin/hakaru": f'[ -z "${{CUDA_VISIBLE_DEVICES-}}" ] || exit 99\nexit {code}',
        "/usr/bin/scontrol": f'echo scontrol "$@" >> {called}',
        "/usr/bin/logger": f'echo logger "$@" >> {called}',
        "/var/log/hakaru-bench.json": "",
    }.items():
        stand_in = tmp_path / Path(path).name
        stand_in.write_text(f"#!/bin/sh\n{body}\n")
        stand_in.chmod(0o755)
        assert path in script
        script = script.replace(path, str(stand_in))
    variables = {"SLURMD_NODENAME": "n7", "CUDA_VISIBLE_DEVICES": "0,1"}
    subprocess.run(["/bin/sh", "-c", script], env=variables, check=True)
    calls = called.read_text() if called.exists() else ""
    assert ("scontrol update nodename=n7 state=drain" in calls) == is_drained
    assert calls.startswith("logger") == (code == 1)


def test_a_check_belongs_to_the_cluster_of_its_baseline(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several clusters nobody need name it, and an import of another one does not stop the gate."""
    from hakaru.cli.bench import run as command

    save(lake, run_of(measured(100.0)))
    save(lake, replace(run_of(measured(1.0), id="r2"), cluster="other"))
    assert hakaru("bench", "baseline", "ok", "--run", "r1", "-w", lake.workspace).exit_code == 0
    asked: list[tuple[str, str | None]] = []

    def kept(_: Lake, job: Job) -> Run:
        asked.append((job.cluster, Job.resume(lake.workspace).plan.label))
        return run_of(measured(100.0))

    monkeypatch.setattr(command, "measure_and_store", kept)
    done = hakaru("bench", "check", "--baseline", "ok", "-w", lake.workspace)
    assert (done.exit_code, asked) == (0, [("c", "check ok")]), done.output


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(125.4, "about 2:05 left"), (9.0, "about 0:09 left"), (-1.0, "a little longer than planned")],
)
def test_the_time_left_is_that_of_the_budget(seconds: float, text: str) -> None:
    assert time_left(seconds) == text


def test_good_numbers_that_were_compared_with_nothing_say_so() -> None:
    alone, judged = measured(100.0), replace(measured(1.0, device="cuda:1"), compared_with="peers")
    text = "\n".join(line for line, _ in run_lines(run_of(alone, judged), 100, [], False))
    assert "1 of 2 good measurements are correct and valid, and were compared with nothing" in text
    text = "\n".join(line for line, _ in run_lines(run_of(judged), 100, [], False))
    assert "compared with nothing" not in text


def test_an_empty_name_is_no_workspace() -> None:
    done = hakaru("bench", "history", "gemm", "-w", "")
    assert done.exit_code == 2 and "the name of the folder is empty" in done.output


def test_a_workspace_that_cannot_be_written_is_named(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(folders, "own_folder", refuse)
    done = hakaru("bench", "run", "gemm", "--quick", "--cluster", "c", "-w", lake.workspace)
    assert done.exit_code == 1 and "bench cannot be made: Read-only file system" in done.output


def test_the_cluster_can_be_named_once_for_all_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "find_spec", lambda name: None)
    monkeypatch.setenv("HAKARU_CLUSTER", "mn1")
    for host in ("n1", "n2"):
        monkeypatch.setenv("HAKARU_HOST", host)
        assert hakaru("bench", "run", "gemm", "--quick", "-w", tmp_path).exit_code == 13
    assert [each["cluster"] for each in list_runs(Lake.open(tmp_path))] == ["mn1", "mn1"]


@pytest.mark.parametrize(("rate", "code"), [(50.0, 10), (100.0, 1)])
def test_a_bad_verdict_stands_though_it_cannot_be_stored(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, rate: float, code: int
) -> None:
    """A node that is slow is drained also when the disk is full; a good one is checked again."""
    save(lake, run_of(measured(*[100.0] * 6)))
    assert hakaru("bench", "baseline", "ok", "--run", "r1", "-w", lake.workspace).exit_code == 0

    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hakaru.measure.store.save", full)
    monkeypatch.setattr(runs, "measure", lambda job, **more: run_of(measured(*[rate] * 6)))
    done = hakaru("bench", "check", "--baseline", "ok", "-w", lake.workspace)
    assert done.exit_code == code, done.output
    assert "No space left" in f"{done.output} {done.exception}"


def test_a_stored_run_of_another_cluster_is_judged_only_if_that_is_said(lake: Lake) -> None:
    save(lake, run_of(measured(*[100.0] * 6)))
    save(lake, replace(run_of(measured(*[100.0] * 6), id="r2"), cluster="other"))
    check = ("bench", "check", "--baseline", "ok", "--run", "r2", "-w", lake.workspace)
    assert hakaru("bench", "baseline", "ok", "--run", "r1", "-w", lake.workspace).exit_code == 0
    assert "there is no run 'r2'" in hakaru(*check).output
    assert hakaru(*check, "--cluster", "other").exit_code == 0


def test_a_tolerance_is_a_number(lake: Lake) -> None:
    done = hakaru("bench", "check", "--baseline", "ok", "--tolerance", "nan", "-w", lake.workspace)
    assert (done.exit_code, "not a number" in done.output) == (2, True), done.output


def test_a_workspace_has_a_name_in_one_line() -> None:
    done = hakaru("bench", "list", "--runs", "-w", "a\nb")
    assert (done.exit_code, "cannot be printed" in done.output) == (2, True), done.output
