"""Compiled kernels are kept on disk, and made anew when a part of them changes in another file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hakaru.sim import _compiling

CALLEE = """
from kernels._compiling import compiler

compiled = compiler({{}})

@compiled
def step(x):
    return x + {more}
"""
CALLER = """
from kernels._callee import compiled, step

@compiled
def play(x):
    return step(x) * 10
"""
ASK = "from kernels._caller import play; print(play(1), sum(play.stats.cache_hits.values()))"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    shutil.copy(_compiling.__file__, folder / "_compiling.py")
    (folder / "_callee.py").write_text(CALLEE.format(more=1))
    (folder / "_caller.py").write_text(CALLER)
    return folder


def ask(room: Path) -> str:
    """What the kernel answers to 1, and how often it was found on disk."""
    folders = [str(room.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-c", ASK]
    run = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return run.stdout.strip()


def test_a_callee_that_changes_in_another_file_is_noticed(room: Path) -> None:
    assert ask(room) == "20 0"
    assert ask(room) == "20 1"
    (room / "_callee.py").write_text(CALLEE.format(more=99))
    assert ask(room) == "1000 0"
    assert ask(room) == "1000 1"
