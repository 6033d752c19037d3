"""DCGM's diagnostic: both shapes of its JSON, every status, and the numbers in its texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.imports import Imported, read_file
from hakaru.measure.record import Measurement
from hakaru.measure.verdict import Verdict, worst

DATA = Path(__file__).parent / "data"


def one(
    found: Imported, benchmark: str, device: str, quantity: str = "passed", **parameters: str
) -> Measurement:
    (each,) = (
        m
        for m in found.measurements
        if (m.benchmark, m.device, m.quantity) == (benchmark, device, quantity)
        and m.parameters == parameters
    )
    return each


def read(tmp_path: Path, document: object) -> Imported:
    path = tmp_path / "diag.json"
    path.write_text(json.dumps(document))
    return read_file(path, "dcgm")


def diagnostic(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    test = {"name": "pcie", "results": list(results)}
    return {"DCGM Diagnostic": {"test_categories": [{"category": "x", "tests": [test]}], **more}}


def test_every_status_has_its_verdict() -> None:
    found = read_file(DATA / "dcgm-3.json", host="gpu01")
    good = one(found, "dcgm-denylist", "node")
    assert (good.verdict, good.samples, good.unit) == (Verdict.GOOD, (1.0,), "0–1")
    assert good.reason == "as reported by DCGM; not compared with anything"
    warned = one(found, "dcgm-persistence-mode", "gpu:1")
    assert (warned.verdict, warned.samples) == (Verdict.FAILED, (0.0,))
    assert "Persistence mode for GPU 1 is disabled" in warned.reason
    for device in ("gpu:0", "gpu:1"):  # skipped, and a word that no version has
        left = one(found, "dcgm-gpu-memory", device)
        assert (left.verdict, left.samples) == (Verdict.NOT_MEASURED, ())


def test_numbers_in_the_text_have_the_verdict_of_their_test() -> None:
    found = read_file(DATA / "dcgm-3.json")
    slow = one(found, "host-copy", "gpu:1", "bandwidth", direction="to-host")
    assert (slow.samples, slow.unit, slow.verdict) == ((11.2,), "GB/s", Verdict.FAILED)
    latency = one(found, "dcgm-pcie", "gpu:0", "bidirectional-latency")
    assert (latency.samples, latency.better) == ((5.019,), "lower")
    assert "DCGM does not print" in found.notes[0], "why copies are not compared with our own"


def test_version_4_names_entities_and_sums_up() -> None:
    found = read_file(DATA / "dcgm-4.json")
    assert one(found, "gemm", "gpu:0", "rate", dtype="fp64").samples == (1000.0 * 2**30 / 1e9,)
    assert one(found, "dcgm-memory", "gpu:0").verdict is Verdict.GOOD
    assert one(found, "dcgm-memory", "node").verdict is Verdict.FAILED
    assert one(found, "dcgm-eud", "node").verdict is Verdict.NOT_MEASURED
    assert found.measurements[0].place["versions"] == {"dcgm": "4.2.3", "driver": "580.82.09"}


def test_several_gpus_in_one_result_are_distinguished_by_their_text(tmp_path: Path) -> None:
    info = [f"GPU {gpu} Host to GPU bandwidth:\t\t{12 + gpu}.5 GB/s" for gpu in range(2)]
    found = read(tmp_path, diagnostic({"gpu_ids": "0,1", "status": "PASS", "info": info}))
    assert one(found, "dcgm-pcie", "gpu:0,1").verdict is Verdict.GOOD
    assert one(found, "host-copy", "gpu:1", "bandwidth", direction="to-device").samples == (13.5,)


def test_iterations_are_samples_and_one_failure_is_the_verdict(tmp_path: Path) -> None:
    runs = [diagnostic({"gpu_id": "0", "status": word}) for word in ("Pass", "Fail", "Pass")]
    found = read(tmp_path, {"iterations": runs, "Overall Result": "Fail", "warning": "timed out"})
    every = one(found, "dcgm-pcie", "gpu:0")
    assert (every.samples, every.verdict) == ((1.0, 0.0, 1.0), Verdict.FAILED)
    assert "timed out" in one(found, "dcgm", "node").reason


def test_a_diagnostic_that_could_not_run_fails(tmp_path: Path) -> None:
    found = read(tmp_path, {"DCGM Diagnostic": {"runtime_error": "Error: DCGM is paused.\x1b[2J"}})
    (only,) = found.measurements
    assert (only.verdict, only.samples) == (Verdict.FAILED, ())
    assert "DCGM is paused" in only.reason and "\x1b" not in only.reason


@pytest.mark.parametrize(
    "document",
    [{}, {"DCGM Diagnostic": []}, {"DCGM Diagnostic": {"version": "4"}}, {"iterations": [3]}],
)
def test_nothing_in_it_is_an_error(tmp_path: Path, document: object) -> None:
    with pytest.raises(HakaruError, match=r"diag\.json"):
        read(tmp_path, document)


def test_hostile_shapes_are_never_good(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        diagnostic(
            {"gpu_id": "0\x1b[31m", "status": ["Pass"]},
            {"gpu_id": 1, "status": "Pass\x00ed"},
            {"gpu_id": 2, "status": "", "warnings": {"deep": []}, "info": 5},
        ),
    )
    assert {m.verdict for m in found.measurements} == {Verdict.NOT_MEASURED}
    assert "\x1b" not in found.measurements[0].device


PASS = {"entity_group": "GPU", "entity_id": 0, "status": "Pass"}
GOOD = diagnostic(PASS)


def with_tests(*tests: object) -> dict[str, Any]:
    good = GOOD["DCGM Diagnostic"]["test_categories"][0]["tests"]
    return {"DCGM Diagnostic": {"test_categories": [{"category": "x", "tests": [*good, *tests]}]}}


@pytest.mark.parametrize(
    "document",
    [
        {"iterations": [GOOD, {"DCGM Diagnostic": {"test_categories": []}}]},
        {"iterations": [GOOD, {"DCGM Diagnostic": {"version": "4"}}]},
        {"iterations": {"1": GOOD}, **GOOD},
        {"DCGM GPU Diagnostic": [], **GOOD},
        with_tests({"name": "memory", "results": {"status": "Pass"}}),
        with_tests({"name": "memory", "results": "Fail", "test_summary": {"status": "Pass"}}),
        with_tests({"name": "memory", "results": [PASS], "test_summary": "Fail"}),
        with_tests("Fail"),
        with_tests(None),
        with_tests({"name": "memory", "results": [PASS, None]}),
        diagnostic(PASS | {"status": "Pass (3 of 8 failed)"}),
        diagnostic(PASS | {"info": ["GPU 0 calculated at approximately 1.2.3 gigaflops"]}),
        {"DCGM Diagnostic": {"test_categories": [
            *GOOD["DCGM Diagnostic"]["test_categories"], {"tests": {"status": "Fail"}}]}},
        {"DCGM Diagnostic": {"test_categories": [
            *GOOD["DCGM Diagnostic"]["test_categories"], "Fail"]}},
    ],
)  # fmt: skip
def test_an_unexpected_shape_is_not_measured(tmp_path: Path, document: dict[str, Any]) -> None:
    found = read(tmp_path, document)
    assert worst(m.verdict for m in found.measurements) is Verdict.NOT_MEASURED


@pytest.mark.parametrize(
    "document",
    [
        GOOD | {"DCGM GPU Diagnostic": {"runtime_error": "died"}},
        GOOD | {"runtime_error": "died"},
        GOOD | {"Other Diagnostic": {"runtime_error": "died"}},
        {"iterations": [GOOD], "DCGM Diagnostic": {"runtime_error": "died"}},
        with_tests({"name": "memory", "results": {"status": "Fail"}}),
    ],
)
def test_a_failure_in_an_unexpected_place_fails(tmp_path: Path, document: dict[str, Any]) -> None:
    found = read(tmp_path, document)
    assert worst(m.verdict for m in found.measurements) is Verdict.FAILED


def per_gpu(name: str, gpus: list[int], status: str = "Pass") -> dict[str, Any]:
    results = [PASS | {"entity_id": gpu, "status": status} for gpu in gpus]
    return {"name": name, "results": results, "test_summary": {"status": status}}


def of_tests(*each: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"DCGM Diagnostic": {"test_categories": [{"category": "x", "tests": each}]}, **more}


def missing(found: Imported) -> list[tuple[str, str]]:
    bad = [m for m in found.measurements if m.verdict is not Verdict.GOOD]
    assert {m.verdict for m in bad} <= {Verdict.NOT_MEASURED}
    return [(m.benchmark, m.device) for m in bad]


def test_a_gpu_that_one_test_lacks_is_not_measured(tmp_path: Path) -> None:
    memory, pcie = per_gpu("memory", [*range(8)]), per_gpu("pcie", [*range(7)])
    found = read(tmp_path, of_tests(memory, pcie))
    assert missing(found) == [("dcgm-pcie", "gpu:7")]
    assert "no result of this GPU in this test" in found.measurements[-1].reason
    iterations = [of_tests(memory, per_gpu("pcie", [*range(8)])), of_tests(memory, pcie)]
    assert missing(read(tmp_path, {"iterations": iterations})) == [("dcgm-pcie", "gpu:7")]
    together = {"name": "pcie", "results": [{"gpu_ids": "0,1,2", "status": "PASS"}]}
    found = read(tmp_path, of_tests(per_gpu("memory", [0, 1, 2, 3]), together))
    assert missing(found) == [("dcgm-pcie", "gpu:3")]


def test_a_gpu_of_the_diagnostic_that_no_test_has_is_not_measured(tmp_path: Path) -> None:
    groups = [
        {
            "entity_group": "GPU",
            "entity_group_id": 1,
            "entities": [{"entity_id": at} for at in (0, 1)],
        },
        {"entity_group": "CPU", "entity_group_id": 7, "entities": [{"entity_id": 5}]},
    ]
    found = read(tmp_path, of_tests(per_gpu("pcie", [0]), entity_groups=groups))
    assert missing(found) == [("dcgm-pcie", "gpu:1")]
    for odd in (
        None,
        "GPU",
        [3],
        [{"entity_group": "GPU", "entities": "0"}],
        [{"entities": [None]}],
    ):
        assert not missing(read(tmp_path, of_tests(per_gpu("pcie", [0]), entity_groups=odd)))


def test_tests_of_the_node_and_lists_of_faults_lack_no_gpu(tmp_path: Path) -> None:
    node = {"name": "denylist", "results": [{"status": "Pass"}]}
    cpu = {"name": "cpu", "results": [{"cpu_id": 0, "status": "Pass"}]}
    skipped = per_gpu("eud", [0, 1], "Skip")
    found = read(tmp_path, of_tests(per_gpu("memory", [0, 1]), node, cpu, skipped))
    assert missing(found) == [("dcgm-eud", "gpu:0"), ("dcgm-eud", "gpu:1")]
    found = read(tmp_path, of_tests(per_gpu("memory", [0, 1]), per_gpu("persistence", [1], "Warn")))
    bad = [m.device for m in found.measurements if m.verdict is not Verdict.GOOD]
    assert bad == ["gpu:1"]


def test_what_has_the_expected_shape_is_good(tmp_path: Path) -> None:
    for document in (GOOD, {"iterations": [GOOD, GOOD], "Overall Result": "Pass"}):
        assert {m.verdict for m in read(tmp_path, document).measurements} == {Verdict.GOOD}
