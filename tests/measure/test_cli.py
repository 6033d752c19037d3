"""`hakaru bench` as a person calls it, on hand-written runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from hakaru.lake import Lake
from hakaru.measure import journal
from hakaru.measure._base import FAMILIES, load_all
from hakaru.measure.folders import bench_folder
from hakaru.measure.job import Job, Plan, unfinished
from hakaru.measure.run import measure
from hakaru.measure.store import list_runs, load_runs, save
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.measure._runs import NOW, measured, run_of, sabotage
from tests.measure.lakes import put_runs, synthetic_runs


def good(rate: float, device: str = "cuda:0", day: int = 0) -> object:
    random = np.random.default_rng(day)
    when = NOW + timedelta(days=day)
    samples = rate * (1 + 0.002 * random.standard_normal(20))
    return measured(*samples, device=device, started_at=when, ended_at=when, reason="fine")


@pytest.fixture
def runs(lake: Lake) -> Path:
    """Eleven nightly runs of two cards and four that confirm; the second card is 6 % slower at the end."""
    for day in range(15):
        rates = {"cuda:0": 100.0, "cuda:1": 100.0 if day < 10 else 94.0}
        each = run_of(*(good(rate, name, day) for name, rate in rates.items()), id=f"r{day:02}")
        save(
            lake,
            replace(
                each,
                started_at=NOW + timedelta(days=day),
                label=f"night-{day}" if day < 11 else "confirm",
            ),
        )
    return lake.workspace


def test_every_benchmark_is_listed_and_described() -> None:
    listed = hakaru("bench", "list").output
    for each in load_all():
        assert each.id in listed
        assert each.answers.endswith("?"), each.id
        assert each.check and each.judged and each.description, each.id
    assert "--param dtype=fp64, fp32" in hakaru("bench", "list", "gemm").output
    result = hakaru("bench", "list", "gem")
    assert (result.exit_code, "did you mean gemm" in result.output) == (1, True)


def test_show_puts_the_verdict_first(runs: Path) -> None:
    lines = hakaru("bench", "show", "night-0", "-w", runs).output.splitlines()
    assert lines[0] == "GOOD: 2 good"
    output = json.loads(hakaru("bench", "show", "r00", "-w", runs, "--format", "json").output)
    assert list(output)[:2] == ["verdict", "exit_code"]
    assert output["measurements"][0]["median"] == pytest.approx(100, rel=0.01)


def test_show_answers_after_what_is_not_good_and_before_the_numbers(lake: Lake) -> None:
    """The same sentences as on the page, and none where there is nothing to say."""
    put_runs(lake, synthetic_runs(num_nodes=4, cards_per_node=4, num_runs=1))
    lines = hakaru("bench", "show", "-w", lake.workspace).output.splitlines()
    assert lines[0].startswith("SLOW: ")
    at = lines.index("Answers")
    assert lines[at - 1] == "" and lines[at - 2].startswith("  slow: ")
    starts = (
        "A synchronous job",
        "gpu003 is slow",
        "All-reduce, fp16",
        "All-reduce, fp32",
        "The best",
    )
    for line, start in zip(lines[at + 1 :], starts, strict=False):
        assert line.startswith(f"  {start}"), line
    assert any("16 devices" in line and "1,757 GB/s" in line for line in lines[at + 6 :])
    assert "The meter itself was off by 0.6 % at most" in "".join(lines)
    save(lake, run_of(measured(1.0)))
    assert "Answers" not in hakaru("bench", "show", "r1", "-w", lake.workspace).output


def test_compare_lists_significant_changes(runs: Path) -> None:
    lines = hakaru("bench", "compare", "r00", "latest", "-w", runs).output.splitlines()
    assert lines[0] == "1 worse, 0 better, of 2 compared"
    output = json.loads(
        hakaru("bench", "compare", "r00", "r11", "-w", runs, "--format", "json").output
    )
    changes = {row["where"]: row["change"] for row in output["rows"]}
    assert changes == {"n1/cuda:0": "no sure change", "n1/cuda:1": "worse"}


def test_history_finds_the_step_once_it_is_confirmed(runs: Path) -> None:
    result = hakaru(
        "bench", "history", "gemm", "--device", "cuda:1", "-w", runs, "--format", "json"
    )
    (series,) = json.loads(result.output)
    assert [(each["run"], each["worse"], each["confirmed"]) for each in series["changes"]] == [
        ("r10", True, True)
    ]
    lines = hakaru("bench", "history", "gemm", "--device", "cuda:1", "-w", runs).output.splitlines()
    assert lines[-2].startswith("Confirmed: −6") and "worse, confirmed" in "".join(lines[3:])
    (quiet,) = json.loads(
        hakaru(
            "bench", "history", "gemm", "--device", "n1/cuda:0", "-w", runs, "--format", "json"
        ).output
    )
    assert quiet["changes"] == []
    nowhere = hakaru("bench", "history", "gemm", "--device", "x", "-w", runs).output
    assert "--device x: no run has gemm on it; there is: n1/cuda:0, n1/cuda:1" in nowhere


def test_a_baseline_and_a_stored_run_checked_against_it(runs: Path) -> None:
    assert hakaru("bench", "baseline", "ok", "--run", "r00", "-w", runs).exit_code == 0
    assert "ok: 1 quantities" in hakaru("bench", "baseline", "-w", runs).output
    assert hakaru("bench", "check", "--baseline", "ok", "--run", "r01", "-w", runs).exit_code == 0
    result = hakaru("bench", "check", "--baseline", "ok", "--run", "latest", "-w", runs)
    assert (result.exit_code, "name the run" in result.output) == (1, True)
    result = hakaru(
        "bench", "check", "--baseline", "ok", "--run", "r11", "-w", runs, "--format", "json"
    )
    output = json.loads(result.output)
    assert (result.exit_code, output["exit_code"], output["verdict"]) == (10, 10, "slow")
    assert "baseline ok" in output["measurements"][1]["compared_with"]


# the exit code of each file, and the measurements that it holds
IMPORTED = {
    "HPL.out": (11, 3),
    "dcgm-3.json": (11, 10),
    "dcgm-4.json": (11, 5),
    "diagnosis_summary.json": (11, 2),
    "nccl-new.txt": (0, 8),
    "nccl-old-alltoall.txt": (0, 3),
    "nccl.json": (11, 5),
    "results-summary.jsonl": (11, 23),
}
DATA = Path(__file__).parent / "imports" / "data"


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir()))
def test_results_of_others_are_imported_once(lake: Lake, name: str) -> None:
    code, num_rows = IMPORTED[name]
    for _ in range(2):
        result = hakaru("bench", "import", DATA / name, "--cluster", "c", "-w", lake.workspace)
        assert result.exit_code == code, result.output
        (run,) = load_runs(lake)
        assert len(run.measurements) == num_rows


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("run", "gemm", "--param", "sice=3"),
            "none of the benchmarks has it; they have dtype, size",
        ),
        (("run", "gemm", "--param", "size=0"), "expected a whole number above 0"),
        (("run", "gemm", "--param", "dtype=fp65"), "did you mean fp64"),
        (("run", "--budget", "soon"), "not a duration such as 90s"),
        (("run", "--hosts", "a,b"), "this machine only"),
        (("run", "--resume"), "no interrupted run"),
        (("run", "--slurm", "partition=x"), "--slurm is for --launcher slurm"),
        (("show",), "holds no runs"),
        (("show", "x"), "holds no runs"),
        (("check", "--baseline", "x"), "there is no baseline 'x'"),
        (("frobnicate",), "there is no command 'frobnicate'"),
    ],
)
def test_wrong_arguments_are_rejected_before_anything_is_measured(
    lake: Lake, words: tuple[str, ...], message: str
) -> None:
    result = hakaru("bench", *words, *(() if words[0] == "frobnicate" else ("-w", lake.workspace)))
    assert result.exit_code in (1, 2)
    assert message in result.output
    assert not list_runs(lake)
    assert unfinished(lake.workspace) == []


STOPS_AFTER_THE_FIRST_RESULT = """
import sys, time
if "hakaru.measure.worker" in sys.orig_argv:
    from hakaru.measure import journal
    append = journal.append
    def append_and_stop(path, entry):
        append(path, entry)
        if entry["kind"] == "result":
            time.sleep(600)
    journal.append = append_and_stop
"""


def test_a_run_that_was_killed_resumes_and_measures_nothing_twice(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 to the whole group after the first result; what was measured is kept."""
    words = ["bench", "run", "gemm", "--quick", "--budget", "20s", "--device", "cpu:0", "-w",
             str(lake.workspace), "--cluster", "c"]  # fmt: skip
    with monkeypatch.context() as patch:
        sabotage(patch, tmp_path / "stops", STOPS_AFTER_THE_FIRST_RESULT)
        process = subprocess.Popen(
            [sys.executable, "-m", "hakaru", *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    folder, deadline = bench_folder(lake.workspace), time.monotonic() + 90
    while not (kept := _results(folder, 1)):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while _workers_of(
        folder
    ):  # the worker has a session of its own, and still ends with its parent
        assert time.monotonic() < deadline
        time.sleep(0.05)
    (begun,) = unfinished(lake.workspace)
    run = measure(Job.resume(lake.workspace))
    again = json.loads((folder / begun / "device/2/task.json").read_text())["items"]
    assert len(again) == 2 - kept.count(None), "what was contaminated is measured again"
    assert sorted(each.parameters["dtype"] for each in run.measurements) == ["fp32", "fp64"]
    assert all(each.samples for each in run.measurements)


def _results(folder: Path, attempt: int) -> list[object]:
    """The problem of each result in the journals of an attempt; None where there is none."""
    return [
        entry["problem"]
        for path in folder.glob(f"*/device/{attempt}/rank-0.jsonl")
        for entry in journal.read(path)[0]
        if entry["kind"] == "result"
    ]


def _workers_of(folder: Path) -> list[Path]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(folder) in path.read_text():
                found.append(path)
    return found


def test_a_plan_divides_its_budget_among_what_it_measures() -> None:
    everything, cards = Plan(), Plan(("device",))
    assert everything.families == list(FAMILIES)
    assert sum(map(everything.budget_of, FAMILIES)) == pytest.approx(300)
    assert cards.budget_of("device") == 300
    assert cards.budget_of("collective") == 0


def test_a_wrong_verdict_in_the_store_is_never_good(lake: Lake) -> None:
    save(lake, run_of(measured(verdict=Verdict.GOOD)))
    assert hakaru("bench", "show", "-w", lake.workspace).output.startswith("NOT MEASURED")
