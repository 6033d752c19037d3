"""The first launches: the default file, better kernels where OpenBLAS chose badly, and larger matrices.

A wide machine reaches a hundredth of its rate at the default N of 1,000: no size can be planned from it.
"""

from __future__ import annotations

import os

from hakaru.measure.hpl.blas import KERNEL_VARIABLE, Blas, better_kernel, cpu_flags, find_blas
from hakaru.measure.hpl.dat import DEFAULT, Batch, default_for
from hakaru.measure.hpl.history import History, Launch, Planned
from hakaru.measure.hpl.scales import fitting_n
from hakaru.measure.hpl.session import Session

NUM_REPEATS = 3
SIZE_SHARE = 0.02  # of the budget, for a launch that shows the rate of a larger matrix
SIZE_GROWTH = 1.5  # of N, at the least: a smaller step would show nothing new
MOST_SIZES = 6


def calibrate(session: Session) -> None:
    """Measure how long a launch takes, how fast the default is, and which kernels are used."""
    done = _launches(session.history)
    if not done:
        session.show("The default HPL.dat as it is")
        if not _run(session):
            return
        done = _launches(session.history)
    kernel = better_kernel(done[0].kernels, cpu_flags())
    if kernel and session.start.is_local and len(done) == 1 and KERNEL_VARIABLE not in os.environ:
        excuse = (
            f"OpenBLAS's {kernel} kernels do not run here; it keeps {', '.join(done[0].kernels)}"
        )
        if excuse not in session.history.notes:
            session.show(f"The same with OpenBLAS's {kernel} kernels")
            _run(session, kernel, excuse)


def measure_sizes(session: Session, most: int) -> None:
    """Measure larger and larger matrices, as long as each is predicted to be quick."""
    for _ in range(MOST_SIZES):
        known = max(trial.config.n for trial in session.history.trials)
        slot_s = SIZE_SHARE * session.budget_s
        n = fitting_n(session.history, session.program, session.ranks, slot_s, most, num_runs=1)
        if session.is_over or n < SIZE_GROWTH * known:
            return
        session.show(f"How fast a matrix of N {n:,} is")
        config = default_for(session.ranks, n)
        if not session.run(Batch.of([config]), [Planned(config)], "calibrate"):
            return


def describe_blas(session: Session) -> Blas:
    """The library in use, its kernel, and what is wrong with it."""
    found = find_blas(session.program.path)
    done = _launches(session.history)
    if not done:
        return found
    chosen = session.environment.get(KERNEL_VARIABLE)
    kernel = ", ".join(done[-1].kernels) or None
    warning = found.warning
    if chosen:
        warning = (
            f"OpenBLAS does not know this processor and takes its {', '.join(done[0].kernels)} kernels."
            f" This search set {KERNEL_VARIABLE}={chosen}; set it for other programs too"
        )
    return Blas(found.path, found.kind, kernel, chosen, warning)


def _launches(history: History) -> list[Launch]:
    """Those of the default file as it is."""
    first = [each for each in history.launches if each.phase == "calibrate" and not each.failure]
    return [each for each in first if each.tests[0].config.n == DEFAULT.n]


def _run(session: Session, kernel: str | None = None, excuse: str | None = None) -> bool:
    config = default_for(session.ranks)
    batch = Batch.of([config]).repeated([DEFAULT.n] * NUM_REPEATS)
    tests = [Planned(config)] * NUM_REPEATS
    return session.run(batch, tests, "calibrate", kernel=kernel, excuse=excuse)
