"""Runs made by hand, as the figures' tests draw them."""

from __future__ import annotations

from typing import Any

from hakaru.figures.measure.view import RunView
from hakaru.measure.record import Measurement, Run
from hakaru.measure.verdict import Verdict
from tests.measure.lakes import BEGIN, measured


def run_of(*measurements: Measurement, **more: Any) -> Run:
    return Run(
        **({"id": "r1", "cluster": "c", "started_at": BEGIN, "measurements": measurements} | more)
    )


def view_of(*measurements: Measurement, **more: Any) -> RunView:
    return RunView.of(run_of(*measurements, **more))


def card(host: str, device: str, *samples: float, **more: Any) -> Measurement:
    return measured(host=host, device=device, samples=samples, **more)


def slow(each: Measurement, reference: float = 100.0) -> Measurement:
    others = {"reference": reference, "compared_with": "3 other devices of its model"}
    return each.judged(Verdict.SLOW, "slower than its peers", **others)


def ranked(size: int, seconds: float, **more: Any) -> list[Measurement]:
    """An all-reduce among four ranks that took so long."""
    common = {"benchmark": "all-reduce", "device": "4 ranks", "host": "a,b,c,d",
              "parameters": {"bytes": size, "dtype": "fp32", "ranks": 4}} | more  # fmt: skip
    busbw = size / seconds / 1e9 * 1.5
    return [
        measured(quantity="busbw", unit="GB/s", samples=(busbw,), **common),
        measured(quantity="time", unit="µs", better="lower", samples=(seconds * 1e6,), **common),
    ]
