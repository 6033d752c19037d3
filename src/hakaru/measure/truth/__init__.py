"""Things of known truth that prove the meter: a throttled core, a memory limit, a slow disk, shaped links."""

from __future__ import annotations

from pathlib import Path

from hakaru.errors import HakaruError


class Unavailable(HakaruError):
    """This machine or this user cannot make it; the message says why and what to do."""


def is_running(pid: int) -> bool:
    """Whether the owner of something we made still lives; what a dead one left is removed."""
    return Path(f"/proc/{pid}").exists()
