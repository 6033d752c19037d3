"""Lines that say that a rank did not end well, in the output of any program.

Of Slurm, Open MPI (also as orterun and prterun), MPICH and Intel MPI, PALS, Flux, PBS and LSF, the shell,
C++, NCCL, CUDA, ROCm and NVIDIA's driver.
`srun` and `mpirun` end ranks whose printed results look whole, so one such line fails the whole run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hakaru.measure.imports._base import MOST_NAME, clip

WINDOW, OVERLAP = 4000, 500  # characters: patterns look at a long line in pieces, and stay fast
LEAD = 60  # characters shown before a match that is far in its line
NOT_0 = r"(?!\W{0,3}0\b)"  # the code of a rank that ended well follows
# of launchers and of MPI
LAUNCHER = re.compile(
    r"\b(?:"
    r"srun: error\b|CANCELLED AT\b|DUE TO (?:TIME LIMIT|NODE|PREEMPTION|JOB REQUEUE)\b|(?i:oom[-_]?kill)"
    r"|(?:mpirun|mpiexec|prterun|orterun|prte)\S* (?:noticed that process|has exited due to process)\b"
    r"|(?:ORTE|PRTE|PRRTE) (?:has lost communication|was unable to)\b"
    r"|(?:ORTE|PRTE|PRRTE) daemon has (?:unexpectedly )?failed\b"
    r"|exiting improperly\b|exited on signal\b|died from signal\b|MPI_ABORT was invoked\b|called MPI_Abort\b"
    r"|(?i:(?:killed by|terminated with|exited with) signal\b)"
    rf"|(?i:exited with (?:exit )?(?:code|status)\b){NOT_0}"
    r"|peer process has unexpectedly disconnected\b|MPI_ERRORS_ARE_FATAL\b"
    # other errors of PMIx, such as those of its gds component, come with runs that end well
    r"|PMIX ERROR: (?:PMIX_ERR_)?(?:UNREACH|LOST|PROC|TIMEOUT)"
    r"|Abort\(-?\d+\) on node\b|Fatal error in (?:P?MPI|internal)_|BAD TERMINATION\b"
    r"|An error occurred in P?MPI_|non-zero (?:exit code|status)\b|job killed\b"
    r"|Process received signal\b"
    r")"
)
# of NCCL, CUDA and the shell; NCCL's information also names what failed and was then done in another way
PROGRAM = re.compile(
    r"\b(?:"
    r"Test (?:NCCL |CUDA )?(?:failure|timeout)\b"
    r"|NCCL WARN .*(?i:error|\bcompletion (?:from|with)\b)"
    r"|(?i:unhandled (?:system|cuda|hip) error|(?:cuda|hip) failure\b|out of memory\b)"
    r"|(?i:segmentation fault|bus error|core dumped|illegal instruction|floating point exception)"
    r"|(?:recv|send|readv|writev)\S* failed ?: Connection reset by peer"
    r"|Memory access fault by GPU\b|fallen off the bus\b|terminate called (?:after|without|recursively)\b"
    r"|(?:Killed|Aborted|Terminated)\b"
    r")"
)
INFORMATION = " NCCL INFO "


def crash(line: str) -> str:
    """What of the line says so, in a form to show; the empty text where nothing does."""
    patterns = (LAUNCHER,) if INFORMATION in line else (LAUNCHER, PROGRAM)
    for piece in _pieces(line):
        for pattern in patterns:
            if found := pattern.search(piece):
                return _shown(piece, found)
    return ""


def _pieces(line: str) -> Iterator[str]:
    for start in range(0, max(len(line) - OVERLAP, 1), WINDOW - OVERLAP):
        yield line[start : start + WINDOW]


def _shown(piece: str, found: re.Match[str]) -> str:
    """The line as it begins, unless the match would be cut away then."""
    is_far = found.end() > MOST_NAME
    return clip("…" + piece[max(found.start() - LEAD, 0) :] if is_far else piece.strip())
