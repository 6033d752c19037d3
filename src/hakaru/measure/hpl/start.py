"""What starts the ranks of a launch, and what is known of the nodes that they run on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hakaru.measure.hpl.blas import VERBOSE
from hakaru.measure.hpl.program import Program
from hakaru.measure.launch import Layout
from hakaru.measure.launch._base import worker_variables
from hakaru.measure.launch.mpirun import mpirun_words
from hakaru.measure.place import host_name

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
)
# a resumed search gets another allocation of Slurm
JOB = "--jobid="
NOT_READ = (
    "load and versions of the nodes were not read, so somebody else may have used them"
    " (hakaru bench preflight compares versions)"
)


@dataclass(frozen=True)
class Start:
    """`words` come before the program, for so many ranks.

    `nodes` says what is known of the load of other nodes; it is None where all ranks run on this machine.
    """

    words: Callable[[int], Sequence[str]]
    nodes: str | None = None

    @property
    def is_local(self) -> bool:
        return self.nodes is None

    def command(self, program: Program, ranks: int) -> list[str]:
        return [*self.words(ranks), program.path]

    def lasting_words(self, ranks: int) -> list[str]:
        """The words that must be the same for a search to go on."""
        return [word for word in self.words(ranks) if not word.startswith(JOB)]


HERE = Start(lambda ranks: mpirun_words(Layout((), ranks)))


def on_hosts(layout: Layout) -> Start:
    """mpirun on the hosts of a layout; fewer ranks fill the first of them."""
    is_here = {*layout.hosts} <= {host_name(), "localhost", "127.0.0.1"}
    variables = (*THREAD_VARIABLES, *VERBOSE)
    return Start(
        lambda ranks: mpirun_words(layout, ranks, variables), None if is_here else NOT_READ
    )


def thread_variables(num_threads: int) -> dict[str, str]:
    return {name: str(num_threads) for name in THREAD_VARIABLES}


def remote_threads() -> dict[str, str]:
    """One thread a rank, or what the user has set: nobody knows how many cores another node has."""
    return dict.fromkeys(THREAD_VARIABLES, worker_variables()["OMP_NUM_THREADS"])
