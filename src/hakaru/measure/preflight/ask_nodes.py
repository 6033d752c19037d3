"""Ask every node for its facts: here, through mpirun, or through Slurm; a node that gives none is named."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hakaru.measure.launch import Layout
from hakaru.measure.launch._base import last_words
from hakaru.measure.launch.mpirun import Mpirun, mpirun_words
from hakaru.measure.launch.slurm import LOOK_EVERY_S, Slurm
from hakaru.measure.place import host_name
from hakaru.measure.preflight.answers import read_answer, stamp, unanswered
from hakaru.safety.processes import module_command

MODULE = "hakaru.measure.preflight"
TIMEOUT_S = 60.0


def ask_here() -> list[dict[str, Any]]:
    return [_ask(host_name(), module_command(MODULE))]


def ask_hosts(hosts: Sequence[str]) -> list[dict[str, Any]]:
    """One after another with mpirun, so that a host that hangs is named."""
    Mpirun().check(Layout(tuple(hosts)))
    return [
        _ask(host, [*mpirun_words(Layout((host,))), *module_command(MODULE, *hosts)])
        for host in hosts
    ]


def ask_slurm(
    layout: Layout, folder: Path, parameters: Mapping[str, Any], limit_s: float
) -> list[dict[str, Any]]:
    """One task on each node of one job; `limit_s` includes the time in the queue."""
    slurm = Slurm(parameters=parameters)
    slurm.check(layout)
    folder.mkdir(parents=True, exist_ok=True)
    submitted_s = time.time()
    job = slurm.submit(folder, layout, TIMEOUT_S, answer_in_job)
    try:
        return collect(job, layout.num_ranks, submitted_s, limit_s)
    finally:
        if not job.done():
            job.cancel(check=False)


def answer_in_job() -> dict[str, Any]:
    """What a task of the job returns: its node's facts; the node looks up the job's other nodes."""
    from hakaru.measure.preflight import Machine, gather

    hosts = subprocess.run(
        ["scontrol", "show", "hostnames", os.environ.get("SLURM_JOB_NODELIST", "")],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    name = os.environ.get("SLURMD_NODENAME") or host_name()
    return {**gather(Machine(peers=tuple(hosts.stdout.split()))), "node": name}


def collect(job: Any, num_tasks: int, submitted_s: float, limit_s: float) -> list[dict[str, Any]]:
    """The answer of each task, stamped with this machine's clock; unfinished tasks are one answer."""
    tasks = [job.task(at) for at in range(num_tasks)]
    ended = _wait(tasks, limit_s)
    started_s = _started(job.job_id) if ended else None
    answers = [
        _task_answer(tasks[at], f"Slurm job {job.job_id}, task {at}",
                     _asked(submitted_s, started_s, ended[at]), ended[at])
        for at in sorted(ended)
    ]  # fmt: skip
    if len(ended) < num_tasks:
        answers.append(unanswered(f"Slurm job {job.job_id}", _late(job, ended, tasks, limit_s)))
    return answers


def _wait(tasks: Sequence[Any], limit_s: float) -> dict[int, float]:
    """When each task was first seen to have ended; tasks that have not are left out."""
    deadline = time.monotonic() + limit_s
    ended: dict[int, float] = {}
    while True:
        for at, task in enumerate(tasks):
            if at not in ended and task.done():
                ended[at] = time.time()
        if len(ended) == len(tasks) or time.monotonic() > deadline:
            return ended
        time.sleep(LOOK_EVERY_S)


def _late(job: Any, ended: Mapping[int, float], tasks: Sequence[Any], limit_s: float) -> str:
    return (
        f"{len(tasks) - len(ended):,} of {len(tasks):,} tasks gave no answer within "
        f"{limit_s / 60:,.0f} min (job state {job.state}), and the job is cancelled; "
        "allow more time with --timeout, or ask for fewer nodes"
    )


def _started(job_id: str) -> float | None:
    """When the job started, by the clock of Slurm's controller; None where Slurm does not say."""
    try:
        shown = subprocess.run(
            ["scontrol", "--oneliner", "show", "job", str(job_id)],
            env={**os.environ, "SLURM_TIME_FORMAT": "%s"},
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\bStartTime=(\d+)\b", shown.stdout)
    return float(found.group(1)) if found else None


def _asked(submitted_s: float, started_s: float | None, ended_s: float) -> float:
    """The earliest time at which a task can have run.

    The start leaves the queue's wait out of the window in which a node's clock must lie. It is used only
    where it fits this machine's clock: Slurm's controller may itself be off.
    """
    if started_s is not None and submitted_s <= started_s <= ended_s:
        return started_s
    return submitted_s


def _task_answer(task: Any, name: str, asked_s: float, ended_s: float) -> dict[str, Any]:
    try:
        found = task.result()
    except Exception as error:  # whatever the job died of
        lines = str(error).strip().splitlines()
        return unanswered(name, (lines[-1] if lines else repr(error))[:300])
    if not isinstance(found, dict):
        return unanswered(name, "the task returned no facts")
    return stamp(found, asked_s, ended_s)


def _ask(name: str, command: Sequence[str]) -> dict[str, Any]:
    asked = time.time()
    try:
        done = subprocess.run(
            list(command), capture_output=True, text=True, timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return unanswered(name, f"no answer within {TIMEOUT_S:.0f} s")
    except OSError as error:
        return unanswered(name, f"{command[0]} cannot be started: {error.strerror}")
    if done.returncode != 0:
        why = last_words(done.stderr)[:300] or "no message"
        return unanswered(name, f"asking {name} failed with exit code {done.returncode}: {why}")
    return read_answer(name, done.stdout, asked, time.time())
