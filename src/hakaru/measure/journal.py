"""A journal of results: one line each, with a mark of its contents, so that a half-written one is noticed.

Workers append to it and the controller reads it; what is in it is not measured again when a run resumes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.safety.files import file_mode

OURS = os.O_NOFOLLOW | os.O_CLOEXEC
APPENDING = os.O_RDWR | os.O_APPEND | os.O_CREAT | OURS
READING = os.O_RDONLY | os.O_NONBLOCK | OURS  # a pipe without a writer must not hold the reader
MOST_BYTES = 1 << 30  # far more than a rank writes; a sparse file must not fill the memory


class JournalError(HakaruError, OSError):
    """A journal cannot be written; an OSError too, for those who can do without one."""


def append(path: Path, entry: Mapping[str, Any]) -> None:
    """Add an entry; it is on the disk when this returns."""
    text = json.dumps({"kind": "entry"} | dict(entry), sort_keys=True)
    try:
        _add(path, f"{_mark(text)} {text}\n".encode())
    except OSError as error:
        raise JournalError(f"{path} cannot be written: {_reason(error)}") from None


def read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The whole entries, and how many lines are not whole; raises for what is no file, or is too large."""
    try:
        lines = _contents(path).decode("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise HakaruError(f"{path}: cannot be read: {_reason(error)}") from None
    filled = [line for line in lines if line.strip()]
    entries = [entry for line in filled if (entry := _entry(line)) is not None]
    return entries, len(filled) - len(entries)


def _contents(path: Path) -> bytes:
    handle = os.open(path, READING)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if found.st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {MOST_BYTES:,} bytes")
        with open(handle, "rb", closefd=False) as file:
            return file.read(found.st_size)  # a writer may add to it meanwhile
    finally:
        os.close(handle)


def _reason(error: OSError) -> str:
    return "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)


def _add(path: Path, line: bytes) -> None:
    mode = file_mode(path.parent)
    handle = os.open(path, APPENDING, mode)
    try:
        if os.fstat(handle).st_size == 0:  # new: the umask would shut a group out
            with suppress(PermissionError):
                os.fchmod(handle, mode)
        if not _ends_whole(handle):  # a killed writer's half line must not swallow this one
            line = b"\n" + line
        while line:  # a full disk may take a part only
            line = line[os.write(handle, line) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _entry(line: str) -> dict[str, Any] | None:
    """What a line says; None where it is not whole, or says not of which kind it is."""
    mark, _, text = line.partition(" ")
    if mark != _mark(text):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("kind"), str) else None


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()[:12]


def _ends_whole(handle: int) -> bool:
    size = os.fstat(handle).st_size
    return size == 0 or os.pread(handle, 1, size - 1) == b"\n"
