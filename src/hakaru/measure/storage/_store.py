"""The data of a measurement: made for it, evicted from memory, and the device below.

On a path of the user's the data sets stay, because large ones take long to make; those in a temporary folder
go with the measurement.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hakaru.errors import HakaruError
from hakaru.measure._base import WrongResult
from hakaru.measure.datasets import Reader, layout_names, open_dataset
from hakaru.measure.datasets._manifest import is_dataset
from hakaru.measure.storage._cache import Eviction, evict
from hakaru.measure.storage._counters import CACHED, FROM_DEVICE, FileSystem, file_system_of
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._samples import NULL_BYTES, Null, Source
from hakaru.registry import hint, listed

MIB = 1 << 20
NULL = "null"  # the layout that reads nothing
SEED = 0
CHECKED = 8  # samples of which the checksum is compared at the end


def layouts() -> tuple[str, ...]:
    """Those that read files, and the one that does not."""
    return (*layout_names(), NULL)


def check_layout(name: str) -> str:
    if name not in layouts():
        raise HakaruError(f"layout={name!r}: {hint(name, layouts())}")
    return name


@dataclass(frozen=True)
class Store:
    """A data set that can be read: its samples, its files, and what they lie on."""

    layout: str
    source: Source
    lengths: NDArray[np.uint64]
    files: tuple[Path, ...] = ()
    below: FileSystem | None = None
    write_s: float | None = None  # what making it took; None where it was there
    _counts: list[int] = field(default_factory=list)  # reads of an epoch that all were counted

    @property
    def total_bytes(self) -> int:
        return int(self.lengths.sum())

    @property
    def is_remote(self) -> bool:
        return self.below is not None and self.below.is_remote

    def counted(self, read: int | None, delivered: int) -> int | None:
        """What all ranks read in an epoch, as far as it is known.

        Some network file systems do not count what processes read: without a device, none means unknown
        until an epoch showed that reads are counted.
        """
        if self.below is None or read is None or self.below.device is not None:
            return None if self.below is None else read
        if read >= FROM_DEVICE * delivered:
            self._counts.append(read)
        return read if self._counts or read > CACHED * delivered else None

    def evict(self, group: Group) -> Eviction | None:
        """All hosts drop the files from their memory; None where there are none. The worst host counts."""
        if not self.files:
            return None
        own = group.firsts(lambda: evict(self.files))
        found: list[Eviction] = [each for each in group.share(own) if each is not None]
        unknown = [each for each in found if each.left is None]
        return unknown[0] if unknown else max(found, key=lambda each: each.left or 0.0)

    def check(self) -> None:
        """The checksums of some samples."""
        if not isinstance(self.source, Reader):
            return
        step = max(1, len(self.source) // CHECKED)
        for index in range(0, len(self.source), step):
            try:
                self.source.read_checked(index)
            except HakaruError as error:
                raise WrongResult(str(error)) from None


@contextmanager
def open_store(group: Group, folder: Path, layout: str, mib: int, keep: bool) -> Iterator[Store]:
    """A data set of this size and layout in a folder; made where it is missing, and then removed or kept."""
    if layout == NULL:
        yield null_store(mib * MIB)
        return
    target = path_of(folder, layout, mib)
    keep = keep or is_dataset(target)
    is_there, begin = is_made(group, folder, layout, mib), time.monotonic()
    reader = _opened(group, target, layout, mib)
    (seconds,) = group.ranks.maximum(time.monotonic() - begin)
    try:
        store = group.together(lambda: _store_of(reader, target))
        yield store if is_there else replace(store, write_s=seconds)
    finally:
        reader.close()
        if group.is_first and not keep:
            shutil.rmtree(target, ignore_errors=True)


@contextmanager
def existing_store(group: Group, folder: Path) -> Iterator[Store]:
    """A data set that the user packed."""
    with group.together(lambda: open_dataset(folder)) as reader:
        yield group.together(lambda: _store_of(reader, folder))


def path_of(folder: Path, layout: str, mib: int) -> Path:
    """Where a data set of this layout and size is kept."""
    return folder / f"hakaru-{layout}-{mib}MiB-seed{SEED}"


def is_made(group: Group, folder: Path, layout: str, mib: int) -> bool:
    """Whether nobody needs to write it; what reads nothing never is."""
    return layout == NULL or all(group.share(is_dataset(path_of(folder, layout, mib))))


def holds_dataset(group: Group, folder: Path) -> bool:
    """Whether the folder is a data set itself, which all hosts must see alike."""
    seen = group.share(is_dataset(folder))
    if any(seen) and not all(seen):
        missing = sorted({host for host, sees in zip(group.hosts, seen, strict=True) if not sees})
        raise HakaruError(
            f"{folder} is a data set, but not on {listed(missing)}: use a folder that all hosts share, or "
            "copy it to each of them"
        )
    return all(seen)


def null_store(total_bytes: int) -> Store:
    source = Null(max(1, round(total_bytes / NULL_BYTES)))
    return Store(NULL, source, source.lengths)


def _opened(group: Group, target: Path, layout: str, mib: int) -> Reader:
    """Rank 0 makes it, then the first rank of each host that does not see rank 0's, then all open it."""
    from hakaru.measure.datasets.synthetic import ensure

    found: Reader | None = None

    def make(is_turn: bool) -> Reader | None:
        return ensure(target, layout, SEED, mib * MIB) if is_turn and found is None else found

    try:
        for is_turn in (group.ranks.rank == 0, group.is_first, True):
            found = group.together(partial(make, is_turn))
    except BaseException:
        if found is not None:
            found.close()
        raise
    assert found is not None
    return found


def _store_of(reader: Reader, folder: Path) -> Store:
    files = tuple(reader.paths())
    return Store(reader.layout, reader, reader.lengths, files, file_system_of(folder))
