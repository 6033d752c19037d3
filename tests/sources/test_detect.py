"""A file's format is what its beginning says; the ending of its name only settles a tie."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.sources._base import detect, stem
from tests.sources._log import line, write

SACCT = "JobID|User|State|Submit\n7|ann|COMPLETED|1514764800\n"


def test_sacct_text_in_a_file_of_another_ending(tmp_path: Path) -> None:
    path = tmp_path / "jobs.swf"
    path.write_text(SACCT)
    assert detect(path).id == "sacct"
    packed = tmp_path / "jobs.swf.gz"
    packed.write_bytes(gzip.compress(SACCT.encode()))
    assert detect(packed).id == "sacct"


def test_a_csv_in_a_file_of_another_ending(tmp_path: Path) -> None:
    assert detect(write(tmp_path / "log.swf", line(1))).id == "aaic"


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
def test_the_ending_settles_what_no_format_recognises(tmp_path: Path, name: str) -> None:
    """Seventeen columns are no SWF, but in a file of that name SWF's reader explains it."""
    text = " ".join(["1"] * 17).encode() + b"\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert detect(tmp_path / name).id == "swf"
    (tmp_path / "log.txt").write_bytes(text)
    with pytest.raises(SourceError, match="the format is not known"):
        detect(tmp_path / "log.txt")


@pytest.mark.parametrize(
    "name",
    ["2018Q1", "2018Q1.csv", "2018Q1.csv.gz", "2018Q1.swf.xz", "2018Q1.txt.zst", "2018Q1.parquet"],
)
def test_a_log_has_one_name_packed_or_not(name: str) -> None:
    """Ids of AAIC's jobs and users begin with it: of two names each would count twice."""
    assert stem(Path("in") / name) == "2018Q1"
    assert stem(Path("a.b.csv.bz2")) == "a.b"
