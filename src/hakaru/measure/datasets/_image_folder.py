"""An image folder as a source of samples: a folder a class as ILSVRC2012 has them, or all images in one.

Labels are those of torchvision's ImageFolder: the place of the class among the sorted folders. Links are
never followed, so that nothing outside the folder is packed.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import FLAGS
from hakaru.measure.datasets._sample import KIND, LABEL_KIND, MOST_BYTES, MOST_PART, Sample

EXTENSIONS = ("jpg", "jpeg", "png", "bmp", "gif", "webp", "tif", "tiff", "ppm", "pgm")
ANY, OTHER_KIND = "*", "bin"
MOST_EXAMPLES = 3


@dataclass
class Skipped:
    """How many files were left out for a reason, and the first of them."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, path: str) -> None:
        self.count += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append(path)


@dataclass(frozen=True)
class Image:
    """A file that becomes a sample."""

    path: Path
    num_bytes: int
    label: int
    key: str
    kind: str

    def sample(self) -> Sample:
        """The image with its bytes, if it is still the file that was found."""
        try:
            with open(os.open(self.path, FLAGS), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise HakaruError(
                        f"{self.path} changed while the folder was read; pack it again"
                    )
                data = file.read()
        except OSError as error:
            raise HakaruError(f"{self.path}: cannot be read: {error.strerror}") from None
        return Sample(data, self.label, self.key, self.kind)


class ImageFolder:
    """The images below a folder in sorted order; what is no image is counted with the reason."""

    def __init__(self, folder: Path, extensions: Sequence[str] = EXTENSIONS) -> None:
        if not folder.is_dir():
            raise HakaruError(f"{folder} is no folder; expected one of images or of a data set")
        self.folder = folder
        self._kinds = frozenset(each.lower().lstrip(".") for each in extensions)
        self.skipped: dict[str, Skipped] = {}
        self._folders = [entry for entry in _entries(folder) if _is_folder(entry)]
        self.classes = tuple(_shown(each.name) for each in self._folders)
        self.num_samples = self.num_bytes = 0
        for image in self._walk(self.skipped):
            self.num_samples += 1
            self.num_bytes += image.num_bytes
        if not self.num_samples:
            expected = ", ".join(sorted(self._kinds))
            raise HakaruError(
                f"{folder} has no images ({expected}){self._why()}; name others with --extensions"
            )

    @property
    def origin(self) -> dict[str, str]:
        return {"kind": "image-folder", "name": _shown(self.folder.absolute().name)}

    def samples(self) -> Iterator[Sample]:
        """The images with their bytes; each call reads the folder anew."""
        return (image.sample() for image in self._walk({}))

    def _walk(self, skipped: dict[str, Skipped]) -> Iterator[Image]:
        names = Namer()
        for entry in _entries(self.folder):
            if not _is_folder(entry):
                yield from self._image(entry, "", 0, names, skipped, bool(self._folders))
        folders = Namer()
        for label, each in enumerate(self._folders):
            yield from self._class(each, f"{folders.name(each.name)}/", label, skipped)

    def _class(
        self, entry: os.DirEntry[str], prefix: str, label: int, skipped: dict[str, Skipped]
    ) -> Iterator[Image]:
        """All images of a class, also those of folders inside it."""
        waiting = [(entry.path, prefix)]
        while waiting:
            path, prefix = waiting.pop()
            names, folders, inner = Namer(), Namer(), []
            for found in _entries(Path(path)):
                if _is_folder(found):
                    inner.append((found.path, f"{prefix}{folders.name(found.name)}/"))
                else:
                    yield from self._image(found, prefix, label, names, skipped)
            waiting += reversed(inner)

    def _image(
        self,
        entry: os.DirEntry[str],
        prefix: str,
        label: int,
        names: Namer,
        skipped: dict[str, Skipped],
        beside: bool = False,
    ) -> Iterator[Image]:
        reason = "beside the class folders" if beside else self._reason(entry)
        if reason:
            shown = os.path.relpath(entry.path, self.folder)
            skipped.setdefault(reason, Skipped()).add(_shown(shown))
            return
        stem, _, ending = entry.name.rpartition(".")
        kind = ending.lower() if stem else ""
        fits = KIND.fullmatch(kind) and kind != LABEL_KIND
        size = entry.stat(follow_symlinks=False).st_size
        key = prefix + names.name(stem or entry.name)
        yield Image(Path(entry.path), size, label, key, kind if fits else OTHER_KIND)

    def _reason(self, entry: os.DirEntry[str]) -> str:
        if entry.is_symlink():
            return "links"
        if entry.name.startswith("."):
            return "hidden"
        if not entry.is_file(follow_symlinks=False):
            return "no regular files"
        ending = entry.name.rpartition(".")[2].lower()
        if ANY not in self._kinds and ending not in self._kinds:
            return "other extensions"
        size = entry.stat(follow_symlinks=False).st_size
        return "larger than 4 GiB" if size > MOST_BYTES else "" if size else "empty"

    def _why(self) -> str:
        found = ", ".join(f"{each.count:,} {reason}" for reason, each in self.skipped.items())
        return f"; it has {found}" if found else ""


class Namer:
    """Makes names of one folder into parts of a key, each its own: webdataset ends a key at the first dot."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._tries: Counter[str] = Counter()

    def name(self, name: str) -> str:
        part = "".join(each if each.isprintable() and each not in "./\\:" else "_" for each in name)
        part = part.strip().encode()[: MOST_PART - 8].decode(errors="ignore").strip()
        part = "_" + part.lstrip("_") if part.startswith("__") or not part else part
        found = part
        while found in self._taken:
            self._tries[part] += 1
            found = f"{part}-{self._tries[part]}"
        self._taken.add(found)
        return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise HakaruError(f"{folder}: cannot be read: {error.strerror}") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """A folder that is walked; a hidden one is skipped as a whole."""
    return entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")


def _shown(name: str) -> str:
    return "".join(each if each.isprintable() else "_" for each in name)
