"""nccl-tests whose output is not whole: a run that was cut off, lost ranks, lost sizes, a lost end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hakaru.measure.imports import Imported, read_file
from hakaru.measure.verdict import Verdict

DATA = Path(__file__).parent / "data"
TEXT = (DATA / "nccl-new.txt").read_text()
VERSION = "# nccl-tests version 2.17.6 nccl-library=22703\n"
STARTING = "# Collective test starting: all_gather_perf\n"
RANKS = "".join(f"{line}\n" for line in TEXT.splitlines() if "Rank" in line)


def read(tmp_path: Path, text: str | dict[str, Any]) -> Imported:
    path = tmp_path / ("out.txt" if isinstance(text, str) else "out.json")
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return read_file(path)


def by_benchmark(found: Imported) -> dict[str, set[Verdict]]:
    names = {each.benchmark for each in found.measurements}
    return {name: {m.verdict for m in found.measurements if m.benchmark == name} for name in names}


@pytest.mark.parametrize(
    "start, name",
    [
        (VERSION + STARTING, "all-gather"),
        (VERSION + STARTING + RANKS, "all-gather"),
        (STARTING, "all-gather"),
        (VERSION, "nccl-tests"),
        (RANKS, "nccl-tests"),
    ],
)
def test_a_second_run_that_only_began_failed(tmp_path: Path, start: str, name: str) -> None:
    found = read(tmp_path, TEXT + start)
    assert by_benchmark(found) == {"all-reduce": {Verdict.GOOD}, name: {Verdict.FAILED}}
    assert "did not finish" in found.measurements[-1].reason
    assert found.measurements[0].device == "4 ranks", "the ranks of the second are not its own"


def test_a_run_that_only_began_is_recognised(tmp_path: Path) -> None:
    assert by_benchmark(read(tmp_path, VERSION + STARTING)) == {"all-gather": {Verdict.FAILED}}


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_gap_in_the_list_of_ranks_fails(tmp_path: Path, rank: int) -> None:
    lines = [line for line in TEXT.splitlines() if f"Rank  {rank}" not in line]
    found = read(tmp_path, "\n".join(lines))
    assert by_benchmark(found) == {"all-reduce": {Verdict.FAILED}}
    assert f"rank {rank} is missing from the list of ranks" in found.measurements[0].reason


def last_rank_lost(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if "Rank  3" not in line)


def test_a_list_of_ranks_without_its_end_fails(tmp_path: Path) -> None:
    found = read(tmp_path, last_rank_lost(TEXT))
    assert by_benchmark(found) == {"all-reduce": {Verdict.FAILED}}
    reason = "busbw does not follow from algbw and 3 ranks: are ranks missing from the list?"
    assert found.measurements[0].reason == reason
    one = last_rank_lost(TEXT).replace("Rank  1", "#").replace("Rank  2", "#")
    assert by_benchmark(read(tmp_path, one)) == {"all-reduce": {Verdict.FAILED}}


def of_collective(name: str, factor: float) -> str:
    """The table as another collective prints it."""
    text = TEXT.replace("all_reduce_perf", name)
    for algbw, busbw in (
        ("20.66", "30.99"),
        ("20.70", "31.05"),
        ("20.56", "30.84"),
        ("20.67", "31.01"),
    ):
        text = text.replace(f"{algbw}   {busbw}", f"{algbw}   {float(algbw) * factor:.2f}")
    return text.replace("15.4863", f"{15.4863 * factor / 1.5:.4f}")


@pytest.mark.parametrize(
    "name, factor, verdict",
    [
        ("all_gather_perf", 0.75, Verdict.FAILED),
        ("all_gather_perf", 1.0, Verdict.GOOD),  # versions that subtract a rank's own bytes
        ("reduce_scatter_perf", 0.75, Verdict.FAILED),
        ("alltoall_perf", 0.75, Verdict.FAILED),
        ("broadcast_perf", 1.0, Verdict.GOOD),  # does not depend on the ranks
        ("sendrecv_perf", 1.0, Verdict.GOOD),
    ],
)
def test_ranks_are_counted_by_what_the_collective_prints(
    tmp_path: Path, name: str, factor: float, verdict: Verdict
) -> None:
    text = of_collective(name, factor)
    assert set().union(*by_benchmark(read(tmp_path, text)).values()) == {Verdict.GOOD}
    found = by_benchmark(read(tmp_path, last_rank_lost(text)))
    assert set().union(*found.values()) == {verdict}


def test_ranks_of_unknown_groups_are_not_counted(tmp_path: Path) -> None:
    """Old versions do not print the group; four ranks in groups of two have the ratio of two."""
    ungrouped = of_collective("all_reduce_perf", 1.0).replace(" Group  0", "")
    assert by_benchmark(read(tmp_path, ungrouped)) == {"all-reduce": {Verdict.GOOD}}
    lost = last_rank_lost(TEXT).replace(" Group  0", "")
    assert by_benchmark(read(tmp_path, lost)) == {"all-reduce": {Verdict.FAILED}}


@pytest.mark.parametrize("scale", [1, 10, 100])
def test_rounding_is_no_lost_rank(tmp_path: Path, scale: int) -> None:
    """From 1,000 GB/s on one digit is printed after the point."""
    text = TEXT
    for time, algbw in (("812.0", 20.66), ("810.5", 20.7), ("816.0", 20.56), ("811.5", 20.67)):
        digits = 1 if scale == 100 else 2
        cells = f"{algbw * scale:.{digits}f}   {algbw * scale * 1.5:.{digits}f}"
        line = f"{time}   {algbw:.2f}   "
        at = text.index(line) + len(line)
        text = f"{text[: text.index(line)]}{float(time) / scale:.4f}   {cells}{text[at + 5 :]}"
    text = text.replace("15.4863", f"{15.4863 * scale:.4f}")
    assert by_benchmark(read(tmp_path, text)) == {"all-reduce": {Verdict.GOOD}}


@pytest.mark.parametrize("end", [40, 90])
def test_a_list_that_nccl_tests_itself_cut_is_no_gap(tmp_path: Path, end: int) -> None:
    """It prints 2,048 characters of a process, which many GPUs with a long host name exceed."""
    (line,) = (line for line in TEXT.splitlines() if "Rank  1" in line)
    text = TEXT.replace(f"{line}\n", f"{line[:end]}...\n").replace("Rank  2", "Rank  7")
    assert by_benchmark(read(tmp_path, text)) == {"all-reduce": {Verdict.GOOD}}


def document(**config: Any) -> dict[str, Any]:
    """A run of one size, in the form of -J."""
    found: dict[str, Any] = json.loads((DATA / "nccl.json").read_text())
    del found["results"][0]["in_place"]
    found["average_bus_bandwidth"]["bandwidth"] = 0.0512
    found["config"] |= config
    return found


GIB = 2**30


@pytest.mark.parametrize(
    "config",
    [
        {"minimum_bytes": 8, "maximum_bytes": GIB},
        {"minimum_bytes": 1024, "maximum_bytes": 2048},
        {"minimum_bytes": 1024, "maximum_bytes": 4096, "step_factor": 4},
    ],
)
def test_sizes_that_the_file_lacks_fail(tmp_path: Path, config: dict[str, Any]) -> None:
    found = read(tmp_path, document(**config))
    assert by_benchmark(found) == {"broadcast": {Verdict.FAILED}}
    assert "rows are missing: 1 found for the" in found.measurements[0].reason
    assert by_benchmark(read(tmp_path, document())) == {"broadcast": {Verdict.GOOD}}


def test_sizes_by_steps_of_bytes_are_counted(tmp_path: Path) -> None:
    whole = document(maximum_bytes=2047, step_bytes=1024)
    del whole["config"]["step_factor"]
    assert by_benchmark(read(tmp_path, whole)) == {"broadcast": {Verdict.GOOD}}
    whole["config"]["maximum_bytes"] = 2048
    assert by_benchmark(read(tmp_path, whole)) == {"broadcast": {Verdict.FAILED}}


def reduced(num_bytes: int) -> dict[str, Any]:
    """A run of one size of a few, whose larger ones may not have fitted into memory."""
    found = document(minimum_bytes=num_bytes, maximum_bytes=64 * GIB)
    times = {"time": num_bytes / 1e5, "alg_bw": 100.0, "bus_bw": 100.0, "nwrong": 0}
    found["results"] = [found["results"][0] | {"size": num_bytes, "out_of_place": times}]
    found["average_bus_bandwidth"]["bandwidth"] = 100.0
    return found


def test_sizes_that_do_not_fit_into_memory_are_noted(tmp_path: Path) -> None:
    """nccl-tests leaves them out, and the file does not tell; smaller ones fit into every GPU."""
    found = read(tmp_path, reduced(16 * GIB))
    assert by_benchmark(found) == {"broadcast": {Verdict.GOOD}}
    assert "no sizes above 17,179,869,184 bytes" in found.notes[0]
    assert by_benchmark(read(tmp_path, reduced(GIB // 4))) == {"broadcast": {Verdict.FAILED}}


@pytest.mark.parametrize("end", [None, ""])
def test_a_file_without_its_end_fails(tmp_path: Path, end: object) -> None:
    found = read(tmp_path, document() | {"end_time": end})
    assert by_benchmark(found) == {"broadcast": {Verdict.FAILED}}
    assert "did not finish" in found.measurements[0].reason


def test_a_process_that_the_file_does_not_list_fails(tmp_path: Path) -> None:
    lost = document()
    lost["config"]["devices"][1]["rank"] = 8  # of processes with four GPUs each
    found = read(tmp_path, lost)
    assert by_benchmark(found) == {"broadcast": {Verdict.FAILED}}
    assert "rank 4 is missing" in found.measurements[0].reason


@pytest.mark.parametrize("okay, verdict", [(True, Verdict.GOOD), (False, Verdict.FAILED)])
def test_truth_values_of_json_are_understood(tmp_path: Path, okay: bool, verdict: Verdict) -> None:
    bounds = {"out_of_bounds": {"count": 0, "okay": okay}}
    assert by_benchmark(read(tmp_path, document() | bounds)) == {"broadcast": {verdict}}
    more = {"bitwise_mismatches": {"count": 0, "okay": okay}}
    assert by_benchmark(read(tmp_path, document() | more)) == {"broadcast": {verdict}}
    average = {"average_bus_bandwidth": {"bandwidth": 0.0512, "okay": okay}}
    expected = verdict if okay else Verdict.SLOW
    assert by_benchmark(read(tmp_path, document() | average)) == {"broadcast": {expected}}
