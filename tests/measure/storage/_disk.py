"""A small disk for tests: ext4 on a loop device, which nobody else reads and which can be throttled."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

MIB = 1 << 20
TOOLS = ("losetup", "mkfs.ext4", "mount", "umount")


@dataclass(frozen=True)
class Disk:
    """Its folder, and its device's `major:minor`."""

    folder: Path
    number: str


@contextmanager
def loop_disk(place: Path, mib: int) -> Iterator[Disk]:
    """A skip where this user or machine cannot make one; it always goes at the end."""
    missing = [name for name in TOOLS if shutil.which(name, path=_PATH) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"a loop device needs root and {', '.join(TOOLS)}")
    image, folder = place / "disk.img", place / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(mib * MIB)
    device, is_mounted = "", False
    try:
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        try:
            device = _run("losetup", "-f", "--show", str(image)).strip()
            _run("mount", device, str(folder))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no loop device can be mounted here: {error.stderr}")
        is_mounted = True
        number = (Path("/sys/class/block") / Path(device).name / "dev").read_text().strip()
        yield Disk(folder, number)
    finally:
        if is_mounted:
            _run("umount", "-l", str(folder))
        if device:
            _run("losetup", "-d", device)
        image.unlink()


_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))


def _run(*words: str) -> str:
    done = subprocess.run(
        words, check=True, capture_output=True, text=True, env=os.environ | {"PATH": _PATH}
    )
    return done.stdout
