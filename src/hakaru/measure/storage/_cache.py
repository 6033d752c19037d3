"""Files out of the page cache, so that an epoch is cold, and how much of them is cached.

`posix_fadvise(DONTNEED)` drops the clean pages of a file and leaves everybody else's alone. It is a request:
pages that are mapped, dirty or of a file system in memory stay, so that `mincore` is asked afterwards.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import open_regular, sync_file_system
from hakaru.measure.numbers import share

MOST_LEFT = 0.02  # of the bytes, where an eviction counts as whole
MOST_LOOKED_AT = 2_000  # files; of more, as many spread over all
FEW = 64  # files that are written out one by one; of more, their whole file system is
TRIES = 3
PAUSE_S = 0.05  # pages in flight are dropped a moment later


@dataclass(frozen=True)
class Eviction:
    """What was to leave the page cache, and the share of it that stayed; None where nobody can tell."""

    total_bytes: int
    left: float | None

    @property
    def worked(self) -> bool | None:
        return None if self.left is None else self.left <= MOST_LEFT

    @property
    def problem(self) -> str:
        """Why the next epoch may not be cold; empty where it is."""
        if self.worked:
            return ""
        if self.left is None:
            return (
                "nobody can tell whether the files left the page cache: they belong to another user"
            )
        return f"{share(self.left)} of the files stayed in the page cache"


def evict(paths: Iterable[Path]) -> Eviction:
    """Write the files out and drop them from the page cache; says what stayed."""
    files = list(paths)
    _write_out(files)
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE_S)
        total = sum(_drop(path) for path in files)
        left = cached_share(files)
        if left is None or left <= MOST_LEFT:
            break
    return Eviction(total, left)


def cached_share(paths: Sequence[Path]) -> float | None:
    """The share of the files' bytes that is in the page cache; None where the kernel does not tell."""
    step = max(1, -(-len(paths) // MOST_LOOKED_AT))
    total = cached = 0
    for path in paths[::step]:
        with _opened(path) as handle:
            found = os.fstat(handle)
            if not (found.st_uid == os.geteuid() or os.access(path, os.W_OK)):
                return None  # of files that one may not write, kernels since 5.2 call every page cached
            size = found.st_size
            total += size
            cached += min(size, _resident_bytes(handle, size)) if size else 0
    return cached / total if total else 0.0


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A regular file, and never through a link."""
    handle = open_regular(path)
    try:
        yield handle
    finally:
        os.close(handle)


def _write_out(files: Sequence[Path]) -> None:
    """Dirty pages cannot be dropped."""
    if len(files) > FEW:
        for folder in {path.parent.stat().st_dev: path.parent for path in files}.values():
            sync_file_system(folder)
        return
    for path in files:
        with _opened(path) as handle, suppress(OSError):  # a read-only one has nothing to write
            os.fsync(handle)


def _drop(path: Path) -> int:
    """The file's size."""
    with _opened(path) as handle:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.fstat(handle).st_size


def _resident_bytes(fd: int, size: int) -> int:
    num_pages = -(-size // mmap.PAGESIZE)
    flags = np.zeros(num_pages, dtype=np.uint8)
    with mmap.mmap(fd, size, access=mmap.ACCESS_READ) as mapped:
        bytes_there = np.frombuffer(mapped, dtype=np.uint8)
        address = bytes_there.ctypes.data
        failed = ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_void_p(flags.ctypes.data)
        )
        del bytes_there  # holds the mapping open
    if failed:
        raise HakaruError(
            f"the kernel does not say what of a file is cached: {os.strerror(ctypes.get_errno())}"
        )
    return int((flags & 1).sum()) * mmap.PAGESIZE
