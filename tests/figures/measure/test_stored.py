"""Runs that the lake holds are those that were put into it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hakaru.analyses import open_session
from hakaru.figures.measure.choice import history_subjects
from hakaru.figures.measure.series import series_in
from hakaru.figures.measure.stored import list_runs, load_series, load_view
from hakaru.figures.measure.view import RunView
from hakaru.lake import Lake
from hakaru.measure.record import NO_RESULT
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import run_of
from tests.measure.lakes import CLUSTER, measured, put_runs, slow_cards, synthetic_runs


def test_the_lake_says_the_same_as_the_runs_at_hand(lake: Lake) -> None:
    runs = synthetic_runs(num_nodes=4, cards_per_node=4, num_runs=12)
    put_runs(lake, runs)
    with open_session(lake) as session:
        listed = list_runs(session)
        assert [each.id for each in listed] == [each.id for each in reversed(runs)]
        assert [each.verdict for each in listed] == [each.verdict for each in reversed(runs)]
        stored, at_hand = load_view(session, CLUSTER, runs[-1].id), RunView.of(runs[-1])
        assert (stored.left_out, stored.meters, stored.label) == (
            at_hand.left_out, at_hand.meters, at_hand.label,
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
