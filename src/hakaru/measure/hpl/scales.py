"""From small to large: which numbers of ranks and which N a search steps through (MN-1, section 4.1)."""

from __future__ import annotations

from math import isqrt, sqrt

from hakaru.measure.hpl.dat import DEFAULT, MOST_N, Batch, default_for
from hakaru.measure.hpl.history import History, Scale
from hakaru.measure.hpl.program import Program
from hakaru.measure.hpl.timing import predict_s

MEMORY_SHARE = 0.8  # of the memory, for the matrix: the rest is the system's and the program's
LEAST_N = 1024  # below the default's own N there is nothing to win
STEP_N = 64
NUM_PROBES = 8  # configurations of the launch that must fit
# of the budget, for that launch: with less N stays small, with more there are too few pairs to confirm it
PROBE_SHARE = 0.18
RANK_STEP = 8
SMALLER = 0.7  # the N of the step before the last one


def largest_n(
    history: History, program: Program, ranks: int, budget_s: float, memory_bytes: int | None
) -> tuple[int, str]:
    """The N of the last scale, and what limits it, in words."""
    by_memory = memory_n(memory_bytes) if memory_bytes else None
    n = fitting_n(
        history, program, ranks, PROBE_SHARE * budget_s, most_n(memory_bytes), is_hopeful=True
    )
    if by_memory and n >= by_memory // STEP_N * STEP_N:
        return n, f"N {n:,} fills {MEMORY_SHARE:.0%} of the memory"
    room = f"; {MEMORY_SHARE:.0%} of the memory would hold {by_memory:,}" if by_memory else ""
    return n, f"N {n:,} is limited by the budget of {budget_s:.0f} s{room}"


def fitting_n(
    history: History,
    program: Program,
    ranks: int,
    slot_s: float,
    most: int,
    is_hopeful: bool = False,
    num_runs: int = NUM_PROBES,
) -> int:
    """The largest N of which a launch of `num_runs` configurations fits the time."""
    low, high = LEAST_N // STEP_N, max(LEAST_N, most) // STEP_N
    while low < high:
        middle = (low + high + 1) // 2
        probe = _probe(ranks, middle * STEP_N, num_runs)
        if predict_s(history, program, probe, ranks, is_hopeful) <= slot_s:
            low = middle
        else:
            high = middle - 1
    return low * STEP_N


def most_n(memory_bytes: int | None) -> int:
    """The largest N that may be tried."""
    return memory_n(memory_bytes) if memory_bytes else MOST_N


def memory_n(memory_bytes: int) -> int:
    return max(isqrt(int(MEMORY_SHARE * memory_bytes) // 8), LEAST_N)


def default_scales(ranks: int, n: int, first: int = 1) -> list[Scale]:
    """One rank, eight, sixty-four… and all of them; each rank's share of the matrix stays alike.

    Scales of fewer ranks than `first` are left out: an earlier search has been there.
    """
    fewer = []
    step = 1
    while step < ranks:
        if step >= first:
            fewer.append(Scale(step, _rounded(SMALLER * n * sqrt(step / ranks))))
        step *= RANK_STEP
    return [*fewer, Scale(ranks, _rounded(SMALLER * n)), Scale(ranks, n)]


def _probe(ranks: int, n: int, num_runs: int) -> Batch:
    base = Batch.of([default_for(ranks, n)])
    blocks = (DEFAULT.nb,) * min(2, num_runs)
    depths = (DEFAULT.depth,) * (num_runs // len(blocks))
    return Batch(base.shared, base.listed | {"nb": blocks, "depth": depths})


def _rounded(n: float) -> int:
    return max(LEAST_N // 4, int(n) // 64 * 64)
