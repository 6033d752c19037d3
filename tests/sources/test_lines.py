"""Lines of text as they stand in a file, whatever bytes they hold."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from hakaru.engine.duckdb import connect
from hakaru.settings import Engine
from hakaru.sources._base import lines

TEXTS = [
    "my\x01\x02\x03x\x01\x02\x03y",
    "\x01\x02\x03",
    "",
    "\x1f\x1e\x1d\x1c",
    "\tcells\t\x7f",
    ' "quoted", \\ and \x00 ',
    "last\x01\x02\x03",
]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_each_line_is_whole(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(pack("\n".join(TEXTS).encode()))
    assert _read(path) == list(enumerate(TEXTS, 1))


def test_no_file_can_hold_the_delimiter_on_purpose(tmp_path: Path) -> None:
    """A file with the delimiter of one reading in it is read with another."""
    path = tmp_path / "log"
    path.touch()
    query = lines(path)
    path.write_text(query)
    assert _read(path) == list(enumerate(query.split("\n"), 1))


def _read(path: Path) -> list[tuple[int, str]]:
    con = connect(Engine())
    found = con.execute(lines(path)).fetchall()
    con.close()
    return found
