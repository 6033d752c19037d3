"""What the terminal says of a run: only intervals that can tell something, and numbers with their owner."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hakaru.cli.bench._report import run_lines, to_json
from hakaru.lake import Lake
from hakaru.measure.record import Measurement, Run
from hakaru.measure.store import save
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.measure._runs import measured, run_of
from tests.measure.lakes import put_runs, synthetic_runs


def lines_of(run: Run, every: bool = False) -> list[str]:
    return [line for line, _ in run_lines(run, 1000, [], every)]


def slow(reason: str, **more: Any) -> Measurement:
    return measured(*[94.0] * 6, verdict=Verdict.SLOW, reason=reason, **more)


@pytest.mark.parametrize(
    ("num", "correlation", "shown"),
    [(1, 0.0, False), (4, 0.0, False), (5, 0.0, True), (30, 0.0, True), (30, 0.97, False)],
)
def test_an_interval_is_shown_only_where_it_has_a_level(
    num: int, correlation: float, shown: bool
) -> None:
    """Repetitions that follow each other tell as little as a few."""
    each = measured(*(100.0 + at for at in range(num)), correlation=correlation)
    lines = lines_of(run_of(each))
    (row,) = (line for line in lines if line.startswith("gemm"))
    assert (" to " in row) is shown and ("  –  " in row) is not shown
    assert any(line.startswith("– for an interval") for line in lines) is (num > 1 and not shown)
    (data,) = to_json(run_of(each))["measurements"]
    assert (data["level"] >= 0.9) is shown
    assert (data["low"], data["high"]) == (each.interval.low, each.interval.high)


def test_a_measurement_without_a_number_has_no_level(lake: Lake) -> None:
    save(lake, run_of(measured(verdict=Verdict.FAILED)))
    output = hakaru("bench", "show", "-w", lake.workspace, "--format", "json").output
    assert json.loads(output)["measurements"][0]["level"] is None


def test_steps_of_a_search_are_counted_neither_above_nor_below(lake: Lake) -> None:
    put_runs(lake, runs := synthetic_runs(num_nodes=1, cards_per_node=1, num_runs=1))
    judged = [each for each in runs[0].measurements if not each.is_trial]
    assert len(judged) + 30 == len(runs[0].measurements)
    output = hakaru("bench", "show", "-w", lake.workspace).output
    assert f" of {len(judged)} measurements have no row of their own" in output
    assert "no row" not in hakaru("bench", "show", "--all", "-w", lake.workspace).output


def test_numbers_of_one_are_not_quoted_as_those_of_all() -> None:
    one = slow("5.8% slower than its peers")
    other = slow("9.1% slower than its peers", device="cuda:1")
    lines = lines_of(run_of(one, other))
    assert lines[1] == (
        "  slow: n1/cuda:0, n1/cuda:1: gemm fp64 size 512, such as n1/cuda:0: 5.8% slower than its peers"
    )
    setting = replace(other, device="cuda:0", parameters={"dtype": "bf16", "size": 512})
    assert lines_of(run_of(one, setting))[1] == (
        "  slow: n1/cuda:0: gemm (2 settings), such as fp64 size 512: 5.8% slower than its peers"
    )
    both = replace(other, parameters={"dtype": "bf16", "size": 512})
    assert "(2 settings), such as n1/cuda:0 fp64 size 512: 5.8%" in lines_of(run_of(one, both))[1]
    quantity = replace(other, device="cuda:0", quantity="power")
    assert "gemm fp64 size 512, such as rate: 5.8% slower" in lines_of(run_of(one, quantity))[1]


def test_a_reason_of_all_is_said_once() -> None:
    found = [slow("its clock is locked to 1,005 MHz", device=f"cuda:{at}") for at in range(2)]
    assert lines_of(run_of(*found))[1] == (
        "  slow: n1/cuda:0, n1/cuda:1: gemm fp64 size 512: its clock is locked to 1,005 MHz"
    )
