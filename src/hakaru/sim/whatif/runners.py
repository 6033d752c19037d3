"""Where the runs are played: here, in processes of this machine, or on the site's own Slurm."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.errors import HakaruError, MissingExtraError
from hakaru.safety.processes import module_command, python_words
from hakaru.sim.whatif import tasks

if TYPE_CHECKING:
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.whatif.variants import Prepared

Progress = Callable[[int, int, str], None]  # how many are done, of how many, and which was last
SECONDS_BETWEEN_LOOKS = 1.0
WORKER = "hakaru.sim.whatif._worker"


def play_all(
    runs: Sequence[Prepared],
    on: str = "local",
    num_processes: int | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
    slurm: Mapping[str, Any] | None = None,
) -> list[Schedule]:
    """A schedule each. `folder` must be one that Slurm's nodes see too; `slurm` are submitit's parameters."""
    tell = progress or (lambda done, total, name: None)
    if on == "slurm":
        with _shared_folder(folder) as shared:
            return _on_slurm(runs, shared, tell, slurm or {})
    if on != "local":
        raise HakaruError(f"--on {on!r} is not known: use local or slurm")
    many = min(len(runs), num_processes or os.cpu_count() or 1)
    if many <= 1:
        return _here(runs, tell)
    with tempfile.TemporaryDirectory(prefix="hakaru-whatif-") as name:
        return _in_processes(runs, Path(name), many, tell)


def _here(runs: Sequence[Prepared], tell: Progress) -> list[Schedule]:
    schedules = []
    for number, run in enumerate(runs):
        schedules.append(tasks.play_here(run))
        tell(number + 1, len(runs), run.name)
    return schedules


def _in_processes(
    runs: Sequence[Prepared], folder: Path, num_processes: int, tell: Progress
) -> list[Schedule]:
    """A fresh interpreter a run: nothing of this process's threads and locks is copied."""
    for number, run in enumerate(runs):
        tasks.save(run, folder, number)
    with ThreadPoolExecutor(num_processes) as pool:
        waiting = {pool.submit(_process, folder, number): number for number in range(len(runs))}
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                future.result()
                tell(done, len(runs), runs[waiting[future]].name)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [tasks.load(run, folder, number) for number, run in enumerate(runs)]


def _process(folder: Path, number: int) -> None:
    command = module_command(WORKER, str(folder), str(number))
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise HakaruError(
            f"a run ended with {done.returncode}: {' '.join(command)}\n{done.stderr.strip()[-2000:]}"
        )


def _on_slurm(
    runs: Sequence[Prepared], folder: Path, tell: Progress, parameters: Mapping[str, Any]
) -> list[Schedule]:
    """One Slurm job a run; what is still queued is cancelled if anything goes wrong here."""
    for number, run in enumerate(runs):
        tasks.save(run, folder, number)
    executor = _executor(folder, parameters)
    jobs = [executor.submit(tasks.play, folder, number) for number in range(len(runs))]
    try:
        _wait(jobs, runs, tell)
        return [tasks.load(run, folder, number) for number, run in enumerate(runs)]
    except BaseException:
        for job in jobs:
            job.cancel()
        raise


def _wait(jobs: Sequence[Any], runs: Sequence[Prepared], tell: Progress) -> None:
    left = dict(enumerate(jobs))
    while left:
        for number in [number for number, job in left.items() if job.done()]:
            job = left.pop(number)
            if error := job.exception():
                raise HakaruError(
                    f"{runs[number].name}: Slurm job {job.job_id} failed: {error}\n"
                    f"its output: {job.paths.stdout}, {job.paths.stderr}"
                )
            tell(len(jobs) - len(left), len(jobs), runs[number].name)
        if left:
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _executor(folder: Path, parameters: Mapping[str, Any]) -> Any:
    try:
        import submitit
    except ImportError:
        raise MissingExtraError("submitit, which speaks to Slurm,", "sim") from None
    if shutil.which("sbatch") is None:
        raise HakaruError(
            "--on slurm: there is no sbatch here; run it on a login node, or --on local"
        )
    executor = submitit.SlurmExecutor(folder=folder / "submitit", python=python_words())
    standard = {"time": 60, "cpus_per_task": 1, "job_name": "hakaru-whatif"}
    executor.update_parameters(**(standard | dict(parameters)))
    return executor


@contextmanager
def _shared_folder(folder: Path | None) -> Iterator[Path]:
    """A folder of this run's own in the one that all nodes see; kept when a run fails, as it has the logs."""
    above = (folder or Path.cwd()).resolve()
    try:
        above.mkdir(parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(prefix="whatif-", dir=above))
    except OSError as error:
        raise HakaruError(f"{above}: no run can be written there: {error.strerror}") from None
    yield own
    shutil.rmtree(own, ignore_errors=True)
