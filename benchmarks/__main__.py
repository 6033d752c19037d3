"""Run every benchmark, each in a process of its own; `make benchmarks`. Exits with 1 if a limit is missed."""

from __future__ import annotations

import subprocess
import sys

NAMES = ("ingest", "analyses", "synth", "scale", "simulate", "web", "measure", "training")


def main() -> int:
    failed = []
    for name in NAMES:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode:
            failed.append(name)
    print(f"missed: {', '.join(failed)}" if failed else "all within their limits")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
