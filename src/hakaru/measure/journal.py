"""A journal of results: one line each, with a mark of its contents, so that a half-written one is noticed.

Workers append to it and the controller reads it; what is in it is not measured again when a run resumes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.safety.files import file_mode

FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class JournalError(HakaruError, OSError):
    """A journal cannot be written; an OSError too, for those who can do without one."""


def append(path: Path, entry: Mapping[str, Any]) -> None:
    """Add an entry; it is on the disk when this returns."""
    text = json.dumps({"kind": "entry"} | dict(entry), sort_keys=True)
    try:
        _add(path, f"{_mark(text)} {text}\n".encode())
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise JournalError(f"{path} cannot be written: {reason}") from None


def read(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The whole entries, and how many lines are not whole."""
    try:
        lines = path.read_bytes().decode("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise HakaruError(f"{path}: cannot be read: {error.strerror}") from None
    filled = [line for line in lines if line.strip()]
    entries = [entry for line in filled if (entry := _entry(line)) is not None]
    return entries, len(filled) - len(entries)


def _add(path: Path, line: bytes) -> None:
    mode = file_mode(path.parent)
    handle = os.open(path, FLAGS, mode)
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
