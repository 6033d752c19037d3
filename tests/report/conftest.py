"""Reports of small lakes, read as data and opened in a real Chromium."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.figures._chromium import SWITCHES, find_chromium

Browser = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    """Open a page with a profile of its own; its console goes to stderr."""

    def run(page: Path, *how: str) -> subprocess.CompletedProcess[str]:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [find_chromium(), *SWITCHES, *sandbox, f"--user-data-dir={tmp_path / 'profile'}"]
        more = ["--enable-logging=stderr", "--virtual-time-budget=20000", *how, page.as_uri()]
        return subprocess.run([*command, *more], capture_output=True, text=True, timeout=120)

    return run
