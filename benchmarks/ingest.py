"""Ingest of the six AAIC files against DuckDB alone reading them and writing one Parquet file.

    python benchmarks/ingest.py [FILES…] [--repetitions 7]

The two take turns in one process, so that a busy moment of the machine hurts both; medians are compared.
The limit is a ratio of 3. The same ingest repeated into a full lake, which changes nothing, is timed too.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from hakaru.engine.dialect import quote
from hakaru.lake import Lake
from hakaru.sources import ingest

LIMIT = 3.0
AAIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "aaic"


def main() -> int:
    options = _options()
    files = sorted(options.files or AAIC.glob("*.csv.gz"))
    if not files:
        sys.exit(f"no files: name AAIC's CSV files, or put them in {AAIC}")
    alone, first, again = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(options.repetitions + 1):  # the first round warms up and does not count
            lake = Lake.create(Path(folder) / f"lake-{i}")
            alone.append(_seconds(lambda: _duckdb_alone(files, Path(folder) / "alone.parquet")))
            first.append(_seconds(lambda lake=lake: ingest(lake, files, "aaic")))
            again.append(_seconds(lambda lake=lake: ingest(lake, files, "aaic")))
    ratio = _report(alone[1:], first[1:], again[1:])
    return 0 if ratio <= LIMIT else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Ingest against DuckDB alone.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--repetitions", type=int, default=7)
    return parser.parse_args()


def _duckdb_alone(files: list[Path], target: Path) -> None:
    listed = ", ".join(quote(str(file)) for file in files)
    con = duckdb.connect()
    con.execute(f"COPY (FROM read_csv([{listed}])) TO {quote(str(target))} (FORMAT parquet)")
    con.close()


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _report(alone: list[float], first: list[float], again: list[float]) -> float:
    for name, times in (("DuckDB alone", alone), ("ingest", first), ("ingest again", again)):
        print(
            f"{name:13} median {statistics.median(times):.3f} s, "
            f"{min(times):.3f} to {max(times):.3f} s, {len(times)} times"
        )
    ratio = statistics.median(first) / statistics.median(alone)
    print(f"ingest / DuckDB alone = {ratio:.2f} (limit {LIMIT:g})")
    return ratio


if __name__ == "__main__":
    sys.exit(main())
