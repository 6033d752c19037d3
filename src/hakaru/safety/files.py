"""Who may read what is written: this user alone, or the group that the workspace names.

The umask decides the modes of all files at once, also of those that DuckDB, Delta and Chromium write. A
workspace's own folders have their mode set besides, so that a program that uses the library gets the same.
"""

from __future__ import annotations

import atexit
import errno
import functools
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hakaru.errors import HakaruError, SettingsError

NOBODY_ELSE, GROUP_TOO = 0o077, 0o007
SHARED_FOLDER, SHARED_FILE = 0o2770, 0o660  # 2: what is written inside has the group too
NAMES_ONLY_PASSED = 0o066  # folders above a group's: others pass through and cannot list them


@dataclass(frozen=True)
class Readers:
    """Who reads a workspace: its owner, and a group if one is named."""

    group: str | None = None

    @property
    def umask(self) -> int:
        return GROUP_TOO if self.group else NOBODY_ELSE

    def gid(self) -> int | None:
        import grp

        if self.group is None:
            return None
        try:
            return grp.getgrnam(self.group).gr_gid
        except KeyError:
            raise SettingsError(
                f"workspace.group: this host has no group {self.group!r}; "
                "`id -Gn` lists those that you are in"
            ) from None


@contextmanager
def masked(umask: int) -> Iterator[None]:
    """New files have none of the bits of `umask`; the process' own umask comes back at the end."""
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


def make_folder(folder: Path, readers: Readers) -> None:
    """The folder with the mode of its readers, if it is not there; one that is there stays as it is."""
    if folder.is_dir():
        return
    with masked(NAMES_ONLY_PASSED if readers.group else NOBODY_ELSE):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if readers.group:
        _share(folder, readers)


def own_folder(folder: Path, readers: Readers) -> int | None:
    """A folder of ours, with all that is in it, for its readers; the mode it had where that was changed."""
    make_folder(folder, readers)
    found, gid = folder.stat(), readers.gid()
    mode = stat.S_IMODE(found.st_mode)
    fits = (mode, found.st_gid) == (SHARED_FOLDER, gid) if readers.group else not mode & 0o077
    if fits:
        return None
    # a link may lead out of the folder, and chmod would follow it
    inside = (path for path in folder.rglob("*") if not path.is_symlink())
    for path in [folder, *inside]:
        with suppress(FileNotFoundError):  # another writer tidies up
            _share(path, readers) if readers.group else _close(path)
    after = folder.stat()
    is_same = (after.st_mode, after.st_gid) == (found.st_mode, found.st_gid)
    return None if is_same else mode


def _close(path: Path) -> None:
    """Nobody but the owner; of what belongs to another, the owner has to decide."""
    with suppress(PermissionError):
        path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)


def _share(path: Path, readers: Readers) -> None:
    try:
        os.chown(path, -1, readers.gid() or 0, follow_symlinks=False)
        path.chmod(SHARED_FOLDER if path.is_dir() else SHARED_FILE)
    except PermissionError:
        raise SettingsError(
            f"{path} cannot be given to the group {readers.group!r}: its owner, as a member of the "
            "group, has to run a command that writes, e.g. hakaru lake compact"
        ) from None


def open_lock(path: Path) -> IO[bytes]:
    """A lock file, made if it is not there. It is never emptied: whatever it turns out to be stays whole."""
    try:
        flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0)
    except OSError as error:
        if error.errno == errno.ELOOP:
            refuse_link(path)
        raise


def refuse_link(path: Path) -> None:
    """For a place of our own, where a link would lead what we write or remove to other people's files."""
    if path.is_symlink():
        raise HakaruError(
            f"{path} is a link to {path.readlink()}, and nothing is written through it. If nobody "
            f"needs it, remove it with: rm {shlex.quote(str(path))}"
        )


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all, for those who may read its folder, and never through a link.

    What is written first has a name that nobody can guess, and is made anew.
    """
    refuse_link(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, file_mode(path.parent))
            file.write(text)
            file.flush()
            os.fsync(handle)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def file_mode(folder: Path) -> int:
    """Of a new file: for the group too where the folder is a group's."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    return SHARED_FILE if mode & SHARED_FOLDER == SHARED_FOLDER else 0o600


def spill_folder() -> Path:
    """A folder of this process for what does not fit into memory; it goes when the process ends."""
    return _spill_folder(os.getpid())


@functools.cache
def _spill_folder(process: int) -> Path:
    folder = Path(
        tempfile.mkdtemp(prefix="hakaru-spill-")
    )  # mode 0700, and a name nobody can guess

    def remove() -> None:
        if os.getpid() == process:  # not in a fork, which has this handler too
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder
