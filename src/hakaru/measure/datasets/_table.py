"""The table of a data set: for each sample its archive, offset, length, label, checksum and name.

`index.bin`, or the end of a packed archive: a header, a row a sample, then all names in UTF-8. Opening it
reads the whole table and checks it, so that no later read can leave its file.
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
from hakaru.measure.datasets._files import damaged, read_at
from hakaru.measure.datasets._sample import MOST_LABEL, Sample, check_name, fingerprint

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
MOST_LENGTH = 1 << 40


@dataclass(frozen=True)
class Table:
    """The rows of a data set, in the order in which its samples lie in the archives."""

    path: Path
    rows: np.ndarray[Any, Any]
    names: bytes

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


def read_table(path: Path, handle: int, offset: int, size: int, num_shards: int) -> Table:
    """The table in these bytes of an open file, checked against itself."""
    if size < HEADER.size:
        raise damaged(path, f"the table has {size:,} bytes, too few for its header")
    raw = read_at(handle, size, offset, path)
    magic, version, crc32, num_rows, num_names = HEADER.unpack_from(raw)
    if magic != MAGIC or version != VERSION:
        raise damaged(path, f"no table of version {VERSION} begins at byte {offset:,}")
    names_at = HEADER.size + num_rows * ROW.itemsize
    if names_at + num_names != size or not num_rows:
        raise damaged(path, f"{num_rows:,} rows do not fit the table's {size:,} bytes")
    if zlib.crc32(memoryview(raw)[HEADER.size :]) != crc32:
        raise damaged(path, "the table's checksum does not match")
    rows = np.frombuffer(raw, ROW, num_rows, HEADER.size)
    _check_rows(path, rows, num_names, num_shards)
    return Table(path, rows, raw[names_at:])


def _check_rows(path: Path, rows: np.ndarray[Any, Any], num_names: int, num_shards: int) -> None:
    ends, shards = rows["name_end"], rows["shard"]
    if int(ends[-1]) != num_names or ends[0] == 0 or (ends[1:] <= ends[:-1]).any():
        raise damaged(path, "the places of the names are wrong")
    if (shards[1:] < shards[:-1]).any() or int(shards[-1]) >= num_shards:
        raise damaged(path, f"a sample lies in an archive that is none of the {num_shards:,}")
    if not rows["length"].all() or int(rows["length"].max()) > MOST_LENGTH:
        raise damaged(path, "a sample's length is impossible")
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
