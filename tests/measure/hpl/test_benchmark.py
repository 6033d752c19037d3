"""The benchmark's rows: what they are compared with, the peak that efficiency needs, and the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.measure import journal, validity
from hakaru.measure._base import BENCHMARKS
from hakaru.measure.hpl import Program, calibrate, find_program, missing_tools
from hakaru.measure.hpl.blas import Blas
from hakaru.measure.hpl.peak import gemm_gflops
from hakaru.measure.verdict import Verdict
from tests.measure.hpl._launchers import Tools
from tests.measure.hpl._measure import BUDGET_S, measure, measure_all

pytestmark = pytest.mark.usefixtures("quiet")


def gemm(
    device: str, *rates: float, dtype: str = "fp64", problem: object = None
) -> dict[str, object]:
    return {
        "kind": "result", "benchmark": "gemm", "parameters": {"dtype": dtype}, "host": "h",
        "device": device, "samples": {"rate": list(rates)}, "problem": problem,
    }  # fmt: skip


def begin(**num_cores: int) -> dict[str, object]:
    devices = [
        {"id": name.replace("_", ":"), "cores": [*range(n)]} for name, n in num_cores.items()
    ]
    return {"kind": "begin", "place": {"host": "h"}, "devices": devices}


def write(run: Path, *entries: dict[str, object]) -> Path:
    path = run / "device" / "1" / "rank-0.jsonl"
    path.parent.mkdir(parents=True)
    for entry in entries:
        journal.append(path, entry)
    return run


def test_it_is_compared_with_what_it_is_judged_by(tools: Tools, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    found = measure(tmp_path, BUDGET_S, ranks=2)
    rate, gain = found["rate"], found["gain"]
    assert rate.compared_with == "the default HPL.dat at its own N"
    assert rate.compared_with.partition("at ")[0] in BENCHMARKS.get("hpl").judged
    assert "baseline" not in BENCHMARKS.get("hpl").judged
    assert rate.median is not None and rate.reference is not None and gain.median is not None
    assert rate.median / rate.reference == pytest.approx(gain.median, rel=1e-3)


def test_xhpl_needs_a_peak_for_its_efficiency(tools: Tools, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    without = measure(tmp_path, BUDGET_S, ranks=2)["efficiency"]
    assert without.verdict is Verdict.NOT_MEASURED and not without.samples
    assert "hakaru bench run gemm hpl --param dtype=fp64" in without.reason
    assert "--param peak=" in without.reason
    given = measure(tmp_path, BUDGET_S, run="r2", ranks=2, peak=200)
    assert given["efficiency"].verdict is Verdict.GOOD
    assert "the given peak, 200 GFLOP/s" in given["efficiency"].reason
    expected = (given["rate"].median or 0.0) / 200
    assert given["efficiency"].median == pytest.approx(expected)
    write(tmp_path / "bench" / "r3", begin(numa_0=2), gemm("numa:0", 90.0, 100.0, 110.0))
    own = measure(tmp_path, BUDGET_S, run="r3", ranks=2)["efficiency"]
    assert "this run's fp64 gemm on all devices, 100 GFLOP/s" in own.reason
    wrong = measure(tmp_path, BUDGET_S, run="r4", ranks=2, peak=20)["efficiency"]
    assert wrong.verdict is Verdict.NOT_MEASURED and not wrong.samples
    assert "above the peak" in wrong.reason
    assert BENCHMARKS.get("hpl").parse({"peak": "4700"}) == {"peak": [4700]}


def test_a_peak_is_that_of_all_devices_or_none(tmp_path: Path) -> None:
    cards = [gemm("cuda:0", 4000.0), gemm("cuda:1", 4100.0), gemm("cuda:1", 9000.0, dtype="fp32")]
    assert gemm_gflops(write(tmp_path / "two", *cards), 2) == 8100.0
    assert gemm_gflops(tmp_path / "two", 4) is None  # the ranks run on other devices too
    disturbed = gemm("cuda:1", 3000.0, problem={"verdict": "contaminated", "reason": "others"})
    assert gemm_gflops(write(tmp_path / "bad", cards[0], disturbed), 2) is None
    cores = [
        begin(numa_0=1, numa_1=1),
        gemm("cpu:0", 50.0),
        gemm("numa:0", 95.0),
        gemm("numa:1", 96.0),
    ]
    assert gemm_gflops(write(tmp_path / "cores", *cores), 2) == 191.0
    assert gemm_gflops(tmp_path / "cores", 3) is None  # a node of which nothing was measured
    assert gemm_gflops(tmp_path / "nothing", 2) is None


def test_what_was_measured_in_company_is_not_good(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setattr(validity, "problems", lambda *_: ["other processes used 50% of the cores"])
    rows = measure_all(tmp_path, BUDGET_S, ranks=2)
    trials = [each for each in rows if each.is_trial]
    assert trials and {each.verdict for each in trials} == {Verdict.CONTAMINATED}
    assert "other processes used 50%" in trials[0].reason
    final = [each for each in rows if not each.is_trial and each.samples]
    assert final and {each.verdict for each in final} == {Verdict.CONTAMINATED}


def test_a_slow_library_is_named_in_the_verdict(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna")
    slow = Blas("/usr/lib/libblas.so.3", "reference BLAS", warning="the reference BLAS is slow")
    monkeypatch.setattr(calibrate, "find_blas", lambda _: slow)
    assert measure(tmp_path, BUDGET_S, ranks=2)["rate"].reason.endswith(
        "the reference BLAS is slow"
    )


def test_the_program_can_be_named(
    fake_xhpl: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAKARU_XHPL", fake_xhpl.path)
    assert find_program() == fake_xhpl
    monkeypatch.setenv("HAKARU_XHPL", str(tmp_path / "none"))
    assert f"HAKARU_XHPL={tmp_path / 'none'}: not a program" in (missing_tools() or "")
