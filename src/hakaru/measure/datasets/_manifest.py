"""`manifest.json`: what a data set holds. It is written last, so that a folder without one is no data set."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import damaged, file_size, open_regular, read_at
from hakaru.safety.files import replace_file

MANIFEST, INDEX, CLASSES = "manifest.json", "index.bin", "classes.txt"
FORMAT, VERSION = "hakaru-dataset", 1
MOST_BYTES, LOOKED_AT = 64 << 20, 200
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9]+)?")
CHECKSUM = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Manifest:
    """`files` are the archives and indexes with their sizes; `origin` says where the samples came from.

    The checksum is the sum of all samples' fingerprints: it is the same in every layout and order.
    """

    layout: str
    num_samples: int
    num_bytes: int
    checksum: str
    files: Mapping[str, int]
    classes: tuple[str, ...] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)


def is_dataset(folder: Path) -> bool:
    """Whether a folder claims to be a data set of ours, also a damaged one."""
    try:
        with open(open_regular(folder / MANIFEST), "rb") as file:
            head = file.read(LOOKED_AT)
    except (HakaruError, OSError):
        return False
    return FORMAT.encode() in head or (folder / INDEX).exists()


def save_manifest(manifest: Manifest, folder: Path) -> None:
    """Write it whole or not at all; the class list is beside it for people and other programs."""
    if manifest.classes:
        replace_file(folder / CLASSES, "".join(f"{name}\n" for name in manifest.classes))
    document = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    replace_file(folder / MANIFEST, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def load_manifest(folder: Path) -> Manifest:
    """The manifest of a whole data set: every file that it names is there and has its size."""
    if not folder.is_dir():
        raise HakaruError(f"{folder} is no folder; expected that of a data set")
    path = folder / MANIFEST
    if not path.exists():
        raise HakaruError(
            f"{folder} has no {MANIFEST}: it is no data set, or writing it was interrupted. Make one "
            "with: hakaru bench pack SOURCE TARGET --layout tar"
        )
    manifest = _parsed(path, _document(path))
    for name, size in manifest.files.items():
        found = file_size(folder / name)
        if found != size:
            raise damaged(folder / name, f"expected {size:,} bytes, found {found:,}")
    return manifest


def _document(path: Path) -> dict[str, Any]:
    size = file_size(path)
    if size > MOST_BYTES:
        raise damaged(path, f"{size:,} bytes, expected at most {MOST_BYTES:,}")
    with open(open_regular(path), "rb") as file:
        text = read_at(file.fileno(), size, 0, path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"no valid JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise HakaruError(f'{path}: expected "format": "{FORMAT}"; this is no data set of Hakaru')
    if document.get("version") != VERSION:
        raise HakaruError(
            f"{path}: version {document.get('version')!r}, this Hakaru reads version {VERSION}; "
            "write the data set again with it"
        )
    return document


def _parsed(path: Path, document: Mapping[str, Any]) -> Manifest:
    def wrong(name: str, expected: str) -> HakaruError:
        return damaged(path, f"{name} is {document.get(name)!r:.80}, expected {expected}")

    for name in ("num_samples", "num_bytes"):
        if not _is_count(document.get(name)):
            raise wrong(name, "a whole number of at least 1")
    if not isinstance(document.get("layout"), str):
        raise wrong("layout", "a name")
    checksum = document.get("checksum")
    if not isinstance(checksum, str) or not CHECKSUM.fullmatch(checksum):
        raise wrong("checksum", "16 hexadecimal digits")
    files, classes, origin = (document.get(name) for name in ("files", "classes", "origin"))
    if not isinstance(files, dict) or not all(
        FILE_NAME.fullmatch(name) and _is_count(size) for name, size in files.items()
    ):
        raise wrong("files", "plain names with their sizes")
    if not isinstance(classes, list) or not all(isinstance(each, str) for each in classes):
        raise wrong("classes", "a list of names")
    if not isinstance(origin, dict):
        raise wrong("origin", "an object")
    num_samples, num_bytes = document["num_samples"], document["num_bytes"]
    return Manifest(
        document["layout"], num_samples, num_bytes, checksum, files, tuple(classes), origin
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value < 2**62
