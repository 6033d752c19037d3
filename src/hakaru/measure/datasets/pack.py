"""Convert an image folder, or a data set of another layout, and compare every sample with its source.

The target appears when all of it was read back and is the same, or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import damaged, drop
from hakaru.measure.datasets._image_folder import EXTENSIONS, ImageFolder, Skipped
from hakaru.measure.datasets._layout import SHARD_BYTES, Reader, find_layout, open_dataset
from hakaru.measure.datasets._manifest import CLASSES, Manifest, is_dataset
from hakaru.measure.datasets._place import building, check_space
from hakaru.measure.datasets._sample import Sample
from hakaru.safety.files import refuse_link

Progress = Callable[[str, int, int], None]  # what is done now, its bytes so far, and of how many


class Source(Protocol):
    """Where samples come from; they can be read twice, in the same order."""

    @property
    def classes(self) -> Sequence[str]: ...

    @property
    def num_samples(self) -> int: ...

    @property
    def num_bytes(self) -> int: ...

    @property
    def origin(self) -> Mapping[str, Any]: ...

    @property
    def skipped(self) -> Mapping[str, Skipped]: ...

    def samples(self) -> Iterator[Sample]: ...


@dataclass(frozen=True)
class Packed:
    """What was written and compared, how long each took, and what was left out by reason."""

    target: Path
    manifest: Manifest
    skipped: Mapping[str, Skipped]
    write_s: float
    compare_s: float
    class_list: Path | None
    num_files: int
    disk_bytes: int


class DatasetSource:
    """A data set of ours; each sample's checksum is looked at."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.classes, self.origin = reader.manifest.classes, reader.manifest.origin
        self.num_samples, self.num_bytes = len(reader), reader.manifest.num_bytes
        self.skipped: Mapping[str, Skipped] = {}

    def samples(self) -> Iterator[Sample]:
        return map(self._reader.read_checked, range(len(self._reader)))


def pack(
    source: Path,
    target: Path,
    layout: str,
    *,
    shard_bytes: int | None = None,
    extensions: Sequence[str] = EXTENSIONS,
    progress: Progress = lambda what, done, total: None,
) -> Packed:
    """Write the source's samples in a layout, read all back, and compare; then the target appears."""
    chosen = find_layout(layout)
    if shard_bytes is not None and not chosen.sharded:
        raise HakaruError(f"the layout {layout} has no shards; leave out --shard-size")
    _check_target(source, target)
    origin = open_source(source, extensions)
    total = origin.num_bytes
    check_space(target, chosen, origin.num_samples, total)
    with building(target) as part:
        began = time.monotonic()
        manifest = chosen.write(
            origin.samples(),
            part,
            classes=origin.classes,
            origin=origin.origin,
            shard_bytes=shard_bytes or SHARD_BYTES,
            progress=lambda done: progress("writing", done, total),
        )
        written = time.monotonic()
        with chosen.open(part) as reader:
            for path in reader.paths():  # so that they are read back from the disk
                drop(path)
            compare(origin, reader, lambda done: progress("comparing", done, total))
            num_files, disk_bytes = _on_disk(reader)
        compared = time.monotonic()
    class_list = target / CLASSES if manifest.classes else None
    return Packed(
        target, manifest, origin.skipped, written - began, compared - written, class_list,
        num_files, disk_bytes,
    )  # fmt: skip


def open_source(source: Path, extensions: Sequence[str] = EXTENSIONS) -> Source:
    """A data set where the folder is one, else its images."""
    if is_dataset(source):
        return DatasetSource(open_dataset(source))
    return ImageFolder(source, extensions)


def compare(
    source: Source, reader: Reader, progress: Callable[[int], None] = lambda done: None
) -> None:
    """Raise where the data set differs from its source in number, key, label or any byte."""
    count = done = 0
    for count, expected in enumerate(source.samples(), 1):
        if count > len(reader):
            break
        found = reader.read_checked(count - 1)
        if found != expected:
            raise HakaruError(
                f"sample {count - 1:,} was read back as {_described(found)}, and its source has "
                f"{_described(expected)}. Nothing was kept; if the source changed meanwhile, pack it again"
            )
        done += len(found.data)
        progress(done)
    if count != len(reader):
        raise HakaruError(
            f"{len(reader):,} samples were written, and the source now has another number: it changed "
            "meanwhile. Nothing was kept; pack it again"
        )


def _described(sample: Sample) -> str:
    return f"{sample.name!r} (label {sample.label}, {len(sample.data):,} bytes, {sample.crc32:08x})"


def _on_disk(reader: Reader) -> tuple[int, int]:
    """Files that hold samples, and what they take on the disk."""
    paths = reader.paths()
    try:
        return len(paths), sum(path.stat().st_blocks * 512 for path in paths)
    except OSError as error:
        raise damaged(reader.folder, str(error)) from None


def _check_target(source: Path, target: Path) -> None:
    refuse_link(target)
    if target.exists() and not target.is_dir():
        raise HakaruError(f"{target} is a file; name a folder that is not there yet")
    if target.is_dir() and any(target.iterdir()):
        raise HakaruError(f"{target} is not empty; name a folder that is not there yet")
    if target.resolve().is_relative_to(source.resolve()):
        raise HakaruError(
            f"{target} lies inside {source}, which is packed; name a folder outside of it"
        )
