"""Limits of known size on processes: a cgroup with a quota of CPU, memory or disk reads.

cgroup v1 and v2 look the same from outside. A cgroup lives as long as its `with` block; what a killed
process left is removed at the next use. Under v2 a controller that was off for children stays on.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.node.cgroups import throttled_s
from hakaru.measure.truth import Unavailable, is_running

ROOT = Path("/")
LEAST_QUOTA_US = 1_000  # the kernel refuses less
PERIODS_US = (1_000, 1_000_000)
PAGE_BYTES = 4_096
REMOVE_WITHIN_S = 5.0

_NUMBERS = itertools.count()
_NAME = re.compile(r"hakaru-(\d+)-\d+")
# the shell enters the cgroup and becomes the program; it starts nothing outside the cgroup
_ENTER = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True)
class Throttle:
    """A cgroup of ours: the processes in it, and their children, share one limit."""

    folder: Path
    file: Path  # holds the limit

    def add(self, pid: int) -> None:
        """Puts a running process with all its threads under the limit."""
        _write(self.folder / "cgroup.procs", str(pid))

    @property
    def prefix(self) -> list[str]:
        """Words before a command that start it under the limit.

        They go before the prefix of a host: `ip netns exec` hides the cgroups.
        """
        return ["/bin/sh", "-c", _ENTER, str(self.folder / "cgroup.procs")]

    def start(self, argv: Sequence[str], **popen: Any) -> subprocess.Popen[Any]:
        """A process that is under the limit from its first instruction on."""
        return subprocess.Popen([*self.prefix, *argv], **popen)


class CpuQuota(Throttle):
    """A cgroup with a quota of CPU time."""

    def throttled_s(self) -> float:
        """How long the quota has held its processes back so far, summed over cores."""
        stat = self.folder / "cpu.stat"
        found = throttled_s(stat.read_text())
        if found is None:
            raise Unavailable(f"{stat} does not count throttled time")
        return found


@contextmanager
def cpu_quota(
    cores: float, period_us: int = 10_000, pids: Sequence[int] = (), *, root: Path = ROOT
) -> Iterator[CpuQuota]:
    """Processes that together get the time of so many cores, however many they use."""
    if not (math.isfinite(cores) and PERIODS_US[0] <= period_us <= PERIODS_US[1]):
        raise HakaruError(
            f"a quota of {cores} cores per {period_us} µs: expected a number of cores and a period of "
            f"{PERIODS_US[0]:,} to {PERIODS_US[1]:,} µs"
        )
    quota_us = round(cores * period_us)
    if quota_us < LEAST_QUOTA_US:
        raise HakaruError(
            f"a quota of {cores} cores per {period_us} µs is {quota_us} µs; the kernel takes "
            f"{LEAST_QUOTA_US} µs or more: use more cores or a longer period"
        )
    v1 = {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": str(quota_us)}
    v2 = {"cpu.max": f"{quota_us} {period_us}"}
    with _cgroup(_Limit("cpu", v1), _Limit("cpu", v2), pids, root) as (folder, file):
        yield CpuQuota(folder, file)


@contextmanager
def memory_limit(
    limit_bytes: int, pids: Sequence[int] = (), *, root: Path = ROOT
) -> Iterator[Throttle]:
    """Processes that together, with the files they cache, have so much memory."""
    if limit_bytes < PAGE_BYTES:
        raise HakaruError(f"a memory limit of {limit_bytes} bytes is less than a page")
    v1 = {"memory.limit_in_bytes": str(limit_bytes)}
    v2 = {"memory.max": str(limit_bytes)}
    with _cgroup(_Limit("memory", v1), _Limit("memory", v2), pids, root) as (folder, file):
        yield Throttle(folder, file)


@contextmanager
def read_limit(
    device: str, bytes_per_s: int, pids: Sequence[int] = (), *, root: Path = ROOT
) -> Iterator[Throttle]:
    """Processes that together read so fast from a disk, named by its `major:minor`."""
    _check_disk(device, root)
    if bytes_per_s < 1:
        raise HakaruError(f"a read limit of {bytes_per_s} bytes/s: it must be 1 or more")
    v1 = {"blkio.throttle.read_bps_device": f"{device} {bytes_per_s}"}
    v2 = {"io.max": f"{device} rbps={bytes_per_s}"}
    with _cgroup(_Limit("blkio", v1), _Limit("io", v2), pids, root) as (folder, file):
        yield Throttle(folder, file)


def _check_disk(device: str, root: Path) -> None:
    listed = "`lsblk -o NAME,TYPE,MAJ:MIN` lists them"
    known = root / "sys/dev/block" / device
    if not re.fullmatch(r"\d{1,7}:\d{1,7}", device) or not known.exists():
        raise HakaruError(
            f"no block device {device[:40]!r}; expected major:minor of a disk: {listed}"
        )
    if (known / "partition").exists():
        raise HakaruError(f"{device} is a partition and limits go by whole disks: {listed}")


@dataclass(frozen=True)
class _Limit:
    """A limit in the words of one version: the controller, and its files with their texts."""

    controller: str
    files: dict[str, str]


@contextmanager
def _cgroup(v1: _Limit, v2: _Limit, pids: Sequence[int], root: Path) -> Iterator[tuple[Path, Path]]:
    """A cgroup with a limit, and the file that holds it."""
    files, parent, home = _find_place(v1, v2, root)
    _remove_leftovers(parent, home)
    folder = parent / f"hakaru-{os.getpid()}-{next(_NUMBERS)}"
    try:
        with _explained(f"cannot make the cgroup {folder}"):
            folder.mkdir()
        for name, text in files.items():
            _write(folder / name, text)
        for pid in pids:
            _write(folder / "cgroup.procs", str(pid))
        yield folder, folder / list(files)[-1]
    finally:
        _remove(folder, home)


def _find_place(v1: _Limit, v2: _Limit, root: Path) -> tuple[dict[str, str], Path, Path]:
    """What to write, the parent of our cgroup, and our home, where its processes return to.

    v1 where it has the controller, v2 otherwise: a controller is never in both.
    """
    mounts = list(_mounts(root))
    for mount in mounts:
        if mount.version == 1 and v1.controller in mount.controllers:
            home = mount.home(root, v1.controller)
            return v1.files, home, home
    for mount in mounts:
        if mount.version == 2:
            home = mount.home(root, "")
            return v2.files, _delegating(home, mount.folder, v2.controller), home
    raise Unavailable(
        f"no cgroup controller {v2.controller!r} is mounted on this machine. As root: "
        "mount -t cgroup2 none /sys/fs/cgroup"
    )


@dataclass(frozen=True)
class _Mount:
    version: int
    controllers: frozenset[str]
    folder: Path
    top: str  # the cgroup that is seen there

    def home(self, root: Path, controller: str) -> Path:
        """The cgroup of this process; limits from outside stay in force for all that is below it."""
        for line in _read(root / "proc/self/cgroup").splitlines():
            _, names, path = line.split(":", 2)
            if controller in names.split(","):
                below = os.path.relpath(path, self.top)
                return self.folder if below.startswith("..") else self.folder / below
        return self.folder


def _mounts(root: Path) -> Iterator[_Mount]:
    for line in _read(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, *_, options = after.split()
        top, point = map(_unescaped, before.split()[3:5])
        folder = root / point.lstrip("/")
        if kind in ("cgroup", "cgroup2") and (folder / "cgroup.procs").exists():
            version = 2 if kind == "cgroup2" else 1
            yield _Mount(version, frozenset(options.split(",")), folder, top)


def _unescaped(path: str) -> str:
    """mountinfo writes a space in a path as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def _delegating(home: Path, top: Path, controller: str) -> Path:
    """v2: the nearest cgroup from ours up that may hand the controller on to children.

    Only the root and cgroups without processes of their own may.
    """
    for folder in (home, *home.parents):
        if controller in _read(folder / "cgroup.subtree_control").split():
            return folder
        free = not (folder / "cgroup.type").exists() or not _pids(folder)
        if free and controller in _read(folder / "cgroup.controllers").split():
            _write(folder / "cgroup.subtree_control", f"+{controller}")
            return folder
        if folder == top:
            break
    raise Unavailable(
        f"no cgroup from {home} up to {top} may hand on the controller {controller!r}: it is missing "
        "in cgroup.controllers, or each has processes of its own. Run outside of the container, or in "
        "a cgroup that was delegated: systemd-run --scope -p Delegate=yes …"
    )


def _remove_leftovers(parent: Path, home: Path) -> None:
    for folder in parent.glob("hakaru-*"):
        found = _NAME.fullmatch(folder.name)
        if found and not is_running(int(found[1])):
            with suppress(HakaruError):  # somebody else's use may remove it at the same time
                _remove(folder, home)


def _remove(folder: Path, home: Path) -> None:
    """Sends the processes home and removes the cgroup; forks in between are sent again."""
    until = time.monotonic() + REMOVE_WITHIN_S
    while folder.exists():
        for pid in _pids(folder):
            with suppress(Unavailable):  # it has ended
                _write(home / "cgroup.procs", str(pid))
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() > until:
                raise HakaruError(
                    f"cannot remove the cgroup {folder}: {error.strerror}. End the processes that "
                    f"{folder}/cgroup.procs lists, then: rmdir {folder}"
                ) from error
            time.sleep(0.01)


def _pids(folder: Path) -> list[int]:
    """Processes of a cgroup; one of another pid namespace is listed as 0, which would mean us."""
    try:
        words = (folder / "cgroup.procs").read_text().split()
    except OSError:
        return []
    return [int(word) for word in words if word.isdecimal() and int(word)]


def _read(path: Path) -> str:
    with _explained(f"cannot read {path}"):
        return path.read_text()


def _write(path: Path, text: str) -> None:
    if not path.exists():
        raise Unavailable(f"{path} is missing: this kernel does not have that limit")
    with _explained(f"cannot write {text!r} to {path}"):
        path.write_text(text)


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """A refusal of the kernel, in words."""
    try:
        yield
    except PermissionError as error:
        raise Unavailable(f"{what}: {error.strerror}. Run it as root: sudo hakaru …") from error
    except OSError as error:
        raise Unavailable(f"{what}: {error.strerror}") from error
