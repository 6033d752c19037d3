"""Archives of about the same size, `shard-000000.tar` and so on, each ended before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from hakaru.measure.datasets._layout import write_index
from hakaru.measure.datasets._sample import Sample
from hakaru.measure.datasets._table import TableWriter, sync

BUFFER = 1 << 20


class Archive(Protocol):
    """Writes samples into an open file."""

    def add(self, sample: Sample) -> int:
        """Write it; where its bytes begin."""

    def finish(self) -> None:
        """Write what stands at the end; the file itself stays open."""


class ShardedSink:
    """Begins a new archive when the next sample would make this one larger than it may be."""

    def __init__(
        self, folder: Path, shard_bytes: int, ending: str, archive: Callable[[IO[bytes]], Archive]
    ) -> None:
        self._folder, self._most, self._ending, self._make = folder, shard_bytes, ending, archive
        self._paths: list[Path] = []
        self._file: IO[bytes] | None = None
        self._archive: Archive | None = None
        self._bytes = 0

    def add(self, sample: Sample) -> tuple[int, int]:
        length = len(sample.data)
        archive = self._archive
        if archive is None or self._bytes + length > self._most:
            self._end()
            archive = self._begin()
        self._bytes += length
        return len(self._paths) - 1, archive.add(sample)

    def finish(self, table: TableWriter) -> Sequence[Path]:
        self._end()
        return [*self._paths, write_index(table, self._folder)]

    def close(self) -> None:
        if self._archive is not None:  # after an error, which matters more than how this ends
            with suppress(OSError, ValueError):
                self._archive.finish()
        if self._file is not None:
            self._file.close()

    def _begin(self) -> Archive:
        path = self._folder / f"shard-{len(self._paths):06}{self._ending}"
        self._file = path.open("xb", buffering=BUFFER)
        self._paths.append(path)
        self._archive, self._bytes = self._make(self._file), 0
        return self._archive

    def _end(self) -> None:
        if self._archive is None or self._file is None:
            return
        self._archive.finish()
        sync(self._file)
        self._file.close()
        self._archive = None
