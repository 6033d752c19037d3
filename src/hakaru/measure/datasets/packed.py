"""One packed archive: all bytes in one file, found by a table of offsets, as MN-1's archive read with fseek.

`data.packed` is a header, the samples' bytes, then the table (see `_table.py`). The header says where the
table is; it comes last because samples are written as they come, in one pass.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path

from hakaru.measure.datasets._files import Handle, Opened, damaged, read_at
from hakaru.measure.datasets._layout import LAYOUTS, Layout, Reader
from hakaru.measure.datasets._manifest import Manifest
from hakaru.measure.datasets._sample import Sample
from hakaru.measure.datasets._table import Table, TableWriter, check_ends, read_table, sync

ARCHIVE = "data.packed"
MAGIC, VERSION = b"HKRUPACK", 1
HEADER = struct.Struct("<8sIIQQ")  # magic, version, 0, where the table begins, its bytes
ROW_BYTES = 36


class PackedSink:
    """Appends bytes; the header is filled in at the end."""

    def __init__(self, folder: Path, shard_bytes: int) -> None:
        self._path = folder / ARCHIVE
        self._file = self._path.open("xb", buffering=1 << 20)
        self._file.write(bytes(HEADER.size))
        self._end = HEADER.size

    def add(self, sample: Sample) -> tuple[int, int]:
        offset = self._end
        self._file.write(sample.data)
        self._end += len(sample.data)
        return 0, offset

    def finish(self, table: TableWriter) -> Sequence[Path]:
        size = table.write(self._file)
        self._file.seek(0)
        self._file.write(HEADER.pack(MAGIC, VERSION, 0, self._end, size))
        sync(self._file)
        return [self._path]

    def close(self) -> None:
        self._file.close()


class PackedReader(Reader):
    layout = "packed"

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._path = folder / ARCHIVE
        self._open = Opened(Handle)
        super().__init__(folder, manifest)

    def _bytes(self, index: int) -> bytes:
        row = self.table.rows[index]
        handle = self._open.get(self._path).number
        return read_at(handle, int(row["length"]), int(row["offset"]), self._path)

    def close(self) -> None:
        self._open.close()

    def _read_table(self) -> Table:
        if self.archives != [self._path]:
            raise damaged(self.folder, f"the manifest does not have {ARCHIVE} alone")
        handle = self._open.get(self._path).number
        size = os.fstat(handle).st_size
        header = read_at(handle, HEADER.size, 0, self._path)
        magic, version, _, start, num_bytes = HEADER.unpack(header)
        if magic != MAGIC or version != VERSION:
            raise damaged(self._path, f"no packed archive of version {VERSION}")
        if start < HEADER.size or start + num_bytes != size:
            raise damaged(self._path, f"its table does not end with the file ({size:,} bytes)")
        num_samples = self.manifest.num_samples
        table = read_table(self._path, handle, start, num_bytes, num_samples, num_shards=1)
        check_ends(table, [start])
        return table


LAYOUTS.add(
    Layout(
        "packed",
        "One packed archive",
        "All samples in one file with a table of offsets; a sample is one read at its offset.",
        sink=PackedSink,
        reader=PackedReader,
        extra_bytes=ROW_BYTES,
    )
)
