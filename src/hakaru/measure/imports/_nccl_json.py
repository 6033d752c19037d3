"""The file of `nccl-tests -J`, versions 1 and 2 of its schema.

Followed as NVIDIA/nccl-tests writes it in src/util.cu (2.17 to 2.18, JSON_FILE_VERSION 1 and 2): truth
values are the strings "true" and "false", a missing number is "nan", `root` is a padded string, and
`devices` has one entry a process, not a rank. The environment in it may hold secrets and is not read.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure.imports._base import (
    check_size,
    clip,
    local_time,
    mapping,
    number,
    sequence,
    where,
    whole,
)
from hakaru.measure.imports._nccl_tables import IN_PLACE, OUT_OF_PLACE, Half, Row, Sizes, Table

HALVES = {"out_of_place": OUT_OF_PLACE, "in_place": IN_PLACE}
UNCOUNTED = (None, "nan", "N/A", "")
MOST_ITERATIONS = 10_000
TRUE = (True, "true")
# nccl-tests needs three buffers and leaves 1 GiB free: on GPUs of 4 GiB and more, smaller ones always fit
LEAST_REDUCED = 2**30


def read_table(path: Path, document: Any) -> Table:
    if not isinstance(document, dict) or "config" not in document:
        raise HakaruError(
            f'{where(path)}: expected an object with "config", as nccl-tests -J writes'
        )
    check_size(len(sequence(document.get("results"))), "rows")
    config = mapping(document["config"])
    devices = [mapping(each) for each in sequence(config.get("devices"))]
    rows = [mapping(each) for each in sequence(document.get("results"))]
    table = Table(
        name=_program(document, rows),
        versions=_versions(document),
        hosts=_texts(devices, "hostname"),
        models=_texts(devices, "device_info"),
        ranks=_ranks(devices, config),
        is_cpu_time=any("cpu_time" in mapping(row.get(half)) for row in rows for half in HALVES),
        rows=[row for each in rows if (row := _row(each)) is not None],
        error=_error(document.get("errors")),
        started_at=local_time(document.get("start_time")),
        ended_at=local_time(document.get("end_time")),
        is_concluded=bool(document.get("end_time")),  # written by a run that comes to its end
        sizes=_sizes(config),
    )  # fmt: skip
    _list_ranks(table, devices, config)
    _reduce(table)
    _summary(table, document)
    if len(table.rows) < len(rows):
        table.error = (
            table.error or f"{len(rows) - len(table.rows):,} of its results have no size or no time"
        )
    return table


def _summary(table: Table, document: dict[str, Any]) -> None:
    bounds = mapping(document.get("out_of_bounds"))
    count = whole(bounds.get("count"))
    if count is not None:
        table.count_out_of_bounds(max(count, int(bounds.get("okay") not in TRUE)))
    mismatches = document.get("bitwise_mismatches", {"okay": "true"})  # of newer versions
    if mapping(mismatches).get("okay") not in TRUE:
        table.error = table.error or "bitwise mismatches"
    average = mapping(document.get("average_bus_bandwidth"))
    table.average_busbw = number(average.get("bandwidth"))
    table.is_average_ok = average.get("okay") in (*TRUE, "unchecked")


def _error(errors: object) -> str:
    """A list of texts, of which most are empty; anything else that is not empty is an error too."""
    found = errors if isinstance(errors, list) else [errors]
    return next((clip(each) for each in found if each), "")


def _program(document: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The program by its command line; the name that it gives its rows is for people ("AllReduce")."""
    words = [clip(word) for word in sequence(document.get("args"))[:1]]
    if words and "_perf" in words[0]:
        return words[0]
    known = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
             "Broadcast": "broadcast", "AlltoAll": "alltoall", "SendRecv": "sendrecv"}  # fmt: skip
    names = [clip(row["experiment_name"]) for row in rows if row.get("experiment_name")]
    return known.get(names[0], names[0].lower()) if names else ""


def _versions(document: dict[str, Any]) -> dict[str, str]:
    found = {"nccl": document.get("nccl_version"), "nccl-tests-json": document.get("version")}
    return {name: clip(value) for name, value in found.items() if value is not None}


def _ranks(devices: list[dict[str, Any]], config: dict[str, Any]) -> Counter[str]:
    each = _ranks_of_process(config)
    processes = Counter(clip(device.get("group")) for device in devices)
    return Counter({group: num * each for group, num in processes.items()})


def _ranks_of_process(config: dict[str, Any]) -> int:
    return (whole(config.get("nthreads")) or 1) * (whole(config.get("ngpus")) or 1)


def _list_ranks(table: Table, devices: list[dict[str, Any]], config: dict[str, Any]) -> None:
    """Of each process the first rank is listed."""
    found = (whole(device.get("rank")) for device in devices)
    table.rank_ids = {rank for rank in found if rank is not None}
    table.rank_step = _ranks_of_process(config)


def _sizes(config: dict[str, Any]) -> Sizes | None:
    """None where the configuration does not give all of them."""
    is_factor = "step_factor" in config
    step = whole(config.get("step_factor" if is_factor else "step_bytes"))
    least, most = whole(config.get("minimum_bytes")), whole(config.get("maximum_bytes"))
    if least is None or most is None or step is None:
        return None
    return Sizes(least, most, step, is_factor)


def _reduce(table: Table) -> None:
    """The file, unlike the text, does not tell that `maximum_bytes` was reduced to what fits into memory."""
    largest = max((row.num_bytes for row in table.rows), default=0)
    if table.sizes is None or table.sizes.num_sizes is None or largest == 0:
        return
    reduced = table.sizes.up_to(largest)
    table.is_reduced = LEAST_REDUCED <= reduced.most + 1 <= table.sizes.most
    table.sizes = reduced if table.is_reduced else table.sizes


def _texts(devices: list[dict[str, Any]], name: str) -> list[str]:
    return list(dict.fromkeys(clip(each[name]) for each in devices if each.get(name)))


def _row(cells: dict[str, Any]) -> Row | None:
    num_bytes = whole(cells.get("size"))
    if num_bytes is None:
        return None
    root = clip(cells.get("root", "")).strip()
    halves = {
        half: _half(mapping(cells[name]), mapping(cells.get(f"{name}_per_iter")))
        for name, half in HALVES.items()
        if cells.get(name) is not None
    }
    if not halves:
        return None
    found = whole(root)
    redop = clip(cells.get("redop") or "")
    return Row(
        num_bytes, clip(cells.get("type") or ""), redop, -1 if found is None else found, halves
    )


def _half(cells: dict[str, Any], iterations: dict[str, Any]) -> Half:
    times = iterations.get("times_us", [])
    listed = times if isinstance(times, list) else [times]
    cell = cells.get("nwrong", "missing")  # where nothing was counted it is null
    wrong = number(cell)
    is_readable = wrong is not None or cell in UNCOUNTED
    return Half(
        time_us=number(cells.get("time", cells.get("cpu_time"))),
        algbw=number(cells.get("alg_bw")),
        busbw=number(cells.get("bus_bw")),
        is_checked=wrong is not None,
        num_wrong=wrong if is_readable else math.inf,
        iterations_us=tuple(number(each) for each in listed[:MOST_ITERATIONS]),
    )
