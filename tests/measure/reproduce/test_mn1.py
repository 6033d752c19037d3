"""MN-1's findings against rows written by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.measure.record import Measurement
from hakaru.measure.reproduce import Answer
from hakaru.measure.reproduce.mn1 import MN1
from hakaru.measure.verdict import Verdict as Judged
from tests.measure._runs import measured
from tests.measure.reproduce._rows import (
    ON_CORES,
    answer,
    contaminated,
    failed,
    loading,
    near,
    scaling,
)

COLD, WARM = "a sample (cold)", "a sample (warm)"
CARDS = "cards of one model differ"
WELL = "scales well up to 256"
WORSE = "from 512 GPUs on"
BYTES = "gradients in fp16"


def told(found: Answer) -> tuple[str, bool]:
    return found.verdict.value, found.is_lacking


def card(at: int, rate: float, **more: Any) -> Measurement:
    return measured(*near(rate), device=f"cuda:{at}", **more)


def test_cards_of_one_model() -> None:
    """The harness' own verdict says whether one is slow."""
    alike = [card(0, 4600), card(1, 4590)]
    found = answer(MN1, CARDS, *alike)
    assert told(found) == ("differs", False)
    assert found.measured == "the slowest of 2 GPUs is 0.2 % behind the fastest; 0 slow"
    slow = card(2, 4000, verdict=Judged.SLOW)
    assert told(answer(MN1, CARDS, *alike, slow)) == ("agrees", False)
    assert told(answer(MN1, CARDS, *alike, contaminated(slow))) == ("not measured", True)
    assert told(answer(MN1, CARDS, card(0, 4600))) == ("not measured", False)


def test_cores_are_no_cards() -> None:
    cores = [
        measured(*near(20), device="cpu:0", place={"model": "core of EPYC"}),
        measured(*near(15), device="cpu:1", place={"model": "core of EPYC"}, verdict=Judged.SLOW),
        measured(*near(70), device="numa:0", place={"model": "4 cores of EPYC"}),
    ]
    found = answer(MN1, CARDS, *cores)
    assert told(found) == ("not comparable", False) and "25.0 % behind" in found.measured
    peak = answer(MN1, "peak of a GPU", *cores)
    assert told(peak) == ("not comparable", False)
    assert peak.measured == "20 GFLOP/s, core of EPYC"


def linpack(rate: float | None, **more: Any) -> list[Measurement]:
    columns: dict[str, Any] = {"benchmark": "hpl", "parameters": {"ranks": 8}, "device": "8 ranks"}
    samples = near(rate) if rate else ()
    share = {"quantity": "efficiency", "unit": "of DGEMM"}
    return [
        measured(*samples, **(columns | more)),
        measured(*(near(0.72) if rate else ()), **(columns | share | more)),
    ]


def test_linpack_is_never_compared() -> None:
    for says in ("efficiency of LINPACK on 1 node", "LINPACK on all GPUs"):
        found = answer(MN1, says, *linpack(1_390_000.0))
        assert told(found) == ("not comparable", False)
        assert found.measured == "1,390,000 GFLOP/s, 72.0 % of DGEMM, 8 ranks"
        assert "P100 × 8" in found.why
        assert told(answer(MN1, says, *map(failed, linpack(9.0)))) == ("not measured", True)
    falls = answer(MN1, "efficiency falls", *linpack(9.0))
    assert told(falls) == ("not measured", False) and falls.measured.startswith("9 GFLOP/s")


def test_a_search_that_did_not_end_shows_its_best_trial() -> None:
    says = "LINPACK on all GPUs"
    open_end = linpack(None, verdict=Judged.NOT_MEASURED, reason="the budget ended before")
    trials = [
        measured(rate, benchmark="hpl", parameters={"trial": at, "nb": 128}, device="2 ranks")
        for at, rate in enumerate((20.0, 31.0, 30.0))
    ]
    found = answer(MN1, says, *open_end, *trials)
    assert told(found) == ("not comparable", False)
    assert (
        found.measured == "31 GFLOP/s, 2 ranks, the best of 3 trials of a search that did not end"
    )
    assert told(answer(MN1, says, *open_end)) == ("not measured", True)
    assert told(answer(MN1, says, *open_end, *map(contaminated, trials)))[1]
    dirty = linpack(None, verdict=Judged.CONTAMINATED, reason="others")
    assert told(answer(MN1, says, *dirty, *trials)) == ("not measured", True)


def weak(ranks: int, value: float, quantity: str = "step", **more: Any) -> Measurement:
    """A row of ResNet-50 on nodes of eight cards."""
    usual: dict[str, Any] = {"model": "resnet50", "scaling": "weak", "hosts": -(-ranks // 4)}
    return scaling(ranks, value, quantity=quantity, **(usual | more))


def up_to(sizes: dict[int, float]) -> list[Measurement]:
    """The efficiency of each size, and the step that goes with it."""
    rows = []
    for ranks, share in sizes.items():
        rows.append(weak(ranks, 200 / share))
        rows.append(weak(ranks, share, "efficiency"))
    return rows


def test_scaling_as_in_the_paper() -> None:
    rows = up_to({1: 1.0, 8: 0.97, 64: 0.95, 256: 0.93, 512: 0.8, 1024: 0.7})
    well = answer(MN1, WELL, *rows)
    assert told(well) == ("agrees", False) and "256 ranks 93.0 % of linear" in well.measured
    assert "512" not in well.measured
    worse = answer(MN1, WORSE, *rows)
    assert told(worse) == ("agrees", False) and "512 ranks 250 ms" in worse.measured
    alike = up_to({1: 1.0, 256: 0.93, 512: 0.93})
    assert told(answer(MN1, WORSE, *alike)) == ("differs", False)


def test_a_small_machine_refutes_and_cannot_prove() -> None:
    good = up_to({1: 1.0, 2: 0.97})
    found = answer(MN1, WELL, *good)
    assert told(found) == ("not comparable", False) and found.why == "2 ranks cannot tell of 256"
    bad = up_to({1: 1.0, 2: 0.61})
    found = answer(MN1, WELL, *bad)
    assert told(found) == ("differs", False) and "the paper gives no number" in found.measured
    assert told(answer(MN1, WORSE, *bad)) == ("not comparable", False)
    shared = [
        replace(each, place=ON_CORES, parameters={**each.parameters, "hosts": 1})
        for each in up_to({1: 1.0, 4: 0.4})
    ]
    found = answer(MN1, WELL, *shared)
    assert told(found) == ("not comparable", False) and found.why == "4 ranks share the 2 cores"


def test_one_bad_size_spoils_scaling() -> None:
    rows = up_to({1: 1.0, 8: 0.97, 256: 0.93, 512: 0.8})
    spoilt = [contaminated(e) if e.parameters["ranks"] == 256 else e for e in rows]
    for says in (WELL, WORSE):
        found = answer(MN1, says, *spoilt)
        assert told(found) == ("not measured", True) and "others used" in found.why


def fp16(half: int | None, **more: Any) -> list[Measurement]:
    sent = {"communication": {"bytes": 1000}}, {"communication": {"bytes": half}}
    return [
        weak(8, 200.0, facts=sent[0]),
        weak(8, 180.0, compression="fp16", facts=sent[1], **more),
    ]


def test_bytes_of_fp16() -> None:
    found = answer(MN1, BYTES, *fp16(500))
    assert told(found) == ("agrees", False)
    assert found.measured == (
        "50.0 % of the bytes of fp32; a step takes 200 ms in fp32 and 180 ms in fp16 on 8 ranks"
    )
    assert told(answer(MN1, BYTES, *fp16(1000))) == ("differs", False)
    assert told(answer(MN1, BYTES, *fp16(None))) == ("not measured", True)
    plain, compressed = fp16(500)
    assert told(answer(MN1, BYTES, plain)) == ("not measured", True)
    assert told(answer(MN1, BYTES, plain, contaminated(compressed))) == ("not measured", True)


def test_the_fifteen_minutes_and_the_communication_are_shown() -> None:
    rows = [weak(4, 4000.0, "throughput"), weak(4, 200.0), weak(4, 20.0, "exposed")]
    found = answer(MN1, "90 epochs of ImageNet", *rows)
    assert told(found) == ("not comparable", False)
    assert found.measured == "4,000 samples/s of resnet50, 4 ranks on 1 host, V100"
    found = answer(MN1, "share of an iteration", *rows)
    assert told(found) == ("not comparable", False)
    assert found.measured.startswith("10.0 % of a step is exposed communication")


@pytest.mark.parametrize(
    ("files", "packed", "verdict"),
    [(900.0, 1500.0, "agrees"), (1500.0, 900.0, "differs"), (1000.0, 1001.0, "differs")],
)
def test_one_archive_against_files(files: float, packed: float, verdict: str) -> None:
    for says, state, label in ((COLD, "cold", "from the device"), (WARM, "warm", "cached")):
        rows = [loading("files", files, state, label), loading("packed", packed, state, label)]
        found = answer(MN1, says, *rows)
        assert told(found) == (verdict, False)
        assert label in found.measured


def test_a_cold_read_from_memory_says_nothing_of_storage() -> None:
    rows = [
        loading(name, rate, "cold", "cached") for name, rate in (("files", 9.0), ("packed", 99.0))
    ]
    found = answer(MN1, COLD, *rows)
    assert told(found) == ("not measured", True)
    assert found.why == "where a cold read came from: cached" and found.measured
    unseen = [replace(each, validity={"label": "unknown"}) for each in rows]
    assert told(answer(MN1, COLD, *unseen)) == ("not measured", False)
    partly = [replace(each, validity={"label": "partly cached"}) for each in rows]
    assert told(answer(MN1, COLD, *partly)) == ("not measured", True)
    assert answer(MN1, COLD, *(replace(each, validity={}) for each in rows)).why.endswith(
        ": not labelled"
    )


@pytest.mark.parametrize(
    ("label", "filesystem", "verdict"),
    [("over the network", "nfs4", "agrees"), ("unknown", "nfs4", "agrees"),
     ("unknown", "tmpfs", "not measured")],
)  # fmt: skip
def test_a_cold_read_over_the_network_counts(label: str, filesystem: str, verdict: str) -> None:
    facts = {"label": label, "filesystem": filesystem, "cold_problem": ""}
    rows = [
        replace(loading(name, rate, "cold", label), validity=facts)
        for name, rate in (("files", 900.0), ("packed", 1500.0))
    ]
    assert told(answer(MN1, COLD, *rows)) == (verdict, False)
    stayed = [replace(each, validity=facts | {"cold_problem": "some stayed"}) for each in rows]
    assert told(answer(MN1, COLD, *stayed))[0] == (
        "agrees" if label != "unknown" else "not measured"
    )


def test_layouts_are_compared_with_the_same_workers() -> None:
    files = loading("files", 900.0, "warm", "cached")
    packed = loading("packed", 1500.0, "warm", "cached")
    other = replace(packed, parameters={**packed.parameters, "workers": 8})
    assert told(answer(MN1, WARM, files, other)) == ("not measured", True)
    assert told(answer(MN1, WARM, files, other, packed)) == ("agrees", False)
    for spoil in (contaminated, failed):
        assert told(answer(MN1, WARM, files, spoil(packed))) == ("not measured", True)
        assert told(answer(MN1, WARM, spoil(files), packed, other)) == ("not measured", True)


def test_an_empty_run_has_nothing() -> None:
    for finding in MN1.findings:
        assert told(answer(MN1, finding.says)) == ("not measured", True), finding.says
