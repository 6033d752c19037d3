"""Tar shards as webdataset reads them: `key.jpg`, then `key.cls` with the label as a decimal number.

The table beside the shards has the offset of each sample, so that they can also be read in any order.
"""

from __future__ import annotations

import tarfile
from functools import partial
from pathlib import Path
from typing import IO

from hakaru.measure.datasets._files import Handle, Opened, read_at
from hakaru.measure.datasets._layout import LAYOUTS, Layout, Reader
from hakaru.measure.datasets._manifest import Manifest
from hakaru.measure.datasets._sample import LABEL_KIND, Sample
from hakaru.measure.datasets._shards import ShardedSink

BLOCK = tarfile.BLOCKSIZE
# two headers, the label's block and the padding; a key that is long or not ASCII takes four blocks more
EXTRA_BYTES = 4 * BLOCK


class TarArchive:
    """Members of one shard, written by hand: tarfile does not tell where a member's bytes begin."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add(self, sample: Sample) -> int:
        offset = self._member(sample.name, sample.data)
        self._member(f"{sample.key}.{LABEL_KIND}", str(sample.label).encode())
        return offset

    def finish(self) -> None:
        self._file.write(bytes(2 * BLOCK))
        self._file.write(bytes(-self._file.tell() % tarfile.RECORDSIZE))

    def _member(self, name: str, data: bytes) -> int:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        self._file.write(member.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict"))
        offset = self._file.tell()
        self._file.write(data)
        self._file.write(bytes(-len(data) % BLOCK))
        return offset


class TarReader(Reader):
    """Reads a sample at its offset; a span in ascending order is a shard from beginning to end."""

    layout = "tar"

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._open = Opened(Handle)
        super().__init__(folder, manifest)

    def _bytes(self, index: int) -> bytes:
        row, path = self.table.rows[index], self._path_of(index)
        return read_at(self._open.get(path).number, int(row["length"]), int(row["offset"]), path)

    def close(self) -> None:
        self._open.close()


LAYOUTS.add(
    Layout(
        "tar",
        "Tar shards",
        "Shards that webdataset reads: each sample is a member of a tar file, followed by its label.",
        sink=partial(ShardedSink, ending=".tar", archive=TarArchive),
        reader=TarReader,
        extra_bytes=EXTRA_BYTES,
        sharded=True,
    )
)
