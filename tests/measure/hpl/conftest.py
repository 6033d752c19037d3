"""Stand-ins for xhpl, mpirun and Slurm, as programs that can be started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hakaru.measure import validity
from hakaru.measure.hpl import Program, Start
from tests.measure.hpl._launchers import Tools

FAKE = Path(__file__).with_name("_xhpl.py")
ALONE = Start(lambda ranks: ())  # the program by itself, without a launcher


@pytest.fixture
def fake_xhpl(tmp_path: Path) -> Program:
    path = tmp_path / "xhpl"
    path.write_text(f"#!/bin/sh\nexec {sys.executable} -S {FAKE}\n")
    path.chmod(0o755)
    return Program("xhpl", str(path))


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else uses the machine."""
    monkeypatch.setattr(validity, "problems", lambda *_: [])


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_xhpl: Program) -> Tools:
    """Stand-ins for mpirun and Slurm on $PATH, and for xhpl in its variable."""
    found = Tools.make(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{found.folder}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_CALLS", str(found.calls_file))
    monkeypatch.setenv("HAKARU_XHPL", fake_xhpl.path)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return found
