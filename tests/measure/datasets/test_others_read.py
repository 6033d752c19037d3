"""The archives are those of their formats: the programs that people use read them without Hakaru."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hakaru.measure.datasets import Sample

from ._samples import CLASSES, make, written


def _grouped(path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """As webdataset does: the key ends at the first dot of the base name; members of a key are in a row."""
    key, group = "", dict[str, bytes]()
    with tarfile.open(path, "r|") as stream:
        for member in stream:
            assert member.isreg()
            folder, _, base = member.name.rpartition("/")
            stem, _, kind = base.partition(".")
            prefix = f"{folder}/{stem}" if folder else stem
            if prefix != key and group:
                yield key, group
                group = {}
            key = prefix
            assert kind not in group
            file = stream.extractfile(member)
            assert file is not None
            group[kind] = file.read()
    yield key, group


def test_webdataset_groups_each_sample_with_its_label(tmp_path: Path) -> None:
    samples = [
        *make(),
        Sample(b"long", 1, "dog/" + "n" * 150),
        Sample(b"accent", 0, "cat/naïve 犬"),
    ]
    written("tar", tmp_path / "data", samples)
    found = [pair for path in sorted((tmp_path / "data").glob("*.tar")) for pair in _grouped(path)]
    assert [key for key, _ in found] == [each.key for each in samples]
    for (_, group), sample in zip(found, samples, strict=True):
        assert group == {sample.kind: sample.data, "cls": str(sample.label).encode()}


def test_shards_are_numbered_as_webdataset_expands_them(tmp_path: Path) -> None:
    reader = written("tar", tmp_path / "data")
    names = [path.name for path in reader.paths()]
    assert names == [f"shard-{number:06}.tar" for number in range(len(names))]
    for path in reader.paths():
        assert path.stat().st_size % tarfile.RECORDSIZE == 0
        assert path.read_bytes().endswith(bytes(1024))


def test_tarfile_finds_the_same_offsets(tmp_path: Path) -> None:
    reader = written("tar", tmp_path / "data", [Sample(b"long", 1, "n" * 150), *make()])
    offsets = {}
    for path in reader.paths():
        with tarfile.open(path) as archive:
            offsets |= {each.name: each.offset_data for each in archive}
    for index in range(len(reader)):
        assert offsets[reader.table.name(index)] == int(reader.table.rows["offset"][index])


def test_numpy_loads_members_and_labels(tmp_path: Path) -> None:
    samples, found, labels = make(), {}, list[int]()
    reader = written("npz", tmp_path / "data", samples)
    for path in reader.paths():
        with np.load(path, allow_pickle=False) as archive:
            assert archive.files[-1] == "labels"
            labels += archive["labels"].tolist()
            assert archive["labels"].dtype == np.int64
            found |= {name: archive[name] for name in archive.files[:-1]}
    assert labels == [each.label for each in samples]
    assert list(found) == [f"samples/{each.name}" for each in samples]
    for array, sample in zip(found.values(), samples, strict=True):
        assert array.dtype == np.uint8
        assert array.tobytes() == sample.data


def test_zipfile_reads_stored_members(tmp_path: Path) -> None:
    samples, found = make(), {}
    for path in written("zip", tmp_path / "data", samples).paths():
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            assert {each.compress_type for each in archive.infolist()} == {zipfile.ZIP_STORED}
            found |= {name: archive.read(name) for name in archive.namelist()}
    assert found == {each.name: each.data for each in samples}


def test_h5py_reads_slices_by_their_offsets(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    samples = make()
    written("hdf5", tmp_path / "data", samples)
    with h5py.File(tmp_path / "data" / "data.h5") as file:
        offsets, labels = file["offsets"][:], file["labels"][:]
        keys = file["keys"].asstr()[:]
        assert len(offsets) == len(samples) + 1
        for index, sample in enumerate(samples):
            assert file["bytes"][offsets[index] : offsets[index + 1]].tobytes() == sample.data
            assert (labels[index], keys[index]) == (sample.label, sample.name)


def test_files_lie_in_their_class_folders(tmp_path: Path) -> None:
    samples = make()
    written("files", tmp_path / "data", samples)
    root = tmp_path / "data" / "samples"
    assert sorted(each.name for each in root.iterdir()) == sorted(CLASSES)
    for sample in samples:
        assert (root / sample.name).read_bytes() == sample.data
    assert (tmp_path / "data" / "classes.txt").read_text() == "cat\ndog\neel\n"


def test_more_rows_than_a_chunk_of_columns(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    samples = [Sample(b"%d" % index, index % 3, f"{index}") for index in range(4100)]
    reader = written("hdf5", tmp_path / "data", samples)
    assert reader.read(4099) == samples[4099]
    reader.close()
    with h5py.File(tmp_path / "data" / "data.h5") as file:
        assert len(file["offsets"]) == 4101
        assert file["labels"][4097:].tolist() == [2, 0, 1]
