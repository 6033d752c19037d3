"""nccl-tests: tables of all versions, the file of -J, and every way in which a run can be bad."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.baseline import make_baseline
from hakaru.measure.collect import Gathered, _of_result
from hakaru.measure.compare import compare_runs
from hakaru.measure.fleet import Limits
from hakaru.measure.imports import Imported, read_file
from hakaru.measure.judge import judge_by
from hakaru.measure.record import Measurement, Run
from hakaru.measure.series import find_series
from hakaru.measure.verdict import Verdict

DATA = Path(__file__).parent / "data"
TEXT = (DATA / "nccl-new.txt").read_text()
JSON = json.loads((DATA / "nccl.json").read_text())
LARGE = {"bytes": 16777216, "dtype": "fp32", "ranks": 4}


def read(tmp_path: Path, text: str, name: str = "out.txt") -> Imported:
    path = tmp_path / name
    path.write_text(text)
    return read_file(path)


def one(found: Imported, quantity: str, **parameters: Any) -> Measurement:
    (each,) = (
        m for m in found.measurements if m.quantity == quantity and m.parameters == parameters
    )
    return each


def verdicts(found: Imported) -> set[Verdict]:
    return {each.verdict for each in found.measurements}


def test_a_table_becomes_times_and_bandwidths_with_repeated_rows_as_samples() -> None:
    found = read_file(DATA / "nccl-new.txt")
    busbw = one(found, "busbw", **LARGE)
    assert busbw.samples == (30.99, 30.84)
    assert (busbw.benchmark, busbw.unit, busbw.better) == ("all-reduce", "GB/s", "higher")
    assert (busbw.host, busbw.device) == ("node07,node08", "4 ranks")
    assert busbw.reason == "as reported by nccl-tests; not compared with anything"
    assert one(found, "time", **LARGE, buffer="in-place").samples == (810.5, 811.5)
    assert busbw.place["hardware"]["gpus"] == ["NVIDIA A100-SXM4-40GB"]
    # 0.00 is what rounding left of it, not a bandwidth
    small = [m.quantity for m in found.measurements if m.parameters["bytes"] == 8]
    assert small == ["time", "time"]


def test_an_old_table_has_other_columns_and_an_empty_cell() -> None:
    found = read_file(DATA / "nccl-old-alltoall.txt")
    assert one(found, "time", bytes=1048576, dtype="fp32", ranks=2).samples == (95.40,)
    assert {m.benchmark for m in found.measurements} == {"all-to-all"}
    assert len(found.measurements) == 3
    assert found.left_out[1] == "all-to-all in place, which nccl-tests does not check"


def test_labels_of_mpirun_timestamps_and_iterations_do_not_disturb(tmp_path: Path) -> None:
    text = TEXT.replace("#wrong     time", "#wrong  i_min     time").replace(
        "#wrong \n", "#wrong  i_min timestamp\n"
    )
    lines = [
        line.replace("       0  ", "       0  1.00  ") + "  1.00  2026-02-26 12:00:05"
        if "float" in line
        else line
        for line in text.splitlines()
    ]
    found = read(tmp_path, "\n".join(f"[1,0]<stdout>:{line}" for line in lines))
    busbw = one(found, "busbw", **LARGE)
    assert busbw.samples == (30.99, 30.84)
    assert busbw.ended_at == datetime(2026, 2, 26, 12, 0, 5).astimezone(UTC)


def test_wrong_values_fail(tmp_path: Path) -> None:
    text = TEXT.replace("30.99       0", "30.99      17").replace(
        "values : 0 OK", "values : 17 FAILED"
    )
    found = read(tmp_path, text)
    assert one(found, "busbw", **LARGE).reason == "17 wrong values"
    assert verdicts(found) == {Verdict.FAILED}


def test_a_killed_run_fails_even_before_its_first_row(tmp_path: Path) -> None:
    killed = read(tmp_path, TEXT[: TEXT.index("# Out of bounds")])
    assert verdicts(killed) == {Verdict.FAILED}
    assert "ends before its summary" in killed.measurements[0].reason
    none = read(tmp_path, TEXT[: TEXT.index("           8 ")])
    assert [m.samples for m in none.measurements] == [()]
    assert verdicts(none) == {Verdict.FAILED}


def test_an_error_of_nccl_fails(tmp_path: Path) -> None:
    line = "node08: Test NCCL failure common.cu:958 'remote process exited \x1b[2J'\n# Out"
    found = read(tmp_path, TEXT.replace("# Out", line))
    assert verdicts(found) == {Verdict.FAILED}
    assert "remote process exited" in found.measurements[0].reason
    assert "\x1b" not in found.measurements[0].reason


def test_nothing_checked_is_not_good_and_below_its_own_limit_is_slow(tmp_path: Path) -> None:
    unchecked = "\n".join(
        line.replace("       0", "     N/A") if "float" in line else line
        for line in TEXT.splitlines()
    )
    assert verdicts(read(tmp_path, unchecked)) == {Verdict.NOT_MEASURED}
    slow = read(tmp_path, TEXT.replace("15.4863 ", "15.4863 FAILED"))
    assert verdicts(slow) == {Verdict.SLOW}


def test_the_collective_comes_from_the_file_s_name_or_the_ratio_or_is_asked_for(
    tmp_path: Path,
) -> None:
    nameless = "\n".join(line for line in TEXT.splitlines() if "_perf" not in line)
    named = read(tmp_path, nameless, "reduce-scatter_8n.log")
    assert named.measurements[0].benchmark == "reduce-scatter"
    assert read(tmp_path, nameless, "job1.log").measurements[0].benchmark == "all-reduce"
    other = nameless.replace("30.99", "15.50")
    with pytest.raises(HakaruError, match=r"name the file after it, such as all_reduce\.txt"):
        read(tmp_path, other, "job1.log")


def test_several_runs_in_one_file_stay_apart(tmp_path: Path) -> None:
    second = TEXT.replace("all_reduce_perf", "sendrecv_perf").replace("30.99", "29.99")
    killed = TEXT[: TEXT.index("# Out of bounds")]
    found = read(tmp_path, killed + second)
    by_name = {m.benchmark: m.verdict for m in found.measurements}
    assert by_name == {"all-reduce": Verdict.FAILED, "sendrecv": Verdict.GOOD}


def test_a_row_that_does_not_fit_is_left_out_and_named(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT.replace("    816.0   20.56 ", "    816.0 "))
    assert one(found, "time", **LARGE).samples == (812.0,)
    assert found.left_out == ("line 19: the row does not fit its heading",)


def test_the_json_file_gives_the_same_and_no_environment() -> None:
    found = read_file(DATA / "nccl.json")
    time = one(found, "time", bytes=1024, dtype="bf16", ranks=8)
    assert (time.benchmark, time.samples, time.host) == ("broadcast", (20.0,), "h1,h2")
    assert time.device == "8 ranks"  # two processes of four GPUs, of which only the first is listed
    assert time.started_at == datetime(2026, 2, 26, 12, 0, 0).astimezone(UTC)
    assert one(found, "iteration-time", bytes=1024, dtype="bf16", ranks=8).samples == (
        19.0,
        20.0,
        21.0,
    )
    broken = one(found, "time", bytes=1024, dtype="bf16", ranks=8, buffer="in-place")
    assert (broken.verdict, broken.samples) == (Verdict.FAILED, ())
    assert "do-not-import-me" not in repr(found)


@pytest.mark.parametrize(
    "change, verdict",
    [
        ({"out_of_bounds": {"count": 0, "okay": "false"}}, Verdict.FAILED),
        ({"out_of_bounds": None}, Verdict.FAILED),
        ({"bitwise_mismatches": {"count": 2, "okay": "false"}}, Verdict.FAILED),
        ({"errors": ["unhandled system error"]}, Verdict.FAILED),
        ({"results": []}, Verdict.FAILED),
        ({"results": ["nonsense"]}, Verdict.FAILED),
        ({"average_bus_bandwidth": {"bandwidth": 0.0256, "okay": "false"}}, Verdict.SLOW),
    ],
)
def test_a_json_file_with_errors_is_not_good(
    tmp_path: Path, change: dict[str, Any], verdict: Verdict
) -> None:
    found = read(tmp_path, json.dumps(JSON | change), "out.json")
    assert found.measurements[0].verdict is verdict


def own_run(found: Imported) -> Run:
    """What `hakaru bench run all-reduce` stores of the same ranks, a tenth faster."""
    (busbw,) = (m for m in found.measurements if m.quantity == "busbw" and m.parameters == LARGE)
    entry = {
        "benchmark": "all-reduce", "host": busbw.host, "hosts": busbw.host.split(","),
        "device": f"{LARGE['ranks']} ranks", "device_uuid": None, "model": "NVIDIA A100-SXM4-40GB",
        "parameters": {"dtype": "fp32", "bytes": LARGE["bytes"], "ranks": LARGE["ranks"]},
        "rank": 0, "problem": None, "validity": {}, "subjects": {"": {}},
        "samples": {"busbw": [34.0, 34.1, 33.9], "algbw": [22.6, 22.7], "time": [740.0, 741.0]},
        "started_at": busbw.started_at.isoformat(), "ended_at": busbw.started_at.isoformat(),
    }  # fmt: skip
    return Run("own", "c", busbw.started_at, tuple(_of_result(entry, Gathered())))


def as_json() -> str:
    """The same run as nccl-new.txt, in the form of -J."""
    model = "NVIDIA A100-SXM4-40GB"
    devices = [{"rank": at, "group": 0, "hostname": f"node0{7 + at // 2}", "device_info": model}
               for at in range(4)]  # fmt: skip
    rows = [{"size": 16777216, "type": "float", "redop": "sum", "root": "    -1",
             "out_of_place": {"time": time, "alg_bw": busbw / 1.5, "bus_bw": busbw, "nwrong": 0}}
            for time, busbw in ((812.0, 30.99), (816.0, 30.84))]  # fmt: skip
    config = JSON["config"] | {"ngpus": 1, "devices": devices}
    average = {"bandwidth": 30.915, "okay": "unchecked"}
    return json.dumps(JSON | {"args": ["all_reduce_perf"], "config": config, "results": rows,
                              "average_bus_bandwidth": average})  # fmt: skip


@pytest.mark.parametrize("name, text", [("out.txt", TEXT), ("out.json", as_json())])
def test_an_imported_all_reduce_meets_an_own_run(tmp_path: Path, name: str, text: str) -> None:
    """In a comparison, against a baseline, and in one history."""
    imported = read(tmp_path, text, name)
    own = own_run(imported)
    other = Run("theirs", "c", own.started_at + timedelta(days=1), tuple(imported.measurements))
    rows = {row.quantity: row for row in compare_runs(own, other) if row.parameters == LARGE}
    assert rows["busbw"].change == "too few independent repetitions to tell", (
        "it has two rows of this size"
    )
    assert rows["busbw"].where == "node07,node08/4 ranks"
    assert rows["busbw"].ratio == pytest.approx(30.915 / 34.0)
    judged = judge_by(other.measurements, make_baseline("ours", own), Limits())
    assert {m.verdict for m in judged if m.parameters == LARGE} == {Verdict.SLOW}
    params = {"bytes": str(LARGE["bytes"]), "dtype": "fp32", "ranks": "4"}
    series = find_series([own, other], "all-reduce", params=params)
    assert len(series[0].series.points) == 2


@pytest.mark.parametrize("name, text", [("out.txt", TEXT), ("out.json", as_json())])
def test_groups_that_run_side_by_side_have_the_ranks_of_one(
    tmp_path: Path, name: str, text: str
) -> None:
    """With NCCL_TESTS_SPLIT; the bandwidths are then those of two ranks, not of four."""
    for rank in (1, 3):
        text = text.replace(f"Rank  {rank} Group  0", f"Rank  {rank} Group  1")
        text = text.replace(f'{{"rank": {rank}, "group": 0', f'{{"rank": {rank}, "group": 1')
    found = read(tmp_path, text, name)
    busbw = one(found, "busbw", **LARGE | {"ranks": 2, "groups": 2})
    assert (busbw.device, busbw.host) == ("2 ranks", "node07,node08")
    rows = compare_runs(own_run(read(tmp_path, TEXT)), Run("r", "c", busbw.started_at, (busbw,)))
    assert {row.change for row in rows} == {"only before", "only after"}


def test_what_keeps_it_from_meeting_own_runs_is_noted(tmp_path: Path) -> None:
    nameless = "\n".join(line for line in TEXT.splitlines() if "Rank" not in line)
    found = read(tmp_path, nameless, "all_reduce.txt")
    assert found.notes[:-1] == (
        "the file does not name the number of ranks: all-reduce is not compared with own runs",
        "the file does not name the GPU model: all-reduce is not compared with own runs",
    )
    assert found.measurements[0].device == "unknown ranks"
    mixed = TEXT.replace("[0000:0f:00] NVIDIA A100-SXM4-40GB", "[0000:0f:00] NVIDIA H100")
    found = read(tmp_path, mixed)
    assert found.measurements[0].model == "NVIDIA A100-SXM4-40GB ranks", "as rank 0's in own runs"
    assert found.notes[0].endswith(
        "under the GPU of rank 0, NVIDIA A100-SXM4-40GB, not NVIDIA H100"
    )


def test_hostile_names_are_harmless(tmp_path: Path) -> None:
    document = json.loads(json.dumps(JSON))
    document["config"]["devices"][0]["hostname"] = "h\x1b]0;x\x07\u202e" + "y" * 9999
    document["args"] = ["/tmp/\x1b[2J_perf"]
    document["results"][0]["type"] = "\x9bfloat"
    found = read(tmp_path, json.dumps(document), "out.json")
    shown = repr([(m.host, m.benchmark, dict(m.parameters)) for m in found.measurements[:1]])
    assert (
        "\\\\u001b" in shown and "\\x" not in shown and "\\u202e" not in shown.replace("\\\\", "")
    )
    assert len(found.measurements[0].host) < 500


SUMMARY = "# Out of bounds values : 0 OK"
ROW = "    16777216       4194304     float     sum      -1    812.0   20.66   30.99       0"


@pytest.mark.parametrize(
    "old, new",
    [
        (SUMMARY, f"# Out of bounds values : 5 FAILED\n{SUMMARY}"),
        (SUMMARY, f"{SUMMARY}\n# Bitwise mismatches   : 2 FAILED"),
        (SUMMARY, f"# Out of bounds values : nan FAILED\n{SUMMARY}"),
        ("# Collective test concluded", ROW.replace("  0", "  7") + "    810.5   20.70   31.05       9\n#"),
        ("20.66   30.99", "99999   999999"),
        ("20.66   30.99", "20.66   999.99"),
        ("20.66   30.99", "0.00   0.00"),
        ("20.66   30.99", "2.07   3.10"),
        ("812.0   20.66", "8120.   20.66"),
        ("31.05       0", "31.05    oops"),
        ("31.05       0", "31.05     nan"),
        ("0.00       0\nnode07", "0.00       3\nnode07"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_fails(tmp_path: Path, old: str, new: str) -> None:
    assert old in TEXT
    assert Verdict.FAILED in verdicts(read(tmp_path, TEXT.replace(old, new)))
    assert verdicts(read(tmp_path, TEXT)) == {Verdict.GOOD}


def test_wrong_values_in_a_row_of_0_bytes_fail(tmp_path: Path) -> None:
    empty = TEXT.replace("           8             2", "           0             0")
    assert verdicts(read(tmp_path, empty)) == {Verdict.GOOD}
    wrong = empty.replace("0.00       0    14.05", "0.00       1    14.05")
    assert Verdict.FAILED in verdicts(read(tmp_path, wrong))


@pytest.mark.parametrize("cells", ["nan     nan", "1e400   1e400", "20.66     nan"])
def test_a_bandwidth_that_is_no_number_is_not_measured(tmp_path: Path, cells: str) -> None:
    found = read(tmp_path, TEXT.replace("20.66   30.99", cells))
    assert one(found, "busbw", **LARGE).verdict is Verdict.NOT_MEASURED


def test_the_time_of_the_processor_is_not_compared_with_the_bandwidth(tmp_path: Path) -> None:
    text = TEXT.replace("    time   algbw", " cputime   algbw").replace("812.0", " 12.0")
    assert verdicts(read(tmp_path, text)) == {Verdict.GOOD}


def good_json() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(JSON))
    del document["results"][0]["in_place"]
    document["average_bus_bandwidth"]["bandwidth"] = 0.0512
    return document


def test_rows_of_json_without_times_fail(tmp_path: Path) -> None:
    document = good_json()
    assert verdicts(read(tmp_path, json.dumps(document), "out.json")) == {Verdict.GOOD}
    document["results"].append({"size": 2048, "type": "float"})
    found = read(tmp_path, json.dumps(document), "out.json")
    assert verdicts(found) == {Verdict.FAILED}
    assert "1 of its results have no size or no time" in found.measurements[0].reason


@pytest.mark.parametrize("errors", ["segfault", {"a": "segfault"}, 7, ["", {"b": 1}]])
def test_errors_of_any_shape_fail(tmp_path: Path, errors: object) -> None:
    found = read(tmp_path, json.dumps(good_json() | {"errors": errors}), "out.json")
    assert verdicts(found) == {Verdict.FAILED}


@pytest.mark.parametrize("times", [["nan", 19.0], [19.0, 0], "nonsense", [1e300]])
def test_iterations_that_are_no_times_are_not_measured(tmp_path: Path, times: object) -> None:
    document = good_json()
    document["results"][0]["out_of_place_per_iter"]["times_us"] = times
    found = read(tmp_path, json.dumps(document), "out.json")
    verdicts = {m.quantity: m.verdict for m in found.measurements}
    assert verdicts["iteration-time"] is Verdict.NOT_MEASURED


def test_a_count_of_wrong_values_that_cannot_be_read_fails(tmp_path: Path) -> None:
    for count in ("0_0", "FAILED", [3]):
        document = good_json()
        document["results"][0]["out_of_place"]["nwrong"] = count
        assert verdicts(read(tmp_path, json.dumps(document), "out.json")) == {Verdict.FAILED}


CONCLUDED = "# Collective test concluded"


def test_a_test_that_starts_must_conclude(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT.replace(CONCLUDED, "#"))
    assert verdicts(found) == {Verdict.FAILED}
    older = "\n".join(line for line in TEXT.splitlines() if "Collective test" not in line)
    assert verdicts(read(tmp_path, older, "all_reduce.txt")) == {Verdict.GOOD}


@pytest.mark.parametrize("average", ["0", "9999", "15.9", "nan"])
def test_an_average_that_is_not_that_of_the_rows_fails(tmp_path: Path, average: str) -> None:
    text = TEXT.replace("15.4863 ", average)
    assert verdicts(read(tmp_path, text)) == {Verdict.FAILED}
    threads = text.replace("nThread 1 ", "nThread 4 ")
    good_of_threads = average == "15.9"  # others than the one that is printed may have been faster
    expected = Verdict.GOOD if good_of_threads else Verdict.FAILED
    assert verdicts(read(tmp_path, threads)) == {expected}


def test_an_average_of_json_that_is_not_that_of_the_rows_fails(tmp_path: Path) -> None:
    document = good_json()
    document["average_bus_bandwidth"]["bandwidth"] = 9999
    found = read(tmp_path, json.dumps(document), "out.json")
    assert verdicts(found) == {Verdict.FAILED}
    assert "the stated average is 9999 GB/s" in found.measurements[0].reason


HEADER = "minBytes 8 maxBytes 16777216 step: 2097152(factor)"


@pytest.mark.parametrize(
    "header, verdict",
    [
        ("minBytes 8 maxBytes 16777216 step: 2(factor)", Verdict.FAILED),
        ("minBytes 8 maxBytes 16777216 step: 1048576(bytes)", Verdict.FAILED),
        ("minBytes 8 maxBytes 16777216 step: 16777208(bytes)", Verdict.GOOD),
        ("minBytes 16 maxBytes 16777231 step: 9000000(bytes)", Verdict.GOOD),  # sizes are rounded
        ("minBytes 16777216 maxBytes 16777216 step: 1048576(bytes)", Verdict.GOOD),
        ("minBytes 0 maxBytes 16777216 step: 2(factor)", Verdict.GOOD),  # has no end
        ("minBytes 8 maxBytes 16777216 step: 0(bytes)", Verdict.GOOD),
        ("sizes 8 to 16777216", Verdict.GOOD),  # not understood, so not checked
    ],
)
def test_each_size_of_the_heading_has_a_row(tmp_path: Path, header: str, verdict: Verdict) -> None:
    found = read(tmp_path, TEXT.replace(HEADER, header))
    assert verdicts(found) == {verdict}
    if verdict is Verdict.FAILED:
        assert "rows are missing: 4 found for the" in found.measurements[0].reason


def test_sizes_are_counted_for_each_type_and_up_to_what_memory_allows(tmp_path: Path) -> None:
    two_types = TEXT.replace("   float     sum      -1    816", "    half     sum      -1    816")
    assert verdicts(read(tmp_path, two_types)) == {Verdict.FAILED}
    larger = TEXT.replace("maxBytes 16777216", "maxBytes 999999999999999")
    assert verdicts(read(tmp_path, larger)) == {Verdict.FAILED}
    reduced = larger.replace(
        "#\n#   ", "#\n# Reducing maxBytes to 16777216 due to memory limitation\n#   "
    )
    assert verdicts(read(tmp_path, reduced)) == {Verdict.GOOD}


@pytest.mark.parametrize("time", ["nan", "-1.0", "0.00"])
def test_what_is_not_checked_in_place_must_still_have_a_time(tmp_path: Path, time: str) -> None:
    old = (DATA / "nccl-old-alltoall.txt").read_text()
    found = read(tmp_path, old.replace("96.10", time))
    assert {m.verdict for m in found.measurements if "buffer" in m.parameters} == {Verdict.FAILED}


def test_an_all_reduce_that_was_not_checked_in_place_is_not_good(tmp_path: Path) -> None:
    found = read(tmp_path, TEXT.replace("31.05       0", "31.05     N/A"))
    assert one(found, "time", **LARGE, buffer="in-place").verdict is Verdict.NOT_MEASURED
    found = read(tmp_path, TEXT.replace("810.5   20.70   31.05       0", "nan nan nan N/A"))
    assert one(found, "time", **LARGE, buffer="in-place").verdict is Verdict.FAILED


@pytest.mark.parametrize("half", ["fail", {}, -1e308, [], {"time": 20, "alg_bw": 1, "bus_bw": 1}])
def test_a_half_of_json_of_another_shape_fails(tmp_path: Path, half: object) -> None:
    document = json.loads(json.dumps(JSON))
    for name in ("out_of_place", "in_place"):
        rows = [document["results"][0] | {"in_place": None, name: half}]
        found = read(tmp_path, json.dumps(document | {"results": rows}), "out.json")
        assert Verdict.FAILED in verdicts(found)


def test_more_rows_than_one_import_takes_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hakaru.measure.imports._base.MOST_RESULTS", 3)
    assert len(read(tmp_path, as_json(), "out.json").measurements) == 3
    many = as_json().replace('"results": [', '"results": [0, 0, ')
    for name, text in (("out.txt", TEXT), ("out.json", many)):
        with pytest.raises(HakaruError, match=r"more than 3 rows, .*; split it"):
            read(tmp_path, text, name)
    two_sizes = as_json().replace("16777216", "8388608", 1)
    with pytest.raises(HakaruError, match=r"more than 3 results, .*; split it"):
        read(tmp_path, two_sizes, "out.json")
