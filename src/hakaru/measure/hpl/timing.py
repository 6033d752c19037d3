"""How long a launch will take: a model of its parts, corrected by what earlier launches really took.

HPL's own time grows with n³; generating and checking a matrix, and hpcc's suite around it, with n².
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from hakaru.measure.hpl.dat import Batch
from hakaru.measure.hpl.history import History, Launch
from hakaru.measure.hpl.program import Program
from hakaru.measure.hpl.result import flops

# seconds on a core of today, a matrix element each; only their ratios matter once a launch was timed
START_S = 0.6
TEST_S = 7e-8  # generate a matrix and check its solution
TRANSPOSE_S = 8e-8  # hpcc's PTRANS, for every N, NB and grid
UPDATE_S = 1.4e-6  # hpcc's RandomAccess; its table is the largest power of two in the matrix
SUITE_S = 4e-7  # the rest of hpcc
UNKNOWN_GFLOPS = 2.0  # a rank's rate before anything was measured
CAUTION = 1.15
LEAST_HOPE = 0.9  # of the model: short launches say little about the suite of a large N
NUM_RECENT = 3


def predict_s(
    history: History, program: Program, batch: Batch, ranks: int, is_hopeful: bool = False
) -> float:
    """Seconds that a launch of the batch will take: rather too many, or as if nobody disturbs it."""
    sizes = [config.n for config in batch.configs()]
    rate = expected_gflops(history, ranks)
    modelled = _start_s(history, program, ranks)
    modelled += _overhead_s(program, ranks, batch.num_transposed, sizes)
    modelled += sum(flops(n) for n in sizes) / rate / 1e9
    ratios = _ratios(history, program, ranks)
    return modelled * (max(min(ratios), LEAST_HOPE) if is_hopeful else max(ratios) * CAUTION)


def expected_gflops(history: History, ranks: int) -> float:
    """The rate to reckon with: the median of the last launch that is most like the one to come."""
    passed = [trial for trial in history.trials if trial.passed and trial.gflops]
    same = [trial for trial in passed if trial.ranks == ranks]
    if not (like := same or passed):
        return UNKNOWN_GFLOPS * ranks
    last = [trial for trial in like if trial.launch == like[-1].launch]
    rate = median(trial.gflops for trial in last if trial.gflops)
    return rate * min(1.0, ranks / like[-1].ranks)


def _ratios(history: History, program: Program, ranks: int) -> list[float]:
    """How far the model was off in the last launches."""
    start_s = _start_s(history, program, ranks)
    recent = _timed(history, ranks)[-NUM_RECENT:]
    return [
        each.wall_s / (start_s + _beside_start_s(history, program, each)) for each in recent
    ] or [1.0]


def _start_s(history: History, program: Program, ranks: int) -> float:
    """Starting MPI on many nodes takes longer than here; hpcc's suite cannot be separated from it."""
    if program.kind == "hpcc":
        return START_S
    timed = _timed(history, ranks)
    left = [each.wall_s - _beside_start_s(history, program, each) for each in timed]
    return max(START_S, min(left, default=START_S))


def _timed(history: History, ranks: int) -> list[Launch]:
    """Launches whose time is known, of as many ranks where there are any."""
    timed = [launch for launch in history.launches if launch.num_results]
    return [launch for launch in timed if launch.ranks == ranks] or timed


def _beside_start_s(history: History, program: Program, launch: Launch) -> float:
    solved = sum(each.seconds or 0.0 for each in history.trials if each.launch == launch.number)
    sizes = [test.config.n for test in launch.tests]
    return solved + _overhead_s(program, launch.ranks, launch.num_transposed, sizes)


def _overhead_s(program: Program, ranks: int, num_transposed: int, sizes: Sequence[int]) -> float:
    tests = TEST_S * sum(size**2 for size in sizes) / ranks
    if program.kind != "hpcc":
        return tests
    n = max(sizes)
    table = 1 << ((n * n).bit_length() - 1)
    suite = UPDATE_S * table + SUITE_S * n**2 + TRANSPOSE_S * num_transposed
    return tests + suite / ranks
