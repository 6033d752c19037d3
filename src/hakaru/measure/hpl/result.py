"""What a text of HPL's holds: results with their status, what is wrong with the text, and hpcc's DGEMM."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hakaru.measure.hpl.dat import Config


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"  # the residual is too large: the result is wrong
    UNCHECKED = "unchecked"  # there is a rate, but no residual
    INCONSISTENT = (
        "inconsistent"  # rate, size and time contradict each other, or the residual is garbled
    )


class ProblemKind(StrEnum):
    MEMORY = "memory"  # a matrix did not fit
    INPUT = "input"  # HPL refused a setting
    ERROR = "error"  # any other complaint of HPL's
    TRUNCATED = "truncated"  # the text ends before HPL's line that it is done
    COUNT = "count"  # HPL counted other results than are in the text
    FORMAT = "format"  # a result line that cannot be read
    PRECISION = "precision"  # a mixed-precision result, which is another benchmark


@dataclass(frozen=True, slots=True)
class Problem:
    kind: ProblemKind
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Result:
    """One line of results. `config` is None where the program does not spell all settings (NVIDIA's WC0)."""

    line: int
    variant: str
    n: int
    nb: int
    p: int
    q: int
    seconds: float
    gflops: float
    residual: float | None = None
    status: Status = Status.UNCHECKED
    config: Config | None = None

    @property
    def passed(self) -> bool:
        return self.status is Status.PASSED

    @property
    def ranks(self) -> int:
        return self.p * self.q


@dataclass(frozen=True, slots=True)
class Dgemm:
    """hpcc's own matrix products, Gflop/s of one rank while all ranks compute."""

    n: int | None
    star_gflops: float
    num_ranks: int | None


@dataclass(frozen=True)
class Output:
    """All that a text holds; `is_complete` where HPL printed that it came to its end."""

    results: tuple[Result, ...]
    problems: tuple[Problem, ...]
    is_complete: bool
    num_skipped: int = 0
    dgemm: Dgemm | None = None
    program: str = "unknown"

    @property
    def passed(self) -> bool:
        """Whether there are results and every one of them, and the text itself, is sound."""
        return bool(self.results) and not self.problems and all(r.passed for r in self.results)


def flops(n: int) -> float:
    """The operations that HPL counts for a matrix of order n."""
    return (2.0 / 3.0 * n + 1.5) * n * n
