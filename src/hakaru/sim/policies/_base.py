"""What a policy declares: in which order jobs wait, who may go first nevertheless, and by which estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hakaru.errors import HakaruError
from hakaru.registry import Registry

if TYPE_CHECKING:
    from hakaru.sim.workload import Workload

Order = Callable[["Workload", Any], Any]  # the second: how long each is thought to run, in seconds


@dataclass(frozen=True)
class Weights:
    """Slurm's multifactor priority: points for age, size, fair share, queue and QOS.

    Age counts up to `max_age_s`; size is the share of the machine; fair share is 2^(-usage/share) with
    equal shares for all who have jobs and a usage that halves every `half_life_s`; `queue` and `qos` are
    points by name (of Slurm's, the weight times the priority over the highest); age and fair share are
    counted anew every `period_s`.
    """

    age: float = 0.0
    max_age_s: float = 7 * 86400
    size: float = 0.0
    fair_share: float = 0.0
    half_life_s: float = 7 * 86400
    period_s: float = 300
    queue: Mapping[str, float] = field(default_factory=dict)
    qos: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.age < 0:
            raise HakaruError(f"weights: age has 0 points or more, found {self.age:g}")


@dataclass(frozen=True)
class Policy:
    """`order` gives each job a whole number, the smaller first, equals in order of submission; it is told
    the workload and how long each job is thought to run."""

    id: str
    title: str
    cites: str
    backfill: Literal["none", "easy", "conservative"] = "none"
    scan: Literal["queue-order", "shortest-first"] = "queue-order"
    predictor: Literal["given", "last-two"] = "given"
    order: Order | None = None  # else by submission
    weights: Weights | None = None  # a priority that moves, instead of an order
    depth: int | None = None  # of conservative backfilling: so many jobs have a reservation
    preempts: bool = False  # whether jobs of low queues are stopped for others


POLICIES: Registry[Policy] = Registry("policy")


def policy(id: str, **declared: Any) -> Policy:
    """Declare a policy under its id."""
    return POLICIES.add(Policy(id, **declared))
