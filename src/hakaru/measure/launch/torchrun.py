"""torchrun on this machine: the way in which most people start their training."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from hakaru.errors import HakaruError, MissingExtraError
from hakaru.measure.context import EXTRA
from hakaru.measure.launch._base import LAUNCHERS, Layout, Start, Watch, run_all, worker_variables
from hakaru.measure.launch.local import MODULE
from hakaru.safety.processes import module_command


@dataclass(frozen=True)
class Torchrun:
    id: str = "torchrun"
    title: str = "torchrun on this machine."

    def check(self, layout: Layout) -> None:
        if importlib.util.find_spec("torch") is None:
            raise MissingExtraError("torch, which has torchrun,", EXTRA)
        if layout.hosts or layout.num_hosts > 1:
            raise HakaruError(
                "--launcher torchrun runs on this machine only; for several hosts use "
                "--launcher mpirun --hosts a,b or --launcher slurm --nodes N"
            )

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Watch) -> list[str]:
        command = module_command(
            "torch.distributed.run",
            *("--standalone", "--nproc-per-node", str(layout.num_ranks)),
            *("--module", MODULE, str(task)),
        )
        log = task.parent / "torchrun.log"
        return run_all([Start("torchrun", command, worker_variables(), log)], timeout_s, watch)


LAUNCHERS.add(Torchrun())
