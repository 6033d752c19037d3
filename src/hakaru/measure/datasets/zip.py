"""Zip archives whose members are stored, not compressed: `key.jpg`, read through `zipfile`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO

from hakaru.measure.datasets._files import Opened
from hakaru.measure.datasets._layout import LAYOUTS, Layout, Reader
from hakaru.measure.datasets._manifest import Manifest
from hakaru.measure.datasets._sample import Sample
from hakaru.measure.datasets._shards import ShardedSink
from hakaru.measure.datasets._zips import EXTRA_BYTES, NewZip, Zip


class ZipArchive:
    """One archive; the labels are in the table, and in the folders of the keys where these are classes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._archive = NewZip(file)

    def add(self, sample: Sample) -> int:
        self._archive.add(sample.name, sample.data)
        return 0  # members are found by name

    def finish(self) -> None:
        self._archive.finish()


class ZipReader(Reader):
    """Finds a member in the directory of its archive, which each process reads once."""

    layout = "zip"

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._open = Opened(Zip)
        super().__init__(folder, manifest)

    def _bytes(self, index: int) -> bytes:
        length = int(self.table.rows["length"][index])
        return self._open.get(self._path_of(index)).read(self.table.name(index), length, length)

    def close(self) -> None:
        self._open.close()


LAYOUTS.add(
    Layout(
        "zip",
        "Zip archives",
        "Stored members of zip files; a sample is found in the archive's directory by its name.",
        sink=partial(ShardedSink, ending=".zip", archive=ZipArchive),
        reader=ZipReader,
        extra_bytes=EXTRA_BYTES,
        sharded=True,
    )
)
