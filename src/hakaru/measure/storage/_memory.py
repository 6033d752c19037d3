"""Room in memory for the files that the loader's workers read: larger than memory in small.

The workers join a control group whose limit is what they need themselves and so many MiB for the page cache,
which the kernel counts to whom reads a page first. Without rights to that the machine's memory is the limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.measure.truth.throttle import Throttle, memory_limit

MIB = 1 << 20
FREE_BYTES = 1 << 42  # no limit, until it is known what the workers need themselves
GROWTH_BYTES = 4 * MIB  # of a worker while it reads its first epoch
LEFT_BYTES = MIB  # and after it
OWN = ("rss", "anon", "shmem", "kernel")  # of v1 and v2; the rest of a group is cached files


@dataclass(frozen=True)
class Room:
    """A control group for workers; `settle` puts the limit into force, closer once they have read."""

    group: Throttle
    files_bytes: int

    def settle(self, num_workers: int, have_read: bool = False) -> int:
        """The limit, once the workers have everything that they need but files."""
        growth = LEFT_BYTES if have_read else GROWTH_BYTES
        limit = self.own_bytes() + num_workers * growth + self.files_bytes
        try:
            self.group.file.write_text(str(limit))
        except OSError as error:
            raise HakaruError(
                f"{self.group.file}: {error.strerror}; expected to set a limit"
            ) from None
        return limit

    def own_bytes(self) -> int:
        """What the group has in memory beside cached files."""
        text = (self.group.folder / "memory.stat").read_text()
        found = dict(re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE))
        own = sum(int(found.get(name, 0)) for name in OWN)
        return own + _number(self.group.folder / "memory.kmem.usage_in_bytes")


@contextmanager
def files_room(mib: int) -> Iterator[Room]:
    """A group that caches so many MiB of files; `Unavailable` where this machine or user cannot make one."""
    with memory_limit(FREE_BYTES) as group:
        yield Room(group, mib * MIB)


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
