"""Times the synthetic generator into a fresh lake: jobs per minute and peak memory.

The limits it must meet: millions of jobs a minute, and well under 2 GiB however many jobs there are.
Run: python benchmarks/synth.py [--jobs 5000000]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from hakaru.lake import Lake
from hakaru.sources.synth import Synth, generate, jobs_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5_000_000)
    spec = Synth(num_jobs=parser.parse_args().jobs, samples_days=0)
    begun = time.perf_counter()
    num_made = sum(chunk.num_rows for chunk in jobs_table(spec))
    made = time.perf_counter() - begun
    print(f"as Arrow     {num_made / made * 60 / 1e6:8.1f} M jobs a minute ({made:.1f} s)")
    with tempfile.TemporaryDirectory(prefix="hakaru-") as folder:
        begun = time.perf_counter()
        generate(Lake.create(Path(folder)), spec)
        stored = time.perf_counter() - begun
    print(f"to the lake  {num_made / stored * 60 / 1e6:8.1f} M jobs a minute ({stored:.1f} s)")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory  {peak:8.0f} MiB for {num_made:,} jobs (limit 2048)")


if __name__ == "__main__":
    main()
