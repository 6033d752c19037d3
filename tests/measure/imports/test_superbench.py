"""SuperBench: return codes, missing numbers, directions and diagnoses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.imports import Imported, read_file
from hakaru.measure.imports._superbench_metrics import kind_of, own_of
from hakaru.measure.record import Measurement
from hakaru.measure.verdict import Verdict

DATA = Path(__file__).parent / "data"


def one(found: Imported, host: str, quantity: str, device: str) -> Measurement:
    (each,) = (
        m for m in found.measurements if (m.host, m.quantity, m.device) == (host, quantity, device)
    )
    return each


def test_a_line_is_a_node_and_repeated_runs_are_samples() -> None:
    found = read_file(DATA / "results-summary.jsonl")
    flops = one(found, "sb-01", "rate", "rank:1")
    assert (flops.benchmark, flops.samples, flops.unit) == ("gemm", (9040.8,), "GFLOP/s")
    assert flops.parameters == {"dtype": "fp64"}
    assert flops.reason == "as reported by SuperBench; not compared with anything"
    launch = one(found, "sb-01", "event_time", "rank:0")
    assert (launch.samples, launch.better, launch.verdict) == (
        (0.0055, 0.0057),
        "lower",
        Verdict.GOOD,
    )
    ranks = one(found, "sb-01", "busbw", "unknown ranks")
    assert (ranks.benchmark, ranks.unit) == ("all-reduce", "GB/s")
    assert ranks.parameters == {"variant": "default", "bytes": 8589934592}
    assert any("number of ranks of all-reduce" in note for note in found.notes)


def test_a_return_code_other_than_0_fails_its_benchmark_on_its_rank_alone() -> None:
    found = read_file(DATA / "results-summary.jsonl")
    assert one(found, "sb-02", "rate", "rank:1").verdict is Verdict.FAILED
    assert one(found, "sb-02", "rate", "rank:0").verdict is Verdict.GOOD
    (alone,) = (m for m in found.measurements if (m.benchmark, m.host) == ("mem-bw", "sb-03"))
    assert (alone.verdict, alone.samples) == (Verdict.FAILED, (33.0,))
    assert one(found, "sb-02", "gpu_0_pass", "rank:0").verdict is Verdict.FAILED


def test_what_is_missing_is_not_measured() -> None:
    found = read_file(DATA / "results-summary.jsonl")
    name = "mem_bandwidth_matrix_numa_0_1_lat"
    assert one(found, "sb-02", name, "node").verdict is Verdict.NOT_MEASURED
    missing = one(found, "sb-03", "rate", "rank:1")
    assert (missing.verdict, missing.samples) == (Verdict.NOT_MEASURED, ())
    assert "2 of 3 nodes" in missing.reason
    # one node reports a benchmark that ran among all: the others lack nothing
    assert len([m for m in found.measurements if m.benchmark == "all-reduce"]) == 1


def test_what_has_no_direction_is_left_out_and_named() -> None:
    found = read_file(DATA / "results-summary.jsonl")
    assert not [m for m in found.measurements if m.benchmark in ("disk-benchmark", "monitor")]
    assert any("nvme0_rand_read_write_bs" in note for note in found.left_out)


@pytest.mark.parametrize(
    "benchmark, metric, unit, better",
    [
        ("mem-bw", "H2D_Mem_BW", "GB/s", "higher"),
        ("gpu-sm-copy-bw", "dtoh", "GB/s", "higher"),
        ("cpu-memory-bw-latency", "mem_bandwidth_matrix_numa_0_1_lat", "ns", "lower"),
        ("model-benchmarks:gpt/pytorch-gpt2", "fp32_train_step_time", "ms", "lower"),
        ("bert_models/pytorch-bert", "throughput_train_float16", "samples/s", "higher"),
        ("disk-benchmark", "nvme0_rand_read_write_read_lat_ns_99.9", "ns", "lower"),
        ("gpu-stream", "triad_bw", "", "higher"),
    ],
)
def test_units_and_directions(benchmark: str, metric: str, unit: str, better: str) -> None:
    kind = kind_of(benchmark, metric)
    assert kind is not None
    assert (kind.unit, kind.better) == (unit, better)


@pytest.mark.parametrize(
    "benchmark, metric",
    [("ib", "IB_write_512_Avg_0"), ("cpu-stream", "threads"), ("cpu-memory-bw-latency", "numa_0")],
)
def test_no_direction_is_guessed(benchmark: str, metric: str) -> None:
    assert kind_of(benchmark, metric) is None


@pytest.mark.parametrize(
    "benchmark, metric, ours",
    [
        (
            "gemm-flops",
            "tf32_tc_flops",
            ("gemm", "rate", {"dtype": "tf32", "cores": "tensor"}, 1.0),
        ),
        ("mem-bw", "D2H_Mem_BW", ("host-copy", "bandwidth", {"direction": "to-host"}, 1.0)),
        ("cpu-stream", "triad_throughput", ("memory", "bandwidth", {"operation": "triad"}, 1e-3)),
        (
            "rccl-bw:ib",
            "alltoall_8_time",
            ("all-to-all", "time", {"variant": "ib", "bytes": 8}, 1.0),
        ),
        ("cpu-hpl", "throughput", ("hpl", "rate", {}, 1.0)),
        ("gemm-flops", "int8_tc_iops", None),
        ("mem-bw", "d2d_bw", None),
        ("cpu-stream", "scale_throughput", None),
    ],
)
def test_what_our_own_benchmarks_measure_too_has_their_names(
    benchmark: str, metric: str, ours: tuple[object, ...] | None
) -> None:
    own = own_of(benchmark, metric)
    assert (own and (own.benchmark, own.quantity, own.parameters, own.scale)) == ours


def test_a_number_is_scaled_to_our_unit(tmp_path: Path) -> None:
    path = tmp_path / "results-summary.jsonl"
    path.write_text(
        '{"node": "n1", "cpu-stream/return_code": 0, "cpu-stream/copy_throughput": 182500.0}'
    )
    (only,) = read_file(path).measurements
    assert (only.samples, only.unit) == ((182.5,), "GB/s")


def test_the_folder_names_the_node_of_a_single_summary(tmp_path: Path) -> None:
    folder = tmp_path / "nodes" / "gpu17"
    folder.mkdir(parents=True)
    path = folder / "results-summary.json"
    path.write_text('{"mem-bw/h2d_bw:0": 26.1,\n "mem-bw/return_code:0": 0}')
    (only,) = read_file(path).measurements
    assert (only.host, only.samples) == ("gpu17", (26.1,))


def test_a_diagnosis_names_the_defective_nodes(tmp_path: Path) -> None:
    found = read_file(DATA / "diagnosis_summary.json")
    assert {m.host: m.verdict for m in found.measurements} == {
        "sb-01": Verdict.GOOD,
        "sb-02": Verdict.FAILED,
    }
    assert "kernel-launch/event_overhead:0" in found.measurements[1].reason
    # earlier versions list only the defective ones
    path = tmp_path / "diagnosis_summary.jsonl"
    old = {
        "Category": "FailedTest",
        "Defective Details": "mem-bw/return_code(VAL: 1)",
        "Index": "n1",
    }
    path.write_text(json.dumps(old | {"mem-bw/return_code": 1}) + "\n")
    (only,) = read_file(path).measurements
    assert (only.host, only.verdict) == ("n1", Verdict.FAILED)


def test_values_that_are_no_numbers_and_hostile_names(tmp_path: Path) -> None:
    path = tmp_path / "results-summary.jsonl"
    values = {"a-bw/x\x07_bw:0": "NaN", "a-bw/y_bw": True, "a-bw/z_bw": 1e999, "a-bw/ok_bw": 3}
    node = {"node": "n\x1b[1m", "b/return_code": None, "a-bw/return_code": 0, **values}
    path.write_text(json.dumps(node))
    found = read_file(path)
    verdicts = {m.quantity: m.verdict for m in found.measurements}
    assert set(verdicts.values()) == {Verdict.NOT_MEASURED, Verdict.GOOD, Verdict.FAILED}
    assert verdicts["ok_bw"] is Verdict.GOOD and verdicts["return_code"] is Verdict.FAILED
    assert not any(sign in repr(found) for sign in ("\\x1b", "\\x07"))


def test_a_line_that_is_not_json_is_located(tmp_path: Path) -> None:
    path = tmp_path / "results-summary.jsonl"
    path.write_text((DATA / "results-summary.jsonl").read_text()[:-20])
    with pytest.raises(HakaruError, match="line 3, column"):
        read_file(path)


@pytest.mark.parametrize("value", ["1e308", "-1e16", "9" * 40, '"0_9"'])
def test_a_number_too_large_to_be_a_result_is_not_measured(tmp_path: Path, value: str) -> None:
    path = tmp_path / "results-summary.jsonl"
    path.write_text(f'{{"node": "n1", "mem-bw/return_code": 0, "mem-bw/h2d_bw": {value}}}')
    (only,) = read_file(path, "superbench").measurements
    assert (only.verdict, only.samples) == (Verdict.NOT_MEASURED, ())


OK = {
    "gemm-flops/return_code:0": 0,
    "gemm-flops/fp64_flops:0": 9000.0,
    "kernel-launch/return_code:0": 0,
    "kernel-launch/event_time:0": 0.005,
}
LAUNCH = {name: value for name, value in OK.items() if name.startswith("kernel")}


def read(tmp_path: Path, *nodes: dict[str, object]) -> Imported:
    path = tmp_path / "results-summary.jsonl"
    path.write_text("\n".join(json.dumps(node) for node in nodes))
    return read_file(path, "superbench")


@pytest.mark.parametrize("other", [{}, {"monitor/gpu_temperature:0": 61}, {"gemm-flops/x_bs": 4}])
@pytest.mark.parametrize("times", [1, 2])
def test_a_node_without_results_is_not_measured(
    tmp_path: Path, other: dict[str, object], times: int
) -> None:
    good = [OK | {"node": f"a{at}"} for at in range(times)]
    found = read(tmp_path, *good, *({"node": f"b{at}"} | other for at in range(times)))
    rows = [m for m in found.measurements if m.host == "b0"]
    assert {m.benchmark for m in rows} == {"superbench", "gemm-flops", "kernel-launch"}
    assert {m.verdict for m in rows} == {Verdict.NOT_MEASURED}
    assert {m.verdict for m in found.measurements if m.host == "a0"} == {Verdict.GOOD}


def test_a_benchmark_and_a_number_that_another_node_has_are_not_measured(tmp_path: Path) -> None:
    more = {"node": "n1", "kernel-launch/wall_time:0": 0.006}
    found = read(tmp_path, OK | more, LAUNCH | {"node": "n2"})
    verdicts = {(m.benchmark, m.quantity): m.verdict for m in found.measurements if m.host == "n2"}
    assert verdicts == {
        ("kernel-launch", "event_time"): Verdict.GOOD,
        ("kernel-launch", "wall_time"): Verdict.NOT_MEASURED,
        ("gemm-flops", "return_code"): Verdict.NOT_MEASURED,
    }


def of_ranks(benchmark: str, metric: str, ranks: list[int]) -> dict[str, object]:
    values: dict[str, object] = {f"{benchmark}/{metric}:{rank}": 26.0 for rank in ranks}
    return values | {f"{benchmark}/return_code:{rank}": 0 for rank in ranks}


def test_a_rank_that_one_number_of_a_node_lacks_is_not_measured(tmp_path: Path) -> None:
    gemm = of_ranks("gemm-flops", "fp64_flops", [*range(8)])
    copies = of_ranks("mem-bw", "h2d_bw", [*range(7)])
    found = read(tmp_path, *(gemm | copies | {"node": name} for name in ("n1", "n2")))
    bad = [m for m in found.measurements if m.verdict is not Verdict.GOOD]
    assert [(m.benchmark, m.host, m.device) for m in bad] == [
        ("host-copy", "n1", "rank:7"),
        ("host-copy", "n2", "rank:7"),
    ]
    assert {m.verdict for m in bad} == {Verdict.NOT_MEASURED}
    assert "no result of this rank" in bad[0].reason
    # a number of a benchmark whose others are there, and a rank that is missing in the middle
    less = gemm | of_ranks("gemm-flops", "fp32_flops", [0, 1, 3, 4, 5, 6, 7])
    (lost,) = (m for m in read(tmp_path, less).measurements if m.verdict is not Verdict.GOOD)
    assert (lost.parameters, lost.device) == ({"dtype": "fp32"}, "rank:2")


@pytest.mark.parametrize(
    "other",
    [
        of_ranks("kernel-launch", "event_time", [0]),
        of_ranks("nccl-bw:nvlink", "allreduce_8_busbw", [0]),
        of_ranks("ib-loopback", "ib_write_bw_8388608", [0, 1, 2, 3]),
        of_ranks("ib-loopback", "ib_write_bw_8388608", [*range(16)]),
        of_ranks("cpu-memory-bw-latency", "mem_bandwidth_lat", [0, 1]),
        {"cpu-stream/return_code": 0, "cpu-stream/copy_throughput": 3.0},
    ],
)
def test_a_benchmark_with_processes_of_its_own_lacks_no_rank(
    tmp_path: Path, other: dict[str, object]
) -> None:
    gemm = of_ranks("gemm-flops", "fp64_flops", [*range(8)])
    found = read(tmp_path, gemm | other | {"node": "n1"})
    assert {m.verdict for m in found.measurements} == {Verdict.GOOD}


def test_an_adapter_that_one_number_lacks_is_not_measured(tmp_path: Path) -> None:
    wide = of_ranks("ib-loopback", "ib_write_bw_8388608", [0, 1, 2, 3])
    narrow = of_ranks("ib-loopback", "ib_read_bw_8388608", [0, 1, 2])
    (lost,) = (
        m for m in read(tmp_path, wide | narrow).measurements if m.verdict is not Verdict.GOOD
    )
    assert (lost.quantity, lost.device) == ("ib_read_bw_8388608", "rank:3")


def test_a_benchmark_among_nodes_is_reported_by_one_of_them(tmp_path: Path) -> None:
    nccl = {"nccl-bw:ib/return_code:0": 0, "nccl-bw:ib/allreduce_8_busbw:0": 3.0}
    found = read(tmp_path, OK | nccl | {"node": "n1"}, OK | {"node": "n2"}, OK | {"node": "n3"})
    assert {m.verdict for m in found.measurements} == {Verdict.GOOD}
    assert found.notes[-2] == (
        "only one node reports nccl-bw:ib, as expected for a multi-node benchmark"
    )
    two = read(tmp_path, *(OK | nccl | {"node": name} for name in "ab"), OK | {"node": "c"})
    (missing,) = (m for m in two.measurements if m.benchmark == "nccl-bw:ib")
    assert (missing.host, missing.verdict) == ("c", Verdict.NOT_MEASURED)


def test_many_missing_results_are_bounded(tmp_path: Path) -> None:
    many = {f"x{at}-bw/return_code": 0 for at in range(1000)}
    found = read(tmp_path, OK | many | {"node": "n1"}, OK | {"node": "n2"})
    assert sum(m.host == "n2" for m in found.measurements) < 250


@pytest.mark.parametrize("codes", [{}, {"gemm-flops/return_code:1": 0}, {"other/return_code": 0}])
def test_a_number_without_its_return_code_is_not_measured(
    tmp_path: Path, codes: dict[str, object]
) -> None:
    found = read(tmp_path, {"node": "n1", "gemm-flops/fp64_flops:0": 9000.0} | codes)
    (rate,) = (m for m in found.measurements if m.quantity == "rate")
    assert (rate.verdict, rate.samples) == (Verdict.NOT_MEASURED, (9000.0,))
    assert "return code" in rate.reason


@pytest.mark.parametrize(
    "more",
    [
        {"diagnosis/category": "KernelLaunch"},
        {"Issue Details": "bad"},
        {"diagnosis/issue_num": 5},
        {"diagnosis/issue_num": "many"},
        {"Accept": False},
    ],
)
def test_an_issue_counts_more_than_that_the_node_is_accepted(
    tmp_path: Path, more: dict[str, object]
) -> None:
    (only,) = read(tmp_path, {"index": "n1", "diagnosis/accept": True} | more).measurements
    assert only.verdict is Verdict.FAILED


@pytest.mark.parametrize("name", ["selftest/read_latency:0", "selftest/0/read_latency:0"])
def test_no_benchmark_is_taken_for_the_self_test_of_our_meter(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, {"node": "n1", name: 3.0, "selftest/return_code:0": 0})
    assert {each.benchmark for each in found.measurements} == {"superbench-selftest"}
