"""Where data sets lie and what of their reading is known: local disks, networks, and hosts that differ."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.measure._base import WrongResult
from hakaru.measure.context import Alone
from hakaru.measure.datasets.synthetic import ensure
from hakaru.measure.storage import _folder
from hakaru.measure.storage._counters import FileSystem
from hakaru.measure.storage._folder import data_folder
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._samples import Null
from hakaru.measure.storage._store import Store, existing_store, holds_dataset
from tests.measure.storage._ranks import group

NFS = FileSystem("nfs4", None, "server:/data")
DISK = FileSystem("ext4", "8:0", "/dev/sda")
TMPFS = FileSystem("tmpfs", None, "tmpfs")


@dataclass(frozen=True)
class Two(Alone):
    """Rank 0 of two, whose other one says what a test wants."""

    size: int = 2
    other: Any = None

    def share(self, value: Any) -> list[Any]:
        return [value, self.other]


def store(below: FileSystem | None) -> Store:
    source = Null(4, 1000)
    return Store("packed", source, source.lengths, below=below)


def test_a_network_that_counts_nothing_is_unknown_until_it_counted() -> None:
    found = store(NFS)
    assert found.is_remote
    assert found.counted(0, 4000) is None
    assert found.counted(None, 4000) is None
    assert found.counted(4000, 4000) == 4000  # a cold epoch: reads are counted
    assert found.counted(0, 4000) == 0
    assert store(NFS).counted(0, 4000) is None  # one store proves nothing of another


def test_a_device_counts_and_memory_never_does() -> None:
    assert store(DISK).counted(0, 4000) == 0
    assert not store(DISK).is_remote
    assert store(TMPFS).counted(0, 4000) is None
    assert not store(TMPFS).is_remote
    assert store(None).counted(0, 4000) is None


def test_a_temporary_folder_is_on_a_disk_of_this_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {"net": NFS, "memory": TMPFS, "disk": DISK}
    for name in kinds:
        (tmp_path / name).mkdir()
    folders = tuple(str(tmp_path / name) for name in kinds)
    monkeypatch.setattr(_folder, "file_system_of", lambda path: kinds[Path(path).name])
    monkeypatch.setattr(_folder, "FOLDERS", folders)
    with data_folder(group(), "temporary") as found:
        assert found.parent == tmp_path / "disk"
    assert not found.exists()
    monkeypatch.setattr(_folder, "FOLDERS", folders[:2])
    with (
        pytest.raises(HakaruError, match="no folder on a local disk"),
        data_folder(group(), "temporary"),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_every_rank_s_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_folder, "_on_a_disk", lambda: tmp_path / "missing")
    with (
        pytest.raises(HakaruError, match=r"missing/hakaru-data-.*No such file"),
        data_folder(group(), "temporary"),
    ):
        pass


def test_a_problem_of_one_is_raised_by_all_and_keeps_its_kind() -> None:
    theirs = Group(Two(other=(False, "disk full")), ["a", "b"])
    with pytest.raises(HakaruError, match="disk full"):
        theirs.together(lambda: 1)
    theirs = Group(Two(other=(True, "bytes differ")), ["a", "b"])
    with pytest.raises(WrongResult, match="bytes differ"):
        theirs.together(lambda: 1)
    assert Group(Two(), ["a", "b"]).together(lambda: 1) == 1

    def fail() -> None:
        raise PermissionError(13, "Permission denied", "/data")

    with pytest.raises(HakaruError, match=r"^/data: Permission denied$"):
        Group(Two(), ["a", "b"]).together(fail)
    with pytest.raises(HakaruError, match=r"^ZeroDivisionError: "):
        group().together(lambda: 1 // 0)


def test_a_data_set_that_only_one_host_sees_is_refused(tmp_path: Path) -> None:
    ensure(tmp_path / "mine", "packed", 0, 1 << 20).close()
    assert holds_dataset(group(), tmp_path / "mine")
    assert not holds_dataset(group(), tmp_path)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/manifest.json").write_text("{}")  # of somebody else's program
    assert not holds_dataset(group(), tmp_path / "theirs")
    with pytest.raises(HakaruError, match="but not on n2"):
        holds_dataset(Group(Two(other=False), ["n1", "n2"]), tmp_path / "mine")
    with (
        pytest.raises(HakaruError, match="no folder"),
        existing_store(group(), tmp_path / "missing"),
    ):
        pass
