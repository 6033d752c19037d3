"""What scaling means in words: how far it goes, where it stops, which part is to blame, and what comes next.

A difference is claimed only if it is sure: the 95 % intervals of the two do not overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hakaru.measure.statistics import LEAST_LEVEL, Interval, middle
from hakaru.texts import language

if TYPE_CHECKING:
    from hakaru.measure.training._critical import Culprit
    from hakaru.measure.training._law import Law, Prediction

MAIN_LOSS = 0.3  # of what a step is too long: a part with less is not to blame alone
LEAST_CROWDED = 0.1  # of a step: computing below it is no reason to wait for a core
LEAST_LOSS = 0.01  # of a step: less is not worth a reason


@dataclass(frozen=True)
class Measured:
    """One size of a scaling curve: its intervals, and what its ranks did."""

    ranks: int
    hosts: int
    step_s: Interval
    throughput: Interval
    exposed_s: float = 0.0  # what the job waits after its last rank is ready
    breakdown: Sequence[Mapping[str, Any]] = ()
    culprit: Culprit | None = None
    cores: int | None = None  # of a machine whose processors compute
    machines: int | None = None
    network: str = ""  # what says that the network is to blame

    def part_ms(self, *names: str) -> float:
        """Of a usual rank."""
        if not self.breakdown:
            return 0.0
        return float(sum(_median([each[name] for each in self.breakdown]) for name in names))

    @property
    def parts_s(self) -> dict[str, float]:
        """The step in parts of a usual rank; `waiting` is for ranks that are ready later."""
        parts = {
            "data": self.part_ms("data") / 1e3,
            "compute": self.part_ms("forward", "backward") / 1e3,
            "optimiser": self.part_ms("optimiser") / 1e3,
            "exposed": self.exposed_s,
        }
        return parts | {"waiting": max(0.0, self.step_s.median - sum(parts.values()))}

    @property
    def shared_cores(self) -> int:
        """The cores that more ranks of a machine share; 0 where each has its own."""
        per_machine = -(-self.ranks // (self.machines or self.hosts))
        return self.cores if self.cores and per_machine > self.cores else 0

    @property
    def is_crowded(self) -> bool:
        """Whether ranks wait for a core in no small part of the step, which then looks like communication."""
        work_s = self.parts_s["compute"]
        return bool(self.shared_cores) and work_s > LEAST_CROWDED * self.step_s.median


def scaling_verdict(points: Sequence[Measured], scaling: Literal["weak", "strong"]) -> str:
    """Efficiency at the largest size, where scaling stops and why, and who is slower than fewer."""
    ordered = sorted(points, key=lambda each: (each.ranks, each.hosts))
    if len(ordered) < 2:
        return "One size alone was measured: nothing scales."
    said = [
        efficiency_sentence(ordered),
        stop_sentence(ordered, scaling),
        *host_sentences(ordered, scaling),
    ]
    return " ".join(dict.fromkeys(each for each in said if each))


def efficiency_sentence(points: Sequence[Measured]) -> str:
    """Of the most ranks, against as many times the fewest."""
    first, last = points[0], points[-1]
    ideal = last.ranks / first.ranks
    low = last.throughput.low / (first.throughput.high * ideal)
    high = last.throughput.high / (first.throughput.low * ideal)
    value = last.throughput.median / (first.throughput.median * ideal)
    return (
        f"{_ranks(last.ranks)} {_reach(last.ranks)} {share(value)} of linear scaling "
        f"({share(low)} to {share(high)})."
    )


def stop_sentence(points: Sequence[Measured], scaling: Literal["weak", "strong"]) -> str:
    """The first size that is not surely faster than the one before, and what is to blame."""
    pair = stop_of(points)
    if pair is None:
        last = points[-1]
        loss = blame_sentence(points[0], last, scaling)
        most = f"Throughput grows up to {_ranks(last.ranks)}, the most that were measured"
        return f"{most}; it is below linear{loss}." if loss else f"{most}."
    before, after = pair
    why = blame_sentence(before, after, scaling)
    return f"Scaling stops at {_ranks(before.ranks)}: {_comparison(before, after)}{why}."


def stop_of(points: Sequence[Measured]) -> tuple[Measured, Measured] | None:
    """The first size that is not surely faster than the one before, after that one."""
    faster = (
        (before, after)
        for before, after in pairwise(points)
        if not surely_less(before.throughput, after.throughput)
    )
    return next(faster, None)


def host_sentences(points: Sequence[Measured], scaling: Literal["weak", "strong"]) -> list[str]:
    """Whether several hosts are slower than a full one, beyond what is said of where scaling stops."""
    inside = [each for each in points if each.hosts == 1]
    if not inside:
        return []
    one = max(inside, key=lambda each: each.throughput.median)
    return [
        f"{_comparison(one, each)}{blame_sentence(one, each, scaling)}."
        for each in points
        if each.hosts > 1
        and surely_less(each.throughput, one.throughput)
        and stop_of(points) != (one, each)
    ]


def blame_sentence(before: Measured, after: Measured, scaling: Literal["weak", "strong"]) -> str:
    """As `, because exposed communication grew from 1.2 ms to 40.3 ms`; nothing if no part is to blame."""
    was, now = before.parts_s, after.parts_s
    shorter = before.ranks / after.ranks if scaling == "strong" else 1.0
    ideal = {name: was[name] * shorter for name in was}
    over = {name: now[name] - ideal[name] for name in was}
    whole = sum(each for each in over.values() if each > 0)
    worst = max(over, key=lambda name: over[name])
    if over[worst] < max(MAIN_LOSS * whole, LEAST_LOSS * after.step_s.median):
        return ""
    return f", because {_reason(worst, was[worst], now[worst], ideal[worst], after)}"


def compression_sentence(kind: str, plain: Interval, compressed: Interval) -> str:
    """What gradients in 16 bits are worth, from the throughputs."""
    what = f"{kind} gradients"
    low, high = compressed.low / plain.high - 1, compressed.high / plain.low - 1
    value = compressed.median / plain.median - 1
    if surely_less(plain, compressed):
        return f"{what} are worth {share(value)} ({share(low)} to {share(high)})."
    if surely_less(compressed, plain):
        return f"{what} cost {share(-value)} ({share(-high)} to {share(-low)})."
    return f"{what} make no sure difference ({share(low)} to {share(high)})."


def law_sentence(law: Law, ranks: int, found: Prediction) -> str:
    """What is predicted for so many ranks, from which, and how far such predictions were wrong."""
    fitted = join_words([str(each) for each in law.fitted_on])
    sizes = f"{fitted} {'rank' if law.fitted_on == (1,) else 'ranks'}"
    missed = (
        "no size was held out to test it"
        if law.held_out_error is None
        else f"it misses sizes that were held out by {share(law.held_out_error)}"
    )
    return (
        f"Fitted on {sizes}, the model predicts {milliseconds(found.step_s)} a step on {_ranks(ranks)} "
        f"({milliseconds(found.low_s)} to {milliseconds(found.high_s)}); {missed}."
    )


def surely_less(one: Interval, other: Interval) -> bool:
    """Whether the intervals are apart; too few repetitions make nothing sure."""
    return one.high < other.low and min(one.level, other.level) >= LEAST_LEVEL


def share(value: float) -> str:
    """As `5.8 %`."""
    return language("en").share(value)


def milliseconds(seconds: float) -> str:
    """As `12.3 ms`: one decimal, none from 100 ms on, two below 1 ms."""
    value = seconds * 1e3
    digits = 0 if abs(value) >= 99.95 or not value else 1 if abs(value) >= 0.95 else 2
    return f"{language('en').number(value, digits)} ms"


def join_words(words: Sequence[str]) -> str:
    """As `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _reason(part: str, was_s: float, now_s: float, ideal_s: float, after: Measured) -> str:
    now, ideal = milliseconds(now_s), milliseconds(ideal_s)
    if part == "exposed":
        grew = f"exposed communication grew from {milliseconds(was_s)} to {now}"
        if now_s <= was_s:
            grew = f"exposed communication stays at {now}"
        if after.is_crowded:
            return f"{_sharing(after)}, and {grew}, as ranks wait for a core"
        return f"{grew}, and {after.network}" if after.network else grew
    if part == "waiting":
        if after.culprit is not None and not after.culprit.is_free:
            return after.culprit.sentence
        return f"ranks wait {now} a step for whoever happens to be the last"
    if part == "compute":
        if after.shared_cores:
            return f"{_sharing(after)}: compute takes {now}, {ideal} would be linear"
        return f"compute takes {now}, {ideal} would be linear"
    if part == "data":
        return f"loading data takes {now}, {ideal} would be linear"
    return f"the optimiser takes {now}, {ideal} would be linear"


def _comparison(before: Measured, after: Measured) -> str:
    """As `3 ranks are slower than 2 (640 against 1,280 samples/s)`; of full hosts it counts hosts."""
    rates = f"({_number(after)} against {_number(before)} samples/s)"
    by_host = before.hosts == 1 < after.hosts and before.ranks > 1
    more, less = (after.hosts, before.hosts) if by_host else (after.ranks, before.ranks)
    many = f"{more:,} {'hosts' if by_host else 'ranks'}"
    if surely_less(after.throughput, before.throughput):
        return f"{many} are slower than {less:,} {rates}"
    return f"{many} make no sure difference to {less:,} {rates}"


def _sharing(point: Measured) -> str:
    num_cores = point.shared_cores * (point.machines or point.hosts)
    return f"{point.ranks} ranks share {num_cores} cores"


def _median(values: Sequence[float]) -> float:
    return middle(np.array(values, dtype=float))


def _ranks(num: int) -> str:
    return "1 rank" if num == 1 else f"{num:,} ranks"


def _reach(num: int) -> str:
    return "reaches" if num == 1 else "reach"


def _number(point: Measured) -> str:
    value = point.throughput.median
    return language("en").number(value, 0 if value >= 99.95 else 1 if value >= 9.995 else 2)
