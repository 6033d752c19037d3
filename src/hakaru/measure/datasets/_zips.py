"""Members of stored zip archives, read through `zipfile` as users do, and checked before they are read."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

from hakaru.errors import HakaruError
from hakaru.measure.datasets._files import damaged, open_regular

MADE = (1980, 1, 1, 0, 0, 0)
MODE = 0o100644 << 16
# a local header and one of the directory, with the name in both
EXTRA_BYTES = 30 + 46 + 2 * 64
BROKEN = (
    zipfile.BadZipFile, KeyError, RuntimeError, EOFError, OSError, ValueError, zlib.error, struct.error,
    OverflowError,
)  # fmt: skip


class NewZip:
    """An archive that is written: stored members, the same bytes whenever it is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._names = set[str]()

    def add(self, name: str, data: bytes | memoryview) -> None:
        if name in self._names:  # zipfile would only warn
            raise HakaruError(f"two samples have the same key: the archive has {name!r} already")
        self._names.add(name)
        member = zipfile.ZipInfo(name, MADE)
        member.external_attr = MODE
        self._archive.writestr(member, data)

    def finish(self) -> None:
        self._archive.close()


class Zip:
    """An archive that a process keeps open, with its directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] = open(open_regular(path), "rb")  # noqa: SIM115 – see close
        try:
            self._archive = zipfile.ZipFile(self._file)
        except BROKEN as error:
            self._file.close()
            raise damaged(path, f"no zip archive: {_words(error)}") from None

    def read(self, name: str, least: int, most: int) -> bytes:
        """A stored member whose size is within these bounds; zipfile checks its CRC-32."""
        try:
            member = self._archive.getinfo(name)
        except KeyError:
            raise damaged(self.path, f"it has no member {name!r}") from None
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise damaged(self.path, f"member {name!r} is compressed, expected a stored one")
        if not least <= member.file_size <= most:
            found = f"member {name!r} has {member.file_size:,} bytes, expected {least:,}"
            raise damaged(self.path, found + (f" to {most:,}" if most > least else ""))
        try:
            data = self._archive.read(member)
        except BROKEN as error:
            raise damaged(self.path, f"member {name!r}: {_words(error)}") from None
        if len(data) != member.file_size:
            raise damaged(self.path, f"member {name!r} ends after {len(data):,} bytes")
        return data

    def close(self) -> None:
        self._archive.close()
        self._file.close()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
