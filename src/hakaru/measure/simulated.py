"""Simulated fleets and histories of known truth, and how often the rules of this room err on them.

`python -m hakaru.measure.simulated` prints the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import click
import numpy as np

from hakaru.measure.fleet import MOST_REPETITIONS, STANDARD, Flags, Screening, inspect
from hakaru.measure.history import find_steps
from hakaru.measure.statistics import Floats, Ints, median_of_others

# with and without: differences between cards, between nodes, and noise that goes on
SCENARIOS: tuple[dict[str, Any], ...] = tuple(
    {"spread": spread, "node_effect": node_effect, "correlation": correlation}
    for correlation, spread, node_effect in product((0.0, 0.5), (0.0, 0.01), (0.0, 0.005))
)
# a step must be confirmed by the third run on the new level
SOON_RUNS = 3


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fleet: how it differs from card to card, and how its repetitions do; shares of the rate.

    A slow card's true deficit is exactly `deficit`: the spread does not add to it. With a spread of
    1 % added, one in 44 of the cards meant to be 5 % slow would truly be less than 3 % slow, where a
    name is an error, and not even one who knew every true rate could reach a recall of 0.99.
    """

    num_cards: int = 1024
    cards_per_node: int = 8
    slow: int = 3
    deficit: float = 0.05
    noise: float = 0.015
    spread: float = 0.0
    node_effect: float = 0.0
    correlation: float = 0.0


@dataclass(slots=True)
class SimulatedFleet:
    """Cards of known true rate, whose noise goes on from one repetition to the next."""

    scenario: Scenario
    rates: Floats
    slow: Flags
    random: np.random.Generator
    _last: Floats = field(repr=False)  # each card's noise in its latest repetition
    _rows: list[Floats] = field(default_factory=list, repr=False)

    @property
    def true_deficits(self) -> Floats:
        """Against the median of the other cards, node effects included."""
        return 1 - self.rates / median_of_others(self.rates)

    def measure(self, cards: Ints, num: int) -> Floats:
        """The next repetitions of these cards, a row each."""
        correlation, last = self.scenario.correlation, self._last[cards]
        fresh = self.random.normal(size=(num, len(cards)))
        fresh *= self.scenario.noise * np.sqrt(1 - correlation**2)
        for repetition in fresh:
            repetition += correlation * last
            last = repetition
        self._last[cards] = last
        measured: Floats = self.rates[cards, None] * (1 + fresh.T)
        return measured

    def measure_more(self, more: Ints) -> list[Floats]:
        """So many more repetitions of each card; all that there are by then."""
        which = np.flatnonzero(more)
        added = self.measure(which, int(more.max()))
        rows = self._rows or [np.empty(0)] * len(self.rates)
        for card, row in zip(which, added, strict=True):
            rows[card] = np.concatenate([rows[card], row[: more[card]]])
        self._rows = rows
        return rows

    def inspect(self, most: int = MOST_REPETITIONS) -> Screening:
        """The procedure that real cards go through."""
        return inspect(len(self.rates), self.measure_more, most=most)


def simulated_fleet(seed: int | Sequence[int], **given: Any) -> SimulatedFleet:
    """A fleet of the `Scenario` given by its fields; the same seed gives the same fleet."""
    scenario, random = Scenario(**given), np.random.default_rng(seed)
    num = scenario.num_cards
    nodes = random.normal(scale=scenario.node_effect, size=-(-num // scenario.cards_per_node))
    rates = 1 + random.normal(scale=scenario.spread, size=num)
    rates += np.repeat(nodes, scenario.cards_per_node)[:num]
    slow = np.zeros(num, dtype=np.bool_)
    slow[random.choice(num, scenario.slow, replace=False)] = True
    # slow cards are the lowest, whatever their rate, which fixes the median of a slow card's others
    others = np.concatenate([rates[~slow], np.full(max(scenario.slow - 1, 0), -np.inf)])
    rates[slow] = np.median(others) * (1 - scenario.deficit)
    start = random.normal(scale=scenario.noise, size=num)
    return SimulatedFleet(scenario, rates, slow, random, start)


@dataclass(frozen=True, slots=True)
class Trial:
    """How the rule did on many fleets of one scenario."""

    recall: float  # share of the slow cards named; not a number where there are none
    false_fleets: float  # share of the fleets in which a card within the tolerance was named
    undecided: float  # cards a fleet
    mean_repetitions: float  # a card
    most_repetitions: int  # of one card


def try_fleets(
    num: int = 400, seed: int = 0, most: int = MOST_REPETITIONS, **scenario: Any
) -> Trial:
    """Measure, screen, measure the suspects again, name; over and over, against the truth."""
    named, missed, false, undecided, repetitions, largest = 0, 0, 0, 0, 0, 0
    for index in range(num):
        fleet = simulated_fleet([seed, index], **scenario)
        found = fleet.inspect(most)
        named += int((found.slow & fleet.slow).sum())
        missed += int((~found.slow & fleet.slow).sum())
        false += bool((fleet.true_deficits[found.slow] < STANDARD.tolerance).any())
        undecided += int(found.undecided.sum())
        repetitions += int(found.cards.counts.sum())
        largest = max(largest, int(found.cards.counts.max()))
    cards = num * len(fleet.rates)
    recall = named / (named + missed) if named + missed else float("nan")
    return Trial(recall, false / num, undecided / num, repetitions / cards, largest)


@dataclass(frozen=True, slots=True)
class HistoryTrial:
    """How the search for steps did on many series."""

    suspicions: float  # a series-year
    alarms: float  # steps confirmed a series-year
    found_soon: float  # share of the true steps confirmed within `SOON_RUNS`; not a number without


def try_histories(
    num: int = 1000,
    seed: int = 0,
    step: float = 0.0,
    noise: float = 0.015,
    num_runs: int = 365,
    first: int = 60,
    repeats: int = 4,
) -> HistoryTrial:
    """Series of a run a day, with a step up or down at a random run from `first` on, if any.

    Each suspicion is measured again before the next run, `repeats` times as long as a run.
    """
    random = np.random.default_rng([seed, num])
    suspicions, alarms, soon = 0, 0, 0
    for _ in range(num):
        start = int(random.integers(first, num_runs - SOON_RUNS))
        size = step * random.choice((-1, 1))
        levels = np.where(np.arange(num_runs) < start, 1.0, 1.0 + size)
        values, *again = levels * (1 + noise * random.normal(size=(1 + repeats, num_runs)))
        found = find_steps(values, again=dict(enumerate(np.transpose(again))))
        suspicions += len(found.suspicions)
        alarms += len(found.steps)
        times = [each.confirmed - start for each in found.steps if each.size * size > 0]
        soon += any(0 <= time < SOON_RUNS for time in times)
    years = num * num_runs / 365
    return HistoryTrial(suspicions / years, alarms / years, soon / num if step else float("nan"))


@click.command()
@click.option("--fleets", default=400, show_default=True, help="Fleets a scenario.")
@click.option("--series", default=3000, show_default=True, help="Series-years.")
@click.option("--seed", default=1, show_default=True)
def main(fleets: int, series: int, seed: int) -> None:
    """Print how often slow cards and steps are found, missed and imagined."""
    click.echo("spread  nodes  correlation  recall  false fleets  healthy  repetitions  most")
    for scenario in SCENARIOS:
        slow = try_fleets(fleets, seed, **scenario)
        healthy = try_fleets(fleets, seed, slow=0, **scenario)
        click.echo(
            f"{scenario['spread']:6.1%} {scenario['node_effect']:6.1%} "
            f"{scenario['correlation']:12.1f} {slow.recall:7.4f} {slow.false_fleets:13.2%} "
            f"{healthy.false_fleets:8.2%} {slow.mean_repetitions:12.1f} {slow.most_repetitions:5}"
        )
    quiet, stepped = try_histories(series, seed), try_histories(series, seed, step=0.05)
    click.echo(
        f"A step of 5% is confirmed within {SOON_RUNS} runs in {stepped.found_soon:.2%} of the series; "
        f"quiet series have {quiet.suspicions:.1f} suspicions and {quiet.alarms:.4f} alarms a year."
    )


if __name__ == "__main__":
    main()
