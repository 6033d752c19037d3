"""One call of the benchmark, as a run makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hakaru.measure.hpl.benchmark import hpl
from hakaru.measure.job import Plan
from hakaru.measure.record import Measurement

BUDGET_S = 30.0  # a search on the stand-in has all its pairs after two or three seconds


def measure(
    workspace: Path, budget_s: float, plan: Plan | None = None, run: str = "r1", **parameters: int
) -> dict[str, Measurement]:
    """The rows that count, by quantity; the trials are left out."""
    rows = measure_all(workspace, budget_s, plan, run, **parameters)
    return {each.quantity: each for each in rows if not each.is_trial}


def measure_all(
    workspace: Path, budget_s: float, plan: Plan | None = None, run: str = "r1", **parameters: Any
) -> list[Measurement]:
    folder = workspace / "bench" / run / "hpl"
    folder.mkdir(parents=True, exist_ok=True)
    return hpl(folder, plan or Plan(), budget_s, lambda share, text: None, **parameters)
