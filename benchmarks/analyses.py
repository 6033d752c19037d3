"""All analyses on AAIC's log against the same tables written in pandas.

    python -m benchmarks.analyses [--repetitions 5]

Two ratios. **Each table on its own**, as a person asks for it: Hakaru opens the lake, counts who is left
out and answers; pandas reads the columns that it needs from the log and answers. **All in one go**:
Hakaru keeps its session, pandas keeps all that it has read and derived. Both take turns in one process,
and medians are compared. The limit, 5, is for the first. A few cells of both are compared, so that
neither is fast by being wrong.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.pandas_peer import PEER, Log
from hakaru.analyses import load_all, open_session
from hakaru.lake import Lake
from hakaru.sources import ingest

LIMIT = 5.0
AAIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "aaic"
Rows = list[dict[str, Any]]


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
    runs: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder))
        ingest(lake, files, "aaic")
        ways: dict[str, Callable[[], dict[str, float]]] = {
            "hakaru alone": lambda: _ours_alone(lake),
            "pandas alone": lambda: _theirs(files, keep=False),
            "hakaru at once": lambda: _ours_at_once(lake, {}),
            "pandas at once": lambda: _theirs(files, keep=True),
        }
        for _ in range(options.repetitions + 1):  # the first round warms up and does not count
            for name, way in ways.items():
                runs.setdefault(name, []).append(way())
        tables: dict[str, Rows] = {}
        _ours_at_once(lake, tables)
    log = Log(files, keep=True)
    _check(tables, {id: function(log) for id, function in PEER.items()})
    return 0 if _report({name: times[1:] for name, times in runs.items()}) >= LIMIT else 1


def _ours_alone(lake: Lake) -> dict[str, float]:
    times = {}
    for analysis in load_all():
        begin = time.perf_counter()
        with open_session(lake) as session:
            session.run(analysis)
        times[analysis.id] = time.perf_counter() - begin
    return times


def _ours_at_once(lake: Lake, tables: dict[str, Rows]) -> dict[str, float]:
    times = {}
    begin = time.perf_counter()
    with open_session(lake) as session:
        for analysis in load_all():
            tables[analysis.id] = session.run(analysis).rows
            times[analysis.id] = time.perf_counter() - begin
            begin = time.perf_counter()
    return times


def _theirs(files: list[Path], keep: bool) -> dict[str, float]:
    times = {}
    log = Log(files, keep)
    for id, function in PEER.items():
        begin = time.perf_counter()
        function(log)
        times[id] = time.perf_counter() - begin
    return times


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
    busy = tables["utilisation"][-1]["busy_pe_hours"]
    same("utilisation", busy, frames["utilisation"]["busy_pe_hours"].iloc[-1])


def _report(runs: dict[str, list[dict[str, float]]]) -> float:
    for id in PEER:
        mine, other = (
            statistics.median(times[id] for times in runs[f"{who} alone"])
            for who in ("hakaru", "pandas")
        )
        print(f"{id:28} hakaru {mine:7.3f} s   pandas {other:7.3f} s   {other / mine:6.1f} ×")
    ratios = {}
    for way in ("alone", "at once"):
        mine, other = (
            statistics.median(sum(times.values()) for times in runs[f"{who} {way}"])
            for who in ("hakaru", "pandas")
        )
        ratios[way] = other / mine
        told = "each on its own" if way == "alone" else "all in one go"
        print(
            f"{told}: hakaru {mine:.2f} s, pandas {other:.2f} s, pandas / hakaru = {other / mine:.2f}"
        )
    print(f"each on its own, pandas / hakaru = {ratios['alone']:.2f} (at least {LIMIT:g})")
    return ratios["alone"]


if __name__ == "__main__":
    sys.exit(main())
