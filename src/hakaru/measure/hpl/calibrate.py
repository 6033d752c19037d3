"""The first launches: the default file as it is, and with better kernels where OpenBLAS chose badly."""

from __future__ import annotations

import os
from statistics import median

from hakaru.measure.hpl.blas import KERNEL_VARIABLE, Blas, better_kernel, cpu_flags, find_blas
from hakaru.measure.hpl.dat import DEFAULT, Batch, default_for
from hakaru.measure.hpl.history import History, Launch, Planned
from hakaru.measure.hpl.session import Session

NUM_REPEATS = 3


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


def kernel_gain(history: History) -> float | None:
    """How many times faster the default file became; None where no kernel was set."""
    rates = [
        [t.gflops for t in history.trials if t.launch == launch.number and t.passed and t.gflops]
        for launch in _launches(history)
    ]
    return median(rates[1]) / median(rates[0]) if len(rates) == 2 and all(rates) else None


def _launches(history: History) -> list[Launch]:
    return [each for each in history.launches if each.phase == "calibrate" and not each.failure]


def _run(session: Session, kernel: str | None = None, excuse: str | None = None) -> bool:
    config = default_for(session.ranks)
    batch = Batch.of([config]).repeated([DEFAULT.n] * NUM_REPEATS)
    tests = [Planned(config)] * NUM_REPEATS
    return session.run(batch, tests, "calibrate", kernel=kernel, excuse=excuse)
