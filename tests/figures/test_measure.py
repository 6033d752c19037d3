"""Figures and words of measurements, worked by hand, and the lake's views against those of runs at hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from hakaru.analyses import open_session
from hakaru.errors import HakaruError
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.answers import answers
from hakaru.figures.measure.beside import beside, set_beside
from hakaru.figures.measure.cards import card_curve, cost_sentence, curve_of
from hakaru.figures.measure.choice import Choice, card_subjects, find_subject, history_subjects
from hakaru.figures.measure.collectives import (
    blame_of,
    blame_text,
    collective,
    predictions,
    sweeps_of,
)
from hakaru.figures.measure.fleet import fleet
from hakaru.figures.measure.preflight import read_preflight
from hakaru.figures.measure.search import search_history, search_of, search_sentence
from hakaru.figures.measure.series import history, series_in
from hakaru.figures.measure.stored import list_runs, load_series, load_view
from hakaru.figures.measure.view import RunView
from hakaru.figures.measure.words import amount, meter_text, share, summarise
from hakaru.lake import Lake
from hakaru.measure.compare import signed_share
from hakaru.measure.folders import preflight_file
from hakaru.measure.record import NO_RESULT, Measurement, Run
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.measure.lakes import BEGIN, CLUSTER, measured, put_runs, slow_cards, synthetic_runs


def run_of(*measurements: Measurement, **more: Any) -> Run:
    return Run(
        **({"id": "r1", "cluster": "c", "started_at": BEGIN, "measurements": measurements} | more)
    )


def view_of(*measurements: Measurement, **more: Any) -> RunView:
    return RunView.of(run_of(*measurements, **more))


def card(host: str, device: str, *samples: float, **more: Any) -> Measurement:
    return measured(host=host, device=device, samples=samples, **more)


def slow(each: Measurement, reference: float = 100.0) -> Measurement:
    return each.judged(Verdict.SLOW, "slower than its peers", reference=reference)


# ---- the fleet


def test_a_mark_stands_at_its_host_and_device_in_its_worst_verdict() -> None:
    option = fleet(
        view_of(
            card("n10", "cuda:0", 100.0),
            card("n2", "cuda:1", 100.0),
            slow(card("n2", "cuda:0", 90.0)),
            card("n2", "cuda:0", 5.0, benchmark="memory"),
        )
    ).option
    assert option["yAxis"][0]["data"] == ["n2", "n10"], "as people count"
    assert option["xAxis"][0]["data"] == ["0", "1"]
    good, bad = option["series"]
    assert [each["value"] for each in good["data"]] == [[1, 0], [0, 1]]
    assert [each["value"] for each in bad["data"]] == [[0, 0]]
    assert (good["name"], bad["name"]) == ("good (2)", "slow (1)")
    assert "gemm fp64 size 1024: 90 GFLOP/s\n10.0 % slower" in bad["data"][0]["name"]


def test_no_two_verdicts_look_alike_without_colour_or_shape() -> None:
    for looks in (look.COLOURS, look.SYMBOLS):
        assert set(looks) == set(Verdict) and len(set(looks.values())) == len(Verdict)


def test_a_thousand_cards_are_few_bytes_in_blocks_beside_one_another() -> None:
    cards = [card(f"n{at // 8:03d}", f"cuda:{at % 8}", 100.0) for at in range(1024)]
    drawn = fleet(view_of(*cards[:-1], slow(cards[-1])))
    assert len(drawn.option["grid"]) == 4 and drawn.height < 700
    assert sum(len(each["data"]) for each in drawn.option["series"]) == 1024
    assert len(json.dumps(drawn.option)) < 120_000
    assert drawn.notes == ("Slow: n127 cuda:7.",)


# ---- cards


def test_cards_stand_from_slow_to_fast_and_the_slowest_costs_hours() -> None:
    """Four cards, of which one lacks a tenth: 4 × 730 h × 0.1 a month. What is contaminated is not drawn."""
    dirty = card("n9", "cuda:0", 1.0).judged(Verdict.CONTAMINATED, "somebody else was there")
    view = view_of(
        card("n1", "cuda:0", 100.0), slow(card("n2", "cuda:0", 90.0)), card("n3", "cuda:0", 100.0),
        card("n4", "cuda:0", 101.0), dirty,
    )  # fmt: skip
    (subject,) = card_subjects(view)
    curve = curve_of(view, subject)
    assert curve is not None and [each.host for each in curve.readings] == ["n2", "n1", "n3", "n4"]
    assert cost_sentence(curve) == (
        "A synchronous job on all 4 devices goes at the speed of n2 cuda:0, 10.0 % under the median, "
        "and loses 292 GPU-hours a month."
    )
    drawn = card_curve(view, subject)
    good, bad, middle = drawn.option["series"]
    assert [each["value"] for each in bad["data"]] == [[1, 90.0]]
    assert [each["value"] for each in good["data"]] == [[2, 100.0], [3, 100.0], [4, 101.0]]
    assert middle["data"][0][1] == 100.0
    assert any("1 device has no valid number and is not drawn" in note for note in drawn.notes)


def test_where_less_is_better_the_slowest_takes_longest() -> None:
    times = [
        card(f"n{at}", "cuda:0", us, better="lower") for at, us in enumerate((10.0, 10.0, 20.0))
    ]
    view = view_of(*times)
    curve = curve_of(view, card_subjects(view)[0])
    assert curve is not None and [each.median for each in curve.readings] == [20.0, 10.0, 10.0]
    assert "50.0 % under the median" in (cost_sentence(curve) or "")


def test_a_choice_that_the_run_does_not_have_is_an_error() -> None:
    view = view_of(card("n1", "cuda:0", 1.0), card("n1", "cuda:0", 2.0, benchmark="memory"))
    found = find_subject(card_subjects(view), Choice(benchmark="memory"))
    assert found is not None and found.benchmark == "memory"
    with pytest.raises(HakaruError, match="no 'gemm bandwidth'; it has: gemm fp64 size 1024, rate"):
        find_subject(card_subjects(view), Choice("gemm", quantity="bandwidth"))
    assert find_subject([], Choice()) is None


# ---- collectives


def ranked(size: int, seconds: float, **more: Any) -> list[Measurement]:
    """An all-reduce among four ranks that took so long."""
    common = {"benchmark": "all-reduce", "device": "4 ranks", "host": "a,b,c,d",
              "parameters": {"bytes": size, "dtype": "fp32", "ranks": 4}} | more  # fmt: skip
    busbw = size / seconds / 1e9 * 1.5
    return [
        measured(quantity="busbw", unit="GB/s", samples=(busbw,), **common),
        measured(quantity="time", unit="µs", better="lower", samples=(seconds * 1e6,), **common),
    ]


def test_a_collective_that_follows_the_model_is_fitted_without_error() -> None:
    """α = 10 µs and 1/β = 1 GB/s: six messages of 10 µs and a quarter of the bytes each.

    With 32 ranks 16 MiB take 62 messages of 10 µs and 1/32 of the bytes.
    """
    points = [(size, 6 * (10e-6 + size / 4 / 1e9)) for size in (4096, 1 << 20, 1 << 24)]
    found = [each for size, seconds in points for each in ranked(size, seconds)]
    bad = ranked(1 << 22, 99.0, verdict=Verdict.FAILED, reason="a rank died")
    sweeps = sweeps_of(view_of(*found, *bad))
    (line,) = predictions(sweeps)
    assert (line.alpha, line.beta, line.error, line.size) == ("10 µs", "1 GB/s", "0.00 %", "16 MiB")
    seconds = 62 * (10e-6 + (1 << 24) / 32 / 1e9)
    assert (
        line.predicted[1].startswith("32 ranks: ")
        and f"{seconds * 1e3:.3g} ms" in line.predicted[1]
    )
    marks, bars, fitted = collective(sweeps, "all-reduce").option["series"]
    assert [each["value"][0] for each in marks["data"]] == [4096, 1 << 20, 1 << 24]
    assert len(bars["data"]) == 9, "three strokes, each broken off"
    assert fitted["data"][-1][1] == pytest.approx(marks["data"][-1]["value"][1], rel=1e-3)


def test_two_sizes_have_no_fit_and_one_slow_host_is_blamed() -> None:
    links = [
        measured(benchmark="pairs", quantity="bandwidth", unit="GB/s", device=f"{a}>{b}", host="a,b,c",
                 parameters={"bytes": 1}, samples=(1.0 if "c" in (a, b) else 10.0,))
        for a, b in ("ab", "ba", "bc", "cb", "ac", "ca")
    ]  # fmt: skip
    view = view_of(*ranked(4096, 1e-3), *ranked(8192, 2e-3), *links)
    drawn = collective(sweeps_of(view), "all-reduce")
    assert any("fewer than three sizes" in note for note in drawn.notes)
    (found,) = blame_of(view)
    assert found.hosts == ("c",)
    assert blame_text([found]) == (
        "c is slow to all its partners; the ring a → b → c → a is bound by b to c at 1 GB/s."
    )
    assert blame_of(view_of()) == []


def test_links_inside_hosts_accuse_none_between_them() -> None:
    def link(device: str, rate: float) -> object:
        return measured(benchmark="pairs", quantity="bandwidth", unit="GB/s", device=device,
                        host="h", parameters={"bytes": 1}, samples=(rate,))  # fmt: skip

    hosts = range(4)
    between = [link(f"h{a}#{8 * a}>h{b}#{8 * b}", 20.0) for a in hosts for b in hosts if a != b]
    inside = [
        link(f"h{a}#{8 * a + i}>h{a}#{8 * a + j}", 200.0)
        for a in hosts for i in range(8) for j in range(8) if i != j
    ]  # fmt: skip
    found = blame_of(view_of(*between, *inside))
    assert [(each.hosts, each.links) for each in found] == [((), ())] * 2
    assert found[0].ring == ("h0", "h1", "h2", "h3")


# ---- the search


def test_the_search_draws_the_best_so_far_and_the_default() -> None:
    def trial(number: int, rate: float, **more: Any) -> Measurement:
        parameters = {"n": 100, "nb": 8, "trial": number, "stage": "search", "origin": "sampler"}
        own = {"parameters": parameters | more.pop("parameters", {})} | more
        return measured(benchmark="hpl", device="2 ranks", samples=(rate,), **own)

    final = measured(
        benchmark="hpl", device="2 ranks", parameters={"ranks": 2}, samples=(13.0,), reference=10.5
    )
    view = view_of(
        trial(0, 10.0, parameters={"origin": "default"}), trial(1, 9.0), trial(2, 12.0),
        trial(3, 50.0, verdict=Verdict.FAILED, reason="residual 71"), trial(4, 11.0), final,
    )  # fmt: skip
    found = search_of(view)
    assert found is not None and found.default == 10.5, "at the size of the best settings"
    trials, best, level = search_history(found).option["series"]
    assert [each["value"] for each in trials["data"]] == [[0, 10.0], [1, 9.0], [2, 12.0], [4, 11.0]]
    assert best["data"] == [[0, 10.0], [1, 10.0], [2, 12.0], [3, 12.0], [4, 12.0]]
    assert level["data"] == [[0, 10.5], [4, 10.5]]
    assert search_sentence(found) == "The best LINPACK settings reach 13 GFLOP/s."
    assert view.verdict is Verdict.GOOD, "a trial that failed is a step of the search"
    assert search_of(view_of(final)) is None


# ---- history


def days(rates: list[float], labels: dict[int, str] | None = None) -> list[Run]:
    """A run a day on one card, whose repetitions differ a little."""
    made = []
    for at, rate in enumerate(rates):
        wave = (1.0, 1.002, 0.998)[at % 3]
        samples = tuple(rate * wave * each for each in (1.0, 1.001, 0.999, 1.0))
        when = BEGIN + timedelta(days=at)
        made.append(
            run_of(card("n1", "cuda:0", *samples, started_at=when), id=f"r{at:02d}", started_at=when,
                   label=(labels or {}).get(at))
        )  # fmt: skip
    return made


def drawn_series(runs: list[Run]) -> tuple[Any, Any]:
    (subject,) = history_subjects(RunView.of(runs[-1]))
    return series_in(runs, subject), subject


def test_a_step_is_confirmed_by_later_runs_and_drawn_apart_from_a_suspicion() -> None:
    found, subject = drawn_series(days([100.0] * 12 + [95.0] * 8))
    (step,) = found.changes
    assert (step.point.run, step.is_confirmed, step.is_worse) == ("r12", True, True)
    assert found.sentence == "Confirmed: −4.9 %, worse, from 2026-03-14 on."
    fresh, _ = drawn_series(days([100.0] * 12 + [95.0] * 2))
    (open_,) = fresh.changes
    assert not open_.is_confirmed and "measure 3 more times" in fresh.sentence
    looks = [history(each, subject).option["series"][-1] for each in (found, fresh)]
    assert [(each["name"], each["symbol"]) for each in looks] == [
        ("confirmed", "triangle"), ("suspected", "emptyTriangle"),
    ]  # fmt: skip
    lines = [each["markLine"]["lineStyle"]["type"] for each in looks]
    assert lines == ["solid", "dotted"]


@pytest.mark.parametrize(("num", "rate"), [(1, 95.0), (4, 95.0), (4, 100.0)])
def test_the_lake_the_report_and_the_terminal_confirm_the_same(
    lake: Lake, num: int, rate: float
) -> None:
    """Runs labelled `confirm` settle the suspicion before them, each by one value, and are no points."""
    labels = dict.fromkeys(range(13, 13 + num), "confirm")
    runs = days([100.0] * 12 + [95.0] + [rate] * num, labels)
    at_hand, subject = drawn_series(runs)
    put_runs(lake, runs)
    with open_session(lake) as session:
        stored = [load_series(session, "c", subject, *place) for place in ((), ("n1", "cuda:0"))]
    result = hakaru("bench", "history", "gemm", "-w", lake.workspace, "--format", "json")
    (terminal,) = json.loads(result.output)
    sentences = {at_hand.sentence, *(each.sentence for each in stored), terminal["sentence"]}
    assert len(sentences) == 1
    assert {len(each.points) for each in (at_hand, *stored)} == {13} == {len(terminal["points"])}
    is_confirmed = [each.is_confirmed for each in at_hand.changes]
    assert is_confirmed == ([False] if num == 1 else [True] if rate < 100 else [])


def test_the_page_follows_a_card_by_its_uuid(lake: Lake) -> None:
    """The card is cuda:1 first and cuda:0 later, when another one is hidden from torch."""
    own, other = "GPU-8f3b1c2d-aaaa", "GPU-11112222-bbbb"
    runs = []
    for at in range(10):
        where = {own: "cuda:1", other: "cuda:0"} if at < 5 else {own: "cuda:0"}
        when = BEGIN + timedelta(days=at)
        cards = [card("n1", device, 100.0 if uuid == own else 50.0, device_uuid=uuid, started_at=when)
                 for uuid, device in where.items()]  # fmt: skip
        runs.append(run_of(*cards, id=f"r{at:02d}", started_at=when))
    put_runs(lake, runs)
    (subject,) = history_subjects(RunView.of(runs[-1]))
    with open_session(lake) as session:
        found = load_series(session, "c", subject, "n1", "cuda:0")
        before = load_series(session, "c", subject, "n1", "cuda:1")
    assert found.where == "n1 cuda:0 (GPU-8f3b1c2d, was n1/cuda:1)"
    assert [each.median for each in found.points] == [100.0] * 10
    assert before.points == found.points, "the card that was there last"
    assert "GPU-8f3b1c2d" in history(found, subject).question


def test_fewer_than_eight_runs_say_so() -> None:
    found, subject = drawn_series(days([100.0] * 7))
    assert found.is_short and "7 of at least 8" in history(found, subject).notes[0]
    assert drawn_series(days([100.0] * 8))[0].sentence == "No change."


# ---- two runs, in words, preflight


def test_side_by_side_says_whether_intervals_overlap() -> None:
    first = view_of(
        card("n1", "cuda:0", *(100.0, 101.0, 99.0) * 3), card("n1", "cuda:0", 7.0, benchmark="memory"),
        card("n1", "cuda:0", *(1.0, 1.1, 0.9) * 3, benchmark="copy"),
    )  # fmt: skip
    second = view_of(
        card("n1", "cuda:0", *(90.0, 91.0, 89.0) * 3),
        card("n1", "cuda:0", *(1.05, 1.1, 1.0) * 3, benchmark="copy"),
    )
    lines = {each.benchmark: each for each in set_beside(first, second)}
    assert (lines["gemm"].change, lines["gemm"].overlap) == ("worse", False)
    assert lines["gemm"].ratio == pytest.approx(0.9)
    assert (lines["copy"].change, lines["copy"].overlap) == ("the same", True)
    assert (lines["memory"].change, lines["memory"].second) == ("only the first", None)
    table = beside(first, second)
    assert [each.line.benchmark for each in table.lines] == ["gemm", "copy"], "what differs first"
    assert table.lines[0].ratio == "0.900" and table.only == {"only the first": 1}


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


def test_a_preflight_that_cannot_be_read_passes_nothing(tmp_path: Path) -> None:
    assert read_preflight(tmp_path) is None
    path = preflight_file(tmp_path)
    path.parent.mkdir()
    path.write_text("{half")
    found = read_preflight(tmp_path)
    assert found is not None and (found.verdict, found.rows) == ("not measured", ())
    rows = [{"check": "files", "node": f"n{at}", "status": "pass", "found": "9"} for at in range(3)]
    odd = {"check": "ecc", "node": "n1", "status": "fine, I think", "found": "x", "fix": ["?"]}
    path.write_text(json.dumps({"verdict": "good", "rows": [*rows, odd]}))
    found = read_preflight(tmp_path)
    assert found is not None
    assert [(row.check, row.node, row.status) for row in found.rows] == [
        ("ecc", "n1", "not measured"), ("files", "3 nodes", "pass"),
    ]  # fmt: skip


# ---- answers


def test_a_run_answers_in_sentences_and_only_what_it_measured() -> None:
    view = RunView.of(synthetic_runs(num_nodes=4, cards_per_node=4, num_runs=2)[-1])
    cost, links, fp16, fp32, linpack = answers(view)
    assert cost.startswith("A synchronous job on all 16 devices") and cost.endswith(
        "GPU-hours a month."
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


# ---- the lake


def test_the_lake_says_the_same_as_the_runs_at_hand(lake: Lake) -> None:
    runs = synthetic_runs(num_nodes=4, cards_per_node=4, num_runs=12)
    put_runs(lake, runs)
    with open_session(lake) as session:
        listed = list_runs(session)
        assert [each.id for each in listed] == [each.id for each in reversed(runs)]
        assert [each.verdict for each in listed] == [each.verdict for each in reversed(runs)]
        stored, at_hand = load_view(session, CLUSTER, runs[-1].id), RunView.of(runs[-1])
        assert (stored.left_out, stored.meter, stored.label) == (
            at_hand.left_out, at_hand.meter, at_hand.label,
        )  # fmt: skip
        assert sorted(map(rounded, stored.readings)) == sorted(map(rounded, at_hand.readings))
        names = {(each.host, each.device) for each in stored.cards if each.verdict is Verdict.SLOW}
        assert names == {(f"gpu{n // 4 + 1:03d}", f"cuda:{n % 4}") for n in slow_cards(4, 4)}
        subject = history_subjects(stored)[0]
        loaded, kept = load_series(session, CLUSTER, subject), series_in(runs, subject)
        assert [each.run for each in loaded.points] == [each.run for each in kept.points]
        assert loaded.sentence == kept.sentence
        for one, other in zip(loaded.points, kept.points, strict=True):
            assert (one.median, one.low, one.high) == pytest.approx(
                (other.median, other.low, other.high)
            )


def rounded(each: Any) -> str:
    numbers = {name: getattr(each, name) for name in ("median", "low", "high", "reference")}
    kept = {name: None if value is None else f"{value:.6g}" for name, value in numbers.items()}
    return repr(replace(each, **kept))


def test_a_good_row_without_repetitions_is_not_measured(lake: Lake) -> None:
    put_runs(lake, [run_of(measured(samples=()))])
    with open_session(lake) as session:
        (listed,) = list_runs(session)
        (reading,) = load_view(session, "c", "r1").readings
    assert listed.verdict is reading.verdict is Verdict.NOT_MEASURED
    assert reading.reason == NO_RESULT


# ---- what a newcomer and an attacker saw


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e308, 5e-324, 1.7e306])
def test_a_number_is_never_written_as_inf_or_in_hundreds_of_digits(value: float) -> None:
    for text in (amount(value, "GB/s"), share(value), signed_share(value)):
        assert "inf" not in text and "nan" not in text and len(text) < 30


def test_a_ratio_that_overflows_is_not_known() -> None:
    (line,) = set_beside(
        view_of(card("n1", "cuda:0", 1e-300)), view_of(card("n1", "cuda:0", 1e300))
    )
    assert line.ratio is None
    found = beside(view_of(card("n1", "cuda:0", 1e-200)), view_of(card("n1", "cuda:0", 1e100)))
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


def test_too_few_sizes_are_those_that_count() -> None:
    sizes = [
        measured(benchmark="all-reduce", quantity="busbw", unit="GB/s", device="4 ranks",
                 parameters={"bytes": 4096 << at, "ranks": 4}).judged(
                     Verdict.CONTAMINATED if at == 2 else Verdict.GOOD, "x")
        for at in range(3)
    ]  # fmt: skip
    notes = collective(sweeps_of(view_of(*sizes)), "all-reduce").notes
    assert "no fit, as there are fewer than three sizes that count." in notes[0]


def test_the_best_so_far_says_where_it_starts_again() -> None:
    trials = [
        measured(benchmark="hpl", device="4 ranks", parameters={"trial": at, "n": n, "ranks": 4})
        for at, n in enumerate((1000, 1000, 2000))
    ]
    several, alone = search_of(view_of(*trials)), search_of(view_of(*trials[:2]))
    assert several and alone
    note = "starts again with each number of ranks and N"
    assert note in " ".join(search_history(several).notes)
    assert note not in " ".join(search_history(alone).notes)


@pytest.mark.parametrize(
    "meter",
    [
        {"error": 0.021, "tested_at": "2026-11-01", "untested": ["gpu clock", "steal"]},
        {"error": 0.021, "tested_at": "2026-11-01T10:00:00; not tested: gpu clock, steal"},
    ],
)
def test_the_meter_says_what_was_not_tested(meter: dict[str, Any]) -> None:
    text = meter_text(view_of(measured(validity={"meter": meter})))
    assert text.endswith("off by 2.1 % at most in its last self-test of 2026-11-01; "
                         "not tested: gpu clock, steal.")  # fmt: skip


def test_a_self_test_does_not_ask_for_one() -> None:
    assert "has not been tested" in meter_text(view_of(measured()))
    assert "has not been tested" not in meter_text(view_of(measured(benchmark="selftest")))


def test_a_history_leaves_out_what_the_record_does_not_count(lake: Lake) -> None:
    put_runs(lake, [run_of(card("n1", "cuda:0", 5.0, math.nan))])
    with open_session(lake) as session:
        view = load_view(session, "c", "r1")
        subject = find_subject(history_subjects(view), Choice())
        assert subject and view.verdict is Verdict.NOT_MEASURED
        assert load_series(session, "c", subject).known == []
