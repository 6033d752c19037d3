"""Every family for real, as a person starts it: `hakaru bench run --quick`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hakaru.measure._base import load_all
from hakaru.measure.verdict import EXIT_CODES, Verdict
from tests._cli import hakaru

pytestmark = pytest.mark.alone


def test_a_quick_run_measures_every_benchmark_and_gives_a_verdict(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hakaru", "bench", "run", "--quick", "--format", "json"]
    done = subprocess.run([*words, "-w", str(tmp_path)], capture_output=True, text=True)
    output = json.loads(done.stdout)
    rows = [each for each in output["measurements"] if "trial" not in each["parameters"]]
    counts = Counter(each["verdict"] for each in rows)
    assert "failed" not in counts, rows  # all else may happen on a noisy virtual machine
    assert done.returncode == output["exit_code"] == EXIT_CODES[Verdict(output["verdict"])]
    assert (done.returncode == 0) == (set(counts) == {"good"})

    with_numbers = {each["benchmark"] for each in rows if each["median"]}
    assert with_numbers | {"hpl"} == set(load_all().ids())
    (rate,) = [e for e in rows if e["benchmark"] == "hpl" and e["quantity"] == "rate"]
    assert rate["median"] or rate["reason"].startswith("the budget ended before"), rate["reason"]
    for each in rows:
        if each["median"] and each["num_repetitions"] > 5:
            assert each["low"] <= each["median"] <= each["high"], each
    devices = [each for each in rows if each["benchmark"] == "gemm" and each["median"]]
    assert {each["device"].partition(":")[0] for each in devices} == {"cpu", "numa"}
    assert all(each["validity"]["clocks"] for each in devices)
    reduced = [each for each in rows if each["benchmark"] == "all-reduce" and each["median"]]
    by_size: dict[int, dict[str, Any]] = {}
    for each in reduced:
        by_size.setdefault(each["parameters"]["bytes"], {})[each["quantity"]] = each
    for size, of in by_size.items():
        if len(of) == 3:  # two ranks: what a link carries is what is reduced
            rate, time = of["algbw"]["median"], of["time"]
            assert of["busbw"]["median"] == pytest.approx(rate, rel=1e-6)
            # the median of rates is not the rate of the median time where the count is even
            assert time["low"] * 0.999 <= size / rate / 1e3 <= time["high"] * 1.001

    shown = hakaru("bench", "show", "-w", tmp_path).output.splitlines()
    assert shown[0].startswith(f"{output['verdict'].upper()}: ")
    page = tmp_path / "run.html"
    assert hakaru("bench", "show", "-w", tmp_path, "-o", page).exit_code == 0
    assert "Devices from slow to fast" in page.read_text()
