"""What every source owes its users, whatever its format. A new source adds one entry to `SAMPLES`."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hakaru.engine.duckdb import connect
from hakaru.errors import HakaruError, SourceError
from hakaru.lake import Lake
from hakaru.schema import JOBS, REJECTS, Table
from hakaru.settings import Engine
from hakaru.sources._base import detect, load_all
from hakaru.sources.ingest import Summary, ingest

DATA = Path(__file__).resolve().parents[1] / "data"


@dataclass(frozen=True)
class Sample:
    """A good file of a text format, one record a line, and a line that must be rejected in it."""

    source: str
    file: str
    num_jobs: int
    num_header: int
    bad_line: str
    reason: str
    options: Mapping[str, Any] = field(default_factory=dict)
    detected: bool = True

    @property
    def lines(self) -> list[bytes]:
        return (DATA / self.file).read_bytes().splitlines(keepends=True)

    @property
    def middle(self) -> int:
        """How many lines stand before the middle of the records."""
        return self.num_header + (len(self.lines) - self.num_header) // 2


SAMPLES = [
    Sample(
        source="aaic",
        file="aaicwl-2019Q1.csv",
        num_jobs=5,
        num_header=1,
        bad_line="9, 1, 1, 0, 1, 1, 3600, 7, 1546300800, 1546300810, 1546304410, 10, 3600",
        reason="termcode 7 is not 0 to 4",
    ),
    Sample(
        source="swf",
        file="small.swf",
        num_jobs=6,
        num_header=10,
        bad_line="9 130 1 60 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1",
        reason="expected 18 columns, found 17",
    ),
    Sample(
        source="table",
        file="canonical.csv",
        num_jobs=4,
        num_header=1,
        bad_line="9,ann,normal,completed,1,one,60,2018-01-01T00:00:00Z,,",
        reason="num_gpus",
    ),
    Sample(
        source="sacct",
        file="sacct.txt",
        num_jobs=4,
        num_header=1,
        bad_line="109|ann|lab|gpu|COMPLETED|0:0|noon|1514764800|1514764810|1514768410|120|1|cpu=4|x",
        reason="Submit",
    ),
]
# Sources that do not read lines of text have tests of their own.
OTHERS: set[str] = {"synth"}

each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.source)


def test_every_source_has_a_sample() -> None:
    assert set(load_all().ids()) - OTHERS <= {sample.source for sample in SAMPLES}


@each_sample
def test_gives_canonical_columns_and_places(sample: Sample) -> None:
    con = connect(Engine())
    records = load_all().get(sample.source).read(con, DATA / sample.file, "c", sample.options)
    given = [row[0] for row in con.execute(f"DESCRIBE {records.sql}").fetchall()]
    assert set(given) <= {*JOBS.names, "_line", "_text", "_reason", "_folded"} - {"cluster"}
    assert {"_line", "_text", "_reason", "job_id", "submitted_at", "state"} <= set(given)
    assert len(given) == len(set(given))


@each_sample
def test_reads_every_job_of_a_good_file(sample: Sample, lake: Lake) -> None:
    if sample.detected:
        assert detect(DATA / sample.file).id == sample.source
    summary = _ingest(lake, sample, DATA / sample.file)
    assert (summary.num_read, summary.upsert.num_new) == (sample.num_jobs, sample.num_jobs)
    assert summary.num_rejected == 0
    assert len(_jobs(lake)) == sample.num_jobs


@each_sample
def test_a_second_ingest_changes_nothing(sample: Sample, lake: Lake) -> None:
    _ingest(lake, sample, DATA / sample.file)
    before, files = _jobs(lake), lake.files(JOBS)
    upsert = _ingest(lake, sample, DATA / sample.file).upsert
    assert (upsert.num_new, upsert.num_updated) == (0, 0)
    assert upsert.num_unchanged == sample.num_jobs
    assert (_jobs(lake), lake.files(JOBS)) == (before, files)


@each_sample
def test_the_order_of_files_does_not_matter(sample: Sample, tmp_path: Path) -> None:
    head, middle = sample.lines[: sample.num_header], sample.middle
    name = Path(sample.file)
    first = _write(tmp_path / f"first-{name}", head + sample.lines[sample.num_header : middle])
    second = _write(tmp_path / f"second-{name}", head + sample.lines[middle:])
    tables = []
    for number, order in enumerate(([first, second], [second, first])):
        together = Lake.create(tmp_path / f"together-{number}")
        _ingest(together, sample, *order)
        apart = Lake.create(tmp_path / f"apart-{number}")
        for path in order:
            _ingest(apart, sample, path)
        tables += [_jobs(together), _jobs(apart)]
    assert len(tables[0]) == sample.num_jobs
    assert all(table == tables[0] for table in tables)


def _zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inside.txt", content)
    return buffer.getvalue()


def _zst(content: bytes) -> bytes:
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def _halves(pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda content: pack(content[:100]) + pack(content[100:])


# what the file is called, with {} for its own name, and how its bytes are written
VARIANTS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gz": ("{}.gz", gzip.compress),
    "gz of two members": ("{}.gz", _halves(gzip.compress)),
    "bz2": ("{}.bz2", bz2.compress),
    "bz2 of two streams": ("{}.bz2", _halves(bz2.compress)),
    "xz": ("{}.xz", lzma.compress),
    "zst": ("{}.zst", _zst),
    "zst of two frames": ("{}.zst", _halves(_zst)),
    "zip": ("{}.zip", _zipped),
    "gz without its ending": ("{}", gzip.compress),
    "xz called gz": ("{}.gz", lzma.compress),
    "zst without its ending": ("{}", _zst),
    "plain called gz": ("{}.gz", bytes),
    "plain called bz2": ("{}.bz2", bytes),
    "packed twice": ("{}.gz", lambda content: gzip.compress(bz2.compress(content))),
    "UTF-16 with its mark": ("{}", lambda content: content.decode().encode("utf-16")),
    "UTF-16 without a mark": ("{}", lambda content: content.decode().encode("utf-16-le")),
    "UTF-16, big end first": ("{}", lambda content: content.decode().encode("utf-16-be")),
    "UTF-32 with its mark": ("{}", lambda content: content.decode().encode("utf-32")),
    "UTF-16 in gz": ("{}.gz", lambda c: gzip.compress(c.decode().encode("utf-16"))),
    "with CR LF": ("{}", lambda content: content.replace(b"\n", b"\r\n")),
    "without a last line end": ("{}", lambda content: content.rstrip(b"\n")),
    "with a byte order mark": ("{}", lambda content: b"\xef\xbb\xbf" + content),
    "with empty lines at the end": ("{}", lambda content: content + b"\n\n"),
}


@each_sample
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("named", [True, False], ids=["format named", "format detected"])
def test_the_same_records_written_otherwise(
    sample: Sample, variant: str, named: bool, tmp_path: Path
) -> None:
    plain, other = Lake.create(tmp_path / "plain"), Lake.create(tmp_path / "other")
    _ingest(plain, sample, DATA / sample.file)
    name, write = VARIANTS[variant]
    path = _write(tmp_path / name.format(sample.file), [write(b"".join(sample.lines))])
    summary = ingest(
        other, [path], "c", format=sample.source if named else None, options=sample.options
    )
    assert summary.num_rejected == 0
    assert _jobs(other) == _jobs(plain)
    assert list(other.facts().get("c", {})) == list(plain.facts().get("c", {}))
    assert [row["inputs"] for row in other.ingests()] == [[str(path)]]


@each_sample
@pytest.mark.parametrize("packed", ["bz2", "xz", "zst", "zip", "gz without its ending"])
@pytest.mark.parametrize("missing", [1, 8, 30])
def test_a_truncated_file_of_any_packing_stores_nothing(
    sample: Sample, packed: str, missing: int, lake: Lake, tmp_path: Path
) -> None:
    name, write = VARIANTS[packed]
    content = write(b"".join(sample.lines))[:-missing]
    path = _write(tmp_path / name.format(sample.file), [content])
    with pytest.raises(SourceError, match=r"the file is damaged: .*; fetch it again") as caught:
        _ingest(lake, sample, path)
    assert str(caught.value).startswith(f"{path}: ")
    _assert_nothing_stored(lake)


@each_sample
def test_a_bad_line_is_rejected_with_its_place(sample: Sample, lake: Lake, tmp_path: Path) -> None:
    path = _with_line(sample, tmp_path, sample.bad_line.encode())
    summary = _ingest(lake, sample, path)
    assert (summary.num_read, summary.num_rejected) == (sample.num_jobs + 1, 1)
    assert len(_jobs(lake)) == sample.num_jobs
    (reject,) = _rows(lake, REJECTS)
    assert (reject["file"], reject["line"]) == (str(path.resolve()), sample.middle + 1)
    assert sample.reason in reject["reason"]
    assert reject["text"] == sample.bad_line


@each_sample
@pytest.mark.parametrize("at", [0, 20])
def test_no_control_characters_hide_a_line(
    sample: Sample, at: int, lake: Lake, tmp_path: Path
) -> None:
    line = sample.bad_line[:at] + "\x01\x02\x03" + sample.bad_line[at:]
    summary = _ingest(lake, sample, _with_line(sample, tmp_path, line.encode()))
    assert (summary.num_read, summary.num_rejected) == (sample.num_jobs + 1, 1)
    (reject,) = _rows(lake, REJECTS)
    assert (reject["line"], reject["text"]) == (sample.middle + 1, line)


@each_sample
def test_a_bad_line_stops_a_strict_ingest(sample: Sample, lake: Lake, tmp_path: Path) -> None:
    path = _with_line(sample, tmp_path, sample.bad_line.encode())
    with pytest.raises(SourceError) as caught:
        _ingest(lake, sample, path, strict=True)
    assert f"{path}, line {sample.middle + 1}: " in str(caught.value)
    assert sample.reason in str(caught.value)
    _assert_nothing_stored(lake)


@each_sample
def test_a_line_that_is_not_utf8_is_rejected(sample: Sample, lake: Lake, tmp_path: Path) -> None:
    lines = sample.lines
    lines[sample.middle - 1] = lines[sample.middle - 1].rstrip(b"\n") + b"\xff\xfe\n"
    path = _write(tmp_path / sample.file, lines)
    summary = _ingest(lake, sample, path)
    assert len(_jobs(lake)) == sample.num_jobs - 1
    assert summary.rejected_by_reason == {"not valid UTF-8": 1}
    (reject,) = _rows(lake, REJECTS)
    assert (reject["file"], reject["line"]) == (str(path.resolve()), sample.middle)


@each_sample
@pytest.mark.parametrize("content", [b"", b"\n\n"], ids=["empty", "blank lines"])
@pytest.mark.parametrize("named", [True, False], ids=["format named", "format detected"])
def test_an_empty_file_is_a_clear_error(
    sample: Sample, content: bytes, named: bool, lake: Lake, tmp_path: Path
) -> None:
    path = _write(tmp_path / sample.file, [content])
    with pytest.raises(HakaruError, match=r"\(empty\)|is empty|no job in|first line") as caught:
        ingest(lake, [path], "c", format=sample.source if named else None, options=sample.options)
    assert str(path) in str(caught.value)
    _assert_nothing_stored(lake)


@each_sample
@pytest.mark.parametrize("missing", [1, 8, 30])
@pytest.mark.parametrize("named", [True, False], ids=["format named", "format detected"])
def test_a_truncated_gz_file_stores_nothing(
    sample: Sample, missing: int, named: bool, lake: Lake, tmp_path: Path
) -> None:
    packed = gzip.compress(b"".join(sample.lines))[:-missing]
    path = _write(tmp_path / f"{sample.file}.gz", [packed])
    with pytest.raises(SourceError) as caught:
        ingest(lake, [path], "c", format=sample.source if named else None, options=sample.options)
    assert str(path) in str(caught.value)
    _assert_nothing_stored(lake)


@each_sample
def test_a_damaged_gz_file_stores_nothing(sample: Sample, lake: Lake, tmp_path: Path) -> None:
    """DuckDB reads on past a wrong checksum; an odd line makes the ingest look at it."""
    lines = sample.lines
    lines.insert(sample.middle, sample.bad_line.encode() + b"\n")
    packed = bytearray(gzip.compress(b"".join(lines)))
    packed[-8] ^= 0xFF
    path = _write(tmp_path / f"{sample.file}.gz", [bytes(packed)])
    with pytest.raises(SourceError, match=r"damaged|CRC") as caught:
        _ingest(lake, sample, path)
    assert str(path) in str(caught.value)
    _assert_nothing_stored(lake)


@each_sample
def test_a_missing_file_is_a_clear_error(sample: Sample, lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / sample.file
    with pytest.raises(SourceError) as caught:
        _ingest(lake, sample, path)
    assert str(path) in str(caught.value)
    _assert_nothing_stored(lake)


def _ingest(lake: Lake, sample: Sample, *paths: Path, strict: bool = False) -> Summary:
    return ingest(
        lake, list(paths), "c", format=sample.source, options=sample.options, strict=strict
    )


def _write(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def _with_line(sample: Sample, folder: Path, line: bytes) -> Path:
    lines = sample.lines
    lines.insert(sample.middle, line + b"\n")
    return _write(folder / sample.file, lines)


def _rows(lake: Lake, table: Table) -> list[dict[str, Any]]:
    con = connect(Engine())
    rows = lake.read(con, table).to_pylist()
    con.close()
    return sorted(rows, key=lambda row: [str(row[name]) for name in table.key])


def _jobs(lake: Lake) -> list[dict[str, Any]]:
    return _rows(lake, JOBS)


def _assert_nothing_stored(lake: Lake) -> None:
    assert {status.name: status.num_rows for status in lake.status() if status.num_rows} == {}
