"""How far an ingest says it is, how it is stopped, and the memory that it needs."""

from __future__ import annotations

import _thread
import gzip
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hakaru.lake import Lake, Upsert
from hakaru.sources import ingest
from hakaru.sources._reading import Reading, rows_a_byte
from tests.sources._log import large, line, table, write


def test_progress_moves_within_one_file_and_ends_at_the_whole(lake: Lake, tmp_path: Path) -> None:
    log = large(tmp_path / "large.csv", 600_000)
    seen: list[tuple[int, int, int, int]] = []
    ingest(lake, [log], "c", progress=lambda *step: seen.append(step))
    size = log.stat().st_size
    done = [step[0] for step in seen]
    assert done == sorted(done) and seen[-1] == (size, size, 600_000, 0)
    assert any(0 < bytes < size for bytes in done)
    rows = [step[2] for step in seen]
    assert any(0 < num < 600_000 for num in rows)
    assert rows == sorted(rows)


def test_rows_are_estimated_from_bytes_and_end_with_the_truth() -> None:
    reading = Reading([1000, 3000], rows_a_byte=0.2)
    assert reading.step([0.5, 0.0]) == (500, 4000, 90, 0)  # 500 × 0.2, less a tenth
    assert reading.step([0.4, 0.0]) == (500, 4000, 90, 0)
    reading.ended([True, False], 100, 3)
    assert reading.step([1.0, 0.5]) == (2500, 4000, 100 + 135, 3)  # 1500 × 100 / 1000
    assert reading.step([1.0, 1.0]) == (4000, 4000, 100 + 270, 3)
    reading.ended([True, True], 150, 5)
    assert reading.step([1.0, 1.0]) == (4000, 4000, 150, 5)


def test_records_a_byte_by_a_files_beginning(tmp_path: Path) -> None:
    text = b"; a comment\n# another\n12|x\n12.batch|x\n12.0|x\n13|x\n"
    plain, packed, other = tmp_path / "a.txt", tmp_path / "a.txt.gz", tmp_path / "a.parquet"
    plain.write_bytes(text)
    assert rows_a_byte(plain) == 2 / len(text)
    packed.write_bytes(gzip.compress(text))
    assert rows_a_byte(packed) == 2 / packed.stat().st_size
    other.write_bytes(b"PAR1\0\n\n\n")
    assert rows_a_byte(other) == 0.0
    plain.write_bytes(b"")
    assert rows_a_byte(plain) == 0.0


def test_ctrl_c_stops_the_readers_and_leaves_nothing(lake: Lake, tmp_path: Path) -> None:
    logs = [large(tmp_path / f"{i}.csv", 400_000) for i in range(3)]
    before = set(threading.enumerate())
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt):
            ingest(lake, logs, "c", progress=lambda *step: _thread.interrupt_main())
    finally:
        signal.signal(signal.SIGINT, handler)
    assert table(lake) == [] and lake.ingests() == []
    assert not list((lake.root / "_staging").iterdir())
    assert set(threading.enumerate()) <= before
    assert ingest(lake, logs[:1], "c").upsert == Upsert(num_new=400_000)


def test_a_fault_in_the_progress_bar_is_not_hidden(lake: Lake, tmp_path: Path) -> None:
    def broken(*step: int) -> None:
        raise RuntimeError("no terminal")

    with pytest.raises(RuntimeError, match="no terminal"):
        ingest(lake, [write(tmp_path / "a.csv", line(1))], "c", progress=broken)
    assert table(lake) == []


# ---- memory

SMALL = """
import sys
from pathlib import Path
from hakaru.lake import Lake
from hakaru.settings import Engine
from hakaru.sources import ingest
lake = Lake.create(Path(sys.argv[1]))
for turn in range(2):
    print(ingest(lake, [Path(sys.argv[2])], "c", engine=Engine(memory="250MB")).upsert)
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def test_a_log_larger_than_the_memory_limit_is_spilled(tmp_path: Path) -> None:
    """The peak comes from /proc: getrusage's also counts the parent's memory before the exec."""
    num_jobs = 1_500_000  # about 400 MB when staged
    log = large(tmp_path / "large.csv", num_jobs)
    told = subprocess.run(
        [sys.executable, "-c", SMALL, str(tmp_path / "w"), str(log)], capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    first, again, peak_mib = told.stdout.splitlines()
    assert first == str(Upsert(num_new=num_jobs))
    assert again == str(Upsert(num_unchanged=num_jobs))
    assert int(peak_mib) < 800
