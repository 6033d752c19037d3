"""Processes: how this one ends when it is told to, and how others of Python are started.

Nothing of the working directory is ever imported by them.
"""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# without -P, `-m` puts the working directory first: a numpy.py that lies there would run
SAFE_PATH = "-P"


@contextmanager
def tidy_end() -> Iterator[None]:
    """SIGTERM ends the process as an exit does, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():  # only it may set a handler
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours with this Python."""
    return [sys.executable, SAFE_PATH, "-m", module, *arguments]


def python_words() -> str:
    """This Python as a shell's words, for a launcher that adds `-m …` by itself."""
    return shlex.join([sys.executable, SAFE_PATH])
