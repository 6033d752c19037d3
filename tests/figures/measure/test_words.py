"""Runs in sentences, and numbers as they are written."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hakaru.analyses import open_session
from hakaru.figures.measure.answers import answers
from hakaru.figures.measure.beside import Line, Value, beside, set_beside
from hakaru.figures.measure.choice import card_subjects
from hakaru.figures.measure.stored import load_view
from hakaru.figures.measure.view import RunView
from hakaru.figures.measure.words import amount, behind, meter_text, share, summarise
from hakaru.lake import Lake
from hakaru.measure.compare import signed_share
from hakaru.measure.record import Measurement, Run
from hakaru.measure.store import save
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import card, ranked, run_of, slow, view_of
from tests.measure.lakes import measured, synthetic_runs


def test_side_by_side_says_what_has_changed() -> None:
    first = run_of(
        card("n1", "cuda:0", *(100.0, 101.0, 99.0) * 3), card("n1", "cuda:0", 7.0, benchmark="memory"),
        card("n1", "cuda:0", *(1.0, 1.1, 0.9) * 3, benchmark="copy"),
    )  # fmt: skip
    second = run_of(
        card("n1", "cuda:0", *(90.0, 91.0, 89.0) * 3),
        card("n1", "cuda:0", *(1.05, 1.1, 1.0) * 3, benchmark="copy"),
    )
    lines = {each.benchmark: each for each in set_beside(first, second)}
    assert (lines["gemm"].change, lines["gemm"].ratio) == ("worse", pytest.approx(0.9))
    assert lines["gemm"].first == Value(100.0, 99.0, 101.0, 1)
    assert lines["copy"].change == "no sure change"
    assert (lines["memory"].change, lines["memory"].second) == ("only before", None)
    table = beside(list(lines.values()))
    assert [each.line.benchmark for each in table.lines] == ["gemm", "copy"], "what differs first"
    assert (table.lines[0].ratio, table.lines[0].change) == ("0.900", "worse")
    assert table.only == {"only before": 1}


def test_one_bad_card_of_many_shows_beside_a_median_that_hides_it() -> None:
    def night(bad: float, good: float = 1.0) -> Run:
        scales = {3: bad, 5: good}
        return run_of(
            *(card(f"n{at}", "cuda:0", *(scales.get(at, 1.0) * each for each in (100.0, 100.1, 99.9) * 3))
              for at in range(16))
        )  # fmt: skip

    (line,) = set_beside(night(1.0), night(0.8))
    assert line.ratio == 1.0 and line.second == Value(100.0, 100.0, 100.0, 16)
    assert (line.change, line.devices) == ("worse", {"worse": 1, "no sure change": 15})
    (cells,) = beside([line]).lines
    assert cells.change == "1 of 16 worse: n3/cuda:0 −20.0 %"
    (both,) = beside(set_beside(night(1.0), night(0.8, 1.3))).lines
    assert both.change == "1 of 16 worse: n3/cuda:0 −20.0 %; 1 better"
    (better,) = beside(set_beside(night(0.8), night(1.0))).lines
    assert better.change == "1 of 16 better: n3/cuda:0 +25.0 %"


def test_the_verdict_in_words_names_the_worst_first() -> None:
    links = [
        measured(benchmark="pairs", device=f"a>{to}", host="a,b,c", parameters={"bytes": 1}).judged(
            Verdict.SLOW, f"a is slow to all its partners; 2{to}%", reference=1000.0)
        for to in "bc"
    ]  # fmt: skip
    dead = card("n9", "cuda:0").judged(Verdict.FAILED, "the process died")
    trial = measured(benchmark="hpl", parameters={"trial": 1}, verdict=Verdict.FAILED)
    summary = summarise(view_of(card("n1", "cuda:0", 100.0), slow(card("n2", "cuda:0", 90.0)),
                             slow(card("n3", "cuda:0", 80.0)), *links, dead, trial))  # fmt: skip
    assert [each.where for each in summary.worst] == [
        "n9 cuda:0",
        "n3 cuda:0",
        "n2 cuda:0",
        "2 links: a>b, a>c",
    ]
    assert summary.sentence == (
        "Of 4 devices: 1 failed, 2 slow, 1 good. Of 2 links: 2 slow. Measurements: 1 good, 4 slow, 1 failed."
    )
    assert summary.verdict is Verdict.FAILED and "hakaru bench selftest" in summary.meter
    known = measured(validity={"meter": {"error": 0.012, "tested_at": "2026-01-02T03:04:05"}})
    assert "off by 1.2 %" in summarise(view_of(known)).meter
    assert summarise(view_of()).verdict is Verdict.NOT_MEASURED


def test_a_run_answers_in_sentences_and_only_what_it_measured() -> None:
    view = RunView.of(synthetic_runs(num_nodes=4, cards_per_node=4, num_runs=2)[-1])
    cost, links, fp16, fp32, linpack = answers(view)
    assert cost.startswith("A synchronous job on all 16 devices") and cost.endswith(
        "GPU-hours a month (by gemm fp64 size 1024, rate)."
    )
    assert links.startswith("gpu003 is slow to all its partners; the ring gpu001 →")
    assert fp16.startswith("All-reduce, fp16, 4 ranks: ")
    for word in (
        "GB/s at 16 MiB",
        "predicts",
        "with 8 and",
        "with 32 ranks",
        "it misses a size left out",
    ):
        assert word in fp32
    assert (
        linpack.startswith("The best LINPACK settings reach 6,753 GFLOP/s")
        and "% over the default" in linpack
    )
    assert "% relative to DGEMM" in linpack
    assert answers(view_of()) == answers(view_of(card("n1", "cuda:0", 1.0))) == []
    assert answers(view_of(*ranked(4096, 1e-3), *ranked(8192, 2e-3))) == [], "two sizes have no fit"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (1234.4, "1,234"), (12345.6, "12,346"), (999.96, "1,000"), (0.012344, "0.01234"),
     (0.00012345, "0.00012")],
)  # fmt: skip
def test_a_number_looks_the_same_everywhere(value: float | None, text: str) -> None:
    assert amount(value) == text


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e308, 5e-324, 1.7e306])
def test_a_number_is_never_written_as_inf_or_in_hundreds_of_digits(value: float) -> None:
    for text in (amount(value, "GB/s"), share(value), signed_share(value)):
        assert "inf" not in text and "nan" not in text and len(text) < 30


@pytest.mark.parametrize(
    ("compared_with", "text"),
    [("baseline acceptance", "10.0 % slower than baseline acceptance"), ("", ""),
     ("the default HPL.dat at its own N", "10.0 % slower than the default HPL.dat at its own N")],
)  # fmt: skip
def test_a_deficit_names_what_it_was_compared_with(
    lake: Lake, compared_with: str, text: str
) -> None:
    each = measured(samples=(90.0,), reference=100.0, compared_with=compared_with)
    save(lake, run_of(each))
    with open_session(lake) as session:
        for view in (view_of(each), load_view(session, "c", "r1")):
            assert behind(view.readings[0]) == text
    assert behind(view_of(measured(compared_with=compared_with)).readings[0]) == ""


def test_a_ratio_that_overflows_is_not_known() -> None:
    def line(before: float, after: float) -> Line:
        (found,) = set_beside(
            *(run_of(card("n1", "cuda:0", *[value] * 6)) for value in (before, after))
        )
        return found

    assert line(1e-300, 1e300).ratio is None
    found = beside([line(1e-200, 1e100)])
    assert found.lines[0].ratio == "1e+300"


def test_each_device_counts_by_its_worst_verdict_and_none_is_dropped() -> None:
    bad = {"verdict": Verdict.CONTAMINATED, "reason": "others"}
    none = card("n3", "cuda:0").judged(Verdict.NOT_MEASURED, "no device")
    sentence = summarise(
        view_of(card("n1", "cuda:0", 1.0), card("n2", "cuda:0", 1.0, **bad), none)
    ).sentence
    assert sentence.startswith("Of 3 devices: 1 contaminated, 1 not measured, 1 good.")


def test_a_setting_is_named_once_and_not_by_each_quantity() -> None:
    bad = [
        measured(benchmark="all-gather", parameters={"bytes": size, "ranks": 4}, device="4 ranks",
                 quantity=quantity).judged(Verdict.CONTAMINATED, "others")
        for size in (4096, 8192) for quantity in ("busbw", "algbw", "time")
    ]  # fmt: skip
    (named,) = summarise(view_of(*bad)).worst
    assert named.what == "all-gather 4 KiB ranks 4"
    assert named.also == ("all-gather 8 KiB ranks 4 (contaminated)",)


def test_a_device_measured_twice_is_not_two_devices() -> None:
    twice = [card("n1", "cpu", 1.0 + at, place={"model": "lonely"}) for at in range(3)]
    pair = [card(f"n{at}", "cuda:0", 1.0) for at in range(2)]
    subjects = card_subjects(view_of(*twice, *pair))
    assert [each.num_devices for each in subjects] == [2, 1]


def test_the_meter_says_what_was_not_tested() -> None:
    meter = {"error": 0.021, "tested_at": "2026-11-01", "untested": ["gpu clock", "steal"]}
    text = meter_text(view_of(measured(validity={"meter": meter})))
    assert text.endswith("off by 2.1 % at most in its last self-test of 2026-11-01; "
                         "without a valid test: gpu clock, steal.")  # fmt: skip


def test_the_worst_meter_of_several_hosts_counts() -> None:
    def row(host: str, **meter: Any) -> Measurement:
        return measured(host=host, validity={"meter": meter})

    rows = [row("n1", error=0.01), row("n2", error=0.08), row("n1,n2", error=0.08)]
    assert (
        meter_text(view_of(*rows))
        == "The meter itself was off by 8.0 % at most in its last self-test."
    )
    text = meter_text(view_of(*rows, row("n3")))
    assert text.endswith("self-test. It has not been tested on n3: hakaru bench selftest")
    wrong = "the meter was wrong: hakaru bench selftest on n4"
    assert meter_text(view_of(*rows, row("n4", problem=wrong))) == wrong


def test_a_self_test_does_not_ask_for_one() -> None:
    assert "has not been tested" in meter_text(view_of(measured()))
    assert "has not been tested" not in meter_text(view_of(measured(benchmark="selftest")))


def test_where_nothing_was_measured_nothing_is_said_of_the_meter() -> None:
    missing = measured(samples=()).judged(Verdict.NOT_MEASURED, "hpcc is not installed")
    assert meter_text(view_of(missing)) == ""
    assert meter_text(view_of(missing, source="dcgm")) != "", "whose numbers they are is said"
