"""Small samples for the tests of layouts, and rows of a table that somebody has changed."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import numpy as np

from hakaru.measure.datasets import Reader, Sample, find_layout, layout_names
from hakaru.measure.datasets._table import HEADER, ROW

CLASSES = ("cat", "dog", "eel")
NAMES = layout_names()
SHARD = 1 << 16


def make(count: int = 60, seed: int = 5) -> list[Sample]:
    """Samples of many sizes; some begin alike, end with zeros, or look like other formats."""
    source = random.Random(seed)
    special = [b"\0", b"\x93NUMPY", b"PK\x03\x04", bytes(512), bytes(1024), b"\n"]
    made = []
    for index in range(count):
        label = source.randrange(len(CLASSES))
        data = (
            special[index] if index < len(special) else source.randbytes(source.randrange(1, 9000))
        )
        made.append(
            Sample(data, label, f"{CLASSES[label]}/{index:04}", source.choice(["jpg", "png"]))
        )
    return made


def written(name: str, folder: Path, samples: list[Sample] | None = None) -> Reader:
    """A data set of this layout with small archives."""
    layout = find_layout(name)
    layout.write(
        samples or make(), folder, classes=CLASSES, shard_bytes=SHARD, origin={"kind": "test"}
    )
    return layout.open(folder)


def table_of(folder: Path) -> tuple[Path, int]:
    """The file that has the table, and where it begins."""
    packed = folder / "data.packed"
    if packed.exists():
        return packed, int.from_bytes(packed.read_bytes()[16:24], "little")
    return folder / "index.bin", 0


def change_rows(folder: Path, row: int, **values: int) -> None:
    """Change values of a row, with the right checksum, as somebody who means harm would."""
    path, start = table_of(folder)
    raw = bytearray(path.read_bytes())
    magic, version, _, count, names = HEADER.unpack_from(raw, start)
    rows = np.frombuffer(raw, ROW, count, start + HEADER.size)
    for name, value in values.items():
        rows[name][row] = value
    _seal(path, raw, start, magic, version, count, names)


def change_name(folder: Path, old: bytes, new: bytes) -> None:
    """Replace a name by one of the same length, with the right checksum."""
    assert len(old) == len(new)
    path, start = table_of(folder)
    raw = bytearray(path.read_bytes())
    magic, version, _, count, names = HEADER.unpack_from(raw, start)
    place = raw.index(old, start + HEADER.size + count * ROW.itemsize)
    raw[place : place + len(old)] = new
    _seal(path, raw, start, magic, version, count, names)


def _seal(
    path: Path, raw: bytearray, start: int, magic: bytes, version: int, count: int, names: int
) -> None:
    crc32 = zlib.crc32(raw[start + HEADER.size :])
    raw[start : start + HEADER.size] = HEADER.pack(magic, version, crc32, count, names)
    path.write_bytes(raw)
