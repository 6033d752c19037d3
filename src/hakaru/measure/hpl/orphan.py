"""The processes of a launch: what a killed search left running is ended, as it would disturb the next one."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hakaru.errors import HakaruError

WAIT_S = 5.0
# places in /proc/PID/stat after the name
_PARENT, _TIMES, _START_TIME = 1, slice(11, 15), 19


@contextmanager
def only_search(folder: Path) -> Iterator[None]:
    """Hold the folder: two searches that share a machine and a journal would spoil both."""
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise HakaruError(
                f"{folder}: another search works in this folder; wait for it, or give another folder"
            ) from None
        yield


def note(path: Path, pid: int) -> None:
    """Remember the launch that runs; its start tells it from a later process with the same number."""
    path.write_text(json.dumps({"pid": pid, "started": _started(pid)}))


def end_left_over(path: Path) -> bool:
    """End the launch that was noted, where it still runs."""
    try:
        known = json.loads(path.read_text())
        pid, started = int(known["pid"]), str(known["started"])
    except (OSError, ValueError, TypeError, KeyError):
        return False
    found = False
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _started(pid) != started:
            break
        found = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)
        _wait(pid, started)
    path.unlink(missing_ok=True)
    return found


def most_used_s(pid: int) -> float:
    """The most processor time that a process and all that descend from it can have used so far.

    /proc cuts each number to whole ticks, which hides seconds of a few hundred ranks.
    """
    known = {int(path.name): _stat(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    family = {pid}
    while (
        more := {each for each, row in known.items() if row and int(row[_PARENT]) in family}
        - family
    ):
        family |= more
    ticks = sum(int(value) + 1 for each in family for value in (known.get(each) or [])[_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")


def _wait(pid: int, started: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while _started(pid) == started and time.monotonic() < deadline:
        time.sleep(0.05)


def _started(pid: int) -> str | None:
    """When the process began, in ticks; None where it is gone or only waits to be reaped."""
    fields = _stat(pid)
    return None if not fields or fields[0] in "ZX" else fields[_START_TIME]


def _stat(pid: int) -> list[str]:
    """The fields after the name; none where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
