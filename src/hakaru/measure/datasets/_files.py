"""Opening and reading the files of a data set: regular files only, and never through a link."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from hakaru.errors import HakaruError

MOST_OPEN = 256  # files that a process keeps open, of the 1,024 that it may have
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would block for ever


class Closes(Protocol):
    def close(self) -> object: ...


T = TypeVar("T", bound=Closes)


def damaged(path: Path, found: str) -> HakaruError:
    """A file that cannot be read as what it should be, and what to do."""
    return HakaruError(
        f"{path}: {found}. The data set is damaged: remove its folder and write it again"
    )


def open_regular(path: Path) -> int:
    """A file descriptor of a regular file; links, folders, pipes and devices are refused."""
    try:
        handle = os.open(path, FLAGS)
    except FileNotFoundError:
        raise damaged(path, "the file is missing") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise damaged(path, "found a link, expected a regular file") from None
        raise HakaruError(f"{path}: cannot be opened: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise damaged(path, "this is no regular file")
    return handle


def file_size(path: Path) -> int:
    """The size of a regular file; a link or a missing file is an error."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise damaged(path, "the file is missing") from None
    except OSError as error:
        raise HakaruError(f"{path}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise damaged(path, "expected a regular file, found a link, a folder or a device")
    return found.st_size


def read_at(handle: int, num_bytes: int, offset: int, path: Path) -> bytes:
    """Exactly so many bytes from there; a file that ends earlier is damaged."""
    try:
        data = os.pread(handle, num_bytes, offset)
        if len(data) < num_bytes:  # the kernel reads 2 GiB at most at once
            data = _read_rest(handle, data, num_bytes, offset)
    except OSError as error:
        raise HakaruError(f"{path}: reading at byte {offset:,} failed: {error.strerror}") from None
    except MemoryError:
        raise no_memory(path, num_bytes) from None
    if len(data) < num_bytes:
        raise damaged(path, f"expected {num_bytes:,} bytes at byte {offset:,}, found {len(data):,}")
    return data


def _read_rest(handle: int, data: bytes, num_bytes: int, offset: int) -> bytes:
    parts, have = [data], len(data)
    while have < num_bytes and parts[-1]:
        parts.append(os.pread(handle, num_bytes - have, offset + have))
        have += len(parts[-1])
    return b"".join(parts)


def no_memory(path: Path, num_bytes: int) -> HakaruError:
    """A part of a file that is too large to be read at once."""
    return HakaruError(
        f"{path}: {num_bytes:,} bytes of it do not fit into memory; use a machine with more, or pack the "
        "data set into smaller ones"
    )


def drop(path: Path) -> int:
    """Drop what the page cache has of a file, but for what is not on the disk yet; the file's size."""
    handle = open_regular(path)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def sync_file_system(folder: Path) -> None:
    """All that was written to the folder's file system is on the disk; one call for a million files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if call is None:  # not Linux
            os.sync()
        elif call(handle) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(handle)


class Opened(Generic[T]):
    """Files opened when they are first read, in each process anew; the least used is closed at `most`."""

    def __init__(self, opener: Callable[[Path], T], most: int = MOST_OPEN) -> None:
        self._opener, self._most = opener, most
        self._process, self._files = os.getpid(), OrderedDict[Path, T]()

    def get(self, path: Path) -> T:
        if self._process != os.getpid():  # a fork shares the parent's place in the file
            self._process, self._files = os.getpid(), OrderedDict()
        found = self._files.get(path)
        if found is None:
            if len(self._files) >= self._most:
                self._files.popitem(last=False)[1].close()
            found = self._files[path] = self._opener(path)
        else:
            self._files.move_to_end(path)
        return found

    def close(self) -> None:
        while self._files:
            self._files.popitem()[1].close()


class Handle:
    """A file descriptor that is closed with its object."""

    def __init__(self, path: Path) -> None:
        self.number = open_regular(path)

    def close(self) -> None:
        if self.number >= 0:
            os.close(self.number)
            self.number = -1

    __del__ = close
