"""Files out of the page cache, so that an epoch is cold, and how much of them is cached.

`posix_fadvise(DONTNEED)` drops the clean pages of a file and leaves everybody else's alone. It is a request:
pages that are mapped, dirty or of a file system in memory stay, so that `mincore` is asked afterwards.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hakaru.errors import HakaruError

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
        return f"{self.left:.0%} of the files stayed in the page cache"


def files_below(path: Path) -> list[Path]:
    """The file itself, or all files in a folder and its folders, in a fixed order."""
    if path.is_file():
        return [path]
    found = [
        Path(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if not os.path.islink(os.path.join(folder, name))  # noqa: PTH114, PTH118 - a Path a file is slow
    ]
    if not found:
        raise HakaruError(f"{path} has no files; expected a data set there")
    return sorted(found)


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
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not _may_look(path):
                return None
            total += size
            cached += min(size, _resident_bytes(file.fileno(), size)) if size else 0
    return cached / total if total else 0.0


def _write_out(files: Sequence[Path]) -> None:
    """Dirty pages cannot be dropped."""
    if len(files) > FEW and _sync_file_systems(files):
        return
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        try:
            with suppress(OSError):  # a read-only file system has nothing to write
                os.fsync(fd)
        finally:
            os.close(fd)


def _sync_file_systems(files: Sequence[Path]) -> bool:
    """One call for each file system; False where the C library lacks it."""
    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None:
        return False
    each_of = {os.stat(path.parent).st_dev: path for path in files}  # noqa: PTH116
    for path in each_of.values():
        fd = os.open(path, os.O_RDONLY)
        try:
            syncfs(fd)
        finally:
            os.close(fd)
    return True


def _drop(path: Path) -> int:
    """The file's size."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.fstat(fd).st_size
    finally:
        os.close(fd)


def _may_look(path: Path) -> bool:
    """Of files that one may not write, kernels since 5.2 call every page cached."""
    return os.access(path, os.W_OK) or path.stat().st_uid == os.geteuid()


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
