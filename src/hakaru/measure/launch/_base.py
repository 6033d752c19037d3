"""What a launcher is, and how processes are started, watched and ended.

A launcher says what went wrong in words; what was measured is in the ranks' journals, and a rank without a
whole journal has failed, whatever the launcher's exit code says.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hakaru.errors import HakaruError
from hakaru.measure.place import COMMAND
from hakaru.registry import Registry

GRACE_S = 10.0  # from the first that failed to the end of the others
TIDY_S = 10.0  # to remove their temporary files, before processes are killed
LOOK_EVERY_S = 0.1
MOST_TAIL = 600
RULER = re.compile(r"^[-=*]{20,}[ \t]*$", re.MULTILINE)
Watch = Callable[[], None]
NAMES = ("local", "torchrun", "mpirun", "slurm")
HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
OPTION = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
BRACKETS = re.compile(r"([^\[\],]*)\[([0-9,-]+)\]([^\[\],]*)")
MOST_HOSTS = 100_000


@dataclass(frozen=True)
class Layout:
    """How many processes on each of which hosts; no host is this machine, or Slurm's choice."""

    hosts: tuple[str, ...] = ()
    per_host: int = 1
    num_hosts: int = 1

    def __post_init__(self) -> None:
        check_hosts(self.hosts)

    @property
    def num_ranks(self) -> int:
        return self.per_host * max(len(self.hosts), self.num_hosts)


def check_hosts(names: Sequence[str]) -> Sequence[str]:
    """Refuse what is not a host name: it goes to ssh, mpirun and a batch script."""
    for name in names:
        if not HOST.fullmatch(name):
            raise HakaruError(
                f"--hosts: {name[:80]!r} is not a host name; use letters, digits, '.', '_' and '-', "
                "and a letter or digit first"
            )
    return names


def split_hosts(text: str | None) -> tuple[str, ...]:
    """`n1,n2` or, as Slurm writes it, `n[1-4,7]`; each name is checked."""
    words = re.split(r",(?![^\[]*\])", text or "")
    names = [name for word in words if word.strip() for name in _expand(word.strip())]
    if len(names) > MOST_HOSTS:
        raise HakaruError(f"--hosts: {len(names):,} names, at most {MOST_HOSTS:,}")
    return tuple(check_hosts(names))


def _expand(word: str) -> list[str]:
    found = BRACKETS.fullmatch(word)
    if found is None:
        return [word]
    before, ranges, after = found.groups()
    return [f"{before}{each}{after}" for part in ranges.split(",") for each in _numbers(part, word)]


def _numbers(part: str, word: str) -> list[str]:
    """`08-11` counts with leading zeros."""
    found = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
    first, last = (found[1], found[2] or found[1]) if found else ("1", "0")
    if not 0 <= int(last) - int(first) < MOST_HOSTS:
        raise HakaruError(f"--hosts: {word[:80]!r} cannot be read; write n[1-4,7], or n1,n2")
    return [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]


def check_options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse options of sbatch that would begin a new line of the batch script."""
    for name, value in options.items():
        if not OPTION.fullmatch(name):
            raise HakaruError(f"--slurm: {name[:80]!r} is not an option name, such as partition")
        if isinstance(value, str) and not value.isprintable():
            raise HakaruError(f"--slurm {name}: {value[:80]!r} has control characters")
    return options


class Launcher(Protocol):
    """Starts the worker's processes and waits for their end."""

    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...

    def check(self, layout: Layout) -> None:
        """Raise where it cannot run here, with what to do."""

    def run(self, task: Path, layout: Layout, timeout_s: float, watch: Watch) -> list[str]:
        """Run to the end, or to the time limit; what went wrong, in words.

        It calls `watch` now and then while the processes run, and not while they wait in a queue.
        """


LAUNCHERS: Registry[Launcher] = Registry("launcher")


def load_all() -> Registry[Launcher]:
    for name in NAMES:
        importlib.import_module(f"hakaru.measure.launch.{name}")
    return LAUNCHERS


@dataclass(frozen=True)
class Start:
    """One process to start: its words, its variables, and where its output goes."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    log: Path


def rank_variables(rank: int, size: int, local_rank: int, local_size: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(local_size),
    }


def worker_variables() -> dict[str, str]:
    """One thread a rank, nothing of the working directory is imported, and what the user typed."""
    return {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "PYTHONSAFEPATH": "1",
        COMMAND: os.environ.get(COMMAND) or shlex.join(sys.argv),
    }


def run_all(starts: Sequence[Start], timeout_s: float, watch: Watch) -> list[str]:
    """Start all, wait for all; where one dies, the others get a moment and are then ended."""
    processes: list[tuple[Start, subprocess.Popen[bytes]]] = []
    try:
        for start in starts:
            processes.append((start, _start(start)))
        return _wait(processes, timeout_s, watch)
    finally:
        _end([process for _, process in processes if process.poll() is None])


def ended(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def last_words(text: str) -> str:
    """The last line that a program printed, else how the advice begins that mpirun draws in a box.

    Beside the box ssh says which host it cannot reach, and Python why it ended.
    """
    outside, boxes = RULER.split(text)[::2], RULER.split(text)[1::2]
    written = [line.strip() for part in outside for line in part.splitlines() if line.strip("-=* ")]
    if written:
        return written[-1][-MOST_TAIL:]
    first = boxes[0].strip().partition("\n\n")[0] if boxes else ""
    return " ".join(first.split())[:MOST_TAIL]


def _start(start: Start) -> subprocess.Popen[bytes]:
    with start.log.open("ab") as log:
        try:
            return subprocess.Popen(
                list(start.command),
                env={**os.environ, **start.environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that its own children can be killed with it
            )
        except OSError as error:
            raise HakaruError(f"{start.command[0]} cannot be started: {error.strerror}") from None


def _wait(
    processes: Sequence[tuple[Start, subprocess.Popen[bytes]]], timeout_s: float, watch: Watch
) -> list[str]:
    deadline = time.monotonic() + timeout_s
    problems: dict[str, str] = {}
    while True:
        running = []
        for start, process in processes:
            code = process.poll()
            if code is None:
                running.append(start.name)
            elif code != 0 and start.name not in problems:
                problems[start.name] = _problem(start, code)
                deadline = min(deadline, time.monotonic() + GRACE_S)
        watch()
        if not running:
            return list(problems.values())
        if time.monotonic() > deadline:
            if not problems:
                seconds = f"{timeout_s:.0f} s"
                problems["time"] = (
                    f"time ran out after {seconds}; still running: {', '.join(running)}"
                )
            return list(problems.values())
        time.sleep(LOOK_EVERY_S)


def _problem(start: Start, code: int) -> str:
    try:
        tail = last_words(start.log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        tail = ""
    tail = tail.removeprefix("hakaru.errors.HakaruError: ")
    return f"{start.name} {ended(code)}" + (f": {tail}" if tail else "")


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask them to end, so that what they made goes with them, and kill who has not ended in time."""
    try:
        for process in processes:
            os.kill(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + TIDY_S
        while any(map(_is_running, processes)) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
    finally:  # also where somebody does not want to wait
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    """Without taking note of its end: until then its number, and that of its group, are nobody else's."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, options) is None
