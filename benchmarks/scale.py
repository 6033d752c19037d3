"""All analyses on 100 times AAIC's log: peak memory, and how time grows with the data.

    python -m benchmarks.scale [--jobs 46000000] [--folder FOLDER]

A synthetic lake of a tenth of the jobs and one of all of them are made (and kept, with --folder); each is
read by a process of its own, which runs every analysis with the default settings. The small one is read
before and after the large one, that a machine which others use too is the same for both. The limits: peak
memory under 3 GiB, and ten times the data takes at most ten times as long. Processor time is told beside it.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hakaru.analyses import load_all, open_session
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.sources.synth import Synth, generate

MEMORY_GIB = 3.0
TIMES = 10


def main() -> int:
    parser = argparse.ArgumentParser(description="All analyses at scale.")
    parser.add_argument("--jobs", type=int, default=46_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        return _read(options.read)
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        few = options.jobs // TIMES
        runs = [_measure(folder, num_jobs) for num_jobs in (few, options.jobs, few)]
    return _report(runs)


def _measure(folder: Path, num_jobs: int) -> dict[str, float]:
    """Make the lake unless it is there, and read it in a process of its own."""
    workspace = folder / f"synth-{num_jobs}"
    lake = Lake.create(workspace)
    if sum(table.num_rows for table in lake.status() if table.name == JOBS.name) < num_jobs:
        begin = time.perf_counter()
        generate(lake, Synth(num_jobs=num_jobs, cluster="synth", samples_days=0))
        print(f"made {num_jobs:,} jobs in {time.perf_counter() - begin:.0f} s", flush=True)
    command = [sys.executable, "-m", "benchmarks.scale", "--read", str(workspace)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    run: dict[str, float] = json.loads(output.splitlines()[-1])
    return run


def _read(workspace: Path) -> int:
    """Run every analysis; print the seconds of each and this process' peak memory."""
    seconds = {}
    with open_session(Lake.open(workspace)) as session:
        for analysis in load_all():
            begin = time.perf_counter()
            num_jobs = session.run(analysis).num_selected
            seconds[analysis.id] = time.perf_counter() - begin
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"{analysis.id:28} {seconds[analysis.id]:7.2f} s, peak {peak:.2f} GiB",
                file=sys.stderr,
            )
    told = {
        "num_jobs": num_jobs,
        "seconds": sum(seconds.values()),
        "cpu_seconds": time.process_time(),
        "peak_gib": peak,
    }
    print(json.dumps(told))
    return 0


def _report(runs: list[dict[str, float]]) -> int:
    for run in runs:
        print(
            f"{run['num_jobs']:,} jobs: all analyses {run['seconds']:.1f} s, "
            f"{run['cpu_seconds']:.1f} s of processor time, peak {run['peak_gib']:.2f} GiB"
        )
    before, large, after = runs
    growth, cpu_growth = (
        2 * large[unit] / (before[unit] + after[unit]) for unit in ("seconds", "cpu_seconds")
    )
    peak = large["peak_gib"]
    print(
        f"{TIMES} times the jobs take {growth:.1f} times as long (at most {TIMES}), "
        f"{cpu_growth:.1f} times the processor time"
    )
    print(f"peak memory {peak:.2f} GiB (at most {MEMORY_GIB:g})")
    return 0 if growth <= TIMES and peak <= MEMORY_GIB else 1


if __name__ == "__main__":
    sys.exit(main())
