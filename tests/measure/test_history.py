"""Steps in a history: found soon, reported only when confirmed, and never denied for want of runs.

The series that people see: one value a run, and a card followed by its UUID.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.lake import Lake
from hakaru.measure.compare import Row, compare_runs
from hakaru.measure.history import Outcome, find_steps
from hakaru.measure.record import Run
from hakaru.measure.series import DeviceSeries, build_series, find_series, value_of
from hakaru.measure.simulated import try_histories
from hakaru.measure.store import save
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.measure._runs import NOW, measured, run_of


def series(*levels: tuple[float, int], seed: int = 1) -> np.ndarray:
    steady = np.repeat([level for level, _ in levels], [num for _, num in levels])
    return steady * (1 + 0.015 * np.random.default_rng(seed).normal(size=len(steady)))


def test_a_step_is_confirmed_within_three_runs() -> None:
    assert try_histories(1500, seed=1, step=0.05).found_soon >= 0.99


def test_quiet_series_hardly_ever_raise_an_alarm() -> None:
    quiet = try_histories(3000, seed=2)
    assert quiet.alarms <= 0.01
    assert 1 < quiet.suspicions < 10  # so it is the confirmation that keeps them away


@pytest.mark.parametrize("num", [0, 1, 7])
def test_few_runs_are_too_few_to_tell(num: int) -> None:
    history = find_steps(series((100, num)))
    assert (history.is_short, history.num_runs) == (True, num)
    assert find_steps(np.full(20, np.nan)).num_runs == 0


def test_a_steady_history_has_no_change() -> None:
    history = find_steps(series((100, 40)))
    assert (history.steps, history.open_suspicion, history.is_short) == ((), None, False)
    assert find_steps(np.full(12, 5.0)).steps == ()


def test_later_runs_confirm_a_step_and_the_level_is_learned_anew() -> None:
    values = series((100, 40), (92, 40), (100, 40))
    values[[3, 39, 60]] = np.nan
    history = find_steps(values)
    assert [step.began for step in history.steps] == [40, 80]
    assert [step.is_worse for step in history.steps] == [True, False]
    assert [step.size for step in history.steps] == pytest.approx([-0.08, 0.087], abs=0.02)
    assert [step.is_worse for step in find_steps(values, better="lower").steps] == [False, True]
    assert (find_steps(values[:46]).is_short, find_steps(values[:46]).num_runs) == (True, 6)


def test_a_suspicion_asks_for_measurements_that_settle_it() -> None:
    def settled(*again: float) -> Any:
        return find_steps(series((100, 40), (92, 2)), again={40: again})

    suspicion = settled().open_suspicion
    assert suspicion is not None and (suspicion.run, suspicion.missing) == (40, 3)
    confirmed = settled(*series((92, 4), seed=2))
    assert confirmed.steps[0].began == 40
    assert confirmed.steps[0].size == pytest.approx(-0.08, abs=0.02)
    dismissed = settled(*series((100, 4), seed=2))
    assert dismissed.suspicions[0].outcome is Outcome.DISMISSED and not dismissed.steps
    assert settled(np.nan).open_suspicion == suspicion
    assert not settled(*series((108, 4), seed=2)).steps  # the other way is no confirmation


def test_the_first_four_values_after_a_suspicion_settle_it_whoever_measured_them() -> None:
    """A look after each of them would raise false alarms: fewer than four leave it open."""
    values = [*series((100, 40)), 92.0, np.nan, 92.0]  # the run after the suspicion has no number
    for num in range(5):
        found = find_steps(values, again={41: [92.0] * num})
        assert bool(found.steps) is (num >= 3), num
        assert found.open_suspicion is None or found.open_suspicion.missing == 3 - num
    assert not find_steps(values, again={40: [100.0] * 3, 41: [100.0] * 9}).steps


def test_one_bad_run_is_no_step() -> None:
    values = series((100, 60))
    values[30] = 80
    history = find_steps(values)
    assert (30, Outcome.DISMISSED) in [(each.run, each.outcome) for each in history.suspicions]
    assert history.steps == ()


def test_what_does_not_apply_is_refused() -> None:
    with pytest.raises(HakaruError, match='"higher" or "lower"'):
        find_steps([1, 2], better="faster")


# ---- the series that people see


def values(rates: list[float], **labels: str) -> list[Any]:
    """A run a day, with the label of `r12` and so on."""
    return [
        value_of(f"r{at}", NOW + timedelta(days=at), labels.get(f"r{at}"), [rate])
        for at, rate in enumerate(rates)
    ]


def test_a_run_is_one_value_however_many_repetitions_it_has() -> None:
    """One sitting's offset is not four independent runs: a single confirming run settles nothing."""
    rates = [100.0, 100.5, 99.5, 100.0] * 3 + [94.0]
    one = build_series(values([*rates, 94.0], r13="confirm"), "higher")
    assert len(one.points) == 13
    (change,) = one.changes
    assert (change.is_confirmed, change.missing) == (False, 3)
    assert one.sentence == (
        "Suspected: −6.0 %, worse, from 2026-11-13 on. "
        "To settle it, measure 3 more times with --label confirm."
    )
    again = {f"r{at}": "confirm" for at in range(13, 17)}
    four = build_series(values([*rates, *[94.0] * 4], **again), "higher")
    assert four.sentence == (
        "Confirmed: −6.0 %, worse, from 2026-11-13 on. "
        "Too few runs to tell a change since then: 1 of at least 8."
    )
    assert four.mark(four.points[12]) == "−6.0 %, worse, confirmed"
    healthy = build_series(values([*rates, *[100.0] * 4], **again), "higher")
    assert healthy.sentence == "No change."


def test_a_run_without_a_valid_number_is_a_point_with_its_verdict() -> None:
    runs = nights([{"n1/cuda:0": None}] * 9)
    bad = replace(runs[-1].measurements[0], verdict=Verdict.CONTAMINATED)
    (found,) = find_series([*runs[:-1], replace(runs[-1], measurements=(bad,))], "gemm")
    last = found.series.points[-1]
    assert (last.median, found.series.mark(last)) == (None, "contaminated")
    assert found.series.num_runs == 8 and found.series.sentence == "No change."


def test_a_run_of_few_devices_is_no_point_of_the_fleet() -> None:
    """The slow card that a gate measured is not a step of all cards."""
    fleet = [value_of(f"r{at}", NOW + timedelta(days=at), None, [100.0] * 4) for at in range(10)]
    gates = [value_of(f"g{at}", NOW + timedelta(days=at, hours=1), "check ok", [80.0])
             for at in range(10)]  # fmt: skip
    half = value_of("half", NOW + timedelta(days=11), None, [100.0] * 2)
    silent = value_of("silent", NOW + timedelta(days=12), None, [])
    found = build_series([*fleet, *gates, half, silent], "higher")
    assert [each.run for each in found.points[-3:]] == ["r9", "half", "silent"]
    assert found.sentence == "No change. Left out: 10 runs of fewer than half of the devices."
    assert build_series(gates, "higher").num_partial == 0, "a history of one card"


# ---- cards by their UUID

FIRST, SECOND = "GPU-8f3b1c2d-aaaa-bbbb", "GPU-11112222-aaaa-bbbb"
RATES = {FIRST: 100.0, SECOND: 80.0, None: 100.0}


def nights(where: list[dict[str, str | None]]) -> list[Run]:
    """Runs with the UUID of each place, and the rate that the card has."""
    made = []
    for day, cards in enumerate(where):
        when = NOW + timedelta(days=day)
        found = [
            measured(
                *(RATES[uuid] * (1 + noise) for noise in (0.0, 0.001, -0.001, 0.002, -0.002, 0.0005)),
                host=place.partition("/")[0], device=place.partition("/")[2], device_uuid=uuid,
                started_at=when, ended_at=when,
            )
            for place, uuid in cards.items()
        ]  # fmt: skip
        made.append(replace(run_of(*found, id=f"r{day}"), started_at=when))
    return made


def compared(*where: dict[str, str | None]) -> dict[str, str]:
    rows: list[Row] = compare_runs(*nights(list(where)))
    return {row.where: row.change for row in rows}


def listed(*where: dict[str, str | None], **chosen: Any) -> dict[str, int]:
    """The series by their place, and how many points each has."""
    found: list[DeviceSeries] = find_series(nights(list(where)), "gemm", **chosen)
    return {each.where: len(each.series.points) for each in found}


def test_two_runs_are_compared_card_by_card_whatever_their_numbers() -> None:
    straight = {"n1/cuda:0": FIRST, "n1/cuda:1": SECOND}
    swapped = {"n1/cuda:0": SECOND, "n1/cuda:1": FIRST}
    assert compared(straight, straight) == {
        "n1/cuda:0": "no sure change",
        "n1/cuda:1": "no sure change",
    }
    assert compared(straight, swapped) == {
        "n1/cuda:1 (GPU-8f3b1c2d, was n1/cuda:0)": "no sure change",
        "n1/cuda:0 (GPU-11112222, was n1/cuda:1)": "no sure change",
    }
    assert compared({"n1/cuda:0": FIRST}, {"n1/cuda:0": SECOND}) == {
        "n1/cuda:0 (GPU-8f3b1c2d)": "only before",
        "n1/cuda:0 (GPU-11112222)": "only after",
    }


def test_a_card_without_a_uuid_is_known_by_its_place() -> None:
    assert compared({"n1/cuda:0": None}, {"n1/cuda:0": FIRST}) == {"n1/cuda:0": "no sure change"}
    assert compared({"n1/cuda:0": None}, {"n1/cuda:0": None}) == {"n1/cuda:0": "no sure change"}
    zeros = {"n1/cuda:0": FIRST, "n1/cuda:1": FIRST}  # a driver that gives all the same
    assert compared(zeros, zeros) == {"n1/cuda:0": "no sure change", "n1/cuda:1": "no sure change"}
    moved = {"n1/cuda:0": None, "n1/cuda:1": FIRST}
    assert len(compared({"n1/cuda:0": FIRST}, moved)) == 2


def test_a_history_follows_the_card() -> None:
    straight = {"n1/cuda:0": FIRST, "n1/cuda:1": SECOND}
    alone = {"n1/cuda:0": SECOND}  # CUDA_VISIBLE_DEVICES=1
    where = [straight] * 6 + [alone] * 4
    found = listed(*where)
    assert found == {
        "2 devices of A100": 10,
        "n1/cuda:0 (GPU-8f3b1c2d)": 6,
        "n1/cuda:0 (GPU-11112222, was n1/cuda:1)": 10,
    }
    assert listed(*where, device="GPU-11112222") == {"n1/cuda:0 (GPU-11112222, was n1/cuda:1)": 10}
    (slow,) = find_series(nights(where), "gemm", device=SECOND)
    assert slow.series.sentence == "No change." and slow.to_json()["device_uuid"] == SECOND
    assert listed(*[straight] * 3, device="n1/cuda:1") == {"n1/cuda:1": 3}


def test_compare_names_runs_by_label_and_counts_what_only_one_has(lake: Lake) -> None:
    before = [measured(100.0, device=f"cuda:{at}") for at in range(9)]
    save(lake, run_of(*before, id="r1", label="before"))
    save(lake, run_of(measured(100.0, device="cuda:0"), id="r2"))
    output = hakaru("bench", "compare", "r1", "r2", "-w", lake.workspace).output
    assert "before (r1)" in output.splitlines()[1]
    assert "only in before (r1): 8: gemm fp64 size 512 on n1/cuda:1, " in output
    assert output.rstrip().endswith("and 3 more") and output.count("cuda:") == 6


def test_json_of_compare_and_history_has_no_infinity(lake: Lake) -> None:
    for at, value in enumerate((1e-300, 1e300)):
        when = NOW.replace(day=at + 1)
        each = measured(value, started_at=when, ended_at=when)
        save(lake, run_of(each, id=f"r{at}"))
    for asked in (("compare", "r0", "r1"), ("history", "gemm")):
        result = hakaru("bench", *asked, "-w", lake.workspace, "--format", "json")
        assert (
            result.exit_code == 0 and "Infinity" not in result.output and json.loads(result.output)
        )


def test_a_history_of_no_benchmark_says_what_was_meant(lake: Lake) -> None:
    save(lake, run_of(measured(1.0)))
    result = hakaru("bench", "history", "gem", "-w", lake.workspace)
    assert "there is no benchmark 'gem'; did you mean gemm?" in result.output
    result = hakaru("bench", "history", "memory", "-w", lake.workspace)
    assert "no run has memory" in result.output and "gemm" in result.output


@pytest.mark.parametrize("verdict", [Verdict.GOOD, Verdict.CONTAMINATED])
def test_the_terminal_says_how_many_measurements_have_no_row(lake: Lake, verdict: Verdict) -> None:
    found = [
        measured(1.0, benchmark="all-reduce", quantity=name, verdict=verdict)
        for name in ("busbw", "algbw", "time")
    ]
    save(lake, run_of(*found))
    note = "2 of 3 measurements have no row of their own here: --all shows them."
    assert note in hakaru("bench", "show", "-w", lake.workspace).output
    assert note not in hakaru("bench", "show", "--all", "-w", lake.workspace).output
