"""Slurm through submitit: one job with the layout's nodes and tasks, in a folder that all nodes see."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError, MissingExtraError
from hakaru.measure.context import EXTRA
from hakaru.measure.launch._base import (
    LAUNCHERS,
    Layout,
    Watch,
    check_options,
    worker_variables,
)
from hakaru.measure.place import COMMAND
from hakaru.safety.processes import python_words

LOOK_EVERY_S = 1.0
QUEUE_S = 24 * 3600.0
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "UNKNOWN", "READY")


@dataclass(frozen=True)
class Slurm:
    """`parameters` are sbatch's, as submitit names them: partition, gpus_per_node, account…"""

    id: str = "slurm"
    title: str = "A Slurm job through submitit, on --nodes."
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def check(self, layout: Layout) -> None:
        try:
            import submitit  # noqa: F401
        except ImportError:
            raise MissingExtraError("submitit, which speaks to Slurm,", EXTRA) from None
        if shutil.which("sbatch") is None:
            raise HakaruError(
                "--launcher slurm: there is no sbatch here; run it on a login node, or use --launcher local"
            )

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Watch) -> list[str]:
        with _handed_on({COMMAND: worker_variables()[COMMAND]}):
            job = self.submit(task.parent, layout, timeout_s, run_worker, str(task))
        try:
            return _wait(job, layout.num_ranks, timeout_s, watch)
        finally:
            if not job.done():
                job.cancel()

    def submit(
        self, folder: Path, layout: Layout, timeout_s: float, call: Callable[..., Any], *words: str
    ) -> Any:
        """Hand a call to Slurm for every task; what submitit or sbatch refuse is one clear line."""
        try:
            return self.executor(folder, layout, timeout_s).submit(call, *words)
        except HakaruError:
            raise
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            reason = next(
                (line for line in lines if "error" in line.lower()), lines[-1] if lines else ""
            )
            raise HakaruError(f"Slurm did not take the job: {reason[:300]}") from None

    def executor(self, folder: Path, layout: Layout, timeout_s: float) -> Any:
        import submitit

        check_options(self.parameters)
        executor = submitit.SlurmExecutor(folder=folder / "submitit", python=python_words())
        standard = {
            "time": int(timeout_s // 60) + 2,
            "nodes": max(len(layout.hosts), layout.num_hosts),
            "ntasks_per_node": layout.per_host,
            "exclusive": True,  # others on the node would contaminate what is measured
            "job_name": "hakaru-bench",
        }
        named = {"nodelist": ",".join(layout.hosts)} if layout.hosts else {}
        extra = {"additional_parameters": named} if named else {}
        executor.update_parameters(**(standard | extra | dict(self.parameters)))
        return executor


@contextmanager
def _handed_on(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables that sbatch hands on to the job; this process has them only meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def run_worker(task: str) -> None:
    """What each task of the job calls."""
    from hakaru.measure.worker import main

    os.environ.update(worker_variables())
    main(Path(task))


def _wait(job: Any, num_ranks: int, timeout_s: float, watch: Watch) -> list[str]:
    """Until the job has ended; the time in the queue does not count against its limit."""
    submitted = time.monotonic()
    started: float | None = None
    while not job.done():  # asks sacct less and less often, and sees a result at once
        now = time.monotonic()
        if started is None and job.state not in WAITING:
            started = now
        if started is not None:
            watch()
        if started is not None and now - started > timeout_s + 60:
            return [f"Slurm job {job.job_id}: time ran out after {timeout_s:.0f} s"]
        if started is None and now - submitted > QUEUE_S:
            return [f"Slurm job {job.job_id}: still waiting in the queue after a day"]
        time.sleep(LOOK_EVERY_S)
    watch()
    return [text for at in range(num_ranks) if (text := _problem(job, at))]


def _problem(job: Any, at: int) -> str | None:
    """Why a task of the job has no result; the state alone lags behind."""
    if (error := job.task(at).exception()) is None:
        return None
    last = (str(error).strip().splitlines() or [""])[-1]
    return f"Slurm job {job.job_id}, task {at}, failed: {last}"[:500]


LAUNCHERS.add(Slurm())
