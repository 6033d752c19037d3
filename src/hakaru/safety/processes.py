"""Other processes of Python: nothing of the working directory is ever imported by them."""

from __future__ import annotations

import shlex
import sys

# without -P, `-m` puts the working directory first: a numpy.py that lies there would run
SAFE_PATH = "-P"


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours with this Python."""
    return [sys.executable, SAFE_PATH, "-m", module, *arguments]


def python_words() -> str:
    """This Python as a shell's words, for a launcher that adds `-m …` by itself."""
    return shlex.join([sys.executable, SAFE_PATH])
