"""How far an ingest is: bytes as DuckDB tells them, and rows, which it tells only when a file has ended.

Within a file the rows are an estimate, on the low side; what is told last is the truth.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hakaru.sources._packing import is_gzip

LOOK_BYTES = 65536
LOW_SIDE = 0.9
# comments, and the steps of a Slurm job (`12.batch`), which are lines and not records
NO_RECORD = re.compile(rb"^(?:[;#]|[\w\[\]+-]+\.).*$", re.MULTILINE)


@dataclass
class Reading:
    """Files of some sizes, of which some have ended with rows that were counted."""

    sizes: Sequence[int]
    rows_a_byte: float
    _counted_bytes: int = 0
    _num_rows: int = 0
    _num_rejected: int = 0
    _furthest: float = 0.0
    _most_rows: int = 0

    def ended(self, done: Sequence[bool], num_rows: int, num_rejected: int) -> None:
        """Some files have ended: the rows so far are known, and how many a byte gives."""
        self._num_rows, self._num_rejected = num_rows, num_rejected
        self._counted_bytes = sum(s for s, is_done in zip(self.sizes, done, strict=True) if is_done)
        if self._counted_bytes:
            self.rows_a_byte = num_rows / self._counted_bytes

    def step(self, shares: Sequence[float]) -> tuple[int, int, int, int]:
        """Bytes read, bytes in all, rows and rejects, when such shares of the files were read."""
        total = sum(self.sizes)
        read = sum(size * share for size, share in zip(self.sizes, shares, strict=True))
        self._furthest = max(self._furthest, read)
        if min(shares) >= 1 and self._counted_bytes == total:
            return total, total, self._num_rows, self._num_rejected
        uncounted = max(self._furthest - self._counted_bytes, 0)
        guess = self._num_rows + int(uncounted * self.rows_a_byte * LOW_SIDE)
        self._most_rows = max(self._most_rows, guess)
        return int(self._furthest), total, self._most_rows, self._num_rejected


def rows_a_byte(path: Path) -> float:
    """Records a byte of the file, packed or not, by the lines of its beginning; 0 where it has none."""
    with open(path, "rb") as file:
        packed = file.read(LOOK_BYTES)
    text = packed
    if is_gzip(path):
        try:
            text = zlib.decompressobj(wbits=31).decompress(packed)
        except zlib.error:
            return 0.0
    elif b"\0" in packed:  # Parquet
        return 0.0
    if not packed:
        return 0.0
    lines = text.count(b"\n") - len(NO_RECORD.findall(text))
    return max(lines, 0) / len(packed)
