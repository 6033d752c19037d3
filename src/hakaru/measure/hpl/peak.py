"""The peak that efficiency is relative to, where xhpl does not measure one: the run's own fp64 gemm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure import journal

MISSING = (
    "{program} measured no peak. Measure DGEMM in the same run: hakaru bench run gemm hpl --param dtype=fp64,"
    " or give the peak of all ranks in GFLOP/s: hakaru bench run hpl --param peak=N"
)


def gemm_gflops(run_folder: Path, ranks: int) -> float | None:
    """GFLOP/s of all devices of the run together; None where they are not what the ranks run on.

    That is one GPU a rank or, without GPUs, all NUMA nodes, of which every one was measured as a whole.
    """
    rates: dict[tuple[str, str], float] = {}
    for entry in _results(run_folder):
        place = (entry["host"], entry["device"])
        rates[place] = max(rates.get(place, 0.0), _rate(entry))
    gpus = [rate for (_, device), rate in rates.items() if device.startswith("cuda:")]
    nodes = [rate for (_, device), rate in rates.items() if device.startswith("numa:")]
    chosen = gpus or nodes
    if not chosen or 0.0 in chosen or (gpus and len(gpus) != ranks):
        return None
    return sum(chosen)


def _results(run_folder: Path) -> list[Mapping[str, Any]]:
    """The results of fp64 gemm in the journals of the devices."""
    found: list[Mapping[str, Any]] = []
    for path in sorted(run_folder.glob("device*/*/rank-*.jsonl")):
        try:
            entries, _ = journal.read(path)
        except HakaruError:
            continue
        found += [each for each in entries if _is_double_gemm(each)]
    return found


def _is_double_gemm(entry: Mapping[str, Any]) -> bool:
    is_gemm = entry.get("kind") == "result" and entry.get("benchmark") == "gemm"
    return is_gemm and entry["parameters"].get("dtype") == "fp64"


def _rate(entry: Mapping[str, Any]) -> float:
    """The median rate; 0 where the result is wrong or somebody else used the device."""
    values = [] if entry["problem"] else entry["samples"].get("rate", [])
    return median(values) if values else 0.0
