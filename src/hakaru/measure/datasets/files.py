"""One file a sample, in class folders, as ILSVRC2012 comes and as torchvision's ImageFolder reads it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import (
    damaged,
    file_size,
    open_regular,
    read_at,
    sync_file_system,
)
from hakaru.measure.datasets._layout import LAYOUTS, Layout, Reader, write_index
from hakaru.measure.datasets._manifest import Manifest
from hakaru.measure.datasets._sample import Sample
from hakaru.measure.datasets._table import TableWriter

SAMPLES = "samples"  # beside the index, so that no sample can take the place of the manifest
BLOCK = 4096
LOOKED_AT = 256  # files whose size is looked at when a data set is opened


class FilesSink:
    """A file a sample, under the folder `samples`."""

    def __init__(self, folder: Path, shard_bytes: int) -> None:
        self._folder = folder
        self._made: set[str] = set()

    def add(self, sample: Sample) -> tuple[int, int]:
        path = self._folder / SAMPLES / sample.name
        parent = sample.key.rpartition("/")[0]
        if parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(parent)
        try:
            with path.open("xb", buffering=0) as file:
                file.write(sample.data)
        except FileExistsError:
            raise HakaruError(f"two samples have the same key {sample.key!r}") from None
        return 0, 0

    def finish(self, table: TableWriter) -> Sequence[Path]:
        sync_file_system(self._folder)
        return [write_index(table, self._folder)]

    def close(self) -> None:
        return


class FilesReader(Reader):
    """Opens, reads and closes a file for each sample."""

    layout = "files"

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._trusted: set[str] = set()  # folders that are no links
        super().__init__(folder, manifest)
        for index in range(0, len(self), max(1, len(self) // LOOKED_AT)):
            self._check_size(index, file_size(self._path_of(index)))

    def paths(self) -> list[Path]:
        return [self._path_of(index) for index in range(len(self))]

    def spans(self) -> list[range]:
        """All samples in the order of their writing: files have no order on the disk."""
        return [range(len(self))]

    def _path_of(self, index: int) -> Path:
        return self.folder / SAMPLES / self.table.name(index)

    def _bytes(self, index: int) -> bytes:
        name, length = self.table.name(index), int(self.table.rows["length"][index])
        self._check_folder(name)
        path = self.folder / SAMPLES / name
        handle = open_regular(path)
        try:
            self._check_size(index, os.fstat(handle).st_size)
            return read_at(handle, length, 0, path)
        finally:
            os.close(handle)

    def _check_size(self, index: int, size: int) -> None:
        expected = int(self.table.rows["length"][index])
        if size != expected:
            raise damaged(self._path_of(index), f"expected {expected:,} bytes, found {size:,}")

    def _check_folder(self, name: str) -> None:
        """Each folder on the way is looked at once: a link would lead out of the data set."""
        parent = name.rpartition("/")[0]
        if parent in self._trusted:
            return
        path = self.folder / SAMPLES
        for part in ("", *parent.split("/")):
            path = path / part
            if path.is_symlink():
                raise damaged(path, "found a link, expected a folder")
        self._trusted.add(parent)


LAYOUTS.add(
    Layout(
        "files",
        "One file a sample",
        "A file a sample in class folders, as image folders come; a sample is opened, read and closed.",
        sink=FilesSink,
        reader=FilesReader,
        extra_bytes=BLOCK,
        extra_files=1,
    )
)
