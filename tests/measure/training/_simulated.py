"""Simulated synchronous training: the bucket pipeline with noise, whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hakaru.measure.training._critical import StepTable
from hakaru.measure.training._times import StepTimes


@dataclass
class Job:
    """A job of `ranks`; times in seconds. Delays: (rank, phase or bucket, seconds)."""

    ranks: int = 4
    steps: int = 12
    data_s: float = 0.01
    forward_s: float = 0.1
    backward_s: float = 0.25
    optimiser_s: float = 0.02
    buckets: int = 4
    bucket_s: float = 0.02
    noise: float = 0.03
    seed: int = 0
    steal: float = 0.0  # the chance a rank and step that it loses half of its work's time
    delays: Sequence[tuple[int, str | int, float]] = ()
    fenced: bool = False
    staggered_s: float = 0.0  # how far apart the ranks see the end of communication
    offsets_s: Sequence[float] = ()
    steps_s: list[float] = field(default_factory=list)

    def run(self) -> list[list[StepTimes]]:
        """The same noise with and without delays."""
        random = np.random.default_rng(self.seed)
        begin = np.zeros(self.ranks)
        every: list[list[StepTimes]] = [[] for _ in range(self.ranks)]
        ends = []
        for _ in range(self.steps):
            factor = 1 + self.noise * random.standard_normal((self.ranks, 4 + self.buckets))
            factor += 0.5 * (random.random((self.ranks, 1)) < self.steal)
            sent = self.bucket_s * (1 + self.noise * random.standard_normal(self.buckets))
            apart = self.staggered_s * np.arange(self.ranks) / max(self.ranks - 1, 1)
            data = begin + self._phase(self.data_s, factor[:, 0], "data")
            forward = data + self._phase(self.forward_s, factor[:, 1], "forward")
            ready, at = [], forward
            for bucket in range(self.buckets):
                part = self.backward_s / self.buckets
                at = at + self._phase(part, factor[:, 4 + bucket], bucket)
                ready.append(at)
            done, finished = -np.inf, []
            for bucket in range(self.buckets):
                done = max(ready[bucket].max(), done) + sent[bucket]
                finished.append(done + apart)
            optimiser = finished[-1] + self._phase(self.optimiser_s, factor[:, 2], "optimiser")
            for rank in range(self.ranks):
                shift = self.offsets_s[rank] if self.offsets_s else 0.0
                every[rank].append(
                    StepTimes(
                        begin[rank] + shift,
                        data[rank] + shift,
                        forward[rank] + shift,
                        finished[-1][rank] + shift,
                        optimiser[rank] + shift,
                        tuple(float(each[rank] + shift) for each in ready),
                        tuple(float(each[rank] + shift) for each in finished),
                        (1 << 20,) * self.buckets,
                    )
                )
            begin = np.full(self.ranks, optimiser.max()) if self.fenced else optimiser
            ends.append(float(begin.max()))
        self.steps_s = list(np.diff([0.0, *ends]))
        return every

    def table(self) -> StepTable:
        steps = self.run()
        return StepTable.of(steps, list(self.offsets_s) or [0.0] * self.ranks)

    def _phase(self, seconds: float, factor: np.ndarray, name: str | int) -> np.ndarray:
        late = np.zeros(self.ranks)
        for rank, phase, delay_s in self.delays:
            late[rank] += delay_s * (phase == name)
        return seconds * np.maximum(factor, 0.1) + late
