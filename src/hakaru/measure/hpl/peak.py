"""The peak that efficiency is relative to, where xhpl does not measure one: the run's own fp64 gemm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure import journal

MISSING = (
    "{program} measured no peak. Measure DGEMM in the same run: hakaru bench run gemm hpl --param dtype=fp64,"
    " or give the peak of all ranks in GFLOP/s: hakaru bench run hpl --param peak=N"
)

Place = tuple[str, str]  # host and device


def gemm_gflops(run_folder: Path, ranks: int) -> float | None:
    """GFLOP/s of all devices of the run together; None where they are not what the ranks run on.

    That is one GPU a rank or, without GPUs, NUMA nodes with a core for each rank.
    """
    rates: dict[Place, float] = {}
    num_cores: dict[Place, int] = {}
    for entry in _entries(run_folder):
        if entry["kind"] == "begin":
            host = entry["place"]["host"]
            num_cores |= {(host, each["id"]): len(each["cores"]) for each in entry["devices"]}
        elif _is_double_gemm(entry):
            place = (entry["host"], entry["device"])
            rates[place] = max(rates.get(place, 0.0), _rate(entry))
    gpus = [place for place in rates if place[1].startswith("cuda:")]
    chosen = gpus or [place for place in rates if place[1].startswith("numa:")]
    has_all = (
        len(gpus) == ranks if gpus else sum(num_cores.get(each, 0) for each in chosen) >= ranks
    )
    if not chosen or not has_all or not all(rates[each] for each in chosen):
        return None
    return sum(rates[each] for each in chosen)


def _entries(run_folder: Path) -> Iterator[Mapping[str, Any]]:
    """What the journals of the devices hold."""
    for path in sorted(run_folder.glob("device*/*/rank-*.jsonl")):
        with suppress(HakaruError):
            yield from journal.read(path)[0]


def _is_double_gemm(entry: Mapping[str, Any]) -> bool:
    is_gemm = entry["kind"] == "result" and entry["benchmark"] == "gemm"
    return bool(is_gemm and entry["parameters"].get("dtype") == "fp64")


def _rate(entry: Mapping[str, Any]) -> float:
    """The median rate; 0 where the result is wrong or somebody else used the device."""
    values = [] if entry["problem"] else entry["samples"].get("rate", [])
    return median(values) if values else 0.0
