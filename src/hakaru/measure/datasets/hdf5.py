"""One HDF5 file: all bytes in one data set `bytes`, with `offsets`, `labels` and `keys` beside it.

Of the ways to keep samples of different lengths in HDF5, this is the quickest. Reading 115 kB at random
took 10 µs, and 48 µs from a data set of variable-length arrays. Without the cache of chunks, that is: it
reads a whole chunk for each sample (54 µs with chunks of 1 MiB), so it is switched off.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hakaru.errors import MissingExtraError
from hakaru.measure.context import EXTRA
from hakaru.measure.datasets._files import Opened, damaged, open_regular
from hakaru.measure.datasets._layout import LAYOUTS, Layout, Reader, write_index
from hakaru.measure.datasets._manifest import Manifest
from hakaru.measure.datasets._sample import Sample
from hakaru.measure.datasets._table import Table, TableWriter, check_ends, sync

ARCHIVE = "data.h5"
BYTES = "bytes"
CHUNK, ROWS_CHUNK = 1 << 20, 4096
STEP = 64 << 20  # the data set grows by so much at once


def h5py() -> Any:
    """h5py, or the command that installs it."""
    try:
        return importlib.import_module("h5py")
    except ImportError:
        raise MissingExtraError("h5py", EXTRA) from None


class Hdf5Sink:
    """Appends bytes to one data set that grows."""

    def __init__(self, folder: Path, shard_bytes: int) -> None:
        self._folder, self._path = folder, folder / ARCHIVE
        self._file = h5py().File(self._path, "x", libver="latest", rdcc_nbytes=4 * CHUNK)
        self._bytes = self._new(BYTES, np.uint8, CHUNK)
        self._offsets = _Column(self._new("offsets", np.uint64, ROWS_CHUNK))
        self._labels = _Column(self._new("labels", np.int64, ROWS_CHUNK))
        self._keys = _Column(self._new("keys", h5py().string_dtype(), ROWS_CHUNK))
        self._end = 0
        self._offsets.add(0)

    def add(self, sample: Sample) -> tuple[int, int]:
        offset, self._end = self._end, self._end + len(sample.data)
        if self._end > len(self._bytes):
            self._bytes.resize((self._end + STEP,))
        self._bytes[offset : self._end] = np.frombuffer(sample.data, np.uint8)
        self._offsets.add(self._end)
        self._labels.add(sample.label)
        self._keys.add(sample.name)
        return 0, offset

    def finish(self, table: TableWriter) -> Sequence[Path]:
        self._bytes.resize((self._end,))
        for column in (self._offsets, self._labels, self._keys):
            column.flush()
        self._file.close()
        with self._path.open("rb+") as file:
            sync(file)
        return [self._path, write_index(table, self._folder)]

    def close(self) -> None:
        self._file.close()

    def _new(self, name: str, dtype: Any, chunk: int) -> Any:
        return self._file.create_dataset(name, (0,), dtype, maxshape=(None,), chunks=(chunk,))


class _Column:
    """Values that go into a data set a chunk at a time."""

    def __init__(self, dataset: Any) -> None:
        self._dataset, self._values = dataset, list[Any]()

    def add(self, value: Any) -> None:
        self._values.append(value)
        if len(self._values) == ROWS_CHUNK:
            self.flush()

    def flush(self) -> None:
        start = len(self._dataset)
        self._dataset.resize((start + len(self._values),))
        self._dataset[start:] = self._values
        self._values.clear()


class Hdf5File:
    """The data set of bytes, kept open by a process; anything that leads to other files is refused."""

    def __init__(self, path: Path) -> None:
        library = h5py()
        self._file: Any = None
        # HDF5 opens by name: the descriptor shows that no link stands there
        with open(open_regular(path), "rb"):
            pass
        try:
            self._file = library.File(path, "r", locking=False, rdcc_nbytes=0)
            link = self._file.get(BYTES, getlink=True)
            self.bytes: Any = self._file[BYTES] if isinstance(link, library.HardLink) else None
        except (OSError, KeyError, RuntimeError, ValueError) as error:
            self.close()
            raise damaged(path, f"no HDF5 file with a data set {BYTES!r}: {error}") from None
        if not _is_plain(library, self.bytes):
            self.close()
            raise damaged(path, f"{BYTES!r} is not an array of bytes within the file")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _is_plain(library: Any, found: Any) -> bool:
    return (
        isinstance(found, library.Dataset)
        and found.dtype == np.uint8
        and found.ndim == 1
        and not found.is_virtual
        and not found.external
        and found.compression is None
    )


class Hdf5Reader(Reader):
    layout = "hdf5"

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._path = folder / ARCHIVE
        self._open = Opened(Hdf5File)
        super().__init__(folder, manifest)

    def _bytes(self, index: int) -> bytes:
        row = self.table.rows[index]
        start, length = int(row["offset"]), int(row["length"])
        try:
            data: bytes = self._open.get(self._path).bytes[start : start + length].tobytes()
        except (OSError, RuntimeError, ValueError) as error:
            raise damaged(self._path, f"reading at byte {start:,} failed: {error}") from None
        if len(data) != length:
            raise damaged(self._path, f"expected {length:,} bytes, found {len(data):,}")
        return data

    def close(self) -> None:
        self._open.close()

    def _read_table(self) -> Table:
        table = (
            super()._read_table()
        )  # within the file; a data set can claim to be larger than that
        if self.archives != [self._path]:
            raise damaged(self.folder, f"the manifest does not have {ARCHIVE} alone")
        check_ends(table, [len(self._open.get(self._path).bytes)])
        return table


LAYOUTS.add(
    Layout(
        "hdf5",
        "HDF5",
        "All samples in one data set of an HDF5 file, with their offsets; a sample is a slice of it.",
        sink=Hdf5Sink,
        reader=Hdf5Reader,
        extra_bytes=64,
    )
)
