"""Slurm: one allocation for a whole search, so that none of its launches waits in the queue.

Inside a job of the user's own, launches are steps of that job.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.hpl.start import JOB, NOT_READ, Start
from hakaru.measure.launch import Layout
from hakaru.measure.launch._base import check_options, last_words
from hakaru.measure.launch.slurm import QUEUE_S

LOG = "salloc.txt"
NAME = "hakaru-bench"
ANSWER_S = 60.0
# options of srun, as --slurm NAME=VALUE; steps do not inherit cpus_per_task since Slurm 22.05
STEP_OPTIONS = ("mpi", "cpu_bind", "gpu_bind", "distribution", "hint", "cpus_per_task")
STEP_ONLY = ("mpi", "cpu_bind")
# what submitit takes for its own job script
SUBMITITS = ("array_parallelism", "setup", "signal_delay_s", "srun_args", "stderr_to_stdout", "teardown",
             "use_srun")  # fmt: skip
ALONE = (
    "Slurm gave the nodes to this job alone; their versions were not compared"
    " (hakaru bench preflight does)"
)
_ID = re.compile(r"job allocation (\d+)")


@contextmanager
def slurm_start(
    folder: Path, layout: Layout, options: Mapping[str, Any], limit_s: float, show: Callable[[str], None]
) -> Iterator[Start]:  # fmt: skip
    """What starts ranks through Slurm; the allocation, where one is needed, ends with the block."""
    check_options(options)
    if own := os.environ.get("SLURM_JOB_ID"):
        yield Start(lambda ranks: _step(layout, options, ranks, layout.hosts), _load_of(own))
        return
    show("Waiting for Slurm to grant the nodes")
    with _allocated(folder / LOG, salloc_words(layout, options, limit_s)) as job:
        yield Start(
            lambda ranks: [*_step(layout, options, ranks), f"{JOB}{job}"],
            _load_of(job),
        )


def salloc_words(layout: Layout, options: Mapping[str, Any], limit_s: float) -> list[str]:
    """salloc for a search: exclusive nodes, unless the options say otherwise."""
    standard = {
        "nodes": max(len(layout.hosts), layout.num_hosts),
        "ntasks_per_node": layout.per_host,
        "time": int(limit_s // 60) + 2,
        "exclusive": True,
    }
    named = {"nodelist": ",".join(layout.hosts)} if layout.hosts else {}
    given = {name: v for name, v in options.items() if name not in (*STEP_ONLY, *SUBMITITS)}
    return ["salloc", "--no-shell", *_flags(standard | named | given | {"job_name": NAME})]


def _step(
    layout: Layout, options: Mapping[str, Any], ranks: int, hosts: tuple[str, ...] = ()
) -> list[str]:
    """srun for so many ranks on as few nodes as hold them."""
    nodes = -(-ranks // layout.per_host)
    named = {"nodelist": ",".join(hosts[:nodes])} if hosts else {}
    given = {name: options[name] for name in STEP_OPTIONS if name in options}
    return ["srun", *_flags({"nodes": nodes, "ntasks": ranks} | named | given)]


def _flags(options: Mapping[str, Any]) -> list[str]:
    """Options as words; true is a bare flag, and false is none."""
    return [
        f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}")
        for name, value in options.items()
        if value is not False
    ]


@contextmanager
def _allocated(log: Path, words: list[str]) -> Iterator[str]:
    """The id of an allocation; salloc's own words are the note by which a killed search's is released."""
    _release(log)
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise HakaruError(f"{words[0]} cannot be started: {error.strerror}") from None
    try:
        yield _granted(process, words, log)
    finally:
        process.terminate()  # of one that still waits in the queue
        process.wait()
        _release(log)


def _granted(process: subprocess.Popen[bytes], words: list[str], log: Path) -> str:
    try:
        code = process.wait(QUEUE_S)
    except subprocess.TimeoutExpired:
        raise HakaruError(f"still in Slurm's queue after a day: {shlex.join(words)}") from None
    text = _text(log)
    if code != 0 or not _ID.search(text):
        reason = last_words(text) or f"exit code {code}"
        raise HakaruError(f"Slurm gave no nodes: {reason}: {shlex.join(words)}")
    return str(_ID.findall(text)[-1])


def _release(log: Path) -> None:
    """Cancel the allocations that the note names, unless their ids have become other jobs'."""
    for job in dict.fromkeys(_ID.findall(_text(log))):
        _ask("scancel", f"--name={NAME}", job)
    log.unlink(missing_ok=True)


def _load_of(job: str) -> str:
    """What is known of others on the job's nodes: squeue's OVER_SUBSCRIBE is NO for exclusive ones."""
    return (
        ALONE if _ask("squeue", "--noheader", f"--jobs={job}", "--format=%h") == "NO" else NOT_READ
    )


def _ask(*words: str) -> str:
    with suppress(OSError, subprocess.TimeoutExpired):
        found = subprocess.run(words, capture_output=True, text=True, timeout=ANSWER_S, check=False)
        return found.stdout.strip()
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
