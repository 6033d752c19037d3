"""Where the data of a measurement lies: made for it, evicted from memory, and the device below.

On a path of the user's the data sets stay, because large ones take long to make; those in a temporary folder
go with the measurement.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hakaru.errors import HakaruError
from hakaru.measure._base import WrongResult
from hakaru.measure.datasets import Reader, layout_names, open_dataset
from hakaru.measure.place import host_name
from hakaru.measure.storage._cache import Eviction, evict
from hakaru.measure.storage._counters import IN_MEMORY, FileSystem, file_system_of
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._samples import NULL_BYTES, Null, Source
from hakaru.measure.truth import is_running
from hakaru.registry import hint

MIB = 1 << 20
TEMPORARY = "temporary"  # in place of a path
NULL = "null"  # the layout that reads nothing
SEED = 0
CHECKED = 8  # samples of which the checksum is compared at the end
FOLDERS = ("TMPDIR", "/var/tmp", "/tmp", ".")


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

    @property
    def total_bytes(self) -> int:
        return int(self.lengths.sum())

    def evict(self, group: Group) -> Eviction | None:
        """All hosts drop the files from their memory; None where there are none. The worst host counts."""
        if not self.files:
            return None
        own = evict(self.files) if group.is_first else None
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
def data_folder(group: Group, path: str) -> Iterator[Path]:
    """The user's folder, or a new one on a local disk that is removed at the end."""
    if path != TEMPORARY:
        folder = Path(path).expanduser().absolute()
        missing = f"path={path}: this is no folder; make it first: mkdir -p {path}"
        group.agree(None if folder.is_dir() else missing)
        yield folder
        return
    own, problem = None, None
    if group.is_first:
        try:
            own = _temporary_folder(_on_a_disk())
        except HakaruError as error:
            problem = str(error)
    group.agree(problem)
    try:
        yield group.share(own)[group.leader]
        group.ranks.barrier()  # nobody reads any more
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)


@contextmanager
def open_store(group: Group, folder: Path, layout: str, mib: int, keep: bool) -> Iterator[Store]:
    """A data set of this size and layout in a folder; made where it is missing."""
    if layout == NULL:
        yield null_store(mib * MIB)
        return
    target = folder / f"hakaru-{layout}-{mib}MiB-seed{SEED}"
    reader = _opened(group, target, layout, mib)
    try:
        yield _store_of(reader, target)
    finally:
        reader.close()
        if group.is_first and not keep:
            shutil.rmtree(target, ignore_errors=True)


@contextmanager
def existing_store(folder: Path) -> Iterator[Store]:
    """A data set that the user packed."""
    with open_dataset(folder) as reader:
        yield _store_of(reader, folder)


def is_dataset(folder: Path) -> bool:
    return (folder / "manifest.json").is_file()


def null_store(total_bytes: int) -> Store:
    source = Null(max(1, round(total_bytes / NULL_BYTES)))
    return Store(NULL, source, source.lengths)


def _opened(group: Group, target: Path, layout: str, mib: int) -> Reader:
    """Rank 0 makes it, then the first rank of each host that does not see rank 0's, then all open it."""
    from hakaru.measure.datasets.synthetic import ensure

    reader: Reader | None = None
    problem: str | None = None
    for is_turn in (group.ranks.rank == 0, group.is_first, True):
        if is_turn and reader is None and problem is None:
            try:
                reader = ensure(target, layout, SEED, mib * MIB)
            except HakaruError as error:
                problem = str(error)
        problem = next((each for each in group.share(problem) if each), None)
    if reader is None or problem is not None:
        if reader is not None:
            reader.close()
        raise HakaruError(str(problem))
    return reader


def _store_of(reader: Reader, folder: Path) -> Store:
    files = tuple(reader.paths())
    return Store(reader.layout, reader, reader.lengths, files, file_system_of(folder))


def _temporary_folder(parent: Path) -> Path:
    """A new one; those that a killed process of this host and user left there are removed."""
    stem = f"hakaru-data-{host_name()}-"
    for folder in parent.glob(f"{glob.escape(stem)}*"):
        found = re.fullmatch(r"(\d+)-\w+", folder.name.removeprefix(stem))
        if found and not is_running(int(found[1])) and folder.stat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{stem}{os.getpid()}-", dir=parent))


def _on_a_disk() -> Path:
    """A folder for temporary files that lies on a disk: in memory nothing is ever cold."""
    wanted = [os.environ.get(name, "") if name.isupper() else name for name in FOLDERS]
    usable = [Path(each) for each in wanted if each and os.access(each, os.W_OK | os.X_OK)]
    on_disk = [each for each in usable if file_system_of(each).type not in IN_MEMORY]
    if not on_disk:
        raise HakaruError(
            f"no folder on a disk for the data set (looked at {', '.join(each for each in wanted if each)}); "
            "name one: --param path=/a/folder"
        )
    return on_disk[0]
