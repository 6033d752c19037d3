"""A sample: its bytes, its label, and a key that can be a file name in every layout.

Keys follow webdataset: a member's name is its key up to the first dot, and the rest says what it is.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from hashlib import blake2b

from hakaru.errors import HakaruError

MOST_KEY, MOST_PART = 1000, 200  # bytes; a file name has 255 at most
MOST_BYTES = 4 << 30  # of a sample, which is read into memory as a whole
MOST_LABEL = 2**31 - 1
# webdataset skips names that begin with __, and takes the first dot for the end of the key
PART = re.compile(r"(?!__)[^./\\:]+")
KIND = re.compile(r"[a-z0-9]{1,16}")
LABEL_KIND = "cls"


@dataclass(frozen=True, slots=True)
class Sample:
    """`key` is a path of parts without dots, such as `n01440764/n01440764_10026`; `kind` is the ending."""

    data: bytes
    label: int
    key: str
    kind: str = "jpg"

    @property
    def name(self) -> str:
        return f"{self.key}.{self.kind}"

    @property
    def crc32(self) -> int:
        return zlib.crc32(self.data)


def check_sample(sample: Sample) -> Sample:
    """The sample, if every layout can hold it."""
    check_name(sample.name)
    if not sample.data:
        raise HakaruError(f"sample {sample.key!r} has no bytes; leave it out")
    if len(sample.data) > MOST_BYTES:
        raise HakaruError(
            f"sample {sample.key!r} has {len(sample.data):,} bytes, expected at most {MOST_BYTES:,}"
        )
    if not 0 <= sample.label <= MOST_LABEL:
        raise HakaruError(
            f"sample {sample.key!r} has the label {sample.label}, expected 0 to {MOST_LABEL:,}"
        )
    return sample


def check_name(name: str) -> str:
    """A sample's name that stays inside its folder or archive, whoever wrote it."""
    key, _, kind = name.partition(".")
    if not KIND.fullmatch(kind) or kind == LABEL_KIND:
        raise HakaruError(
            f"sample {name[:80]!r}: expected a name such as dog/0001.jpg, whose ending has letters and "
            f"digits and is not {LABEL_KIND}"
        )
    if not name.isprintable() or len(name.encode()) > MOST_KEY:
        raise HakaruError(f"sample {name[:80]!r}: expected at most {MOST_KEY:,} printable bytes")
    for part in key.split("/"):
        if not PART.fullmatch(part) or part != part.strip() or len(part.encode()) > MOST_PART:
            raise HakaruError(
                f"sample {name[:80]!r}: {part[:40]!r} cannot be part of a key; expected at most "
                f"{MOST_PART} bytes without dots, colons and backslashes, not beginning with __"
            )
    return name


def split_name(name: str) -> tuple[str, str]:
    """The key and the kind of a checked name."""
    key, _, kind = name.rpartition(".")
    return key, kind


def fingerprint(name: str, label: int, num_bytes: int, crc32: int) -> int:
    """64 bits of what a sample holds; their sum over a data set does not depend on the order."""
    text = f"{name}\0{label}\0{num_bytes}\0{crc32}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
