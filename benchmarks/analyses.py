"""All analyses on AAIC's log against the same tables written in pandas.

    python -m benchmarks.analyses [--repetitions 5]

Two ratios. **Each table on its own**, as a person asks for it: Hakaru opens the lake, counts who is left
out and answers; pandas reads the columns that it needs from the log and answers. **All in one go**:
Hakaru keeps its session, pandas keeps all that it has read and derived. Both take turns in one process,
and medians are compared. The limit, 5, is for the first. Processor time is told beside it: DuckDB's two
threads need both cores, which another user of the machine takes from them first. A few cells of both are
compared, so that neither is fast by being wrong.
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

from benchmarks.pandas_log import Log
from benchmarks.pandas_peer import PEER
from hakaru.analyses import load_all, open_session
from hakaru.lake import Lake
from hakaru.sources import ingest

LIMIT = 5.0
LATER = ("users", "accounts", "arrivals-by-week", "job-shapes", "walltime-by-application",
         "request-vs-run")  # fmt: skip
FIRST = [id for id in PEER if id not in LATER]  # those that the limit was set for
AAIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "aaic"
Rows = list[dict[str, Any]]
Times = dict[str, tuple[float, float]]  # by the clock, and on the processor


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
    runs: dict[str, list[Times]] = {}
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake.create(Path(folder))
        ingest(lake, files, "aaic")
        ways: dict[str, Callable[[], Times]] = {
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


def _ours_alone(lake: Lake) -> Times:
    times = {}
    for analysis in load_all():
        begin = _now()
        with open_session(lake) as session:
            session.run(analysis)
        times[analysis.id] = _since(begin)
    return times


def _ours_at_once(lake: Lake, tables: dict[str, Rows]) -> Times:
    times = {}
    begin = _now()
    with open_session(lake) as session:
        for analysis in load_all():
            tables[analysis.id] = session.run(analysis).rows
            times[analysis.id] = _since(begin)
            begin = _now()
    return times


def _theirs(files: list[Path], keep: bool) -> Times:
    times = {}
    log = Log(files, keep)
    for id, function in PEER.items():
        begin = _now()
        function(log)
        times[id] = _since(begin)
    return times


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begin: tuple[float, float]) -> tuple[float, float]:
    now = _now()
    return now[0] - begin[0], now[1] - begin[1]


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


def _report(runs: dict[str, list[Times]]) -> float:
    for id in PEER:
        mine, other = (_median(runs[f"{who} alone"], [id]) for who in ("hakaru", "pandas"))
        print(f"{id:28} hakaru {mine:7.3f} s   pandas {other:7.3f} s   {other / mine:6.1f} ×")
    _ratio("all in one go", runs, "at once", list(PEER))
    _ratio(f"the {len(FIRST)} that the limit was set for, each on its own", runs, "alone", FIRST)
    ratio = _ratio("each on its own", runs, "alone", list(PEER))
    print(f"each on its own, pandas / hakaru = {ratio:.2f} (at least {LIMIT:g})")
    return ratio


def _ratio(told: str, runs: dict[str, list[Times]], way: str, ids: list[str]) -> float:
    clock, processor = (
        [_median(runs[f"{who} {way}"], ids, unit) for who in ("hakaru", "pandas")]
        for unit in (0, 1)
    )
    print(
        f"{told}: hakaru {clock[0]:.2f} s, pandas {clock[1]:.2f} s, pandas / hakaru = "
        f"{clock[1] / clock[0]:.2f} (on the processor {processor[0]:.2f} s, {processor[1]:.2f} s, "
        f"{processor[1] / processor[0]:.2f})"
    )
    return clock[1] / clock[0]


def _median(runs: list[Times], ids: list[str], unit: int = 0) -> float:
    return statistics.median(sum(times[id][unit] for id in ids) for times in runs)


if __name__ == "__main__":
    sys.exit(main())
