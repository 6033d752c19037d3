"""Cards from slow to fast, and what the slowest costs."""

from __future__ import annotations

import pytest

from hakaru.errors import HakaruError
from hakaru.figures.measure.answers import answers
from hakaru.figures.measure.cards import card_curve, cost_sentence, curve_of
from hakaru.figures.measure.choice import Choice, card_subjects, find_subject
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import card, slow, view_of


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
        "A synchronous job on all 4 devices runs at the speed of n2 cuda:0, 10.0 % under the median, "
        "and loses 292 GPU-hours a month."
    )
    drawn = card_curve(view, subject)
    good, bad, middle = drawn.option["series"]
    assert [each["value"] for each in bad["data"]] == [[1, 90.0]]
    assert [each["value"] for each in good["data"]] == [[2, 100.0], [3, 100.0], [4, 101.0]]
    assert middle["data"][0][1] == 100.0
    assert any("1 device has no valid number and is not drawn" in note for note in drawn.notes)


def test_a_device_that_may_be_slowest_by_chance_costs_nobody_hours() -> None:
    spread = (95.0, 96.0, 98.0, 98.0, 101.0, 102.0)
    view = view_of(card("n1", "cuda:0", *spread), card("n2", "cuda:0", 100.0))
    (subject,) = card_subjects(view)
    curve = curve_of(view, subject)
    assert curve is not None and cost_sentence(curve) == (
        "The slowest of 2 devices is 1.0 % under their median, which may be chance."
    )
    assert card_curve(view, subject).notes[-1] == "The axis does not begin at zero."


def test_a_card_that_nobody_calls_slow_costs_nobody_hours() -> None:
    """Of 1,024 medians the lowest is far below the others by chance, and its own interval with it."""
    low = card("n9", "cuda:0", *(98.0 + at / 100 for at in range(8)))
    view = view_of(*(card(f"n{at}", "cuda:0", 100.0) for at in range(4)), low)
    curve = curve_of(view, card_subjects(view)[0])
    assert curve is not None and (curve.slowest.high or 0.0) < curve.median
    assert cost_sentence(curve) == (
        "The slowest of 5 devices is 2.0 % under their median, which may be chance."
    )


def test_where_less_is_better_the_slowest_takes_longest() -> None:
    times = [
        card(f"n{at}", "cuda:0", us, better="lower") for at, us in enumerate((10.0, 10.0, 20.0))
    ]
    times[2] = slow(times[2], 10.0)
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


def test_the_answer_names_what_the_devices_were_measured_by() -> None:
    """In the figure the question names it already."""
    even = view_of(card("n1", "cuda:0", 100.0), card("n2", "cuda:0", 100.0))
    assert answers(even) == [
        "The slowest of 2 devices is within 0.5 % of their median (by gemm fp64 size 1024, rate)."
    ]
    drawn = card_curve(even, card_subjects(even)[0])
    assert "By gemm fp64 size 1024, rate" in drawn.question
    assert drawn.notes[0] == "The slowest of 2 devices is within 0.5 % of their median."
    costly = view_of(
        slow(card("n1", "cuda:0", 90.0)), card("n2", "cuda:0", 100.0), card("n3", "cuda:0", 100.0)
    )
    assert answers(costly)[0].endswith("GPU-hours a month (by gemm fp64 size 1024, rate).")
