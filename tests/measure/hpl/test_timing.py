"""Predictions: never below what was seen, growing with the work, and no launch that does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.measure.hpl import Batch, Config, Program, Result, Scale, Status, default_for
from hakaru.measure.hpl.calibrate import measure_sizes
from hakaru.measure.hpl.confirm import LEAST_PAIRS, rounds
from hakaru.measure.hpl.history import History, Launch, Phase, Planned
from hakaru.measure.hpl.result import flops
from hakaru.measure.hpl.scales import default_scales, fitting_n, largest_n, memory_n, most_n
from hakaru.measure.hpl.session import CONFIRM_SHARE
from hakaru.measure.hpl.timing import predict_s

HPCC = Program("hpcc", "/usr/bin/hpcc")
XHPL = Program("xhpl", "/usr/bin/xhpl")


@pytest.fixture
def history(tmp_path: Path) -> History:
    """One launch: the default three times, at 40 Gflop/s, in 2 s."""
    found = History.open(tmp_path / "journal.jsonl", {})
    config = default_for(2)
    batch = Batch.of([config]).repeated([1000] * 3)
    tests = tuple(Planned(each) for each in batch.configs())
    launch = Launch(1, "calibrate", None, 2, ("hpcc",), {}, 2.0, batch.num_transposed, tests)
    found.add_launch(launch)
    for index in range(3):
        result = Result(1, config.variant, 1000, 80, 1, 2, 0.017, 40.0, 0.01, Status.PASSED, config)
        found.add_result(launch, index, result)
    return found


def test_a_prediction_is_cautious_and_grows_with_the_work(history: History) -> None:
    def predicted(n: int, repeats: int = 1, program: Program = HPCC) -> float:
        return predict_s(history, program, Batch.of([default_for(2, n)]).repeated([n] * repeats), 2)

    assert predicted(1000, 3) > 2.0  # what the same launch took
    rising = [predicted(n) for n in (1000, 1500, 2500, 4000, 8000, 30_000)]
    assert rising == sorted(rising)
    assert rising[-1] / rising[-2] > (30_000 / 8000) ** 2  # n³ counts in the end
    assert predicted(2000, 5) > predicted(2000, 1) > predicted(2000, 1, XHPL)


def test_the_largest_n_is_what_time_or_memory_allow(history: History) -> None:
    few, note = largest_n(history, HPCC, 2, 45.0, 16 * 2**30)
    many, _ = largest_n(history, HPCC, 2, 3600.0, 16 * 2**30)
    full, reason = largest_n(history, HPCC, 2, 1e6, 16 * 2**30)
    assert few < many < full == memory_n(16 * 2**30) // 64 * 64
    assert "limited by the budget of 45 s" in note and "80% of the memory" in reason
    assert full**2 * 8 <= 0.8 * 16 * 2**30
    assert fitting_n(history, HPCC, 2, 0.0, 5000) == 1024


def test_the_last_n_takes_its_part_of_the_budget_and_leaves_enough_to_confirm_it(
    history: History,
) -> None:
    budget_s = 112.0
    n, _ = largest_n(history, HPCC, 2, budget_s, None)
    eight = Batch.of([default_for(2, n)]).repeated([n] * 8)
    assert predict_s(history, HPCC, eight, 2, is_hopeful=True) > 0.15 * budget_s
    best = Config(n, 128, 1, 2)
    together = rounds(best, LEAST_PAIRS, is_back=False)[-1]
    assert sum(predict_s(history, HPCC, batch, 2) for batch in together) <= CONFIRM_SHARE * budget_s


def test_the_rate_of_a_wide_machine_is_measured_before_its_n_is_planned(tmp_path: Path) -> None:
    """1,024 ranks of 4,700 Gflop/s, of which a matrix of 1,000 uses next to nothing."""

    def rate(n: int) -> float:
        return 1024 * 4700.0 * n / (n + 300_000)

    history = History.open(tmp_path / "journal.jsonl", {})

    def run(batch: Batch, tests: Sequence[Planned], phase: Phase) -> bool:
        seconds = [flops(each.config.n) / rate(each.config.n) / 1e9 for each in tests]
        number = history.next_launch
        launch = Launch(
            number, phase, None, 1024, ("xhpl",), {}, 30.0 + sum(seconds), 0, tuple(tests)
        )
        history.add_launch(launch)
        for index, (each, s) in enumerate(zip(tests, seconds, strict=True)):
            c = each.config
            result = Result(1, c.variant, c.n, c.nb, c.p, c.q, s, rate(c.n), 0.01, Status.PASSED, c)
            history.add_result(launch, index, result)
        return True

    run(Batch.of([default_for(1024)]), [Planned(default_for(1024))], "calibrate")
    budget_s = 3 * 3600.0
    before, _ = largest_n(history, XHPL, 1024, budget_s, None)
    session: Any = SimpleNamespace(
        history=history, program=XHPL, ranks=1024, budget_s=budget_s, is_over=False, run=run,
        show=lambda text: None,
    )  # fmt: skip
    measure_sizes(session, most_n(64 * 2**40))
    after, _ = largest_n(history, XHPL, 1024, budget_s, 64 * 2**40)
    spent = sum(each.wall_s for each in history.launches)
    assert after > 2 * before and spent < 0.1 * budget_s
    eight = 8 * flops(after) / rate(after) / 1e9
    assert 0.3 * 0.18 * budget_s < eight < 1.1 * 0.18 * budget_s
    measure_sizes(session, most_n(64 * 2**40))  # of a search that goes on
    assert sum(each.wall_s for each in history.launches) == spent


def test_scales_go_from_one_rank_to_all() -> None:
    assert default_scales(2, 2048) == [Scale(1, 960), Scale(2, 1408), Scale(2, 2048)]
    assert [scale.ranks for scale in default_scales(1024, 600_000)] == [1, 8, 64, 512, 1024, 1024]
    assert [scale.ranks for scale in default_scales(1024, 600_000, 8)] == [8, 64, 512, 1024, 1024]
    assert [scale.ranks for scale in default_scales(1024, 600_000, 16)] == [64, 512, 1024, 1024]
    assert default_scales(2, 2048, 2) == [Scale(2, 1408), Scale(2, 2048)]
    assert [scale.ranks for scale in default_scales(1, 2048)] == [1, 1]
