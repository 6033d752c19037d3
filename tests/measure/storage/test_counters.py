"""Bytes really read, the device below a path, and the label that an epoch gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.storage._counters import (
    FileSystem,
    file_system_of,
    label_of,
    process_read_bytes,
    read_share,
)

STAT = "7 0 800 1 2 3 4 5 6 7 8"  # the third is sectors read


@pytest.mark.parametrize(
    ("read", "delivered", "label"),
    [
        (100, 100, "from the device"),
        (150, 100, "from the device"),
        (95, 100, "from the device"),
        (94, 100, "partly cached"),
        (6, 100, "partly cached"),
        (5, 100, "cached"),
        (0, 100, "cached"),
        (None, 100, "unknown"),
        (0, 0, "unknown"),
    ],
)
def test_labels(read: int | None, delivered: int, label: str) -> None:
    assert label_of(read, delivered) == label


def test_what_a_network_file_system_reads_is_from_no_device() -> None:
    assert label_of(100, 100, is_remote=True) == "over the network"
    assert label_of(50, 100, is_remote=True) == "partly cached"
    assert label_of(0, 100, is_remote=True) == "cached"
    assert label_of(None, 100, is_remote=True) == "unknown"


def test_the_share_is_of_the_delivered_bytes() -> None:
    assert read_share(50, 200) == 0.25
    assert read_share(300, 200) == 1.0  # read-ahead
    assert read_share(None, 200) is None


def test_processes_count_what_they_read(tmp_path: Path) -> None:
    for pid, count in ((7, 4096), (8, 100)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "io").write_text(f"rchar: 9\nread_bytes: {count}\nwrite_bytes: 1\n")
    assert process_read_bytes([7, 8], tmp_path) == 4196
    assert process_read_bytes([], tmp_path) == 0


def test_a_process_that_does_not_say_makes_the_sum_unknown(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/io").write_text("rchar: 9\n")
    assert process_read_bytes([7], tmp_path) is None
    assert process_read_bytes([7, 8], tmp_path) is None


def test_this_process_is_known() -> None:
    found = process_read_bytes([os.getpid()])
    assert found is not None
    assert found >= 0


class Machine:
    """A root folder with mounts and block devices; the folder looked at has `device`."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.lines, self._patch = root, list[str](), monkeypatch
        (root / "proc/self").mkdir(parents=True)

    def block(self, number: str, below: str = "") -> None:
        folder = self.root / "sys/devices" / (below or number.replace(":", "-"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "stat").write_text(STAT)
        (folder / "dev").write_text(number)
        links = self.root / "sys/dev/block"
        links.mkdir(parents=True, exist_ok=True)
        (links / number).symlink_to(folder)

    def mount(self, number: str, point: str, kind: str, source: str, options: str = "rw") -> None:
        self.lines.append(f"36 25 {number} / {point} rw - {kind} {source} {options}")

    def look(self, number: str) -> FileSystem:
        (self.root / "proc/self/mountinfo").write_text("\n".join(self.lines))
        major, _, minor = number.partition(":")
        path = self.root / "looked-at"
        path.mkdir()
        real, device = os.stat, os.makedev(int(major), int(minor))

        def stat(asked: object, **options: object) -> object:
            if str(asked) == str(path):
                return os.stat_result((0o40755, 1, device, 1, 0, 0, 0, 0, 0, 0))
            return real(asked, **options)  # type: ignore[call-overload]

        self._patch.setattr("hakaru.measure.storage._counters.os.stat", stat)
        return file_system_of(path, self.root)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_disk(machine: Machine) -> None:
    machine.block("8:0")
    machine.mount("8:0", "/", "ext4", "/dev/sda")
    found = machine.look("8:0")
    assert (found.type, found.device, found.disk) == ("ext4", "8:0", "8:0")
    assert found.read_bytes() == 800 * 512
    assert found.explain() == ""
    assert not found.is_remote


def test_a_partition_knows_its_disk(machine: Machine) -> None:
    machine.block("8:0", "sda")
    machine.block("8:1", "sda/sda1")
    (machine.root / "sys/devices/sda/sda1/partition").write_text("1")
    machine.mount("8:1", "/", "xfs", "/dev/sda1")
    found = machine.look("8:1")
    assert (found.device, found.disk) == ("8:1", "8:0")


@pytest.mark.parametrize(
    ("kind", "source", "words"),
    [
        ("nfs4", "server:/data", "network file system"),
        ("lustre", "10.0.0.1@tcp:/fs", "network file system"),
        ("fuse.juicefs", "juice", "network file system"),
        ("tmpfs", "tmpfs", "tmpfs is memory"),
        ("overlay", "overlay", "no block device"),
    ],
)
def test_without_a_device_the_counter_is_unknown_and_never_zero(
    machine: Machine, kind: str, source: str, words: str
) -> None:
    machine.mount("0:40", "/data", kind, source)
    found = machine.look("0:40")
    assert found.read_bytes() is None
    assert found.disk is None
    assert words in found.explain()
    assert found.is_remote == (words == "network file system")


def test_an_overlay_is_on_the_device_of_its_upper_layer(machine: Machine, tmp_path: Path) -> None:
    machine.block("8:0")
    upper = tmp_path / "docker layers"
    upper.mkdir()
    escaped = str(upper).replace(" ", "\\040")
    machine.mount("8:0", "/", "ext4", "/dev/sda")
    machine.mount("0:50", "/merged", "overlay", "overlay", f"rw,lowerdir=/l,upperdir={escaped}")
    found = machine.look("0:50")
    assert (found.type, found.device) == ("overlay", "8:0")


def test_the_real_file_system_of_this_folder(tmp_path: Path) -> None:
    found = file_system_of(tmp_path)
    assert found.type != "unknown"
    assert (found.read_bytes() is None) == (found.device is None)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HakaruError, match="expected a folder that exists"):
        file_system_of(tmp_path / "missing")
