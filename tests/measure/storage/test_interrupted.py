"""A run that is interrupted: its data sets, its control groups and its processes go with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.measure.storage._counters import IN_MEMORY, file_system_of

pytest.importorskip("torch")
WORDS = ("-m", "hakaru", "bench", "run", "data-size", "--param", "model=none", "--budget", "60s")
CONTROL_GROUPS = Path("/sys/fs/cgroup")
START_S, END_S = 60.0, 30.0


def children_of(pid: int) -> list[int]:
    """All processes below one."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    own = [int(word) for word in listed.read_text().split()] if listed.exists() else []
    return own + [each for child in own for each in children_of(child)]


def lives(pid: int) -> bool:
    """One that has ended may stay listed where nobody takes note of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def groups_of(pids: list[int]) -> list[Path]:
    """The control groups that these processes made."""
    return [found for pid in pids for found in CONTROL_GROUPS.rglob(f"hakaru-{pid}-*")]


def wait_for(is_so: Callable[[], object], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.05)
    return bool(is_so())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("launcher", ["local", "torchrun"])
def test_nothing_stays_behind(tmp_path: Path, number: signal.Signals, launcher: str) -> None:
    if file_system_of(tmp_path).type in IN_MEMORY:
        pytest.skip("the temporary folder is in memory")
    data = tmp_path / "data"
    data.mkdir()
    log = tmp_path / "log"
    words = [sys.executable, *WORDS, "--launcher", launcher, "-w", str(tmp_path / "ws")]
    words += ["--ranks-per-host", "2"]
    with log.open("wb") as file:
        run = subprocess.Popen(
            words, env=os.environ | {"TMPDIR": str(data)}, stdout=file, stderr=file
        )
    try:
        is_reading = wait_for(lambda: list(data.glob("hakaru-data-*/hakaru-*")), START_S)
        assert is_reading, log.read_text()
        pids = children_of(run.pid)
        groups = groups_of(pids)
        run.send_signal(number)
        run.wait(END_S)
    finally:
        run.kill()
    assert list(data.glob("hakaru-*")) == []
    assert wait_for(lambda: not any(map(lives, pids)), END_S)
    assert [group for group in groups if group.exists()] == []
    assert pids
