"""The protocol: which repetitions are taken, in which order, and when it is enough."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hakaru.measure import protocol
from hakaru.measure._base import Case
from hakaru.measure.context import Alone
from hakaru.measure.protocol import Rule, Timed, prepare, repeat, time_block


@dataclass
class Clock:
    """A clock that only moves when a step says so."""

    now: float = 0.0
    log: list[str] = field(default_factory=list)

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(protocol, "time", made)
    return made


def case_of(clock: Clock, name: str, *seconds: float) -> Case:
    """A step that takes these seconds in turn, the last of them for ever."""
    left = list(seconds)

    def step() -> None:
        clock.log.append(name)
        clock.now += left.pop(0) if len(left) > 1 else left[0]

    return Case(step, lambda s: {"rate": 1 / s}, lambda: None)


def test_cases_are_interleaved_forwards_and_backwards(clock: Clock) -> None:
    cases = {name: Timed(case_of(clock, name, 1.0)) for name in "ab"}
    repeat(cases, Rule(least=4, most=4, width=0.0))
    assert "".join(clock.log) == "abbaabba"


def test_it_stops_as_soon_as_the_medians_interval_is_narrow(clock: Clock) -> None:
    timed = Timed(case_of(clock, "a", 1.0))
    repeat({"a": timed}, Rule(least=6, most=100, width=0.01, budget_s=1e9))
    assert len(timed.seconds) == 6


def test_wide_repetitions_go_on_until_the_budget_is_spent(clock: Clock) -> None:
    timed = Timed(case_of(clock, "a", *[1.0, 2.0] * 50))
    repeat({"a": timed}, Rule(least=6, most=100, width=0.01, budget_s=20))
    assert sum(timed.seconds) >= 20
    assert sum(timed.seconds[:-1]) < 20


def test_the_slowest_rank_counts(clock: Clock) -> None:
    class Slower(Alone):
        def maximum(self, *values: float) -> tuple[float, ...]:
            return tuple(max(value, 5.0) for value in values)

    assert time_block(case_of(clock, "a", 1.0), 2, Slower()) == 2.5


def test_a_block_holds_enough_steps_for_the_clock(clock: Clock) -> None:
    timed = prepare(case_of(clock, "a", 9.0, 0.001), Rule(block_s=0.05), Alone())
    assert timed.num_steps == 50  # the slow first step is warm-up
    assert timed.seconds == []


def test_quantities_come_from_the_seconds_of_one_step(clock: Clock) -> None:
    timed = Timed(case_of(clock, "a", 0.5), num_steps=4)
    repeat({"a": timed}, Rule(least=1, most=1))
    assert timed.samples() == {"rate": [2.0]}
