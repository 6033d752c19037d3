"""Variants of a training, timed in turn: each has its own ranks, and all others wait meanwhile.

The number of ranks, the strategy and the compression of gradients are compared within one run, a repetition
of each in turn (forwards and backwards), so that drift meets all of them alike.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hakaru.errors import HakaruError
from hakaru.measure._base import NotApplicable
from hakaru.measure.collective._ranks import TorchRanks
from hakaru.measure.device.gemm import synchroniser
from hakaru.measure.networks import load
from hakaru.measure.networks.workload import Workload
from hakaru.measure.place import host_name
from hakaru.measure.protocol import CONFIDENT_FROM, correlation_of
from hakaru.measure.statistics import median_interval, relative_width
from hakaru.measure.training._offsets import clock_offsets
from hakaru.measure.training._strategy import Strategy
from hakaru.measure.training._table import StepTable
from hakaru.measure.training._times import StepTimes
from hakaru.measure.training._trainer import Compression, Trainer, build
from hakaru.measure.validity import machine_id

SEED = 2026
SINGLE = "single"  # the strategy of one rank
LEAST, MOST = CONFIDENT_FROM, 200  # repetitions
BLOCK_S = 0.1
MOST_STEPS = 50  # in a block, whose times are kept
WIDTH = 0.02
LEAST_KEPT, MOST_KEPT = 32, 20_000  # steps of a rank; of all ranks together
NUM_WARM_UP = 2
MOST_NAMED = 3  # hosts on which something is wrong
NUM_CHECKED = 3  # steps whose losses are compared


Change = Callable[[Workload], Workload]


def unchanged(workload: Workload) -> Workload:
    return workload


@dataclass(frozen=True)
class Variant:
    """What is trained how, on the first so many ranks."""

    strategy: str
    num_ranks: int
    batch: int  # of all ranks together
    compression: Compression = "none"
    accumulate: int = 1
    microbatches: int = 0


@dataclass
class Member:
    """A variant on this rank: its trainer, the seconds of a step, and this rank's times of each step."""

    variant: Variant
    ranks: tuple[int, ...]
    trainer: Trainer
    losses: list[float] = field(default_factory=list)
    num_steps: int = 1
    seconds: list[float] = field(default_factory=list)
    steps: list[StepTimes] = field(default_factory=list)

    def block(self, ranks: TorchRanks, sync: Callable[[], None], num_steps: int) -> float:
        """Seconds of a step of the slowest rank, from the weights of the beginning; all ranks call it."""
        is_member = ranks.rank in self.ranks
        self.trainer.reset()
        ranks.barrier()
        begin = time.perf_counter()
        if is_member:
            for _ in range(num_steps):
                self.trainer.step()
            sync()
        own_s = time.perf_counter() - begin if is_member else 0.0
        self.steps += self.trainer.times()
        (slowest,) = ranks.maximum(own_s)
        return slowest / num_steps

    @property
    def is_narrow(self) -> bool:
        if len(self.seconds) < LEAST:
            return False
        interval = median_interval(self.seconds, correlation=correlation_of(self.seconds))
        return relative_width(interval) <= WIDTH


class Study:
    """Variants of one network on the ranks of a run; all ranks call its methods together."""

    def __init__(self, ranks: TorchRanks, model: str, change: Change = unchanged) -> None:
        self.began = time.perf_counter()
        self.ranks, self.workload = ranks, _load_together(ranks, model, change)
        self.hosts: list[str] = ranks.share(host_name())
        self.machines: list[str] = ranks.share(machine_id())
        first: dict[str, int] = {}
        for host in self.hosts:
            first.setdefault(host, len(first))
        # host by host, so that the first ranks share as few hosts as they can
        self.order = sorted(range(ranks.size), key=lambda rank: (first[self.hosts[rank]], rank))
        self.cores = self._shared_cores()
        self.offsets = clock_offsets(ranks)
        self.device = ranks.device.torch_name
        self.sync = synchroniser(self.device)
        self.members: list[Member] = []

    def _shared_cores(self) -> int | None:
        """Those that the ranks of a machine may run on; cards share none."""
        own = (
            os.sched_getaffinity(0)
            if hasattr(os, "sched_getaffinity")
            else range(os.cpu_count() or 1)
        )
        every: list[set[int]] = self.ranks.share(set(own))
        if self.ranks.device.kind == "gpu":
            return None
        here = zip(self.machines, every, strict=True)
        return len(set().union(*(cores for machine, cores in here if machine == self.machines[0])))

    def elapsed_s(self) -> float:
        """Since the study began, by rank 0's clock, so that all ranks decide alike."""
        own_s = time.perf_counter() - self.began if self.ranks.rank == 0 else 0.0
        return self.ranks.maximum(own_s)[0]

    def begin(self, variant: Variant, workload: Workload | None = None) -> Member:
        """Build it, and take the first steps, whose losses are kept.

        What a rank cannot build, none of them trains: NotApplicable says why.
        """
        chosen = tuple(self.order[: variant.num_ranks])
        trainer, problem = None, None
        try:
            trainer = build(
                workload or self.workload, Strategy.parse(variant.strategy), chosen, self.ranks.rank,
                self.device,
                batch=variant.batch, seed=SEED, compression=variant.compression,
                accumulate=variant.accumulate, microbatches=variant.microbatches,
                control=self.ranks.control,
            )  # fmt: skip
        except (HakaruError, NotApplicable) as error:
            problem = str(error)
        except Exception as error:  # such as memory that runs out on one card
            problem = f"rank {self.ranks.rank}: {type(error).__name__}: {error}"
        problems = list(dict.fromkeys(filter(None, self.ranks.share(problem))))
        if problems or trainer is None:
            raise NotApplicable("; ".join(problems[:MOST_NAMED]))
        member = Member(variant, chosen, trainer)
        self.members.append(member)
        for _ in range(NUM_CHECKED):
            trainer.step()
            member.losses.append(trainer.loss())
        member.losses = self.ranks.share(member.losses)[chosen[0]]
        trainer.times()
        return member

    def time_in_turn(self, members: Sequence[Member], until_s: float) -> None:
        """Repetitions of all until each median is known well, or so much time has passed since the begin."""
        for each in members:
            step_s = min(each.block(self.ranks, self.sync, 1) for _ in range(NUM_WARM_UP))
            each.num_steps = max(1, min(MOST_STEPS, round(BLOCK_S / max(step_s, 1e-6))))
            each.steps.clear()
        for number in range(1, MOST + 1):
            for each in members if number % 2 else members[::-1]:
                each.seconds.append(each.block(self.ranks, self.sync, each.num_steps))
            # all ranks have the same seconds, and rank 0's clock
            is_over = all(each.is_narrow for each in members) or self.elapsed_s() >= until_s
            if number >= LEAST and is_over:
                break
        for each in members:
            each.losses.append(self.ranks.share(each.trainer.loss())[each.ranks[0]])

    def tables(self, members: Sequence[Member]) -> list[StepTable] | None:
        """The last steps of each on all of its ranks, on one clock; rank 0 alone gets them."""
        again = clock_offsets(self.ranks)  # clocks drift: the middle of before and after counts
        offsets_s = [
            (a.offset_s + b.offset_s) / 2 for a, b in zip(self.offsets, again, strict=True)
        ]
        kept = max(LEAST_KEPT, MOST_KEPT // self.ranks.size)
        found = []
        for each in members:
            every = self.ranks.collect(each.steps[-kept:])
            if every is not None:
                clocks = [offsets_s[rank] for rank in each.ranks]
                steps = [every[rank] for rank in each.ranks]
                found.append(StepTable.of(steps, clocks, shares_buckets(each.variant)))
        return found if self.ranks.rank == 0 else None

    def hosts_of(self, member: Member) -> list[str]:
        return [self.hosts[rank] for rank in member.ranks]

    def close(self, *members: Member) -> None:
        """These, or all that are left."""
        for each in members or tuple(self.members):
            self.members.remove(each)
            each.trainer.close()


def shares_buckets(variant: Variant) -> bool:
    """Whether all its ranks sum the same gradients."""
    return Strategy.parse(variant.strategy).names == ("ddp",)


def _load_together(ranks: TorchRanks, model: str, change: Change = unchanged) -> Workload:
    """The network, which may be missing on one host alone; then no rank goes on."""
    found, problem = None, None
    try:
        found = change(load(model))
    except Exception as error:
        kind = "" if isinstance(error, HakaruError) else f"{type(error).__name__}: "
        problem = f"{host_name()}: {kind}{error}"
    problems = list(dict.fromkeys(filter(None, ranks.share(problem))))
    if found is None or problems:
        raise HakaruError("; ".join(problems[:MOST_NAMED]))
    return found


def sizes_to_try(hosts: Sequence[str]) -> list[int]:
    """Numbers of ranks: all up to four, then powers of two; of several hosts whole ones, and all ranks."""
    per_host = max(map(hosts.count, dict.fromkeys(hosts)), default=1)
    inside = _ladder(per_host)
    between = [per_host * num for num in _ladder(len(hosts) // per_host)]
    return sorted({each for each in (*inside, *between, len(hosts)) if each <= len(hosts)})


def _ladder(most: int) -> list[int]:
    powers = [2**at for at in range(2, most.bit_length())]
    return sorted({each for each in (1, 2, 3, *powers, most) if each <= most})
