"""How many bytes were really read: by processes, and from the block device behind a path.

A cached epoch reads nothing from the device and says nothing of storage; the label of an epoch tells them
apart. What cannot be counted, as on a network file system, is null and never 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from hakaru.errors import HakaruError

ROOT = Path("/")
SECTOR_BYTES = 512  # in the kernel's counters, whatever the device's own are
FROM_DEVICE = 0.95  # of the delivered bytes, from which an epoch is one of storage
CACHED = 0.05  # up to which it is one of memory
NETWORK = (
    "nfs",
    "nfs4",
    "lustre",
    "beegfs",
    "cifs",
    "smb3",
    "ceph",
    "gpfs",
    "glusterfs",
    "9p",
    "virtiofs",
)
LOCAL = ("fuse.fuse-overlayfs",)  # of containers without root
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")

Label = Literal["from the device", "over the network", "cached", "partly cached", "unknown"]
OF_STORAGE: tuple[Label, ...] = ("from the device", "over the network")


def label_of(read_bytes: int | None, delivered_bytes: int, is_remote: bool = False) -> Label:
    """Where the delivered bytes came from; `is_remote` is a file system without a device of this host's."""
    if read_bytes is None or delivered_bytes <= 0:
        return "unknown"
    share = read_bytes / delivered_bytes
    if share >= FROM_DEVICE:
        return "over the network" if is_remote else "from the device"
    return "cached" if share <= CACHED else "partly cached"


def read_share(read_bytes: int | None, delivered_bytes: int) -> float | None:
    """The share of the delivered bytes that was read from the device; read-ahead may read more than all."""
    if read_bytes is None or delivered_bytes <= 0:
        return None
    return min(read_bytes / delivered_bytes, 1.0)


def process_read_bytes(pids: Iterable[int], proc: Path = ROOT / "proc") -> int | None:
    """What living processes had read from devices so far; None where one of them does not say.

    The kernel adds what a child had read to its parent when the child is gone: count differences only while
    all of them live.
    """
    total = 0
    for pid in pids:
        try:
            text = (proc / str(pid) / "io").read_text()
        except OSError:
            return None
        found = re.search(r"^read_bytes: (\d+)$", text, re.MULTILINE)
        if found is None:
            return None
        total += int(found[1])
    return total


@dataclass(frozen=True)
class FileSystem:
    """What holds a path: the type of its file system, and the block device below it if there is one."""

    type: str
    device: str | None  # major:minor
    name: str  # the device's, or what is mounted
    root: Path = ROOT

    @property
    def is_remote(self) -> bool:
        """What is read comes over a network; its server's memory or devices are not seen from here."""
        if self.device is not None:
            return False
        return self.type in NETWORK or (self.type.startswith("fuse.") and self.type not in LOCAL)

    @cached_property
    def disk(self) -> str | None:
        """The whole disk, which limits go by."""
        if self.device is None:
            return None
        entry = (self.root / "sys/dev/block" / self.device).resolve()
        if (entry / "partition").exists():
            return _text(entry.parent / "dev")
        return self.device

    def read_bytes(self) -> int | None:
        """What the device has read so far, for everybody; None where there is no device."""
        if self.device is None:
            return None
        fields = (_text(self.root / "sys/dev/block" / self.device / "stat") or "").split()
        return int(fields[2]) * SECTOR_BYTES if len(fields) > 2 else None

    def explain(self) -> str:
        """Why the device's counter is unknown; empty where it is known."""
        if self.device is not None:
            return ""
        if self.type in IN_MEMORY:
            return f"{self.type} is memory: nothing is read from a device"
        if self.is_remote:
            return f"{self.type} is a network file system: the reads of its devices cannot be seen from here"
        return f"no block device is known below {self.type}"


def file_system_of(path: Path, root: Path = ROOT) -> FileSystem:
    """The file system of a path and its device; an overlay's is that of its upper layer."""
    try:
        device = os.stat(path).st_dev  # noqa: PTH116
    except OSError as error:
        raise HakaruError(f"{path}: {error.strerror}; expected a folder that exists") from None
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = _mounts(root)
    mount = next((each for each in reversed(mounts) if each.number == number), None)
    if mount is None:
        return FileSystem("unknown", _known(number, root), number, root)
    return _resolve(mount, mounts, root)


@dataclass(frozen=True)
class _Mount:
    number: str
    point: str
    type: str
    source: str
    options: Sequence[str]


def _mounts(root: Path) -> list[_Mount]:
    found = []
    for line in (_text(root / "proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        _, _, number, _, point, *_ = before.split()
        kind, source, options = [*after.split(), "", ""][:3]
        found.append(
            _Mount(number, _unescaped(point), kind, _unescaped(source), options.split(","))
        )
    return found


def _resolve(mount: _Mount, mounts: Sequence[_Mount], root: Path, depth: int = 0) -> FileSystem:
    device = _known(mount.number, root) or _device_of(mount.source, root)
    if device is None and mount.type == "overlay" and depth < 4:
        upper = next((o.partition("=")[2] for o in mount.options if o.startswith("upperdir=")), "")
        below = _holder(_unescaped(upper), mounts) if upper else None
        if below is not None and below is not mount:
            found = _resolve(below, mounts, root, depth + 1)
            return FileSystem("overlay", found.device, found.name, root)
    return FileSystem(mount.type, device, mount.source, root)


def _holder(path: str, mounts: Sequence[_Mount]) -> _Mount | None:
    """The mount with the longest point that a path begins with; an overlay's layers may be unseen here."""
    if not Path(path).exists():
        return None
    fitting = [m for m in mounts if path == m.point or path.startswith(m.point.rstrip("/") + "/")]
    return max(fitting, key=lambda m: len(m.point), default=None)


def _known(number: str, root: Path) -> str | None:
    """A device that the kernel counts; those of btrfs, overlays and networks are made up."""
    return number if (root / "sys/dev/block" / number / "stat").exists() else None


def _device_of(source: str, root: Path) -> str | None:
    """btrfs and ZFS mount a device under a number of their own."""
    if not source.startswith("/dev/"):
        return None
    try:
        number = os.stat(root / source.lstrip("/")).st_rdev  # noqa: PTH116
    except OSError:
        return None
    return _known(f"{os.major(number)}:{os.minor(number)}", root)


def _unescaped(text: str) -> str:
    """mountinfo writes a space in a path as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
