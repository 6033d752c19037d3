"""Where data sets lie: in the user's folder, or in a temporary one on a local disk that goes at the end."""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.measure.place import host_name
from hakaru.measure.storage._counters import IN_MEMORY, file_system_of
from hakaru.measure.storage._group import Group
from hakaru.measure.truth import is_running

TEMPORARY = "temporary"  # in place of a path
FOLDERS = ("TMPDIR", "/var/tmp", "/tmp", ".")


@contextmanager
def data_folder(group: Group, path: str) -> Iterator[Path]:
    """The user's folder, or a new one on a local disk of each host that is removed at the end."""
    if path != TEMPORARY:
        yield group.together(lambda: _existing(path))
        return
    own = group.firsts(lambda: _temporary_folder(_on_a_disk()))
    try:
        found: Path = group.share(own)[group.leader]
        yield found
        group.ranks.barrier()  # nobody reads any more
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)


def _existing(path: str) -> Path:
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise HakaruError(f"path={path}: this is no folder; make it first: mkdir -p {path}")
    return folder


def _temporary_folder(parent: Path) -> Path:
    """A new one; those that a killed process of this host and user left there are removed."""
    stem = f"hakaru-data-{host_name()}-"
    for folder in parent.glob(f"{glob.escape(stem)}*"):
        found = re.fullmatch(r"(\d+)-\w+", folder.name.removeprefix(stem))
        with suppress(OSError):  # somebody else's next run removes it at the same time
            if found and not is_running(int(found[1])) and folder.lstat().st_uid == os.geteuid():
                shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{stem}{os.getpid()}-", dir=parent))


def _on_a_disk() -> Path:
    """A folder for temporary files on a disk of this host: in memory nothing is ever cold."""
    wanted = [os.environ.get(name, "") if name.isupper() else name for name in FOLDERS]
    usable = [Path(each) for each in wanted if each and os.access(each, os.W_OK | os.X_OK)]
    for folder in usable:
        below = file_system_of(folder)
        if below.type not in IN_MEMORY and not below.is_remote:
            return folder.absolute()
    raise HakaruError(
        f"no folder on a local disk for the data set (looked at {', '.join(filter(None, wanted))}); "
        "name a folder: --param path=/a/folder"
    )
