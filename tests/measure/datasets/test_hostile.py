"""Damaged and hostile data sets: a clear error with the file, and never a byte from elsewhere."""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hakaru.errors import HakaruError, MissingExtraError
from hakaru.measure.datasets import Sample, open_dataset, packed
from hakaru.measure.datasets._table import HEADER, ROW

from ._samples import NAMES, change_name, change_rows, make, table_of, written

every_layout = pytest.mark.parametrize("name", NAMES)
SECRET = b"SECRET" * 4000


@pytest.fixture
def folder(name: str, tmp_path: Path) -> Path:
    written(name, tmp_path / "data").close()
    return tmp_path / "data"


def _read_all(folder: Path) -> list[Sample]:
    with open_dataset(folder) as reader:
        return [reader.read_checked(index) for index in range(len(reader))]


def _refused(folder: Path, message: str | None = None) -> str:
    with pytest.raises(HakaruError, match=message) as error:
        _read_all(folder)
    assert str(folder) in str(error.value)
    return str(error.value)


def _change(folder: Path, **values: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@every_layout
def test_a_missing_archive_is_named(folder: Path) -> None:
    path = open_dataset(folder).paths()[-1]
    path.unlink()
    assert str(path) in _refused(folder, "missing")


@every_layout
def test_a_shorter_archive_is_named(folder: Path) -> None:
    path = open_dataset(folder).paths()[-1]
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    assert str(path) in _refused(folder, "expected .* found")


@every_layout
def test_an_archive_cut_after_it_was_opened_is_an_error(folder: Path) -> None:
    reader = open_dataset(folder)
    for path in reader.paths():
        os.truncate(path, min(200, path.stat().st_size - 1))
    failed = 0
    for index in range(len(reader)):
        try:
            assert reader.read_checked(index) == make()[index]
        except HakaruError:
            failed += 1
    assert failed > 40


@every_layout
def test_a_link_in_the_place_of_an_archive_is_refused(folder: Path) -> None:
    path = open_dataset(folder).paths()[0]
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    assert str(path) in _refused(folder, "link")


@every_layout
def test_a_pipe_in_the_place_of_an_archive_does_not_block(folder: Path) -> None:
    path = open_dataset(folder).paths()[0]
    path.unlink()
    os.mkfifo(path)
    assert str(path) in _refused(folder, "regular file")


@every_layout
def test_a_folder_in_the_place_of_an_archive_is_refused(folder: Path) -> None:
    path = open_dataset(folder).paths()[0]
    path.unlink()
    path.mkdir()
    assert str(path) in _refused(folder, "regular file")


@every_layout
def test_a_changed_byte_of_a_sample_is_found(folder: Path) -> None:
    inside = make()[20].data
    path = next(each for each in open_dataset(folder).paths() if inside in each.read_bytes())
    raw = bytearray(path.read_bytes())
    raw[raw.index(inside)] ^= 1
    path.write_bytes(raw)
    assert str(path) in _refused(folder)


@every_layout
def test_any_damage_is_an_error_or_harmless(folder: Path) -> None:
    """Whatever byte is changed and wherever a file ends, nothing wrong is read and nothing else is raised."""
    source, expected = random.Random(11), make()
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for _ in range(120):
        path = source.choice(files)
        whole = path.read_bytes()
        raw = bytearray(whole)
        if source.random() < 0.3:
            del raw[source.randrange(len(raw)) :]
        else:
            edge = source.choice([60, len(raw)])
            for _ in range(source.randrange(1, 4)):
                raw[source.randrange(min(edge, len(raw)))] = source.randrange(256)
        path.write_bytes(raw)
        try:
            assert _read_all(folder) == expected
        except HakaruError as error:
            assert str(folder) in str(error)
        path.write_bytes(whole)
    assert _read_all(folder) == expected


@every_layout
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": "other"}, "no data set of Hakaru"),
        ({"version": 2}, "this Hakaru reads version 1"),
        ({"layout": "cpio"}, "its layout is 'cpio'"),
        ({"layout": None}, "layout is None"),
        ({"num_samples": 59}, "60 samples, and the manifest has 59"),
        ({"num_samples": "60"}, "num_samples"),
        ({"num_samples": True}, "num_samples"),
        ({"num_bytes": 1}, "the manifest has 1"),
        ({"num_bytes": 2**70}, "num_bytes"),
        ({"checksum": "xyz"}, "checksum"),
        ({"files": ["a"]}, "files"),
        ({"files": {"../secret": 6}}, "plain names"),
        ({"files": {"/etc/passwd": 6}}, "plain names"),
        ({"files": {"a": -1}}, "plain names"),
        ({"files": {}}, "index.bin|data.packed|none of the"),
        ({"classes": "cat"}, "classes"),
        ({"classes": ["cat"]}, "label"),
        ({"origin": []}, "origin"),
    ],
)
def test_a_wrong_manifest_is_refused(folder: Path, values: dict[str, Any], message: str) -> None:
    _change(folder, **values)
    with pytest.raises(HakaruError, match=message):
        _read_all(folder)


@every_layout
def test_a_manifest_that_is_no_manifest_is_refused(folder: Path) -> None:
    path = folder / "manifest.json"
    for text in ("", "[]", "null", "{", '"hakaru-dataset"', "[" * 100_000, "\udc80"):
        path.write_bytes(text.encode(errors="surrogateescape"))
        assert str(path) in _refused(folder)
    path.unlink()
    _refused(folder, "was interrupted")
    path.symlink_to("/dev/zero")
    _refused(folder, "link")


@every_layout
@pytest.mark.parametrize(
    "values",
    [
        {"length": 2**32 + 1},
        {"length": 2**41},
        {"length": 0},
        {"length": 2**64 - 1},
        {"name_end": 2**63},
        {"name_end": 0},
        {"shard": 9999},
        {"label": 2**32 - 1},
    ],
)
def test_an_impossible_row_is_refused(folder: Path, values: dict[str, int]) -> None:
    change_rows(folder, 30, **values)
    assert str(table_of(folder)[0]) in _refused(folder)


def _claim(folder: Path, num_samples: int, num_names: int) -> Path:
    """A table of so many samples of which only the header is there: the rest is a hole."""
    path, start = table_of(folder)
    size = HEADER.size + num_samples * ROW.itemsize + num_names
    with path.open("r+b") as file:
        file.seek(start)
        file.write(HEADER.pack(b"HKRUTABL", 1, 0, num_samples, num_names))
        file.truncate(start + HEADER.size)
        file.truncate(start + size)
        if start:
            file.seek(0)
            file.write(packed.HEADER.pack(b"HKRUPACK", 1, 0, start, size))
    _change(folder, num_samples=num_samples)
    _sizes(folder)
    return path


@pytest.mark.parametrize("name", ["tar", "packed"])
def test_a_hole_in_place_of_the_table_takes_no_memory(folder: Path) -> None:
    """16 GB of rows that are not there: the first block is refused."""
    path = _claim(folder, 2**28, 2**32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert str(path) in _refused(folder, "places of the names")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


@pytest.mark.parametrize("name", ["tar", "packed"])
def test_names_longer_than_any_key_are_refused(folder: Path) -> None:
    _claim(folder, 60, 2**36)
    _refused(folder, "do not fit the table")


def test_a_hole_among_the_names_is_refused(tmp_path: Path) -> None:
    folder = written("tar", tmp_path / "data").folder
    path, _ = table_of(folder)
    num_names = len(open_dataset(folder).table.names)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - num_names)
        file.truncate(path.stat().st_size + num_names)
    _refused(folder, "places of the names")


def test_what_does_not_fit_into_memory_is_one_clean_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = written("packed", tmp_path / "data")

    def full(*_: Any) -> bytes:
        raise MemoryError

    monkeypatch.setattr(os, "pread", full)
    with pytest.raises(HakaruError, match="do not fit into memory"):
        reader.read(0)
    with pytest.raises(HakaruError, match="do not fit into memory"):
        open_dataset(reader.folder)


@pytest.mark.parametrize("name", ["tar", "hdf5", "packed"])
@pytest.mark.parametrize("offset", [2**64 - 1, 2**64 - 4000, 2**63, 2**40, 1 << 24])
def test_offsets_never_lead_out_of_the_archive(folder: Path, offset: int) -> None:
    change_rows(folder, 59, offset=offset)
    _refused(folder, "leads past the end")


def test_a_packed_sample_cannot_begin_before_or_in_the_table(tmp_path: Path) -> None:
    reader = written("packed", tmp_path / "data")
    change_rows(reader.folder, 59, offset=table_of(reader.folder)[1])
    _refused(reader.folder, "leads past the end")


@pytest.mark.parametrize("name", ["tar", "hdf5", "packed"])
def test_an_offset_within_the_archive_that_is_wrong_is_found_by_the_checksum(folder: Path) -> None:
    rows = open_dataset(folder).table.rows
    change_rows(folder, 20, offset=int(rows["offset"][20]) + 1)
    _refused(folder, "checksum")


@every_layout
@pytest.mark.parametrize(
    ("first", "new"),
    [
        (b"cat", b"../"),
        (b"dog", b"/./"),
        (b"eel", b"__x"),
        (b"cat", b"a.b"),
        (b"dog", b"\xff\xfe\xfd"),
    ],
)
def test_names_never_lead_out_of_the_folder(folder: Path, first: bytes, new: bytes) -> None:
    names = open_dataset(folder).table.names
    old = next(each.name.encode() for each in make() if each.name.encode().startswith(first))
    assert old in names
    (folder.parent / "secret").write_bytes(SECRET)
    change_name(folder, old, new + old[3:])
    assert "row" in _refused(folder)


def test_a_class_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    folder = written("files", tmp_path / "data").folder
    (folder / "samples" / "dog").rename(tmp_path / "dog")
    (folder / "samples" / "dog").symlink_to(tmp_path / "dog")
    _refused(folder, "link")


def test_a_file_of_another_size_is_refused(tmp_path: Path) -> None:
    reader = written("files", tmp_path / "data")
    path = reader.paths()[40]
    path.write_bytes(path.read_bytes() + b"more")
    assert str(path) in _refused(reader.folder, "expected")
    reader_of_before = reader
    with pytest.raises(HakaruError, match="expected"):
        reader_of_before.read(40)


@pytest.mark.parametrize("name", ["zip", "npz"])
def test_members_that_are_deflated_are_not_inflated(folder: Path, name: str) -> None:
    path = open_dataset(folder).paths()[0]
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    _sizes(folder)
    _refused(folder, "compressed")


@pytest.mark.parametrize("name", ["zip", "npz"])
def test_a_member_of_another_size_is_refused(folder: Path, name: str) -> None:
    path = open_dataset(folder).paths()[0]
    with zipfile.ZipFile(path) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data + bytes(5000))
    _sizes(folder)
    _refused(folder, "has .* bytes, expected")


def test_objects_in_an_npz_are_never_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return os.mkdir, (str(tmp_path / "trapped"),)

    sample = Sample(bytes(3000), 0, "a")
    folder = written("npz", tmp_path / "data", [sample]).folder
    np.savez(folder / "shard-000000.npz", **{"samples/a.jpg": np.array([Trap(), bytes(2900)])})
    _sizes(folder)
    _refused(folder, "is object")
    assert not (tmp_path / "trapped").exists()


def _sizes(folder: Path) -> None:
    """Let the manifest have the sizes that the files have now."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    _change(folder, files={name: (folder / name).stat().st_size for name in files})


def _hdf5(folder: Path) -> Any:
    h5py = pytest.importorskip("h5py")
    return h5py, h5py.File(folder / "data.h5", "r+")


def test_hdf5_never_reads_another_file(tmp_path: Path) -> None:
    folder = written("hdf5", tmp_path / "data").folder
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET * 20)
    size = 200_000
    h5py, file = _hdf5(folder)
    with file:
        del file["bytes"]
        file.create_dataset("bytes", (size,), np.uint8, external=[(str(secret), 0, size)])
    _sizes(folder)
    _refused(folder, "within the file")
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["bytes"] = np.frombuffer(SECRET, np.uint8)
    for link in (h5py.ExternalLink(str(tmp_path / "other.h5"), "bytes"), h5py.SoftLink("/labels")):
        with h5py.File(folder / "data.h5", "r+") as file:
            del file["bytes"]
            file["bytes"] = link
        _sizes(folder)
        _refused(folder, "within the file")
    virtual = h5py.VirtualLayout((size,), np.uint8)
    virtual[: len(SECRET)] = h5py.VirtualSource(tmp_path / "other.h5", "bytes", (len(SECRET),))
    with h5py.File(folder / "data.h5", "r+") as file:
        del file["bytes"]
        file.create_virtual_dataset("bytes", virtual)
    _sizes(folder)
    _refused(folder, "within the file")


@pytest.mark.parametrize("change", ["missing", "group", "numbers", "two dimensions", "short"])
def test_hdf5_with_other_contents_is_refused(tmp_path: Path, change: str) -> None:
    folder = written("hdf5", tmp_path / "data").folder
    _, file = _hdf5(folder)
    with file:
        del file["bytes"]
        if change == "group":
            file.create_group("bytes")
        elif change == "numbers":
            file["bytes"] = np.zeros(200_000)
        elif change == "two dimensions":
            file["bytes"] = np.zeros((400, 400), np.uint8)
        elif change == "short":
            file["bytes"] = np.zeros(1000, np.uint8)
    _sizes(folder)
    _refused(folder)


def test_hdf5_that_claims_a_huge_data_set_is_refused_before_it_is_read(tmp_path: Path) -> None:
    folder = written("hdf5", tmp_path / "data").folder
    _, file = _hdf5(folder)
    with file:
        del file["bytes"]
        file.create_dataset("bytes", (2**50,), np.uint8, chunks=(1 << 20,))
    _sizes(folder)
    change_rows(folder, 59, length=2**32)
    _refused(folder, "leads past the end")


def test_without_h5py_the_command_that_installs_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written("hdf5", tmp_path / "data").folder
    monkeypatch.setitem(sys.modules, "h5py", None)
    for attempt in (lambda: open_dataset(folder), lambda: written("hdf5", tmp_path / "new")):
        with pytest.raises(MissingExtraError, match=r"h5py.*hakaru\[measure\]"):
            attempt()
