"""Numpy archives with an array of bytes a sample, as Chainer's users kept them (MN-1, section 5).

`numpy.load(path)[f"samples/{key}.jpg"]` is a sample, and `numpy.load(path)["labels"]` has the labels of an
archive in the order of its members. A member is read when its sample is.
"""

from __future__ import annotations

import io
from array import array
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from hakaru.measure.datasets._files import Opened, damaged
from hakaru.measure.datasets._layout import LAYOUTS, Layout, Reader
from hakaru.measure.datasets._manifest import Manifest
from hakaru.measure.datasets._sample import Sample
from hakaru.measure.datasets._shards import ShardedSink
from hakaru.measure.datasets._zips import EXTRA_BYTES, NewZip, Zip

SAMPLES, LABELS = "samples", "labels.npy"
NPY_HEADER = 128  # of an array with one dimension
MOST_HEADER = 1024


class NpzArchive:
    """One archive; the array of labels comes last."""

    def __init__(self, file: IO[bytes]) -> None:
        self._archive = NewZip(file)
        self._labels = array("q")

    def add(self, sample: Sample) -> int:
        self._array(f"{SAMPLES}/{sample.name}.npy", np.frombuffer(sample.data, np.uint8))
        self._labels.append(sample.label)
        return 0  # members are found by name

    def finish(self) -> None:
        self._array(LABELS, np.frombuffer(self._labels, np.int64))
        self._archive.finish()

    def _array(self, name: str, values: np.ndarray[Any, Any]) -> None:
        buffer = io.BytesIO()
        npy.write_array(buffer, values, version=(1, 0), allow_pickle=False)
        self._archive.add(name, buffer.getbuffer())


class NpzReader(Reader):
    """Reads a member and the header of its array; pickled objects are never read."""

    layout = "npz"

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._open = Opened(Zip)
        super().__init__(folder, manifest)

    def _bytes(self, index: int) -> bytes:
        path, length = self._path_of(index), int(self.table.rows["length"][index])
        name = f"{SAMPLES}/{self.table.name(index)}.npy"
        member = self._open.get(path).read(name, length, length + MOST_HEADER)
        file = io.BytesIO(member)
        try:
            npy.read_magic(file)
            shape, _, dtype = npy.read_array_header_1_0(file)
        except ValueError as error:
            raise damaged(path, f"member {name!r}: {error}") from None
        data = member[file.tell() :]
        if dtype != np.uint8 or shape != (length,) or len(data) != length:
            found = f"member {name!r} is {dtype} {shape}, expected {length:,} bytes"
            raise damaged(path, found)
        return data

    def close(self) -> None:
        self._open.close()


LAYOUTS.add(
    Layout(
        "npz",
        "Numpy archives",
        "An array of bytes a sample in numpy's npz files; a member is read when its sample is.",
        sink=partial(ShardedSink, ending=".npz", archive=NpzArchive),
        reader=NpzReader,
        extra_bytes=EXTRA_BYTES + NPY_HEADER + 8 + 32,
        sharded=True,
    )
)
