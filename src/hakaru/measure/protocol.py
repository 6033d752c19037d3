"""How a case is timed: warm-up, barrier, the slowest rank, repetitions until the median is known well.

One repetition is a block of steps that lasts at least `block_s`, so that the clock's error is small. Cases
that are compared are interleaved, so that drift meets all of them alike. All ranks see the same samples and
so decide alike when to stop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from hakaru.measure._base import Case
from hakaru.measure.context import Alone, Ranks
from hakaru.measure.statistics import lag_correlation, median_interval, relative_width

CONFIDENT_FROM = 6  # repetitions from which order statistics give a 95 % interval of the median


@dataclass(frozen=True)
class Rule:
    """When to stop: the interval is narrow, the repetitions are many, or the time is spent."""

    least: int = 6
    most: int = 60
    width: float = 0.01
    budget_s: float = 5.0
    block_s: float = 0.05
    soak_s: float = 0.0  # of load on all GPUs before anything counts
    num_warm_up: int = 2


@dataclass
class Timed:
    """A case with the number of steps in a block, and the seconds of a step in each repetition."""

    case: Case
    num_steps: int = 1
    seconds: list[float] = field(default_factory=list)

    def samples(self) -> dict[str, list[float]]:
        """The quantities, a value a repetition."""
        listed: dict[str, list[float]] = {}
        for seconds in self.seconds:
            for name, value in self.case.values(seconds).items():
                listed.setdefault(name, []).append(value)
        return listed

    def is_narrow(self, width: float) -> bool:
        """Whether the interval of the median is at most this wide, relative to it."""
        if len(self.seconds) < CONFIDENT_FROM:
            return False
        interval = median_interval(self.seconds, correlation=correlation_of(self.seconds))
        return relative_width(interval) <= width


def correlation_of(samples: Sequence[float]) -> float:
    """From one repetition to the next, where there are enough to tell; negative ones count as none."""
    return max(0.0, lag_correlation(samples)) if len(samples) >= 8 else 0.0


def time_block(case: Case, num_steps: int, ranks: Ranks) -> float:
    """Seconds of one step, of the slowest rank.

    All ranks wait for one another when they exchange their times, which is the barrier of the next block too.
    """
    begin = time.perf_counter()
    for _ in range(num_steps):
        case.step()
    case.sync()
    (slowest,) = ranks.maximum(time.perf_counter() - begin)
    return slowest / num_steps


def prepare(case: Case, rule: Rule, ranks: Ranks) -> Timed:
    """Warm up, and choose how many steps make a block."""
    ranks.barrier()
    step_s = time_block(case, 1, ranks)  # the first may load libraries
    for _ in range(rule.num_warm_up):
        step_s = time_block(case, 1, ranks)
    num_steps = _steps_of(rule.block_s, step_s)
    if num_steps > 1:  # a single step of a fast case is mostly clock
        num_steps = _steps_of(rule.block_s, time_block(case, math.ceil(num_steps / 4), ranks))
    return Timed(case, num_steps)


def _steps_of(block_s: float, step_s: float) -> int:
    """That last at least as long as a block."""
    return max(1, min(1_000_000, math.ceil(block_s / max(step_s, 1e-7) - 1e-6)))


On = Callable[[str], AbstractContextManager[object]]
Errors = dict[str, Exception]  # by the name of the case


@contextmanager
def noted(name: str, failed: Errors | None) -> Iterator[None]:
    """The error of one case is kept, so that the others go on; nothing is caught without `failed`."""
    try:
        yield
    except Exception as error:
        if failed is None:
            raise
        failed[name] = error.with_traceback(None)  # which would keep its arrays


def take_turns(
    cases: Mapping[str, Timed],
    counts: Mapping[str, int],
    ranks: Ranks | None = None,
    on: On = lambda _: nullcontext(),
    is_over: Callable[[], bool] = lambda: False,
    failed: Errors | None = None,
) -> None:
    """So many repetitions of each case, in turn: forwards and backwards (ABBA), so that drift cancels.

    A case that is in `failed`, or gets there, takes no more turns; without it the first error ends all.
    """
    group = ranks or Alone()
    group.barrier()
    for number in range(max(counts.values(), default=0)):
        names = [name for name in cases if counts.get(name, 0) > number]
        for name in names if number % 2 == 0 else names[::-1]:
            if failed and name in failed:
                continue
            with noted(name, failed), on(name):
                timed = cases[name]
                timed.seconds.append(time_block(timed.case, timed.num_steps, group))
        if is_over():
            return


def repeat(
    cases: Mapping[str, Timed],
    rule: Rule,
    ranks: Ranks | None = None,
    on: On = lambda _: nullcontext(),
    failed: Errors | None = None,
) -> None:
    """Take repetitions of all cases in turn until each median is known well, or the time is spent.

    The time is that of the repetitions, which all ranks know: another clock would cost another exchange of
    messages.
    """

    def is_over() -> bool:
        number = min(len(each.seconds) for each in cases.values())
        spent = sum(sum(each.seconds) * each.num_steps for each in cases.values())
        enough = spent >= rule.budget_s or all(
            each.is_narrow(rule.width) for each in cases.values()
        )
        return number >= rule.least and enough

    take_turns(cases, dict.fromkeys(cases, rule.most), ranks, on, is_over, failed)
