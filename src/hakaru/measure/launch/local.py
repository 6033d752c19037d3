"""Processes on this machine: the default, for one node and for tests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.measure.launch._base import (
    LAUNCHERS,
    Layout,
    Start,
    Watch,
    rank_variables,
    run_all,
    worker_variables,
)
from hakaru.safety.processes import module_command

MODULE = "hakaru.measure.worker"
PARENT = "HAKARU_PARENT"  # the process without which a worker has nothing to do


@dataclass(frozen=True)
class Local:
    id: str = "local"
    title: str = "Processes on this machine."

    def check(self, layout: Layout) -> None:
        if layout.hosts or layout.num_hosts > 1:
            raise HakaruError(
                "--launcher local runs on this machine only; for several hosts use "
                "--launcher mpirun --hosts a,b or --launcher slurm --nodes N"
            )

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Watch) -> list[str]:
        size = layout.num_ranks
        starts = [
            Start(
                f"rank {rank}",
                module_command(MODULE, str(task)),
                worker_variables()
                | rank_variables(rank, size, rank, size)
                | {PARENT: str(os.getpid())},
                task.parent / f"rank-{rank}.log",
            )
            for rank in range(size)
        ]
        return run_all(starts, timeout_s, watch)


LAUNCHERS.add(Local())
