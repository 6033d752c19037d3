"""What a log may be given as: pipes, links, folders and devices, and packed files that never end."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
import socket
import subprocess
import sys
import threading
import zipfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hakaru.engine.duckdb import connect
from hakaru.errors import SourceError
from hakaru.lake import Lake, Upsert
from hakaru.schema import REJECTS
from hakaru.settings import Engine
from hakaru.sources import _inputs, _packing, _stage, ingest
from hakaru.sources._base import load_all
from hakaru.sources._packing import encoding_of
from tests._cli import hakaru
from tests.sources._log import line, write

DATA = Path(__file__).resolve().parents[1] / "data"


def refused(lake: Lake, path: Path, **options: str) -> str:
    with pytest.raises(SourceError) as caught:
        ingest(lake, [path], "c", **options)  # type: ignore[arg-type]
    assert lake.ingests() == []
    assert [*(lake.root / "_staging").glob("*")] == []
    assert "_staging" not in str(caught.value)
    return str(caught.value)


# ---- pipes


def _feed(pipe: Path, content: bytes) -> threading.Thread:
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    return writer


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_a_pipe_is_read_as_the_file_is(
    lake: Lake, tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    pipe = tmp_path / "jobs.fifo"
    os.mkfifo(pipe)
    rows = [line(number) for number in range(5000)]  # more than a pipe holds at once
    content = pack(write(tmp_path / "plain.csv", *rows).read_bytes())
    writer = _feed(pipe, content)
    assert ingest(lake, [pipe], "c").upsert == Upsert(num_new=5000)
    writer.join()
    mark = hashlib.sha256(content).hexdigest()[:12]
    assert [row["inputs"] for row in lake.ingests()] == [[f"{pipe} ({mark})"]]


def test_what_comes_through_a_pipe_again_is_rejected_once(lake: Lake, tmp_path: Path) -> None:
    pipe = tmp_path / "jobs.fifo"
    os.mkfifo(pipe)
    content = write(tmp_path / "plain.csv", *(line(n) for n in range(9)), "bad").read_bytes()
    for _ in range(2):
        writer = _feed(pipe, content)
        assert ingest(lake, [pipe], "c").num_rejected == 1
        writer.join()
    con = connect(Engine())
    assert lake.read(con, REJECTS)["text"].to_pylist() == ["bad"]
    con.close()


def test_a_pipe_that_nobody_writes_to_is_refused(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_inputs, "WRITER_WAIT_S", 0.0)
    pipe = tmp_path / "jobs.fifo"
    os.mkfifo(pipe)
    assert refused(lake, pipe).startswith(f"{pipe}: nobody writes to this pipe")


@pytest.mark.parametrize("kind", ["fifo", "substitution"])
def test_a_pipe_that_was_closed_without_a_word_was_empty(
    lake: Lake, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: nobody is waited for."""
    monkeypatch.setattr(_inputs, "WRITER_WAIT_S", 3600.0)
    if kind == "fifo":
        pipe = tmp_path / "jobs.fifo"
        os.mkfifo(pipe)
        writer = _feed(pipe, b"")
        told = refused(lake, pipe)
        writer.join()
    else:
        reader, end = os.pipe()
        os.close(end)
        pipe = Path(f"/dev/fd/{reader}")
        told = refused(lake, pipe)
        os.close(reader)
    assert told == f"{pipe}: the pipe was empty; check the command that writes to it"


@pytest.mark.parametrize("verb", ["ingest", "show", "simulate", "guess"])
def test_process_substitution(tmp_path: Path, verb: str) -> None:
    """`<(…)` can be read once only, and the header of an SWF has to come from the same bytes."""
    log = f"<(gzip -c {DATA / 'small.swf'})"
    table = f"<(cat {DATA / 'canonical.csv'})"
    commands = {
        "ingest": f"ingest {log} --cluster c -w {tmp_path / 'w'}",
        "show": f"show states --from {log} --format csv --state any",
        "simulate": f"simulate --from {log} --processors 64 -o {tmp_path / 'plan.csv'}",
        "guess": f"ingest {table} --format table --guess",
    }
    done = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m hakaru {commands[verb]}"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if verb == "ingest":
        # UnixStartTime 1500000000 is 2017-07-14 02:40 UTC
        assert "c: read 6 from 1 file (swf)" in done.stdout
        assert "submitted 2017-07-14 to " in done.stdout


def test_a_pipe_has_no_name_for_the_cluster(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m hakaru ingest <(cat {DATA / 'small.swf'}) -w w"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1 and "add --cluster NAME" in done.stderr


def test_standard_input_is_read_by_the_library_too(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = write(tmp_path / "plain.csv", line(1)).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(content))))
    assert ingest(lake, [Path("-")], "c").upsert == Upsert(num_new=1)
    assert [row["inputs"][0][:3] for row in lake.ingests()] == ["- ("]


def test_a_terminal_is_no_standard_input(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert "standard input is a terminal" in refused(lake, Path("-"))


def test_an_error_in_a_copy_names_what_was_given(lake: Lake, tmp_path: Path) -> None:
    pipe, packed = tmp_path / "jobs.fifo", tmp_path / "jobs.xz"
    os.mkfifo(pipe)
    bad = write(tmp_path / "bad.csv", line(1), line(2, termcode=9)).read_bytes()
    writer = _feed(pipe, bad)
    with pytest.raises(SourceError) as caught:
        ingest(lake, [pipe], "c", strict=True)
    writer.join()
    assert str(caught.value).startswith(f"{pipe}, line 3: termcode 9")
    packed.write_bytes(bz2.compress(b"id;x\n1;2\n"))
    assert refused(lake, packed, format="table").startswith(f"{packed}: needs a mapping")
    told = hakaru("show", "walltime", "--from", packed)
    assert f"{packed}: the format is not known" in told.output
    assert f"hakaru ingest {packed} --format table --guess" in told.output


# ---- what is no file


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/random"])
def test_a_device_is_refused_at_once(lake: Lake, device: str) -> None:
    assert refused(lake, Path(device)) == (
        f"{device}: is a device or a socket, not a file; name a file or a pipe"
    )


def test_a_socket_is_refused(lake: Lake, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        assert "is a device or a socket" in refused(lake, tmp_path / "s")


def _strange(folder: Path) -> dict[str, Path]:
    loop, dangling = folder / "loop.csv", folder / "dangling.csv"
    loop.symlink_to(loop)
    dangling.symlink_to(folder / "nothing")
    return {
        "loop": loop, "dangling": dangling, "folder": folder, "missing": folder / "missing.csv",
        "long": folder / ("x" * 300),
    }  # fmt: skip


STRANGE = {
    "loop": "cannot be read: Too many levels of symbolic links",
    "dangling": "there is no such file",
    "folder": "is a folder; name the files in it",
    "missing": "there is no such file",
    "long": "cannot be read: File name too long",
}


@pytest.mark.parametrize("case", STRANGE)
@pytest.mark.parametrize("format", [None, "swf", "table"])
def test_what_cannot_be_opened(lake: Lake, tmp_path: Path, case: str, format: str | None) -> None:
    path = _strange(tmp_path)[case]
    given = {"format": format} if format else {}
    assert refused(lake, path, **given).startswith(f"{path}: {STRANGE[case]}")


@pytest.mark.parametrize("case", STRANGE)
@pytest.mark.parametrize(
    "verb", [["ingest", "--cluster", "c"], ["ingest", "--format", "table", "--guess"], ["show", "walltime"]]
)  # fmt: skip
def test_each_is_one_line_on_the_command_line(tmp_path: Path, case: str, verb: list[str]) -> None:
    path = _strange(tmp_path)[case]
    where = ["--from"] if verb[0] == "show" else []
    told = hakaru(*verb, *where, path, "-w", tmp_path / "w")
    assert told.exit_code == 1
    assert told.output.startswith(f"error: {path}: {STRANGE[case]}")
    assert len(told.output.splitlines()) == 1


def test_a_file_that_may_not_be_read(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.csv", line(1))

    def denied(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(_packing, "packing_of", denied)  # root may read what others may not
    assert refused(lake, path) == f"{path}: cannot be read: Permission denied"


def test_a_file_that_vanishes_while_it_is_read(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.csv", line(1))

    def detect(path: Path) -> object:
        path.unlink()
        return load_all().get("aaic")

    monkeypatch.setattr(sys.modules["hakaru.sources.ingest"], "detect", detect)
    assert refused(lake, path) == f"{path}: cannot be read: No such file or directory"


# ---- packed files that unpack to too much


def _settings(lake: Lake, text: str) -> None:
    (lake.workspace / "hakaru.toml").write_text(text)


def _zip(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", content)
    return buffer.getvalue()


PACKS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "zip": _zip}


@pytest.mark.parametrize("ending", PACKS)
def test_a_bomb_is_refused_by_its_ratio(
    lake: Lake, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_packing, "RATIO_FROM_BYTES", 1_000_000)
    path = tmp_path / f"bomb.csv.{ending}"
    header = write(tmp_path / "a.csv", line(1)).read_bytes()
    path.write_bytes(PACKS[ending](header + b"\n" * 30_000_000))
    message = refused(lake, path, format="aaic")
    assert message.startswith(f"{path}: unpacks to ")
    assert "more than 250 times its size" in message
    assert "raise ingest.max_ratio in hakaru.toml" in message
    _settings(lake, "ingest.max_ratio = 1000000")
    assert ingest(lake, [path], "c").upsert == Upsert(num_new=1)


@pytest.mark.parametrize("ending", PACKS)
def test_a_file_larger_than_the_setting_is_refused(lake: Lake, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"large.csv.{ending}"
    content = write(tmp_path / "a.csv", *(line(i) for i in range(30_000))).read_bytes()
    assert 1_500_000 < len(content) < 2_500_000
    path.write_bytes(PACKS[ending](content))
    _settings(lake, 'ingest.max_unpacked = "1.5MB"')
    message = refused(lake, path)
    assert message.startswith(f"{path}: holds more than 1.5 MB; nothing was stored.")
    assert "raise ingest.max_unpacked in hakaru.toml" in message
    _settings(lake, 'ingest.max_unpacked = "2.5MB"')
    assert ingest(lake, [path], "c").upsert == Upsert(num_new=30_000)


def test_an_endless_pipe_is_refused(lake: Lake, tmp_path: Path) -> None:
    _settings(lake, 'ingest.max_unpacked = "20MB"')
    done = subprocess.run(
        ["bash", "-c", f"yes | exec {sys.executable} -m hakaru ingest - --cluster c -w {lake.workspace}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("error: -: holds more than 20.0 MB; nothing was stored.")
    assert [*(lake.root / "_staging").glob("*")] == []


@pytest.mark.parametrize("ending", PACKS)
def test_a_file_for_which_the_disk_has_no_room_is_refused(
    lake: Lake, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(10**9, 10**9 - 10**8, 10**8))
    path = tmp_path / f"log.csv.{ending}"
    path.write_bytes(PACKS[ending](write(tmp_path / "a.csv", line(1)).read_bytes()))
    message = refused(lake, path)
    assert message.startswith(f"{path}: reading it needs more room than the workspace's disk has")
    assert "100.0 MB are free" in message


def test_a_gz_counts_as_if_it_were_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read without a copy, but its rows take about the room of its text."""
    from hakaru.settings import Ingest

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(0, 0, 300 << 20))
    meter = _packing.Meter(tmp_path, tmp_path, Ingest(), is_written=False)
    block = bytes(1 << 20)
    for _ in range(44):  # 300 − 44 MiB are the 256 that stay free
        meter.add(block)
    with pytest.raises(SourceError, match="needs more room"):
        for _ in range(20):
            meter.add(block)
    written = _packing.Meter(tmp_path, tmp_path, Ingest())
    for _ in range(64):
        written.add(block)


# ---- encodings


@pytest.mark.parametrize(
    ("start", "encoding"),
    [
        (b"", None),
        (b"a", None),
        (b"id,user\n1,2\n", None),
        ("größe,名前\n".encode(), None),
        (b"\xef\xbb\xbfid", None),
        ("id,name\n".encode("utf-16"), "utf-16"),
        ("id,name\n".encode("utf-32"), "utf-32"),
        ("id,name\n".encode("utf-16-le"), "utf-16-le"),
        ("id,name\n1,ann 名\n".encode("utf-16-be"), "utf-16-be"),
        (bytes(100), None),
        (b"PAR1" + bytes(20), None),
        (b"\x00\x01\x02\x03" * 10, None),
    ],
)
def test_an_encoding_is_told_by_its_mark_or_its_look(start: bytes, encoding: str | None) -> None:
    assert encoding_of(start) == encoding


def test_half_a_character_is_named_with_the_command_that_mends_it(
    lake: Lake, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes((DATA / "canonical.csv").read_text().encode("utf-16") + b"\x00\xd8\n\0")
    message = refused(lake, path)
    assert message.startswith(f"{path}: looks like UTF-16 text")
    assert f"iconv -f UTF-16 -t UTF-8 -c {path}" in message


def _repeated(path: Path, num_rows: int, **texts: str) -> Path:
    """A Parquet file of equal rows, each text once in a dictionary."""
    columns = {
        "submitted_at": pa.array([1_522_540_800_000_000] * num_rows, pa.timestamp("us", "UTC"))
    }
    zeros = pa.array([0] * num_rows, pa.int32())
    for name, text in texts.items():
        columns[name] = pa.DictionaryArray.from_arrays(zeros, [text])
    pq.write_table(pa.table(columns), path)
    return path


def test_a_parquet_file_is_refused_by_the_size_of_its_values(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_packing, "RATIO_FROM_BYTES", 1_000_000)
    path = _repeated(tmp_path / "rows.parquet", 1_000_000, job_id="1")  # 8 + 8 bytes a row
    assert path.stat().st_size * 250 < 16_000_000
    message = refused(lake, path)
    assert message.startswith(f"{path}: unpacks to ")
    assert "more than 250 times its size" in message
    assert "raise ingest.max_ratio in hakaru.toml" in message


def test_a_parquet_file_is_refused_by_the_size_of_its_texts(lake: Lake, tmp_path: Path) -> None:
    path = _repeated(tmp_path / "texts.parquet", 3000, job_id="1", name="x" * 1000)
    _settings(lake, 'ingest.max_unpacked = "2MB"')
    message = refused(lake, path)  # the footer counts 3,000 × 24 bytes, and the text once
    assert message.startswith(f"{path}: holds more than 2.0 MB; nothing was stored.")
    assert "raise ingest.max_unpacked in hakaru.toml" in message
    _settings(lake, 'ingest.max_unpacked = "4MB"')
    assert ingest(lake, [path], "c").num_read == 3000


def test_texts_that_are_null_take_no_room(lake: Lake, tmp_path: Path) -> None:
    path, num_rows = tmp_path / "nulls.parquet", 3000
    columns = {
        "job_id": pa.array([str(i) for i in range(num_rows)]),
        "submitted_at": pa.array([1_522_540_800_000_000] * num_rows, pa.timestamp("us", "UTC")),
        "name": pa.nulls(num_rows, pa.string()),
        "nodes": pa.array([[None, "n1"]] * num_rows, pa.list_(pa.string())),
    }
    pq.write_table(pa.table(columns), path)
    _settings(lake, 'ingest.max_unpacked = "1MB"')
    assert ingest(lake, [path], "c").upsert == Upsert(num_new=num_rows)


def test_texts_of_rejected_rows_are_not_staged(lake: Lake, tmp_path: Path) -> None:
    """A text of 100 MB in all, of which no row may keep any."""
    path = _repeated(tmp_path / "long.parquet", 1000, job_id="1", name="x" * 100_000)
    tracked: list[int] = []
    original = _stage.Batch.counts

    def counts(batch: _stage.Batch) -> tuple[int, int]:
        found = batch.con.execute("SELECT sum(strlen(name)) FROM staged_all").fetchall()
        tracked.append(found[0][0] or 0)
        return original(batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_stage.Batch, "counts", counts)
        message = refused(lake, path)
    assert "name is longer than 1,024 characters. None of the 1,000 rows" in message
    assert set(tracked) == {0}
