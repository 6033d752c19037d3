"""Slow cards are named, healthy ones are not, and unclear ones are undecided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from hakaru.measure.fleet import (
    CONFIDENCE,
    FIRST_REPETITIONS,
    MOST_REPETITIONS,
    Limits,
    State,
    assess,
    cost_of_slowest,
    inspect,
    name_slow,
    screen,
)
from hakaru.measure.simulated import SCENARIOS, main, simulated_fleet, try_fleets
from hakaru.measure.verdict import Verdict


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: "-".join(map(str, each.values())))
def test_slow_cards_are_named_and_healthy_ones_are_not(scenario: dict[str, Any]) -> None:
    trial = try_fleets(400, seed=1, **scenario)
    assert trial.recall >= 0.99
    assert trial.false_fleets <= 0.02
    assert trial.most_repetitions <= MOST_REPETITIONS
    assert try_fleets(400, seed=2, slow=0, **scenario).false_fleets <= 0.01


def test_the_usual_rules_fail_on_the_same_fleets() -> None:
    false_by_deviation, found_by_limit = 0, 0
    for seed in range(100):
        fleet = simulated_fleet([1, seed], spread=0.01)
        medians = np.median(fleet.measure(np.arange(1024), 5), axis=1)
        deficits = 1 - medians / np.median(medians)
        named = deficits > 3.5 * 1.4826 * np.median(np.abs(deficits))
        false_by_deviation += (named & (fleet.true_deficits < 0.03)).any()
        found_by_limit += (deficits[fleet.slow] > 0.05).sum()
    assert false_by_deviation > 10
    assert found_by_limit < 200  # of 300


@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize("num_cards", [2, 8])
def test_a_few_cards_are_each_others_reference(num_cards: int, correlation: float) -> None:
    few = {"num_cards": num_cards, "slow": 1, "correlation": correlation}
    trial = try_fleets(100, seed=3, **few)
    assert trial.recall >= 0.99
    assert trial.false_fleets == 0
    assert try_fleets(200, seed=4, deficit=0.03, **few).recall <= 0.01


def test_a_card_at_the_tolerance_is_named_as_rarely_as_stated() -> None:
    trial = try_fleets(100, seed=5, num_cards=256, slow=16, deficit=0.03)
    assert trial.recall <= 3 * (1 - CONFIDENCE)


def test_a_suspect_stays_undecided_until_it_is_measured_enough() -> None:
    fleet = simulated_fleet(6, num_cards=64, slow=1)
    first = fleet.measure(np.arange(64), FIRST_REPETITIONS)
    slow = int(np.flatnonzero(fleet.slow)[0])
    screening = screen(first)
    assert screening.suspects[slow] and screening.repetitions[slow] >= 35
    undecided = name_slow(first)[slow]
    assert undecided.state is State.UNDECIDED
    assert undecided.state.verdict is Verdict.NOT_MEASURED
    more = fleet.measure(np.array([slow]), int(screening.repetitions[slow]) - FIRST_REPETITIONS)
    named = name_slow([[*row, *more[0]] if at == slow else row for at, row in enumerate(first)])
    assert [each.card for each in named if each.is_slow] == [slow]
    assert named[slow].low > 0.03


def test_a_flaky_card_keeps_its_own_noise() -> None:
    fleet = simulated_fleet(7, num_cards=200, slow=0)
    first = fleet.measure(np.arange(200), 40)
    random = np.random.default_rng(7)
    first[3] = 0.97 * (1 + 0.12 * random.normal(size=40))
    screening = screen(first)
    assert screening.cards.noises[3] > 0.08
    assert screening.noise.deviation == pytest.approx(0.015, rel=0.05)
    flaky = name_slow(first)[3]
    assert flaky.state is State.UNDECIDED
    assert flaky.needed == MOST_REPETITIONS


def test_what_is_missing_is_neither_fast_nor_slow() -> None:
    fleet = simulated_fleet(8, num_cards=32, slow=0)
    first = fleet.measure(np.arange(32), 40)
    whole = screen(first).deficits
    first[0] = np.nan
    first[1, 2:] = 0
    first[2, ::2] = np.nan
    states = [each.state for each in name_slow(first)]
    assert states[:2] == [State.NOT_MEASURED] * 2
    assert set(states[2:]) == {State.GOOD}
    assert np.nanmax(np.abs(screen(first).deficits[2:] - whole[2:])) < 0.01


def test_one_card_has_nothing_to_be_compared_with() -> None:
    assert name_slow([[1.0, 1.1, 0.9, 1.0, 1.0]])[0].state is State.NOT_MEASURED


def test_too_few_repetitions_are_not_measured() -> None:
    for short in ([[1.0, 1.1], [0.5, 0.5]], [[], []]):
        assert {each.state for each in name_slow(short)} == {State.NOT_MEASURED}
    fleet = simulated_fleet(9, num_cards=8, slow=1)
    rows = fleet.measure(np.arange(8), 120)  # all were measured again
    assert [each.is_slow for each in name_slow(rows)] == fleet.slow.tolist()


def test_rounds_add_up_and_end_with_the_time() -> None:
    fleet = simulated_fleet(3, num_cards=64, slow=2)
    found = fleet.inspect()
    again = assess(fleet._rows)  # what is stored gives the same verdicts
    assert (found.slow == again.slow).all() and (found.slow == fleet.slow).all()
    assert not again.next_round.any()
    late = simulated_fleet(3, num_cards=64, slow=2)
    short = inspect(64, late.measure_more, is_over=lambda: True)
    assert set(short.cards.counts) == {FIRST_REPETITIONS}
    assert short.undecided.any()


def test_wider_limits_need_fewer_repetitions() -> None:
    wide = Limits(0.05, 0.15)
    fleet = simulated_fleet(4, num_cards=4, slow=1, deficit=0.2, noise=0.03)
    found = inspect(4, fleet.measure_more, wide)
    strict = simulated_fleet(4, num_cards=4, slow=1, deficit=0.2, noise=0.03)
    assert (found.slow == fleet.slow).all() and not found.undecided.any()
    assert found.cards.counts.max() < strict.inspect().cards.counts.max()


def test_equal_repetitions_are_judged_too() -> None:
    states = [each.state for each in name_slow([[1.0] * 5, [1.0] * 5, [0.9] * 5])]
    assert states == [State.GOOD, State.GOOD, State.SLOW]
    noisy = name_slow([[1.0] * 5, [1.0] * 5, [1.0, 0.5, 1.2, 0.9, 0.7]])[2]
    assert noisy.state is State.UNDECIDED


def test_the_table_of_the_proof_is_printed() -> None:
    result = CliRunner().invoke(main, ["--fleets", "1", "--series", "3"])
    assert result.exit_code == 0, result.output
    assert len(result.output.splitlines()) == 1 + len(SCENARIOS) + 1


def test_cost_of_the_slowest_card() -> None:
    assert cost_of_slowest([100, 100, 90, 110, np.nan]) == pytest.approx(4 * 730 * 0.1)
    assert np.isnan(cost_of_slowest([np.nan]))
