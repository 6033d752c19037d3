"""The history of a quantity, with its steps."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest

from hakaru.analyses import open_session
from hakaru.figures.measure.choice import Choice, find_subject, history_subjects
from hakaru.figures.measure.series import history, series_in
from hakaru.figures.measure.stored import load_series, load_view
from hakaru.figures.measure.view import RunView
from hakaru.lake import Lake
from hakaru.measure.record import Run
from hakaru.measure.series import find_series
from hakaru.measure.verdict import Verdict
from tests._cli import hakaru
from tests.figures.measure._runs import card, run_of
from tests.measure.lakes import BEGIN, CLUSTER, put_runs, synthetic_runs


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


def test_the_terminal_shows_the_median_of_the_page(lake: Lake) -> None:
    put_runs(lake, (runs := synthetic_runs(num_nodes=3, cards_per_node=4, num_runs=10)))
    with open_session(lake) as session:
        subjects = {each.shown: each for each in history_subjects(RunView.of(runs[-1]))}
        page = load_series(session, CLUSTER, subjects["fp64 size 1024"])
    fleet = find_series(runs, "gemm", params={"dtype": "fp64"})[0]
    assert fleet.where == "12 devices of Made-up 80 GB" and fleet.num_devices == 12
    assert fleet.series.sentence == page.sentence and len(page.points) == 10
    medians = [[each.median for each in series.points] for series in (page, fleet.series)]
    assert medians[0] == pytest.approx(medians[1], rel=1e-6)


def test_fewer_than_eight_runs_say_so() -> None:
    found, subject = drawn_series(days([100.0] * 7))
    assert found.is_short and "7 of at least 8" in history(found, subject).notes[0]
    assert drawn_series(days([100.0] * 8))[0].sentence == "No change."


def test_a_history_leaves_out_what_the_record_does_not_count(lake: Lake) -> None:
    put_runs(lake, [run_of(card("n1", "cuda:0", 5.0, math.nan))])
    with open_session(lake) as session:
        view = load_view(session, "c", "r1")
        subject = find_subject(history_subjects(view), Choice())
        assert subject and view.verdict is Verdict.NOT_MEASURED
        assert load_series(session, "c", subject).known == []
