"""The table of a data set: for each sample its archive, offset, length, label, checksum and name.

`index.bin`, or the end of a packed archive: a header, a row a sample, then all names in UTF-8. Opening it
reads the whole table and checks it, so that no later read can leave its file. It is checked a block after the
other: what is no table takes no memory, however large the file claims to be.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from array import array
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import numpy as np

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import damaged, no_memory, read_at
from hakaru.measure.datasets._sample import (
    MOST_BYTES,
    MOST_KEY,
    MOST_LABEL,
    Sample,
    check_name,
    fingerprint,
)

MAGIC, VERSION = b"HKRUTABL", 1
HEADER = struct.Struct("<8sIIQQ")  # magic, version, crc32 of the rest, rows, bytes of names
ROW = np.dtype(
    [
        ("offset", "<u8"),
        ("length", "<u8"),
        ("name_end", "<u8"),
        ("shard", "<u4"),
        ("label", "<u4"),
        ("crc32", "<u4"),
    ]
)
PACKED_ROW = struct.Struct("<QQQIII")
COPY_BYTES = 1 << 20
BLOCK_ROWS, BLOCK_BYTES = 1 << 16, 1 << 20  # read and checked at once
WRONG_NAMES = "the places of the names are wrong"


@dataclass(frozen=True)
class Table:
    """The rows of a data set, in the order in which its samples lie in the archives."""

    path: Path
    rows: np.ndarray[Any, Any]
    names: bytearray

    def __len__(self) -> int:
        return len(self.rows)

    def name(self, index: int) -> str:
        """A sample's checked name, such as `dog/0001.jpg`."""
        start = int(self.rows["name_end"][index - 1]) if index else 0
        raw = self.names[start : int(self.rows["name_end"][index])]
        try:
            return check_name(raw.decode())
        except (HakaruError, UnicodeDecodeError) as error:
            raise damaged(self.path, f"row {index:,}: {error}") from None


class TableWriter:
    """Gathers the rows of samples in temporary files, so that memory does not grow with their names."""

    def __init__(self, folder: Path) -> None:
        self._rows: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 – see close
        self._names: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._name_end = 0
        self._keys = array("Q")
        self.num_bytes = self._sum = 0

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def checksum(self) -> str:
        return f"{self._sum % 2**64:016x}"

    def add(self, sample: Sample, shard: int, offset: int) -> None:
        name, length, crc32 = sample.name.encode(), len(sample.data), sample.crc32
        self._name_end += len(name)
        self._rows.write(
            PACKED_ROW.pack(offset, length, self._name_end, shard, sample.label, crc32)
        )
        self._names.write(name)
        key = blake2b(sample.key.encode(), digest_size=8).digest()
        self._keys.append(int.from_bytes(key, "little"))
        self.num_bytes += length
        self._sum += fingerprint(sample.name, sample.label, length, crc32)

    def check_unique(self) -> None:
        keys = np.frombuffer(self._keys, np.uint64)
        if len(np.unique(keys)) < len(keys):
            raise HakaruError("two samples have the same key; every sample needs its own")

    def write(self, file: IO[bytes]) -> int:
        """Write the table at the file's place; how many bytes it has."""
        start = file.tell()
        file.write(bytes(HEADER.size))
        crc32 = 0
        for part in (self._rows, self._names):
            part.seek(0)
            while block := part.read(COPY_BYTES):
                crc32 = zlib.crc32(block, crc32)
                file.write(block)
        end = file.tell()
        file.seek(start)
        file.write(HEADER.pack(MAGIC, VERSION, crc32, len(self), self._name_end))
        file.seek(end)
        return end - start

    def close(self) -> None:
        self._rows.close()
        self._names.close()


def read_table(
    path: Path, handle: int, offset: int, size: int, num_samples: int, num_shards: int
) -> Table:
    """The table in these bytes of an open file, checked against itself and what the manifest says."""
    expected, num_names = _read_header(path, handle, offset, size, num_samples)
    begin = offset + HEADER.size
    try:
        rows, crc32 = _read_rows(path, handle, begin, num_samples, num_shards)
        if int(rows["name_end"][-1]) != num_names:
            raise damaged(path, WRONG_NAMES)
        names, crc32 = _read_names(path, handle, begin + rows.nbytes, num_names, crc32)
    except MemoryError:
        raise no_memory(path, size) from None
    if crc32 != expected:
        raise damaged(path, "the table's checksum does not match")
    return Table(path, rows, names)


def _read_header(
    path: Path, handle: int, offset: int, size: int, num_samples: int
) -> tuple[int, int]:
    """Its checksum, and the bytes of all names, where these can be a table of so many samples."""
    if size < HEADER.size:
        raise damaged(path, f"the table has {size:,} bytes, too few for its header")
    raw = read_at(handle, HEADER.size, offset, path)
    magic, version, crc32, num_rows, num_names = HEADER.unpack(raw)
    if magic != MAGIC or version != VERSION:
        raise damaged(path, f"no table of version {VERSION} begins at byte {offset:,}")
    if num_rows != num_samples:
        raise damaged(path, f"{num_rows:,} samples, and the manifest has {num_samples:,}")
    fits = HEADER.size + num_rows * ROW.itemsize + num_names == size
    if not fits or num_names > num_rows * MOST_KEY:
        raise damaged(path, f"{num_rows:,} rows do not fit the table's {size:,} bytes")
    return crc32, num_names


def _read_rows(
    path: Path, handle: int, offset: int, num_rows: int, num_shards: int
) -> tuple[np.ndarray[Any, Any], int]:
    """The rows, each block checked with the row before it, and their checksum."""
    rows, crc32 = np.empty(num_rows, ROW), 0  # takes pages as they are written
    for first in range(0, num_rows, BLOCK_ROWS):
        num = min(BLOCK_ROWS, num_rows - first)
        raw = read_at(handle, num * ROW.itemsize, offset + first * ROW.itemsize, path)
        rows[first : first + num] = np.frombuffer(raw, ROW)
        if rows["name_end"][0] == 0:
            raise damaged(path, WRONG_NAMES)
        _check_rows(path, rows[max(0, first - 1) : first + num], num_shards)
        crc32 = zlib.crc32(raw, crc32)
    rows.flags.writeable = False
    return rows, crc32


def _read_names(
    path: Path, handle: int, offset: int, num_bytes: int, crc32: int
) -> tuple[bytearray, int]:
    """The names, in which no zero stands as in a hole of a file, and the whole checksum."""
    names = bytearray()
    while len(names) < num_bytes:
        raw = read_at(handle, min(BLOCK_BYTES, num_bytes - len(names)), offset + len(names), path)
        if 0 in raw:
            raise damaged(path, WRONG_NAMES)
        names += raw
        crc32 = zlib.crc32(raw, crc32)
    return names, crc32


def _check_rows(path: Path, rows: np.ndarray[Any, Any], num_shards: int) -> None:
    ends, shards = rows["name_end"], rows["shard"]
    if (ends[1:] <= ends[:-1]).any():
        raise damaged(path, WRONG_NAMES)
    if (shards[1:] < shards[:-1]).any() or int(shards[-1]) >= num_shards:
        raise damaged(path, f"a sample lies in an archive that is none of the {num_shards:,}")
    if not rows["length"].all() or int(rows["length"].max()) > MOST_BYTES:
        raise damaged(path, f"a sample's length is impossible: expected 1 to {MOST_BYTES:,} bytes")
    if int(rows["label"].max()) > MOST_LABEL:
        raise damaged(path, "a label is impossible")


def check_ends(table: Table, sizes: list[int]) -> None:
    """Refuse offsets that lead past the end of their archive; `sizes` are those of the archives."""
    ends = table.rows["offset"] + table.rows["length"]  # wraps round only where offset > 2⁶³
    limits = np.array(sizes, np.uint64)[table.rows["shard"]]
    wrong = np.flatnonzero((ends > limits) | (table.rows["offset"] > limits))
    if len(wrong):
        raise damaged(
            table.path, f"the offset of sample {wrong[0]:,} leads past the end of its archive"
        )


def sync(file: IO[bytes]) -> None:
    """On the disk before the manifest says that it is there."""
    file.flush()
    os.fsync(file.fileno())
