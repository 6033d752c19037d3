"""What a log may be given as, and the file that is read for it.

A regular file is read where it is, where DuckDB can; a packed or recoded one, a pipe and standard input are
copied to a private folder first. Devices are refused, and so is a pipe that nobody writes to: an ingest never
waits for nothing.
"""

from __future__ import annotations

import hashlib
import os
import select
import shlex
import stat
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from hakaru.errors import SourceError
from hakaru.settings import Ingest
from hakaru.sources._packing import (
    BLOCK_BYTES,
    HEAD_BYTES,
    Meter,
    encoding_of,
    needs_copy,
    open_bytes,
    packing_of,
    reading,
    recode,
    unpack,
)

STDIN = Path("-")
MAX_LAYERS = 3
WRITER_WAIT_S = 5.0
LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Input:
    """A log: the file that is read for it, where it comes from, and what messages call it.

    Every pipe comes from `-` or `/dev/fd/63`, and a file may be overwritten: a mark of the contents tells one
    day's export from the next.
    `packed_bytes` is the size that it came with, before the first packing was undone.
    """

    path: Path
    place: str
    shown: str
    mark: str = ""
    packed_bytes: int | None = None

    @property
    def name(self) -> str:
        """What the lake calls it."""
        return f"{self.place} ({self.mark})" if self.mark else self.place

    @property
    def is_plain(self) -> bool:
        """Whether it is a text file that commands such as `head` can read."""
        return os.path.realpath(self.path) == self.place and packing_of(self.path) is None


def receive(
    paths: Sequence[Path], folder: Path, limits: Ingest, names: Mapping[Path, str]
) -> list[Input]:
    """Each log once, as a file that DuckDB can read; copies are made in `folder`."""
    once = {os.path.realpath(path): path for path in reversed(paths)}
    return [_receive(path, folder, limits, names.get(path)) for path in reversed(once.values())]


def _receive(path: Path, folder: Path, limits: Ingest, name: str | None) -> Input:
    shown = name or str(path)
    steps = [Input(path, name or os.path.realpath(path), shown)]
    with named(steps):
        if is_pipe(path):
            copy = copy_pipe(path, folder, limits)
            steps.append(Input(copy, shown, shown, "" if name else mark_of(copy)))
        _check_regular(steps[-1].path)
        steps[-1] = replace(steps[-1], packed_bytes=steps[-1].path.stat().st_size)
        while needs_copy(steps[-1].path):
            if len(steps) > MAX_LAYERS:
                raise SourceError(
                    f"{shown}: is packed more than {MAX_LAYERS} times; unpack it first"
                )
            steps.append(replace(steps[-1], path=_copy(steps[-1], folder, limits)))
    return steps[-1]


def mark_of(path: Path) -> str:
    """What tells the contents of a file from others."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def _copy(log: Input, folder: Path, limits: Ingest) -> Path:
    """One layer less: unpacked, or as UTF-8. A copy that was made before is removed."""
    made, path = _new_folder(folder), log.path
    if packing_of(path):
        copy = unpack(path, made, limits, log.packed_bytes)
    else:
        with open_bytes(path) as file:
            encoding = encoding_of(file.read(HEAD_BYTES))
        copy = recode(path, made, limits, encoding or "utf-8")
    if path.is_relative_to(folder):
        path.unlink()
    return copy


def _new_folder(folder: Path) -> Path:
    made = folder / uuid.uuid4().hex
    made.mkdir(parents=True)
    return made


def is_pipe(path: Path) -> bool:
    """Standard input (`-`), a FIFO, or what a shell makes of `<(…)`: it can be read once only."""
    if path == STDIN:
        return True
    with reading(path):
        return stat.S_ISFIFO(path.stat().st_mode)


def _check_regular(path: Path) -> None:
    with reading(path):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
    if not stat.S_ISREG(mode):
        raise SourceError(f"{path}: is a device or a socket, not a file; name a file or a pipe")


def copy_pipe(path: Path, folder: Path, limits: Ingest) -> Path:
    """All that is written to a pipe, as a file of its name in `folder`."""
    made = _new_folder(folder)
    copy = made / ("stdin" if path == STDIN else path.name)
    meter = Meter(path, made, limits)
    with reading(path), open(copy, "wb") as out:
        for block in _stdin() if path == STDIN else _pipe(path):
            out.write(meter.add(block))
    return copy


def _stdin() -> Iterator[bytes]:
    if sys.stdin is None or sys.stdin.isatty():
        raise SourceError(
            "-: standard input is a terminal; send it a log, e.g. sacct … | hakaru ingest - --cluster NAME"
        )
    while block := sys.stdin.buffer.read(BLOCK_BYTES):
        yield block


def _pipe(path: Path) -> Iterator[bytes]:
    """What is written to a FIFO. A writer may think as long as it likes, but there must be one."""
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        deadline = time.monotonic() + WRITER_WAIT_S
        is_open, is_empty = _is_unnamed(path), True
        while True:
            try:
                block = os.read(pipe, BLOCK_BYTES)
            except BlockingIOError:  # somebody has it open and has not written yet
                is_open = True
                select.select([pipe], [], [])
                continue
            if block:
                is_open, is_empty = True, False
                yield block
            elif is_open or _was_open(pipe):
                if is_empty:
                    raise SourceError(
                        f"{path}: the pipe was empty; check the command that writes to it"
                    )
                return
            elif time.monotonic() > deadline:
                raise SourceError(
                    f"{path}: nobody writes to this pipe (waited {WRITER_WAIT_S:.0f} s)"
                )
            else:
                time.sleep(LOOK_EVERY_S)
    finally:
        os.close(pipe)


def _is_unnamed(path: Path) -> bool:
    """Whether it is a shell's `<(…)`, which has its writer from the beginning, and not a named FIFO."""
    return not os.path.lexists(os.path.realpath(path))


def _was_open(pipe: int) -> bool:
    """Whether a writer came and went since a named FIFO was opened; only Linux tells."""
    if sys.platform != "linux":
        return False
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


@contextmanager
def named(inputs: Sequence[Input]) -> Iterator[None]:
    """A source's errors name the file that it reads: let them say what the user calls it.

    Indented lines are commands, in which a name is quoted for the shell.
    """
    try:
        yield
    except OSError as error:  # it was there a moment ago
        text = f"{error.filename}: cannot be read: {error.strerror}"
    except SourceError as error:
        text = str(error)
    else:
        return
    for each in inputs:
        rows = [_command(row, each) if row.startswith("  ") else row for row in text.split("\n")]
        text = "\n".join(rows).replace(str(each.path), each.shown)
    raise SourceError(text) from None


def _command(row: str, log: Input) -> str:
    """A command with the user's name for the log; one that reads the text of a copy unpacks the log first."""
    path, shown = shlex.quote(str(log.path)), shlex.quote(log.shown)
    place = Path(log.place)
    packing = packing_of(place) if place.is_file() else None
    if packing and os.path.realpath(log.path) != log.place:
        row = row.replace(f"< {path}", f"< <({packing.unpack} {shown})")
    return row.replace(path, shown)
