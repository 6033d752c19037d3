"""What a layout is: how samples are written to files and read again, each in a file of its own name.

A layout is a sink, which takes samples one by one, and a reader. Writing is the same for all of them: the
table of samples first grows beside the archives, and the manifest comes last.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import Handle, damaged
from hakaru.measure.datasets._manifest import INDEX, Manifest, load_manifest, save_manifest
from hakaru.measure.datasets._sample import Sample, check_sample, split_name
from hakaru.measure.datasets._table import Table, TableWriter, check_ends, read_table, sync
from hakaru.registry import Registry

NAMES = ("files", "tar", "hdf5", "npz", "zip", "packed")
SHARD_BYTES = 512 << 20
LEAST_SHARD = 1 << 16
Progress = Callable[[int], None]  # called with the bytes done so far


class Sink(Protocol):
    """Takes samples one by one; what it has written is a data set only once the manifest is there."""

    def add(self, sample: Sample) -> tuple[int, int]:
        """Write it; the number of its archive, and its offset there."""

    def finish(self, table: TableWriter) -> Sequence[Path]:
        """End the archives, and give all files with their table last, safe on the disk."""

    def close(self) -> None:
        """Close what is open, also after an error."""


class Reader(ABC):
    """Reads samples by index. It can be pickled and forked: every process opens the files for itself."""

    layout: ClassVar[str]

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self.archives = [folder / name for name in manifest.files if name != INDEX]
        self.table = self._read_table()
        if (found_bytes := int(self.lengths.sum())) != manifest.num_bytes:
            found = f"{found_bytes:,} bytes of samples, and the manifest has {manifest.num_bytes:,}"
            raise damaged(self.table.path, found)
        if manifest.classes and int(self.labels.max()) >= len(manifest.classes):
            raise damaged(self.table.path, f"a label is not one of {len(manifest.classes):,}")

    def __len__(self) -> int:
        return len(self.table)

    def read(self, index: int) -> Sample:
        """One sample, from wherever it lies; its length is checked, its checksum is not."""
        if not 0 <= index < len(self.table):
            raise IndexError(f"{self.folder} has samples 0 to {len(self) - 1:,}, not {index:,}")
        key, kind = split_name(self.table.name(index))
        return Sample(self._bytes(index), int(self.table.rows["label"][index]), key, kind)

    def read_checked(self, index: int) -> Sample:
        """The same with its checksum."""
        sample = self.read(index)
        if sample.crc32 != int(self.table.rows["crc32"][index]):
            raise damaged(self._path_of(index), f"the checksum of {sample.key!r} does not match")
        return sample

    def __iter__(self) -> Iterator[Sample]:
        return (self.read(index) for index in range(len(self)))

    @property
    def labels(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        labels: np.ndarray[Any, np.dtype[np.uint32]] = self.table.rows["label"]
        return labels

    @property
    def lengths(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Bytes of each sample."""
        lengths: np.ndarray[Any, np.dtype[np.uint64]] = self.table.rows["length"]
        return lengths

    def paths(self) -> list[Path]:
        """All files that hold the data of samples: to evict them, or to count their blocks."""
        return list(self.archives)

    def spans(self) -> list[range]:
        """Indices that lie one after another in a file: within a span the ascending order is sequential."""
        shards = self.table.rows["shard"]
        starts = [0, *(np.flatnonzero(shards[1:] != shards[:-1]) + 1).tolist(), len(self)]
        return [range(first, last) for first, last in pairwise(starts)]

    @abstractmethod
    def _bytes(self, index: int) -> bytes:
        """The bytes of the sample, of the length that the table says."""

    def close(self) -> None:  # noqa: B027 – some keep nothing open
        """Close this process' files; they open again when a sample is read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[[Path], Reader], tuple[Path]]:
        return open_dataset, (self.folder.absolute(),)

    def _path_of(self, index: int) -> Path:
        return self.archives[int(self.table.rows["shard"][index])]

    def _read_table(self) -> Table:
        path = self.folder / INDEX
        size = self.manifest.files.get(INDEX)
        if size is None:
            raise damaged(self.folder, f"the manifest has no {INDEX}")
        handle = Handle(path)
        num_samples, num_shards = self.manifest.num_samples, max(1, len(self.archives))
        table = read_table(path, handle.number, 0, size, num_samples, num_shards)
        if self.archives:
            check_ends(table, [self.manifest.files[path.name] for path in self.archives])
        return table


@dataclass(frozen=True)
class Layout:
    """A layout: `hakaru bench run loading --param layout=ID` compares them."""

    id: str
    title: str
    description: str
    sink: Callable[[Path, int], Sink]  # the folder, and the bytes of an archive
    reader: type[Reader]
    extra_bytes: int  # that a sample takes on the disk beyond its own, at most
    extra_files: int = 0  # files that a sample takes
    sharded: bool = False  # whether it has archives of a given size

    def write(
        self,
        samples: Iterable[Sample],
        folder: Path,
        *,
        classes: Sequence[str] = (),
        origin: Mapping[str, Any] | None = None,
        shard_bytes: int = SHARD_BYTES,
        progress: Progress = lambda done: None,
    ) -> Manifest:
        """Write samples to a new or empty folder as they come; the manifest is written last."""
        _make_empty(folder)
        if shard_bytes < LEAST_SHARD:
            raise HakaruError(
                f"an archive of {shard_bytes:,} bytes is too small; use {LEAST_SHARD:,} at least"
            )
        sink, table = self.sink(folder, shard_bytes), TableWriter(folder)
        try:
            for sample in samples:
                table.add(sample, *sink.add(_checked(sample, classes)))
                progress(table.num_bytes)
            if not len(table):
                raise HakaruError(f"{folder}: there are no samples to write")
            table.check_unique()
            files = {path.name: path.stat().st_size for path in sink.finish(table)}
        except OSError as error:
            raise HakaruError(f"{folder}: cannot be written: {error.strerror or error}") from None
        finally:
            sink.close()
            table.close()
        manifest = Manifest(
            self.id, len(table), table.num_bytes, table.checksum, files, tuple(classes),
            dict(origin or {}),
        )  # fmt: skip
        save_manifest(manifest, folder)
        return manifest

    def open(self, folder: Path) -> Reader:
        """The reader of a whole data set of this layout."""
        manifest = load_manifest(folder)
        if manifest.layout != self.id:
            raise HakaruError(f"{folder} has the layout {manifest.layout!r}, expected {self.id!r}")
        return self.reader(folder, manifest)


LAYOUTS: Registry[Layout] = Registry("layout")


def load_all() -> Registry[Layout]:
    for name in NAMES:
        importlib.import_module(f"hakaru.measure.datasets.{name}")
    LAYOUTS.sort(lambda layout: NAMES.index(layout.id))
    return LAYOUTS


def layout_names() -> tuple[str, ...]:
    return NAMES


def find_layout(name: str) -> Layout:
    """The layout of this name, or an error that lists them."""
    return load_all().get(name)


def open_dataset(folder: Path) -> Reader:
    """The reader of a data set of any layout."""
    manifest = load_manifest(folder)
    if manifest.layout not in load_all():
        raise HakaruError(
            f"{folder}: its layout is {manifest.layout[:80]!r}, and this Hakaru reads {', '.join(NAMES)}"
        )
    return find_layout(manifest.layout).reader(folder, manifest)


def write_index(table: TableWriter, folder: Path) -> Path:
    """The table as a file of its own, beside the archives."""
    path = folder / INDEX
    with path.open("xb") as file:
        table.write(file)
        sync(file)
    return path


def _checked(sample: Sample, classes: Sequence[str]) -> Sample:
    if classes and sample.label >= len(classes):
        raise HakaruError(
            f"sample {sample.key!r} has the label {sample.label}, and there are {len(classes):,} classes"
        )
    return check_sample(sample)


def _make_empty(folder: Path) -> None:
    """A folder with nothing in it, made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.scandir(folder) as entries:
            found = next(iter(entries), None)
    except OSError as error:
        raise HakaruError(f"{folder}: cannot be written: {error.strerror}") from None
    if found is not None:
        raise HakaruError(
            f"{folder} is not empty (found {found.name!r}); name a folder that is not there yet"
        )
