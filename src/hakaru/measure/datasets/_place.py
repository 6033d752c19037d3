"""Where a data set is built: beside its folder under a hidden name, and renamed when it is whole."""

from __future__ import annotations

import errno
import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import open_regular
from hakaru.measure.datasets._layout import Layout
from hakaru.measure.datasets._table import ROW
from hakaru.measure.place import host_name

NAME_BYTES = 32  # of a key in the table, about
RESERVE = 0.01  # of the volume, for folders and the file system's own tables
LOCK, MOST_NAME = "lock", 1024  # bytes of a host's name


class TakenError(HakaruError):
    """Another process made the same folder in the meantime."""


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """An empty folder that becomes `folder` at the end, and is removed after an error.

    What a killed process left behind is removed by the next that builds the same.
    """
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(folder)
        place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_prefix(folder)))
    except OSError as error:
        raise HakaruError(f"{folder}: cannot be made: {error.strerror or error}") from None
    try:
        with (place / LOCK).open("x") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.write(host_name())
            lock.flush()
            part = place / "data"
            part.mkdir()
            yield part
            _move(part, folder)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def check_space(folder: Path, layout: Layout, num_samples: int, num_bytes: int) -> None:
    """Refuse before anything is written what the disk has no space for."""
    each = layout.extra_bytes + ROW.itemsize + NAME_BYTES
    needed = round(num_bytes * (1 + RESERVE)) + num_samples * each
    there = folder.absolute()
    try:
        while not there.exists():
            there = there.parent
        found = os.statvfs(there)
    except OSError as error:
        raise HakaruError(f"{there}: cannot be looked at: {error.strerror}") from None
    free, files = found.f_bavail * found.f_frsize, num_samples * layout.extra_files
    if needed > free:
        raise HakaruError(
            f"{folder}: the data set needs {volume(needed)} and {volume(free)} are free on {there}. Free "
            "some, name a folder on another disk, or make a smaller data set"
        )
    if found.f_files and files > found.f_favail:  # some file systems do not count
        raise HakaruError(
            f"{folder}: the data set needs {files:,} files and {there} has place for {found.f_favail:,}; "
            "use a layout of few files, such as tar"
        )


def volume(num_bytes: int) -> str:
    """A volume as people say it, in GB or MB."""
    return f"{num_bytes / 1e9:,.2f} GB" if num_bytes >= 1e7 else f"{num_bytes / 1e6:,.2f} MB"


def _prefix(folder: Path) -> str:
    return f".{folder.name[:100]}.building-"


def _move(part: Path, folder: Path) -> None:
    """Rename it into its place; an empty folder there is taken over, another is left as it is."""
    try:
        part.rename(folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise TakenError(
                f"{folder}: another process has written here meanwhile; what it wrote is left as it is"
            ) from None
        raise HakaruError(f"{folder}: cannot be made: {error.strerror}") from None
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_leftovers(folder: Path) -> None:
    for place in folder.parent.glob(f"{glob.escape(_prefix(folder))}*"):
        if not place.is_symlink() and _is_left(place):
            shutil.rmtree(place, ignore_errors=True)


def _is_left(place: Path) -> bool:
    """Whether nobody builds there: this host and user wrote the lock, and hold it no more.

    The folder may be everybody's, so that what is no regular file of one's own is left alone.
    """
    try:
        handle = open_regular(place / LOCK)
    except HakaruError:
        return False
    with open(handle, "rb") as lock:
        is_own = os.fstat(handle).st_uid == os.geteuid()
        return is_own and lock.read(MOST_NAME) == host_name().encode() and _is_free(handle)


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
