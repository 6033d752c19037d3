"""Packed files at their limits: how often, how large, how much more than packed, and what stays behind."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.lake import Lake, Upsert
from hakaru.settings import Ingest
from hakaru.sources import _packing, ingest
from hakaru.sources._inputs import receive
from tests.sources._log import line, write


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_three_packings_are_undone_and_a_fourth_is_refused(lake: Lake, tmp_path: Path) -> None:
    content = write(tmp_path / "a.csv", line(1)).read_bytes()
    for _ in range(3):
        content = zipped({"inside.csv": content})
    path = tmp_path / "log.zip"
    path.write_bytes(content)
    assert ingest(lake, [path], "c").upsert == Upsert(num_new=1)
    path.write_bytes(zipped({"inside.zip": content}))
    with pytest.raises(
        SourceError, match=r"log\.zip: is packed more than 3 times; unpack it first"
    ):
        ingest(lake, [path], "c")


def test_of_several_copies_only_the_last_takes_room(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.zip", tmp_path / "copies"
    path.write_bytes(zipped({"b.zip": zipped({"c.csv": b"id\n1\n"})}))
    folder.mkdir()
    (found,) = receive([path], folder, Ingest(), {})
    assert [each for each in folder.rglob("*") if each.is_file()] == [found.path]
    assert found.path.read_bytes() == b"id\n1\n"
    assert path.exists()


def test_what_a_mac_adds_to_a_zip_is_no_second_file(lake: Lake, tmp_path: Path) -> None:
    content = write(tmp_path / "a.csv", line(1)).read_bytes()
    path = tmp_path / "a.zip"
    path.write_bytes(zipped({"logs/": b"", "logs/a.csv": content, "__MACOSX/._a.csv": b"\0"}))
    assert ingest(lake, [path], "c").upsert == Upsert(num_new=1)


def test_a_zip_with_a_password_is_named(lake: Lake, tmp_path: Path) -> None:
    """The flag of encryption is the lowest bit, in the member's own header and in the directory."""
    content = bytearray(zipped({"a.csv": b"id\n1\n"}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path = tmp_path / "a.zip"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.zip: the zip has a password"):
        ingest(lake, [path], "c")


def test_a_file_may_be_as_large_as_the_setting(tmp_path: Path) -> None:
    meter = _packing.Meter(tmp_path, tmp_path, Ingest(max_unpacked=100))
    meter.add(bytes(60))
    meter.add(bytes(40))
    with pytest.raises(SourceError, match="holds more than 100 bytes"):
        meter.add(b"x")


def test_a_short_log_may_pack_as_well_as_it_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One repeated line packs better than any long log: the ratio counts from a size on."""
    monkeypatch.setattr(_packing, "RATIO_FROM_BYTES", 1000)
    limits = Ingest(max_ratio=10)
    short = _packing.Meter(tmp_path, tmp_path, limits, packed_bytes=1)
    short.add(bytes(1000))
    with pytest.raises(SourceError, match="more than 10 times its size"):
        short.add(b"x")
    fair = _packing.Meter(tmp_path, tmp_path, limits, packed_bytes=200)
    fair.add(bytes(2000))
    with pytest.raises(SourceError, match="more than 10 times its size"):
        fair.add(b"x")


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_packings_inside_one_another_count_together(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_layers: int
) -> None:
    """Each layer by itself unpacks to fewer than 400 times its size."""
    monkeypatch.setattr(_packing, "RATIO_FROM_BYTES", 1000)
    (lake.workspace / "hakaru.toml").write_text("[ingest]\nmax_ratio = 400\n")
    content = write(tmp_path / "a.csv", *[line(1)] * 20_000).read_bytes()
    for _ in range(num_layers):
        whole, content = len(content), gzip.compress(content)
        assert whole < 400 * len(content)
    path = tmp_path / "log.gz"
    path.write_bytes(content)
    if num_layers == 1:
        assert ingest(lake, [path], "c").num_read == 20_000
        return
    with pytest.raises(SourceError, match=r"log\.gz: unpacks to .* more than 400 times its size"):
        ingest(lake, [path], "c")


def test_a_log_that_ends_within_its_packing_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"line\n" * 100)[:-4])  # without its length
    with pytest.raises(SourceError, match=r"a\.gz: the file is damaged: it ends too early"):
        _packing.check_gzip(path, _packing.Meter(path, tmp_path, Ingest()))
