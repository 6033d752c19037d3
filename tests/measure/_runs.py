"""Measurements written by hand, and the command line with a sabotaged Python in its workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hakaru.measure.record import Measurement, Run
from hakaru.measure.verdict import Verdict

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


def measured(*samples: float, **more: Any) -> Measurement:
    """A good measurement of a card, with what a test changes."""
    columns: dict[str, Any] = {
        "benchmark": "gemm", "quantity": "rate", "unit": "GFLOP/s", "better": "higher",
        "host": "n1", "device": "cuda:0", "started_at": NOW, "ended_at": NOW,
        "parameters": {"dtype": "fp64", "size": 512}, "samples": samples, "verdict": Verdict.GOOD,
        "place": {"model": "A100"},
    }  # fmt: skip
    return Measurement(**(columns | more))


def run_of(*measurements: Measurement, id: str = "r1", **more: Any) -> Run:
    return Run(id, "c", NOW, tuple(measurements), **more)


def until_valid(attempt: Callable[[], Run], most: int = 5) -> Run:
    """Measure again while the meter itself says that the machine is disturbed.

    Where the hypervisor takes the cores each time there is no truth to read, and the test does not run.
    """
    for _ in range(most):
        run = attempt()
        bad = {e.reason for e in run.measurements if e.verdict is Verdict.CONTAMINATED}
        if not bad:
            return run
    if all(reason.startswith("the hypervisor took") and ";" not in reason for reason in bad):
        pytest.skip(f"contaminated {most} times: {', '.join(sorted(bad))}")
    return run


def sabotage(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """Python runs this code at the start of every process from now on; this one is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))
