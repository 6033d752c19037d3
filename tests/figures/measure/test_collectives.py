"""Collectives with their fit, and the host or link that is blamed."""

from __future__ import annotations

import pytest

from hakaru.figures.measure.answers import answers
from hakaru.figures.measure.collectives import (
    blame_of,
    blame_text,
    collective,
    predictions,
    sweeps_of,
)
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import ranked, view_of
from tests.measure.lakes import measured


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
        and f"{seconds * 1e3:.4g} ms" in line.predicted[1]
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


def test_links_inside_one_host_are_not_called_healthy() -> None:
    both = [
        measured(benchmark="pairs", quantity="bandwidth", unit="GB/s", device=device,
                 host="h", parameters={"bytes": 1}, samples=(rate,))
        for device, rate in (("h#0>h#1", 6.0), ("h#1>h#0", 1.2))
    ]  # fmt: skip
    text = blame_text(blame_of(view_of(*both)))
    assert text.startswith("Links inside a host are compared between three hosts or more")
    assert "No host or link is slow" not in text


def test_too_few_sizes_are_those_that_count() -> None:
    sizes = [
        measured(benchmark="all-reduce", quantity="busbw", unit="GB/s", device="4 ranks",
                 parameters={"bytes": 4096 << at, "ranks": 4}).judged(
                     Verdict.CONTAMINATED if at == 2 else Verdict.GOOD, "x")
        for at in range(3)
    ]  # fmt: skip
    notes = collective(sweeps_of(view_of(*sizes)), "all-reduce").notes
    assert "no fit, as there are fewer than three sizes that count." in notes[0]


def test_a_fit_that_misses_predicts_nothing() -> None:
    sizes = (4096, 65536, 1 << 20, 16 << 20)
    fits = [row for size in sizes for row in ranked(size, 1e-5 + size / 1e10)]
    (good,) = sweeps_of(view_of(*fits))
    noise = (3e-4, 2e-5, 9e-3, 1e-3)
    misses = [row for size, s in zip(sizes, noise, strict=True) for row in ranked(size, s)]
    (bad,) = sweeps_of(view_of(*misses))
    assert (good.predicts, bad.predicts) == (True, False)
    assert [each.predicted for each in predictions([good, bad])][1] == ("–", "–")
    (sentence,) = answers(view_of(*misses))
    assert sentence.endswith(
        "the ring model does not fit it, so that nothing is said of more ranks."
    )
    assert "ranks over links as fast" in answers(view_of(*fits))[0]
