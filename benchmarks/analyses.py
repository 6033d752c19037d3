"""All analyses on AAIC's log against the same tables written in pandas.

    python -m benchmarks.analyses [--repetitions 5]

Both begin with the lake's Parquet files and end with every table; they take turns in one process, and
medians are compared. The limit: pandas takes at least 5 times as long. A few cells of both are compared,
so that neither is fast by being wrong.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.pandas_peer import PEER, read
from hakaru.analyses import load_all, open_session
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.sources import ingest

LIMIT = 5.0
AAIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "aaic"


def main() -> int:
    parser = argparse.ArgumentParser(description="All analyses against pandas.")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    files = sorted(AAIC.glob("*.csv.gz"))
    if not files:
        sys.exit(f"no files: put AAIC's CSV files into {AAIC}")
    missing = [analysis.id for analysis in load_all() if analysis.id not in PEER]
    if missing:
        sys.exit(f"benchmarks/pandas_peer.py lacks {', '.join(missing)}")
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder))
        ingest(lake, files, "aaic")
        for _ in range(options.repetitions + 1):  # the first round warms up and does not count
            times, tables = _ours(lake)
            ours.append(times)
            times, frames = _theirs(lake)
            theirs.append(times)
        _check(tables, frames)
    return 0 if _report(ours[1:], theirs[1:]) >= LIMIT else 1


def _ours(lake: Lake) -> tuple[dict[str, float], dict[str, list[dict[str, Any]]]]:
    times, tables = {}, {}
    begin = time.perf_counter()
    with open_session(lake) as session:
        times["open"] = time.perf_counter() - begin
        for analysis in load_all():
            begin = time.perf_counter()
            tables[analysis.id] = session.run(analysis).rows
            times[analysis.id] = time.perf_counter() - begin
    return times, tables


def _theirs(lake: Lake) -> tuple[dict[str, float], dict[str, pd.DataFrame]]:
    times, frames = {}, {}
    begin = time.perf_counter()
    jobs = read(lake.files(JOBS))
    times["open"] = time.perf_counter() - begin
    for id, function in PEER.items():
        begin = time.perf_counter()
        frames[id] = function(jobs)
        times[id] = time.perf_counter() - begin
    return times, frames


def _check(tables: dict[str, list[dict[str, Any]]], frames: dict[str, pd.DataFrame]) -> None:
    def same(name: str, ours: float, theirs: float) -> None:
        if abs(ours - theirs) > 1e-9 * max(1.0, abs(ours)):
            sys.exit(f"{name}: {ours} is not {theirs}")

    same("walltime", tables["walltime"][2]["sd_h"], frames["walltime"].loc["single-node", "sd_h"])
    accuracy = frames["request-accuracy"].loc["all"]
    same("request-accuracy", tables["request-accuracy"][0]["median"], accuracy["50%"])
    same("at_max", tables["request-accuracy"][0]["share_at_max"], accuracy["at_max"])
    same("hour", tables["arrivals-by-hour"][9]["sd"], frames["arrivals-by-hour"].loc[9, "std"])
    same("waits", tables["waits"][2]["p95_s"], frames["waits"].loc["submit to start", "p95_s"])
    same("think", tables["think-time"][0]["median_s"], frames["think-time"].loc[0, "p50_s"])
    same("gini", tables["concentration"][0]["gini"], frames["concentration"].loc["user", "gini"])
    gaps = frames["interarrivals"].loc["same user", "mean_s"]
    same("interarrivals", tables["interarrivals"][1]["mean_s"], gaps)
    busy = tables["utilisation"][-1]["utilisation"]
    same("utilisation", busy, frames["utilisation"]["num_pes_busy"].iloc[-1])


def _report(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> float:
    for id in ours[0]:
        mine, other = (statistics.median(times[id] for times in runs) for runs in (ours, theirs))
        print(f"{id:28} hakaru {mine:7.3f} s   pandas {other:7.3f} s   {other / mine:6.1f} ×")
    totals = [statistics.median(sum(times.values()) for times in runs) for runs in (ours, theirs)]
    ratio = totals[1] / totals[0]
    print(f"all: hakaru {totals[0]:.2f} s, pandas {totals[1]:.2f} s")
    print(f"pandas / hakaru = {ratio:.2f} (at least {LIMIT:g})")
    return ratio


if __name__ == "__main__":
    sys.exit(main())
