"""When the jobs begin: first come, first served, never more GPUs at once than the machine has.

A job comes when its user's own limit lets it; from then on it waits for room. GPUs are counted, not placed on
nodes, so a job of several nodes may find its GPUs scattered; the window with samples places them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from hakaru.sources.synth._jobs import BLOCK, Jobs, block_span, make_block, num_blocks
from hakaru.sources.synth._spec import Plan
from hakaru.sources.synth._tables import Floats, Ints

PIECE = 512  # jobs that are tried at once; few enough that most pieces meet no full machine
BITS = 20  # an end and its GPUs in one number: sorted, a list of them is a heap
NEVER = 2**62


@dataclass
class Room:
    """The machine's GPUs by number: what runs, and when it ends."""

    num_gpus: int
    running: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # ends, sorted
    clock: int = -NEVER  # nobody begins before the one who came earlier

    def begin(self, ready: Ints, gpus: Ints, run_s: Ints) -> Ints:
        """When jobs begin that come at `ready`, which rises from call to call."""
        started = ready.copy()
        for first in range(0, len(ready), PIECE):
            piece = slice(first, first + PIECE)
            if not self._all_at_once(ready[piece], gpus[piece], run_s[piece]):
                started[piece] = self._one_by_one(ready[piece], gpus[piece], run_s[piece])
        return started

    def _all_at_once(self, ready: Ints, gpus: Ints, run_s: Ints) -> bool:
        """Let all begin as they come, if there is room for each of them."""
        coded = np.sort(np.concatenate([self.running, (ready + run_s << BITS) | gpus]))
        ends = coded >> BITS
        freed = np.concatenate([[0], np.cumsum(_gpus(coded))])
        taken = _gpus(self.running).sum() + np.cumsum(gpus)
        held = taken - freed[np.searchsorted(ends, ready, side="right")]
        if ready[0] < self.clock or held.max() > self.num_gpus:
            return False
        self.running, self.clock = coded[ends > ready[-1]], int(ready[-1])
        return True

    def _one_by_one(self, ready: Ints, gpus: Ints, run_s: Ints) -> list[int]:
        """A loop over jobs, for when the machine is full: a start depends on the starts before it."""
        running, now = self.running.tolist(), self.clock
        free = self.num_gpus - int(_gpus(self.running).sum())
        started: list[int] = []
        for come, wanted, length in zip(ready.tolist(), gpus.tolist(), run_s.tolist(), strict=True):
            now = max(now, come)
            while running and (free < wanted or running[0] >> BITS <= now):
                end = heappop(running)
                free += end & ((1 << BITS) - 1)
                now = max(now, end >> BITS)
            started.append(now)
            free -= wanted
            heappush(running, (now + length << BITS) | wanted)
        self.running, self.clock = np.sort(np.array(running, dtype=np.int64)), now
        return started


def _gpus(coded: Ints) -> Ints:
    gpus: Ints = coded & ((1 << BITS) - 1)
    return gpus


class Schedule:
    """The blocks of a plan one after the other, with the starts that the machine allows.

    A block is held back until all its jobs have their start, as one whose user's limit lets it come late
    competes with the jobs of the next blocks. A copy goes on by itself from where the original stands.
    """

    def __init__(self, plan: Plan, shares: Floats) -> None:
        self.plan, self.shares = plan, shares
        self.room = Room(plan.num_gpus)
        self.num_made = 0
        self.held: deque[Jobs] = deque()
        # number, when it may begin, GPUs and run time of the jobs that have no start yet
        self.waiting = np.empty((4, 0), dtype=np.int64)

    @property
    def num_left(self) -> int:
        return num_blocks(self.plan) - self.num_made + len(self.held)

    def next_block(self) -> Jobs | None:
        """The next block with its starts; None after the last."""
        while self.num_left > len(self.held) and not self._is_ready():
            self._make()
        return self.held.popleft() if self.held else None

    def _is_ready(self) -> bool:
        """Whether the first block that is held back has all its starts."""
        first = self.waiting[0].min(initial=NEVER)
        return bool(self.held) and bool(first > self.held[0].number[-1])

    def _make(self) -> None:
        """One block more, and the starts of all jobs that come before the block after it is submitted."""
        jobs = make_block(self.plan, self.shares, self.num_made)
        self.held.append(jobs)
        self.num_made += 1
        is_last = self.num_made == num_blocks(self.plan)
        until = NEVER if is_last else block_span(self.plan, self.shares, self.num_made)[0]
        new = np.stack([jobs.number, jobs.started, jobs.num_gpus, jobs.run_s])
        waiting = np.concatenate([self.waiting, new], axis=1)
        come = waiting[1] < until
        first = waiting[:, come]
        number, ready, gpus, run_s = first[:, np.argsort(first[1], kind="stable")]
        self._put(number, self.room.begin(ready, gpus, run_s))
        self.waiting = waiting[:, ~come]

    def _put(self, number: Ints, started: Ints) -> None:
        for jobs in self.held:
            mine = (number - 1) // BLOCK == (jobs.number[0] - 1) // BLOCK
            jobs.started[number[mine] - jobs.number[0]] = started[mine]
