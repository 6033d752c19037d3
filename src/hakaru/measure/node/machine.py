"""How a node is read: files under a root, environment variables and commands, all of which tests can fake.

What cannot be read raises `Unread`, what is known not to exist raises `Absent`; neither becomes zero.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

Runner = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]
Found = TypeVar("Found")

TIMEOUT_S = 20.0
MOST_HUNG = 2  # programs: a launcher waits for a node's whole answer for 60 s
HANGS = "did not answer within"
MOST_CHARACTERS = 1 << 20


class Unread(Exception):
    """A fact that could not be read; the text says why."""


class NotInstalled(Unread):
    """The command that reads it is not installed."""


class Absent(Exception):
    """It is known not to exist on this node; the text says how that is known."""


def run_command(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in English with a time limit; one that cannot be killed is left behind.

    A hung driver puts nvidia-smi into uninterruptible sleep: `subprocess.run` would wait for it forever.
    """
    program = shutil.which(command[0])
    if program is None:  # Popen says "permission denied" where a folder of PATH is not readable
        raise FileNotFoundError(command[0])
    process = subprocess.Popen(
        [program, *command[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1.0)
        raise
    return subprocess.CompletedProcess(list(command), process.returncode, out, err)


def waiting_once(run: Runner) -> Runner:
    """The same, but a program that hung is not waited for again, and after two of them none is started.

    Several facts ask nvidia-smi: waiting each time would cost the answer of the whole node.
    """
    hung: dict[str, None] = {}

    def run_again(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        program = command[0]
        if program in hung:
            raise subprocess.TimeoutExpired(list(command), TIMEOUT_S)
        if len(hung) >= MOST_HUNG:
            before = " and ".join(hung)
            raise Unread(f"{program} was not started, since {before} {HANGS} {TIMEOUT_S:g} s each")
        try:
            return run(command)
        except subprocess.TimeoutExpired:
            hung[program] = None
            raise

    return run_again


@dataclass(frozen=True, eq=False)
class Machine:
    """One node as the readers of facts see it; by default the one where this runs."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    run: Runner = run_command
    now: Callable[[], float] = time.time
    peers: tuple[str, ...] = ()  # names that it must be able to resolve

    def known(self, read: Callable[[Machine], Found]) -> Found | None:
        """What a reader finds; None where it is absent or cannot be read."""
        try:
            return read(self)
        except (Absent, Unread):
            return None

    def text(self, path: str) -> str:
        """A file's text, stripped."""
        try:
            with open(self._at(path), encoding="utf-8", errors="replace") as file:
                return file.read(MOST_CHARACTERS).strip()
        except OSError as error:
            raise Unread(f"{path}: {error.strerror or error}") from None

    def number(self, path: str) -> int:
        text = self.text(path)
        if not text.removeprefix("-").isdecimal():
            raise Unread(f"{path}: expected a whole number, found {text[:40]!r}")
        return int(text)

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""
        try:
            return sorted(os.listdir(self._at(folder)))  # noqa: PTH208 names, not paths
        except OSError as error:
            raise Unread(f"{folder}: {error.strerror or error}") from None

    def exists(self, path: str) -> bool:
        return self._at(path).exists()

    def missing(self, path: str) -> bool:
        """Whether the parent folder exists without it: then it is absent, rather than unreadable."""
        return self._at(path).parent.is_dir() and not self.exists(path)

    def output(self, *command: str) -> str:
        """What a command prints; an exit code other than 0 raises `Unread`."""
        done = self.finished(*command)
        if done.returncode:
            message = (done.stderr or done.stdout).strip()[:200]
            raise Unread(f"{command[0]} failed with exit code {done.returncode}: {message}")
        return done.stdout[:MOST_CHARACTERS]

    def finished(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A finished command, whatever its exit code."""
        try:
            return self.run(command)
        except FileNotFoundError:
            raise NotInstalled(f"{command[0]} is not installed") from None
        except subprocess.TimeoutExpired:
            raise Unread(f"{command[0]} {HANGS} {TIMEOUT_S:g} s") from None
        except OSError as error:
            raise Unread(f"{command[0]}: {error.strerror or error}") from None

    def _at(self, path: str) -> Path:
        return self.root / path.lstrip("/")


HERE = Machine()
