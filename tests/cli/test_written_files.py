"""Files that commands write are for their user alone, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests._cli import hakaru


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    assert os.umask(before) == 0


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("show", "states", "-o"), "a.csv"),
        (("show", "states", "-o"), "a.parquet"),
        (("show", "states", "--figure"), "a.html"),
        (("compare", "--metric", "num_jobs", "-o"), "a.md"),
        (("simulate", "--nodes", "1x8", "-o"), "a.csv"),
        (("export", "--format", "swf", "-o"), "a.swf"),
    ],
)
def test_others_may_not_read_what_is_written(
    log: Path, tmp_path: Path, words: tuple[str, ...], name: str
) -> None:
    folder = tmp_path / "new"
    done = hakaru(*words, folder / name, "--from", log)
    assert done.exit_code == 0, done.output
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / name)}
    assert modes == {"new": 0o700, name: 0o600}


def test_a_file_that_cannot_be_written_is_named_with_the_reason(log: Path, tmp_path: Path) -> None:
    output = tmp_path / ("a" * 300 + ".csv")
    done = hakaru("show", "states", "--from", log, "-o", output)
    assert done.exit_code == 1
    assert done.stderr == f"error: {output}: cannot be written: File name too long\n"
