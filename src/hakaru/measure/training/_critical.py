"""Who keeps a synchronous job waiting: the rank that is late, and what its lateness really costs.

All-reduce makes all ranks equally slow, so that the length of a step tells nothing. What a rank works itself
until its gradients are ready tells it. The cost is counterfactual: communication of bucket i begins when all
ranks are ready with it and bucket i-1 is done, finish_i = max(max ready_i, finish_{i-1}) + d_i. The durations
d_i are read from the steps, and the same pipeline is replayed with the late rank as early as the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hakaru.measure.collective._blame import Blame
from hakaru.measure.statistics import Floats, Ints, lag_correlation, median_interval
from hakaru.measure.training._parts import (
    Communication,
    breakdown_of,
    communication_of,
    durations,
    replayed,
    usual_finish,
)
from hakaru.measure.training._table import StepTable
from hakaru.measure.training._words import join_words, milliseconds, share

__all__ = [
    "Communication",
    "Culprit",
    "StepTable",
    "breakdown_of",
    "communication_of",
    "culprit_of",
    "culprits_of",
    "durations",
    "network_sentence",
    "replayed",
]

LEAST_STEPS = 3
FEW_STEPS = 5  # below, the interval of a median says little, and a rank must be later by far
FEW_FACTOR = 3.0
LEVEL = 0.99
LEAST_OF_STEP, LEAST_OF_WORK = 0.02, 0.05  # who is later by less is not worth a name
SPREAD_FACTOR = 2.0  # how far a late rank lies beyond what the others differ by
LEAST_OF_LATEST = 0.3  # who is less late than this hides behind the latest rank
FREE_OF_STEP, FREE_OF_LATE = 0.005, 0.05  # a cost below is none
MAIN_PART = 0.8  # of the lateness: what names of phases must explain
NAMES = {
    "data": "loading its data",
    "forward": "its forward pass",
    "backward": "its backward pass",
    "passes": "its forward and backward passes",
    "optimiser": "its optimiser",
}


@dataclass(frozen=True)
class Culprit:
    """A rank that is late, by how much, and what the job loses by it.

    Where several ranks are late, the cost is what they cost together, and `also` has the others.
    """

    rank: int
    host: str
    late_s: float
    cost_s: float
    hidden_s: float
    phases: tuple[str, ...]
    step_s: float
    has_buckets: bool = True
    ends_late: bool = False  # in the optimiser, after its gradients are ready
    also: tuple[Culprit, ...] = ()

    @property
    def is_free(self) -> bool:
        """Whether its lateness costs nothing, because it hides behind communication."""
        return self.cost_s < max(FREE_OF_STEP * self.step_s, FREE_OF_LATE * self.late_s)

    @property
    def is_hidden_in_part(self) -> bool:
        return self.hidden_s > max(FREE_OF_STEP * self.step_s, FREE_OF_LATE * self.late_s)

    @property
    def sentence(self) -> str:
        if not self.also:
            late = self._late(f"{milliseconds(self.late_s)} later", "is ready", "ends its step")
            return f"rank {self._where} {late}{self._cause}, {self._cost}"
        every = sorted([self, *self.also], key=lambda each: each.rank)
        who = join_words([f"{each._where} ({milliseconds(each.late_s)})" for each in every])
        late = self._late("later", "are ready", "end their step")
        return f"ranks {who} {late}{self._cause}, {self._cost}"

    def to_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "host": self.host,
            "late_ms": round(self.late_s * 1e3, 3),
            "cost_ms": round(self.cost_s * 1e3, 3),
            "hidden_ms": round(self.hidden_s * 1e3, 3),
            "sentence": self.sentence,
        }

    @property
    def _where(self) -> str:
        return f"{self.rank} on {self.host}" if self.host else str(self.rank)

    def _late(self, later: str, ready: str, end: str) -> str:
        if not self.has_buckets:
            work = "work" if self.also else "works"
            return f"{work} {later.replace('later', 'longer')} than the others"
        return f"{end if self.ends_late else ready} {later} than the others"

    @property
    def _cause(self) -> str:
        if not self.phases:
            return ""
        named = join_words([NAMES[each] for each in self.phases])
        return f" ({named.replace('its', 'their') if self.also else named})"

    @property
    def _cost(self) -> str:
        together = "together " if self.also else ""
        if self.is_free:
            return f"which {together}costs nothing: communication takes longer anyway"
        cost = f"which {together}costs {milliseconds(self.cost_s)} a step"
        if not self.is_hidden_in_part:
            return cost
        return f"{cost}; the other {milliseconds(self.hidden_s)} hide behind communication"


def culprit_of(table: StepTable, hosts: Sequence[str], ranks: Sequence[int] = ()) -> Culprit | None:
    """The latest of the ranks that are surely late; the sentence names them all.

    `ranks` are their numbers in the run; else they count from 0.
    """
    found = culprits_of(table, hosts, ranks)
    return found[0] if found else None


def culprits_of(
    table: StepTable, hosts: Sequence[str], ranks: Sequence[int] = ()
) -> tuple[Culprit, ...]:
    """Every rank that is surely late, the latest first, each with what all of them cost together."""
    phases = _own_phases(table)
    own = sum(phases.values(), np.zeros_like(table.begin))
    late = _late_ranks(own, table.step_s)
    if not late:
        return ()
    rest = [rank for rank in range(table.num_ranks) if rank not in late]
    excess = {rank: _excess(own, rank, rest) for rank in late}
    late = sorted(late, key=lambda rank: -excess[rank])
    cost = _cost(table, late, rest) if table.has_buckets else excess[late[0]]
    found = [
        _culprit(table, rank, hosts, excess[rank], cost, _named(phases, rank, rest))
        for rank in late
    ]
    found = [replace(each, rank=ranks[each.rank]) for each in found] if ranks else found
    return tuple(
        replace(each, also=tuple(other for other in found if other is not each)) for each in found
    )


def network_sentence(
    table: StepTable, culprit: Culprit | None, blame: Blame | None = None
) -> str | None:
    """Blames the network: communication dominates, and no rank's lateness costs anything."""
    found = communication_of(table)
    if not found.dominates or (culprit is not None and not culprit.is_free):
        return None
    part = f"{milliseconds(found.exposed_s)}, {share(found.exposed_s / found.step_s)}"
    late = "no rank is late" if culprit is None else "no late rank costs anything"
    more = f": {blame.sentence}" if blame is not None and blame.sentence else ""
    return (
        f"exposed communication takes {part} of the step, and {late}: the network is to blame{more}"
    )


def _before(table: StepTable) -> Floats:
    """What a rank does from the end of its backward pass to its next begin.

    It delays the next step only where the ranks do not wait for one another in between. After the few fences
    between blocks of steps the rank's usual time stands for it.
    """
    if table.is_fenced or table.fences.all():
        return np.zeros_like(table.begin)
    gaps = np.empty_like(table.begin)
    gaps[1:] = table.begin[1:] - table.backward[:-1]
    gaps[table.fences] = np.median(gaps[~table.fences], axis=0)
    return gaps


def _own_phases(table: StepTable) -> dict[str, Floats]:
    """What each rank works itself in each phase, without what it waits for others."""
    data = table.data - table.begin
    forward = table.forward - table.data
    if not table.has_buckets:
        passes = table.backward - table.data - table.waited
        return {"data": data, "passes": passes, "optimiser": table.optimiser - table.backward}
    backward = table.ready[:, :, -1] - table.forward
    after = table.optimiser - table.backward if table.is_fenced else _before(table)
    if table.waited.any():
        passes = forward + backward - table.waited
        return {"data": data, "passes": passes, "optimiser": after}
    return {"data": data, "forward": forward, "backward": backward, "optimiser": after}


def _late_ranks(own: Floats, step_s: float) -> list[int]:
    """The ranks that are surely later than all others: at most half of them, as many as pass the test."""
    num_steps, num_ranks = own.shape
    if num_ranks < 2 or num_steps < LEAST_STEPS:
        return []
    apart = np.median(own - np.median(own, axis=1)[:, None], axis=0)
    order = [int(each) for each in np.argsort(-apart, kind="stable")]
    for num in range(num_ranks // 2, 0, -1):
        if _surely_late(own, order[:num], order[num:], step_s):
            return order[:num]
    return []


def _surely_late(own: Floats, late: list[int], rest: list[int], step_s: float) -> bool:
    usual = np.median(own[:, rest], axis=1)
    least = max(LEAST_OF_STEP * step_s, LEAST_OF_WORK * float(np.median(usual)))
    if len(own) < FEW_STEPS:
        least *= FEW_FACTOR
    others = np.median(own[:, rest] - usual[:, None], axis=0)
    excess = own[:, late] - usual[:, None]
    typical = np.median(excess, axis=0)
    if typical.min() <= SPREAD_FACTOR * float(others.max() - others.min()):
        return False
    if typical.min() < LEAST_OF_LATEST * typical.max():
        return False
    return all(_low_end(each) > least for each in excess.T)


def _low_end(values: Floats) -> float:
    correlation = lag_correlation(values)
    return median_interval(values, LEVEL, 0.0 if np.isnan(correlation) else correlation).low


def _excess(values: Floats, rank: int, rest: Sequence[int] | Ints) -> float:
    """How much more a rank has than the median of the others, in the median over the steps."""
    return float(np.median(values[:, rank] - np.median(values[:, list(rest)], axis=1)))


def _named(phases: dict[str, Floats], rank: int, rest: Sequence[int]) -> tuple[str, ...]:
    """The phases that explain most of the lateness, the greatest first."""
    over = {name: _excess(each, rank, rest) for name, each in phases.items()}
    whole = sum(each for each in over.values() if each > 0)
    named: list[str] = []
    explained = 0.0
    for name in sorted(over, key=lambda each: -over[each]):
        if explained >= MAIN_PART * whole:
            break
        named.append(name)
        explained += over[name]
    return tuple(named)


def _culprit(
    table: StepTable,
    rank: int,
    hosts: Sequence[str],
    late_s: float,
    cost_s: float,
    phases: tuple[str, ...],
) -> Culprit:
    ends_late = phases == ("optimiser",) and table.is_fenced
    return Culprit(
        rank, hosts[rank], late_s, cost_s, max(late_s - cost_s, 0.0), phases, table.step_s,
        table.has_buckets, ends_late,
    )  # fmt: skip


def _cost(table: StepTable, late: Sequence[int], rest: Sequence[int]) -> float:
    """The median over the steps of their end as seen, less their end were the late ranks like the others."""
    own_ready = table.ready - table.begin[:, :, None] + _before(table)[:, :, None]
    ready = table.ready.copy()
    for rank in late:
        for bucket in range(ready.shape[2]):
            ready[:, rank, bucket] -= _excess(own_ready[:, :, bucket], rank, rest)
    taken = durations(table)
    saved = usual_finish(table)[:, -1] - replayed(ready.max(axis=1), taken)[:, -1]
    if not table.is_fenced:
        return float(np.median(saved))
    # the fence waits for the last optimiser too
    end = table.optimiser - saved[:, None]
    after = table.optimiser - table.backward
    for rank in late:
        end[:, rank] -= _excess(after, rank, rest)
    return float(np.median(table.optimiser.max(axis=1) - end.max(axis=1)))
