"""mpirun on this machine or on a list of hosts: Open MPI, and MPICH and its kin with their own words."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.measure.launch._base import LAUNCHERS, Layout, Start, Watch, run_all, worker_variables
from hakaru.measure.launch.local import MODULE
from hakaru.measure.place import environment
from hakaru.safety.processes import module_command

INSTALL = "mpirun is not installed. On Debian: apt-get install openmpi-bin"


@dataclass(frozen=True)
class Mpirun:
    id: str = "mpirun"
    title: str = "mpirun on this machine, or on --hosts."

    def check(self, layout: Layout) -> None:
        if shutil.which("mpirun") is None:
            raise HakaruError(INSTALL)
        if layout.num_hosts > 1 and not layout.hosts:
            raise HakaruError("--launcher mpirun needs the names of the hosts: --hosts a,b")

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Watch) -> list[str]:
        command = [*mpirun_words(layout), *module_command(MODULE, str(task))]
        log = task.parent / "mpirun.log"
        return run_all([Start("mpirun", command, worker_variables(), log)], timeout_s, watch)


def mpirun_words(
    layout: Layout, num_ranks: int | None = None, variables: Iterable[str] | None = None
) -> list[str]:
    """mpirun with its options; the program follows. Ranks are not bound: the worker pins itself.

    `num_ranks` may be fewer than the layout has room for: they fill one host after the other. `variables` are
    those that the caller sets, the workers' where none are given; they go to the hosts with the ones that
    change speed.
    """
    words = ["mpirun", "-np", str(layout.num_ranks if num_ranks is None else num_ranks)]
    if not is_open_mpi():  # Hydra passes the whole environment on
        hosts = ["-hosts", ",".join(layout.hosts), "-ppn", str(layout.per_host)]
        return [*words, *(hosts if layout.hosts else [])]
    words += ["--bind-to", "none", "--oversubscribe"]
    words += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    if layout.hosts:
        slots = ",".join(f"{host}:{layout.per_host}" for host in layout.hosts)
        words += ["--host", slots, "--map-by", f"ppr:{layout.per_host}:node"]
        words += _exported({*(worker_variables() if variables is None else variables)})
    return words


@lru_cache(maxsize=1)
def is_open_mpi() -> bool:
    """Whether mpirun is Open MPI's; where it cannot be asked, it is taken to be."""
    try:
        shown = subprocess.run(
            ["mpirun", "--version"], capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return b"HYDRA" not in shown.stdout.upper() and b"Intel(R) MPI" not in shown.stdout


def _exported(variables: set[str]) -> list[str]:
    """Open MPI hands variables to other hosts only if they are named."""
    known = {*environment(), "LD_LIBRARY_PATH", "PATH"} & os.environ.keys()
    return [word for name in sorted(variables | known) for word in ("-x", name)]


LAUNCHERS.add(Mpirun())
