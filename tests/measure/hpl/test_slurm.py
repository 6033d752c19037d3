"""Slurm: one allocation a search, released whatever happens; on stand-ins, and once on the real one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hakaru.measure.hpl import Program
from hakaru.measure.hpl.slurm import salloc_words
from hakaru.measure.job import Plan
from hakaru.measure.launch import Layout
from hakaru.measure.verdict import Verdict
from tests._slurm import Slurm, running_slurm
from tests.measure.hpl._launchers import Tools
from tests.measure.hpl._measure import BUDGET_S, measure

OPTIONS = {"exclusive": True, "partition": "gpu", "mpi": "pmix", "overcommit": False}
PLAN = Plan(("hpl",), launcher="slurm", num_hosts=2, ranks_per_host=1, launcher_options=OPTIONS)


def test_one_allocation_serves_all_launches_and_the_queue_costs_nothing(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setenv("FAKE_QUEUE_S", "3")
    began_s = time.monotonic()
    found = measure(tmp_path, BUDGET_S, replace(PLAN, hosts=("a", "b")))
    wall_s = time.monotonic() - began_s
    assert found["rate"].verdict is Verdict.GOOD, found["rate"].reason
    assert found["rate"].validity["spent_s"] <= wall_s - 3 + 0.1  # which is rounded to a tenth
    (words,) = tools.calls("salloc")
    assert {"--no-shell", "--exclusive", "--partition=gpu", "--nodelist=a,b", "--nodes=2"} <= {
        *words
    }
    assert not any("True" in word or "overcommit" in word or "mpi" in word for word in words)
    steps = tools.calls("srun")
    assert steps and all("--jobid=42" in step and "--mpi=pmix" in step for step in steps)
    assert {tuple(step[:2]) for step in steps} == {
        ("--nodes=1", "--ntasks=1"),
        ("--nodes=2", "--ntasks=2"),
    }
    assert tools.calls("scancel") == [["--name=hakaru-bench", "42"]]


def test_the_reason_names_exclusive_and_shared_nodes(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    alone = measure(tmp_path / "a", BUDGET_S, PLAN)["rate"]
    assert "Slurm gave the nodes to this job alone" in alone.reason
    monkeypatch.setenv("FAKE_SHARE", "OK")
    shared = measure(tmp_path / "b", BUDGET_S, PLAN)["rate"]
    assert shared.verdict is Verdict.GOOD
    assert "load and versions of the nodes were not read" in shared.reason
    assert "were not read" in shared.validity["other_nodes"]


def test_the_allocation_is_released_when_the_search_breaks(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_XHPL", "crash")
    assert measure(tmp_path, BUDGET_S, PLAN)["rate"].verdict is Verdict.FAILED
    assert len(tools.calls("scancel")) == 1

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hakaru.measure.hpl.search.search_hpl", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path, BUDGET_S, PLAN, run="r2")
    assert len(tools.calls("scancel")) == 2


def test_a_killed_search_resumes_in_another_allocation_and_releases_the_first(
    tools: Tools, tmp_path: Path
) -> None:
    measure(tmp_path, 2.1, PLAN)
    folder = tmp_path / "bench" / "r1" / "hpl"
    assert not (folder / "salloc.txt").exists()
    (folder / "salloc.txt").write_text("salloc: Pending job allocation 7\n")
    salloc = tools.folder / "salloc"
    salloc.write_text(salloc.read_text().replace("42", "43"))
    again = measure(tmp_path, 2.1, PLAN)["rate"]
    assert "other settings" not in again.reason
    assert [words[-1] for words in tools.calls("scancel")] == ["42", "7", "43"]


def test_a_refusal_is_reported_and_nothing_is_measured(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_REFUSAL", "invalid partition specified: gpu")
    found = measure(tmp_path, BUDGET_S, PLAN)["rate"]
    assert found.verdict is Verdict.NOT_MEASURED
    assert "Slurm gave no nodes: salloc: error: invalid partition specified" in found.reason


def test_inside_a_job_launches_are_its_steps(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    measure(tmp_path, 3.0, replace(PLAN, hosts=("a", "b")))
    assert not tools.calls("salloc") and not tools.calls("scancel")
    steps = tools.calls("srun")
    assert steps and not any("--jobid" in word for step in steps for word in step)
    assert steps[0][:3] == ["--nodes=2", "--ntasks=2", "--nodelist=a,b"]


def test_options_for_salloc() -> None:
    words = salloc_words(
        Layout((), 8, 4), {"exclusive": False, "time": 30, "use_srun": True}, 600.0
    )
    assert words[1:] == ["--no-shell", "--nodes=4", "--ntasks-per-node=8", "--time=30",
                         "--job-name=hakaru-bench"]  # fmt: skip


@pytest.fixture(scope="module")
def slurm(shared: Path) -> Iterator[Slurm]:
    with running_slurm(shared, num_nodes=2) as cluster:
        yield cluster


def test_a_search_on_two_nodes_of_slurm(
    slurm: Slurm, fake_xhpl: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    for name, value in slurm.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HAKARU_XHPL", fake_xhpl.path)
    plan = replace(PLAN, launcher_options={}, hosts=("gpu01", "gpu02"))
    found = measure(slurm.folder / "ws", BUDGET_S, plan)["rate"]
    assert found.verdict is Verdict.GOOD, found.reason
    assert "Slurm gave the nodes to this job alone" in found.reason
    jobs = slurm.run("squeue --noheader --states=all --format='%j %T'")
    assert jobs.split() == ["hakaru-bench", "CANCELLED"]
