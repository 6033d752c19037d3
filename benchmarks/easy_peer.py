"""EASY backfilling as a plain Python loop with the semantics of pyss: the peer of benchmarks/simulate.py."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

SUBMIT, END = 0, 1


@dataclass
class Peer:
    """One pass over the queue after every event; a job whose estimate ends at t counts as free at t."""

    submit: Sequence[int]
    run: Sequence[int]
    request: Sequence[int]
    pes: Sequence[int]
    processors: int
    start: dict[int, int] = field(default_factory=dict)
    running: list[int] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)

    def play(self) -> list[int]:
        self.events = [(time, SUBMIT, j, j) for j, time in enumerate(self.submit)]
        heapq.heapify(self.events)
        while self.events:
            now, kind, _, job = heapq.heappop(self.events)
            (self.queue.append if kind == SUBMIT else self.running.remove)(job)
            self.scan(now)
        return [self.start[j] for j in range(len(self.submit))]

    def scan(self, now: int) -> None:
        free = self.processors - sum(self.pes[j] for j in self.running if self.until(j) > now)
        while self.queue and self.pes[self.queue[0]] <= free:
            free -= self.begin(self.queue[0], now)
        if not self.queue:
            return
        shadow, extra = self.reserve(free, now)
        for job in self.queue[1:]:
            outlasts = now + self.request[job] > shadow
            if self.pes[job] <= free and (not outlasts or self.pes[job] <= extra):
                free -= self.begin(job, now)
                extra -= self.pes[job] if outlasts else 0

    def reserve(self, free: int, now: int) -> tuple[int, int]:
        """When the first in the queue can begin, and what is free then beyond it."""
        wanted, shadow = self.pes[self.queue[0]], now
        for job in sorted((j for j in self.running if self.until(j) > now), key=self.until):
            if free >= wanted and self.until(job) > shadow:
                break
            free += self.pes[job]
            shadow = self.until(job)
        return shadow, free - wanted

    def begin(self, job: int, now: int) -> int:
        self.queue.remove(job)
        self.running.append(job)
        self.start[job] = now
        heapq.heappush(self.events, (now + self.run[job], END, len(self.start), job))
        return self.pes[job]

    def until(self, job: int) -> int:
        return self.start[job] + self.request[job]
