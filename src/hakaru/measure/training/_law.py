"""The scaling law: the length of a data-parallel step on more ranks, from points that were measured on few.

A step is what a rank computes, longer where the ranks of a machine share its cores, and the communication
that this does not hide. A bucket of S bytes costs a ring of n ranks 2(n-1)·(α + β·S/n), and the buckets go
through the pipeline of `_critical`. The slowest link rules: that inside a host, or that between hosts if
there are several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

import numpy as np

from hakaru.measure.statistics import Floats, Interval, chi_quantile, middle, normal_quantile
from hakaru.measure.training._parts import replayed, usual_durations
from hakaru.measure.training._table import StepTable
from hakaru.measure.training._words import law_sentence

Scaling = Literal["weak", "strong"]
UNKNOWN_ERROR = 0.1  # of what no measured point confirms
PER_DOUBLING = 0.5  # errors grow by this with each doubling beyond the largest measured size


@dataclass(frozen=True)
class Profile:
    """A rank's median step: what it computes, and when its buckets are ready."""

    work_s: float  # until its last bucket is ready
    after_s: float  # the optimiser
    ready: tuple[float, ...]  # of each bucket, as a share of the work
    bucket_bytes: tuple[int, ...]
    sent_s: tuple[float, ...]  # what communication of each bucket took
    jitter: float  # what ranks differ by from step to step, as a share of the work; 0 if unknown

    @classmethod
    def of(cls, table: StepTable) -> Profile:
        work = table.until_ready
        after = float(np.median(table.optimiser - table.backward))
        if not table.has_buckets:
            return cls(float(np.median(work)), after, (), (), (), jitter_of(work))
        since = (table.ready - table.begin[:, :, None]) / work[:, :, None]
        return cls(
            float(np.median(work)),
            after,
            tuple(float(each) for each in np.median(since, axis=(0, 1))),
            table.bucket_bytes,
            tuple(float(each) for each in usual_durations(table)),
            jitter_of(work),
        )


@dataclass(frozen=True)
class Point:
    """A number of ranks that was measured. Hosts have links; machines have cores."""

    ranks: int
    hosts: int
    batch: int  # samples of all ranks together
    step_s: Interval
    profile: Profile
    machines: int | None = None  # as many as hosts, unless namespaces of one machine play hosts

    @property
    def per_machine(self) -> int:
        """Ranks of the machine that has the most."""
        return -(-self.ranks // (self.machines or self.hosts))

    @property
    def samples(self) -> int:
        return samples_of(self.batch, self.ranks)


@dataclass(frozen=True)
class Refusal:
    """Why nothing is predicted."""

    reason: str


@dataclass(frozen=True)
class Prediction:
    step_s: float
    low_s: float
    high_s: float
    exposed_s: float


@dataclass(frozen=True)
class Work:
    """What a rank computes until its gradients are ready: a part that is fixed, and one for each sample."""

    fixed_s: float
    sample_s: float
    slowdown: float = 0.0  # of a machine whose cores all work, over a core that works alone

    def seconds(self, samples: float, per_machine: int, cores: float | None) -> float:
        return (self.fixed_s + self.sample_s * samples) * self.contention(per_machine, cores)

    def contention(self, per_machine: int, cores: float | None) -> float:
        """How much longer ranks compute that share a machine."""
        return share_of_core(per_machine, cores) * (
            1 + self.slowdown * busy_part(per_machine, cores)
        )


@dataclass(frozen=True)
class Link:
    """Start-up and time per byte of one message in the ring, and how far they may be wrong.

    Buckets of one size on one number of ranks, `ambiguous_at`, cannot tell the two apart.
    """

    alpha_s: float
    beta_s: float
    error: float
    ambiguous_at: int | None = None

    def seconds(self, num_bytes: Floats, ranks: int) -> Floats:
        taken: Floats = 2 * (ranks - 1) * (self.alpha_s + self.beta_s * num_bytes / ranks)
        return taken

    def bounds(self, ranks: int, wider: float) -> tuple[float, float]:
        """Factors of the seconds; errors are wider by one."""
        error = self.error * wider
        all_start = ranks / self.ambiguous_at if self.ambiguous_at else 1.0
        return max(0.1, 1 - error) * min(1.0, all_start), (1 + error) * max(1.0, all_start)


@dataclass(frozen=True)
class Law:
    """Fitted on few ranks; predicts more of them."""

    scaling: Scaling
    fitted_on: tuple[int, ...]
    batch: int  # of all ranks if strong, of one rank if weak
    work: Work
    other_works: tuple[Work, ...]  # that explain the points about as well
    after_s: float
    ready: tuple[float, ...]
    bucket_bytes: tuple[int, ...]
    jitter: float
    cores: float | None  # of a machine, divided by the threads of a rank; None: ranks share none
    inside: Link | None
    between: Link | None
    residual: float = 1.0  # measured over predicted, for several ranks
    compute_error: float = UNKNOWN_ERROR
    held_out_error: float | None = None

    def predict(self, ranks: int, hosts: int, machines: int | None = None) -> Prediction | Refusal:
        """The step of so many ranks; its bounds are the model at the ends of what it was fitted with."""
        if reason := self._unknown(ranks, hosts):
            return Refusal(reason)
        per_machine = -(-ranks // (machines or hosts))
        link = self._link(hosts) if ranks > 1 else None
        step_s, exposed_s = self._step(self.work, ranks, per_machine, link)
        wider = 1 + PER_DOUBLING * max(0.0, math.log2(ranks / max(self.fitted_on)))
        compute = self.compute_error * wider
        low, high = link.bounds(ranks, wider) if link else (1.0, 1.0)
        ends = [
            self._step(work, ranks, per_machine, link, factor, sent)[0]
            for work in {self.work, *self.other_works}
            for factor, sent in ((max(0.1, 1 - compute), low), (1 + compute, high))
        ]
        missed = (self.held_out_error or 0.0) * step_s
        return Prediction(
            step_s, min(*ends, step_s - missed), max(*ends, step_s + missed), exposed_s
        )

    def error_on(self, points: Sequence[Point]) -> float | None:
        """The median relative miss on points that the law may not have seen; None without a prediction."""
        misses = []
        for each in points:
            found = self.predict(each.ranks, each.hosts, each.machines)
            if isinstance(found, Prediction):
                misses.append(abs(found.step_s / each.step_s.median - 1))
        return median(misses) if misses else None

    def document(
        self, ranks: int, hosts: int, machines: int | None = None
    ) -> dict[str, Any] | None:
        """What is stored with a row; None where nothing is predicted."""
        found = self.predict(ranks, hosts, machines)
        if isinstance(found, Refusal):
            return None
        return {
            "fitted_on": list(self.fitted_on),
            "predicted_step_ms": round(found.step_s * 1e3, 4),
            "low_ms": round(found.low_s * 1e3, 4),
            "high_ms": round(found.high_s * 1e3, 4),
            "held_out_error": self.held_out_error,
            "link": self._described(hosts) if ranks > 1 else None,
            "sentence": law_sentence(self, ranks, found),
        }

    def work_s(self, point: Point) -> float:
        """What a rank of the point should compute until its gradients are ready."""
        return self.work.seconds(point.samples, point.per_machine, self.cores)

    def _unknown(self, ranks: int, hosts: int) -> str | None:
        if ranks < 1 or hosts < 1 or hosts > ranks:
            return f"{ranks} ranks cannot be spread over {hosts} hosts"
        if self.scaling == "strong" and ranks > self.batch:
            return f"a batch of {self.batch} samples is too small for {ranks} ranks"
        if ranks > 1 and self._link(hosts) is None:
            where = "between hosts" if hosts > 1 else "inside a host"
            return f"the link {where} is unknown: measure all-reduce there, or a training on it"
        return None

    def _described(self, hosts: int) -> dict[str, float] | None:
        """α and 1/β of the link that rules."""
        link = self._link(hosts)
        if link is None:
            return None
        rate = {"mb_per_s": round(1e-6 / link.beta_s, 3)} if link.beta_s else {}
        return {"alpha_us": round(link.alpha_s * 1e6, 2), **rate}

    def _link(self, hosts: int) -> Link | None:
        return self.between if hosts > 1 else self.inside

    def _step(
        self,
        how: Work,
        ranks: int,
        per_machine: int,
        link: Link | None,
        compute: float = 1.0,
        sent: float = 1.0,
    ) -> tuple[float, float]:
        """The step and its exposed communication, with compute and communication longer by factors."""
        samples = samples_of(self.batch, ranks) if self.scaling == "strong" else self.batch
        work = how.seconds(samples, per_machine, self.cores) * compute
        after = self.after_s * how.contention(per_machine, self.cores) * compute
        if link is None:
            return work + after, 0.0
        last = work * (1 + self.jitter * latest_of(ranks))
        ready = np.array([self.ready]) * last
        taken = link.seconds(np.array([self.bucket_bytes], dtype=float), ranks) * sent
        end = float(replayed(ready, taken)[0, -1])
        return (end + after) * self.residual, (end - last) * self.residual


def samples_of(batch: int, ranks: int) -> int:
    """Of the rank that has the most."""
    return -(-batch // ranks)


def share_of_core(per_machine: int, cores: float | None) -> float:
    """How many ranks take turns on a core; cards are not shared."""
    return max(1.0, per_machine / cores) if cores else 1.0


def busy_part(per_machine: int, cores: float | None) -> float:
    """How busy the other cores of a rank's machine are, 0 to 1; of cards, whether there are others."""
    if cores is None:
        return float(per_machine > 1)
    return max(0.0, min(per_machine, cores) - 1) / max(cores - 1, 1)


def latest_of(ranks: int) -> float:
    """How many deviations the last of so many ranks is late by (Blom 1958)."""
    return normal_quantile((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0


def jitter_of(work: Floats) -> float:
    """The deviation of the ranks from one another within a step, as a share of the work."""
    num_ranks = work.shape[1]
    if num_ranks < 2:
        return 0.0
    usual = middle(work.var(axis=1, ddof=1)) / float(chi_quantile(0.5, np.array(num_ranks - 1.0)))
    return math.sqrt(usual) / float(np.median(work))
