"""Synthetic data sets: seeded, of ILSVRC2012's sizes, nearly incompressible, without repeated blocks."""

from __future__ import annotations

import multiprocessing
import os
import zlib
from collections import namedtuple
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.measure.datasets import open_dataset
from hakaru.measure.datasets import synthetic as synthetic_room
from hakaru.measure.datasets.synthetic import (
    LEAST_BYTES,
    MEAN_BYTES,
    MOST_BYTES,
    NUM_CLASSES,
    ensure,
    sample_at,
    samples,
)
from hakaru.measure.place import host_name

from ._samples import NAMES

MB = 1_000_000


def test_the_volume_is_exact_and_ends_with_whole_samples() -> None:
    for total in (LEAST_BYTES, 5000, MB, 3 * MB + 7):
        found = list(samples(3, total))
        assert sum(len(each.data) for each in found) == total
        assert min(len(each.data) for each in found) >= LEAST_BYTES


def test_a_sample_depends_on_seed_and_index_alone() -> None:
    short, long = list(samples(3, MB)), list(islice(samples(3, 9 * MB), 20))
    common = len(short) - 1  # the last is cut
    assert common > 2
    assert short[:common] == long[:common]
    assert [sample_at(3, index) for index in reversed(range(common))] == short[:common][::-1]
    assert sample_at(4, 0).data != sample_at(3, 0).data


def test_a_seed_means_the_same_bytes_on_every_machine() -> None:
    """Other bytes would need another VERSION: data sets that were made before would not match."""
    sample = sample_at(7, 123_456)
    known = (sample.label, len(sample.data), sample.crc32, sample.key)
    assert known == KNOWN


def test_sizes_are_those_of_ilsvrc2012() -> None:
    sizes = np.array([len(sample_at(1, index).data) for index in range(4000)])
    assert pytest.approx(115_130, abs=1) == MEAN_BYTES
    assert sizes.mean() == pytest.approx(MEAN_BYTES, rel=0.05)
    assert np.median(sizes) == pytest.approx(MEAN_BYTES * np.exp(-0.18), rel=0.05)
    assert np.log(sizes).std() == pytest.approx(0.6, rel=0.05)
    assert LEAST_BYTES <= sizes.min() < sizes.max() <= MOST_BYTES


def test_labels_are_spread_over_a_thousand_classes() -> None:
    labels = np.bincount([sample_at(1, index).label for index in range(4000)], minlength=1000)
    assert len(labels) == NUM_CLASSES
    # 4 of each are expected; chi-squared with 999 degrees of freedom is within 999 ± 5 × 44.7
    assert abs(((labels - 4.0) ** 2 / 4.0).sum() - 999) < 224


def test_zlib_makes_them_as_little_smaller_as_jpegs() -> None:
    data = b"".join(each.data for each in samples(2, 4 * MB))
    for level in (1, 9):
        assert 0.95 <= len(zlib.compress(data, level)) / len(data) < 1.0


def test_no_block_repeats_that_a_store_could_keep_once() -> None:
    blocks = [
        each.data[at : at + 4096]
        for each in samples(2, 40 * MB)
        for at in range(0, len(each.data) - 4095, 4096)
    ]
    assert len(blocks) > 9000
    assert len(set(blocks)) == len(blocks)
    assert not any(zlib.crc32(block) == zlib.crc32(bytes(4096)) for block in blocks)


@pytest.mark.parametrize("layout", NAMES)
def test_ensure_makes_and_then_reuses(layout: str, tmp_path: Path) -> None:
    folder, done = tmp_path / "deep" / "data", list[int]()
    with ensure(folder, layout, 3, MB, done.append) as made:
        assert list(made) == list(samples(3, MB))
        assert len(made.manifest.classes) == NUM_CLASSES
        assert done == np.cumsum(made.lengths).tolist()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with ensure(folder, layout, 3, MB, done.append) as reused:
        assert reused.manifest == made.manifest
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert done[-1] == MB
    assert len(done) == len(made)
    assert [path.name for path in folder.parent.iterdir()] == ["data"]


def test_ensure_refuses_what_does_not_match(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    ensure(folder, "packed", 3, MB)
    for layout, seed, total in (("packed", 4, MB), ("packed", 3, 2 * MB), ("tar", 3, MB)):
        with pytest.raises(HakaruError, match="holds another data set"):
            ensure(folder, layout, seed, total)
    assert open_dataset(folder).manifest.num_bytes == MB


def test_ensure_never_touches_other_files(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.tex").write_text("mine")
    with pytest.raises(HakaruError, match=r"no manifest\.json"):
        ensure(tmp_path / "data", "tar", 3, MB)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(HakaruError, match="no folder"):
        ensure(tmp_path / "file", "tar", 3, MB)
    assert (tmp_path / "data" / "thesis.tex").read_text() == "mine"


def test_ensure_takes_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert ensure(tmp_path / "data", "tar", 3, MB).manifest.num_bytes == MB


def test_ensure_fails_before_it_writes_what_has_no_space(tmp_path: Path) -> None:
    with pytest.raises(HakaruError, match=r"needs [\d,]+\.\d\d GB and [\d,]+\.\d\d GB are free"):
        ensure(tmp_path / "deep" / "data", "tar", 3, 10**17)
    assert not (tmp_path / "deep").exists()


def test_ensure_fails_before_it_writes_more_files_than_there_is_place_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = namedtuple("disk", "f_bavail f_frsize f_files f_favail")
    monkeypatch.setattr(os, "statvfs", lambda path: disk(10**9, 4096, 1000, 10))
    with pytest.raises(HakaruError, match=r"17 files and .* has place for 10; use a layout of few"):
        ensure(tmp_path / "data", "files", 3, 2 * MB)
    assert ensure(tmp_path / "data", "tar", 3, 2 * MB).manifest.num_bytes == 2 * MB


@pytest.mark.parametrize(("seed", "total"), [(-1, MB), (2**63, MB), (0, 0), (0, 100), (0, -5)])
def test_impossible_requests_are_refused(seed: int, total: int, tmp_path: Path) -> None:
    with pytest.raises(HakaruError, match=r"seed|too small"):
        ensure(tmp_path / "data", "tar", seed, total)
    assert not (tmp_path / "data").exists()


def _make_and_die(folder: Path) -> None:
    ensure(folder, "files", 3, MB, lambda done: os.kill(os.getpid(), 9) if done > MB / 2 else None)


def test_what_a_killed_process_left_is_removed_and_made_anew(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    child = multiprocessing.get_context("fork").Process(target=_make_and_die, args=(folder,))
    child.start()
    child.join()
    assert child.exitcode == -9
    assert len(list(tmp_path.iterdir())) == 1
    assert not folder.exists()
    assert ensure(folder, "files", 3, MB).manifest.num_bytes == MB
    assert list(tmp_path.iterdir()) == [folder]


def test_a_data_set_that_is_being_made_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two make the same at once: one folder comes first, and both get it."""
    folder, inner = tmp_path / "data", list[str]()

    def meanwhile(done: int) -> None:
        if not inner:
            inner.append("begun")
            inner.append(ensure(folder, "tar", 3, MB).manifest.checksum)

    reader = ensure(folder, "tar", 3, MB, meanwhile)
    assert inner == ["begun", reader.manifest.checksum]
    assert list(tmp_path.iterdir()) == [folder]


def test_what_another_host_builds_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / ".data.building-abc"
    other.mkdir()
    (other / "lock").write_text("another-host")
    ensure(tmp_path / "data", "tar", 3, MB)
    assert other.exists()


def _left_by(folder: Path, stem: str) -> Path:
    place = folder / f".{stem}.building-abc"
    place.mkdir()
    return place


@pytest.mark.parametrize("stem", ["data", "data[1]", "a*b?"])
def test_what_a_killed_process_left_is_removed_whatever_its_name(tmp_path: Path, stem: str) -> None:
    left, other = _left_by(tmp_path, stem), _left_by(tmp_path, "data1")
    for place in (left, other):
        (place / "lock").write_text(host_name())
    ensure(tmp_path / stem, "tar", 3, MB)
    assert other.exists() and not left.exists()


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device"])
def test_a_lock_that_is_no_file_hangs_nobody(tmp_path: Path, kind: str) -> None:
    """Anybody may put something into a shared folder."""
    lock = _left_by(tmp_path, "data") / "lock"
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "folder":
        lock.mkdir()
    else:
        (tmp_path / "name").write_text(host_name())
        lock.symlink_to("/dev/zero" if kind == "device" else tmp_path / "name")
    ensure(tmp_path / "data", "tar", 3, MB)
    assert lock.parent.exists()


def test_a_lock_of_another_user_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _left_by(tmp_path, "data")
    (left / "lock").write_text(host_name())
    monkeypatch.setattr(os, "geteuid", lambda: (left / "lock").stat().st_uid + 1)
    ensure(tmp_path / "data", "tar", 3, MB)
    assert left.exists()


def test_an_error_while_making_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthetic_room, "CLASSES", ("one",))
    with pytest.raises((HakaruError, IndexError)):
        ensure(tmp_path / "data", "zip", 3, MB)
    assert not list(tmp_path.iterdir())


KNOWN = (14, 219_103, 285_586_755, "c0014/000123456")
