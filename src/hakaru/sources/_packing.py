"""How a file is packed and encoded, told from its bytes and not from its name, and how it is unpacked.

gz, bz2, xz and zst, a zip of one file, and UTF-16 or UTF-32 text are read. What is unpacked is counted as it
comes, so that a small file that unpacks to an enormous one is refused before it fills the disk.
"""

from __future__ import annotations

import bz2
import codecs
import errno
import gzip
import lzma
import shlex
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hakaru.errors import SourceError
from hakaru.settings import Ingest

HEAD_BYTES = 65536
BLOCK_BYTES = 1 << 20
LOOK_BYTES = 4096
LOOK_EVERY_BYTES = 16 << 20
RATIO_FROM_BYTES = 128 << 20  # a short log of one repeated line packs better than any long one
KEEP_FREE_BYTES = 256 << 20
PARQUET = b"PAR1"
# the longer marks first: UTF-32's begins with UTF-16's
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Packing:
    id: str
    magic: bytes
    endings: tuple[str, ...]
    unpack: str  # the command before a file's name that prints its content
    open: Callable[[Path], IO[bytes]]


def _open_gzip(path: Path) -> IO[bytes]:
    return gzip.open(path)  # type: ignore[return-value]


def _open_bz2(path: Path) -> IO[bytes]:
    return bz2.open(path)


def _open_lzma(path: Path) -> IO[bytes]:
    return lzma.open(path)


def _open_zst(path: Path) -> IO[bytes]:
    import pyarrow as pa  # Python has no module for it before 3.14

    return pa.input_stream(path, compression="zstd")  # type: ignore[no-any-return]


def _open_zip(path: Path) -> IO[bytes]:
    archive = zipfile.ZipFile(path)
    members = [each for each in archive.namelist() if _is_file(each)]
    if "[Content_Types].xml" in members:
        raise SourceError(
            f"{path}: is an Excel or Word file; Hakaru cannot read it. Save the sheet as CSV (UTF-8), then: "
            "hakaru ingest FILE.csv --format table --guess"
        )
    if len(members) != 1:
        some = ", ".join([*members[:3], *(["…"] if len(members) > 3 else [])])
        raise SourceError(
            f"{path}: is a zip of {len(members)} files ({some}); only a zip of one file "
            f"is read. Unpack it and name the logs: unzip {shlex.quote(str(path))} -d FOLDER"
        )
    if archive.getinfo(members[0]).flag_bits & 1:
        raise SourceError(
            f"{path}: the zip has a password. Unpack it first: unzip {shlex.quote(str(path))} -d FOLDER"
        )
    return archive.open(members[0])


def _is_file(member: str) -> bool:
    return not member.endswith("/") and not member.startswith("__MACOSX/")


PACKINGS = (
    Packing("gzip", b"\x1f\x8b", (".gz",), "gzip -dc <", _open_gzip),
    Packing("bzip2", b"BZh", (".bz2",), "bzip2 -dc <", _open_bz2),
    Packing("xz", b"\xfd7zXZ\0", (".xz",), "xz -dc <", _open_lzma),
    Packing("zstd", b"\x28\xb5\x2f\xfd", (".zst", ".zstd"), "zstd -dc <", _open_zst),
    Packing("zip", b"PK\x03\x04", (".zip",), "unzip -p", _open_zip),
)
ENDINGS = tuple(ending for packing in PACKINGS for ending in packing.endings)


def packing_of(path: Path) -> Packing | None:
    with open(path, "rb") as file:
        start = file.read(8)
    return _packed(start)


def is_gzip(path: Path) -> bool:
    found = packing_of(path)
    return found is not None and found.id == "gzip"


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked; what goes wrong while they are read is an error that names it."""
    with reading(path):
        packing = packing_of(path)
        with packing.open(path) if packing else open(path, "rb") as file:
            yield file


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What the disk or an unpacker refuses, as one message."""
    try:
        yield
    except FileNotFoundError:
        raise SourceError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise SourceError(f"{path}: is a folder; name the files in it, e.g. {path}/*") from None
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError) as error:
        raise SourceError(f"{path}: the file is damaged: {error}; fetch it again") from None
    except OSError as error:
        raise SourceError(f"{path}: {_why(error)}") from None


def _why(error: OSError) -> str:
    """With a number the system refuses to read it; without one an unpacker cannot go on."""
    if error.errno == errno.ENOSPC:
        return "the workspace's disk is full. Make room, or choose another disk with --workspace"
    if error.errno:
        return f"cannot be read: {error.strerror}"
    return f"the file is damaged: {error}; fetch it again"


def encoding_of(start: bytes) -> str | None:
    """The encoding of text that is not UTF-8 but says or shows what it is: two or four bytes a character."""
    for mark, name in MARKS:
        if start.startswith(mark):
            return name
    look = start[: len(start) // 2 * 2][:LOOK_BYTES]
    num_pairs = len(look) // 2
    for name, zeros, letters in (
        ("utf-16-le", look[1::2], look[::2]),
        ("utf-16-be", look[::2], look[1::2]),
    ):
        # Latin letters and digits have a zero beside them; a binary file has zeros anywhere
        if num_pairs > 1 and zeros.count(0) * 10 >= num_pairs * 8 and letters.count(0) == 0:
            return name
    return None


def needs_copy(path: Path) -> bool:
    """Whether DuckDB cannot read the file as it stands: only plain or gz text, and plain Parquet."""
    with open_bytes(path) as file:
        start = file.read(HEAD_BYTES)
    packing = packing_of(path)
    if packing is None:
        return encoding_of(start) is not None
    inside = _packed(start) is not None or start.startswith(PARQUET)
    return packing.id != "gzip" or inside or encoding_of(start) is not None


def _packed(start: bytes) -> Packing | None:
    return next((each for each in PACKINGS if start.startswith(each.magic)), None)


@dataclass
class Meter:
    """Counts the bytes that come out of a file, and refuses more than the settings or the disk allow."""

    path: Path
    folder: Path
    limits: Ingest
    packed_bytes: int | None = None
    is_written: bool = True
    num_bytes: int = 0
    _next_look: int = 0

    def add(self, block: bytes) -> bytes:
        self.num_bytes += len(block)
        if self.num_bytes > self.limits.max_unpacked:
            self._refuse(f"holds more than {_size(self.limits.max_unpacked)}", "max_unpacked")
        many = self.packed_bytes and self.num_bytes > self.packed_bytes * self.limits.max_ratio
        if many and self.num_bytes > RATIO_FROM_BYTES:
            ratio = f"more than {self.limits.max_ratio:,.0f} times its size"
            self._refuse(f"unpacks to {_size(self.num_bytes)} and more, {ratio}", "max_ratio")
        if self.num_bytes >= self._next_look:
            self._next_look = self.num_bytes + LOOK_EVERY_BYTES
            self._check_disk()
        return block

    def _refuse(self, found: str, key: str) -> None:
        raise SourceError(
            f"{self.path}: {found}; nothing was stored. If that is right, raise ingest.{key} in hakaru.toml"
        )

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.folder).free
        left = free if self.is_written else free - self.num_bytes
        if left < KEEP_FREE_BYTES:
            raise SourceError(
                f"{self.path}: reading it needs more room than the workspace's disk has: {_size(free)} are "
                f"free and {_size(self.num_bytes)} of it were unpacked; nothing was stored. Make room, or "
                "choose another disk with --workspace"
            )


def _size(num_bytes: float) -> str:
    from rich.filesize import decimal

    return decimal(int(num_bytes))


def unpack(path: Path, folder: Path, limits: Ingest, packed_bytes: int | None) -> Path:
    """A copy in `folder` without the outer packing, under the file's name without that ending.

    `packed_bytes` is the size of the file that was given: packings inside one another count together.
    """
    copy = folder / _without_ending(path.name)
    meter = Meter(path, folder, limits, packed_bytes)
    with open(copy, "wb") as out, open_bytes(path) as file:
        while block := file.read(BLOCK_BYTES):
            out.write(meter.add(block))
    return copy


def recode(path: Path, folder: Path, limits: Ingest, encoding: str) -> Path:
    """A copy in `folder` as UTF-8."""
    try:
        return _rewrite(path, folder / path.name, limits, codecs.getincrementaldecoder(encoding)())
    except UnicodeError as error:
        raise SourceError(
            f"{path}: looks like {encoding.upper()} text and is not: {error}. Turn it into UTF-8, e.g. with: "
            f"iconv -f {encoding.upper()} -t UTF-8 -c {shlex.quote(str(path))} > FILE"
        ) from None


def utf8_copy(path: Path, folder: Path, limits: Ingest) -> Path:
    """The file unpacked into `folder`, with U+FFFD where its bytes are not UTF-8; lines stay lines."""
    folder.mkdir(parents=True)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    return _rewrite(path, folder / _without_ending(path.name), limits, decoder)


def _rewrite(path: Path, copy: Path, limits: Ingest, decoder: codecs.IncrementalDecoder) -> Path:
    """The file unpacked, and as UTF-8."""
    meter = Meter(path, copy.parent, limits)
    with open(copy, "wb") as out, open_bytes(path) as file:
        while block := file.read(BLOCK_BYTES):
            out.write(meter.add(decoder.decode(block).encode()))
        out.write(decoder.decode(b"", final=True).encode())
    return copy


def check_gzip(path: Path, meter: Meter, is_wanted: Callable[[], bool] = lambda: True) -> None:
    """DuckDB does not look at a .gz file's checksum, so a damaged one reads as odd or wrong lines."""
    with reading(path), open(path, "rb") as file:
        member: Any = None  # zlib alone takes a quarter less time than the module gzip
        while is_wanted() and (block := file.read(HEAD_BYTES)):
            while block := block if member else block.lstrip(b"\0"):
                member = member or zlib.decompressobj(wbits=31)
                meter.add(member.decompress(block, BLOCK_BYTES))
                block = member.unused_data if member.eof else member.unconsumed_tail
                member = None if member.eof else member
        if member and is_wanted():
            raise EOFError("it ends too early")


def _without_ending(name: str) -> str:
    for ending in ENDINGS:
        name = name.removesuffix(ending)
    return name or "log"
