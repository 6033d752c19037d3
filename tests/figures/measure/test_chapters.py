"""What holds for every figure of training and storage, also for what is damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from hakaru.figures import Figure
from hakaru.figures.measure.answers import answers
from hakaru.figures.measure.chapters import MEASURED_BY, PICTURES, chapters_of, find_picture
from hakaru.figures.measure.choice import card_subjects, history_subjects
from hakaru.figures.measure.view import RunView
from hakaru.figures.measure.words import summarise
from hakaru.figures.theme import DARK, LIGHT
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import run_of, view_of
from tests.measure.lakes import measured
from tests.measure.lakes_training import (
    HOSTILE,
    hostile_rows,
    loading_rows,
    plan_document,
    scaling_rows,
    timed,
    training_run,
)

VIEW = RunView.of(training_run())


def drawn(view: RunView, dark: bool = False) -> list[Figure]:
    """Every figure, of everything that it can be of."""
    pictures = [picture for chapter in chapters_of(view) for picture in chapter.pictures]
    return [each.draw(name, dark) for each in pictures for name in each.names or (None,)]


def test_a_run_of_everything_has_every_figure() -> None:
    found = [picture.id for chapter in chapters_of(VIEW) for picture in chapter.pictures]
    assert sorted(found) == sorted(PICTURES) == sorted(MEASURED_BY)
    assert [each.id for each in chapters_of(VIEW)] == ["training", "strategies", "storage"]
    assert (
        chapters_of(view_of(measured())) == []
        and find_picture(view_of(measured()), "scaling") is None
    )


def test_figures_are_data_with_words_and_units() -> None:
    for figure in drawn(VIEW):
        assert json.loads(json.dumps(figure.option, allow_nan=False)) == figure.option
        assert figure.title and figure.question.endswith("?") and figure.option["series"]
        assert "renderItem" not in json.dumps(figure.option)
        for name in ("xAxis", "yAxis"):
            axes = figure.option.get(name, [])
            for axis in [axes] if isinstance(axes, dict) else axes:
                is_bare = axis["type"] == "category" or not axis.get("show", True)
                assert is_bare or axis["name"] == "Ranks" or "(" in axis["name"], figure.title


def test_dark_changes_colours_and_no_value() -> None:
    for light, dark in zip(drawn(VIEW), drawn(VIEW, dark=True), strict=True):
        assert (light.option["backgroundColor"], dark.option["backgroundColor"]) == (
            LIGHT.background, DARK.background,
        )  # fmt: skip
        assert LIGHT.text not in json.dumps(dark.option)
        assert values(light) == values(dark) and light.notes == dark.notes


def values(figure: Figure) -> list[Any]:
    return [item.get("value") if isinstance(item, dict) else item
            for series in figure.option["series"] for item in series["data"]]  # fmt: skip


def test_what_was_measured_but_does_not_count_is_an_empty_figure_that_says_so() -> None:
    rows = [*scaling_rows(), *loading_rows()]
    view = view_of(*(each.judged(Verdict.CONTAMINATED, "busy") for each in rows))
    told = {each.kind: each.option.get("title", {}).get("text") for each in drawn(view)}
    assert told == {
        "scaling": "No training among ranks has a number that counts.", "breakdown": None,
        "layouts": "No loader has a number that counts.",
    }  # fmt: skip
    assert answers(view) == []


@pytest.mark.parametrize("facts", HOSTILE)
def test_a_damaged_document_breaks_nothing(facts: Any) -> None:
    view = RunView.of(run_of(*hostile_rows(facts)))
    for figure in [*drawn(view), *drawn(view, dark=True)]:
        assert json.dumps(figure.option, allow_nan=False)
        assert "".join(figure.notes).encode() is not None
    for chapter in chapters_of(view):
        cells = [cell for sheet in chapter.sheets for row in sheet.rows for cell in row]
        assert "".join([*chapter.sentences, *cells]).encode() is not None
    assert "".join(answers(view)).encode() is not None


def test_a_damaged_document_takes_nothing_from_its_neighbour() -> None:
    view = view_of(*scaling_rows(), *hostile_rows(HOSTILE[-1]))
    names = find_picture(view, "scaling")
    assert names is not None and "mlp" in names.names
    assert any(each.startswith("mlp, ddp, weak") for each in answers(view))


def test_the_answers_are_the_sentences_of_the_documents() -> None:
    found = answers(VIEW)
    assert "86 % of loading and all of copying hide behind compute." in found
    assert "resnet50: a GiB takes 8 s below memory, 24 s above; the knee is at 1 GiB." in found
    assert "On 4 ranks ddp is the fastest, 28 % before gpipe." in found
    assert any("is ready 25 ms late" in each for each in found)
    assert len(found) == len(set(found)) <= 16


def test_what_a_verdict_says_of_the_culprit_is_said_once() -> None:
    rows = list(scaling_rows())
    late = rows[-1].validity["culprit"]["sentence"]
    told = [
        replace(each, validity=each.validity | {"verdict": f"It stops at 2 ranks. {late}"})
        for each in rows
    ]
    assert answers(view_of(*told)) == [f"It stops at 2 ranks. {late}"]


def test_ranks_are_no_cards_and_only_the_largest_of_each_sweep_has_a_history() -> None:
    assert card_subjects(VIEW) == [] and VIEW.cards == ()
    assert summarise(VIEW).sentence.startswith("All ")
    subjects = history_subjects(VIEW)
    assert {(each.benchmark, each.quantity) for each in subjects} == {
        ("scaling", "throughput"), ("strategies", "throughput"), ("loading", "rate"), ("data-size", "epoch"),
    }  # fmt: skip
    scaling = [json.loads(each.parameters) for each in subjects if each.benchmark == "scaling"]
    assert [(each["scaling"], each["ranks"]) for each in scaling] == [("weak", 4), ("strong", 4)]
    assert [
        json.loads(each.parameters)["mib"] for each in subjects if each.benchmark == "data-size"
    ] == [2048] * 2


def test_tables_of_candidates_follow_the_chosen_plan() -> None:
    """Paper has those of every plan; a page that of the plan that is drawn."""
    rows = [row for strategy in ("1f1b", "gpipe") for row in timed(
        "strategies", {"model": "mlp", "strategy": strategy}, {"throughput": 9.0},
        {"plan": plan_document()}, 2)]  # fmt: skip
    view = view_of(*rows)
    drawn = find_picture(view, "partition")
    assert drawn is not None

    def tables(chosen: dict[str, str | None] | None = None) -> list[str]:
        (chapter,) = chapters_of(view, chosen)
        return [each.title.partition("weighed up: ")[2] for each in chapter.sheets[1:]]

    first, second = drawn.names
    assert tables() == [first, second]
    assert tables({"partition": second}) == [second]
    assert tables({"partition": None}) == tables({"partition": "x"}) == [drawn.first]


@pytest.mark.parametrize("device", ["1 rank", "16 ranks", "unknown ranks"])
def test_one_rank_is_no_card_either(device: str) -> None:
    view = view_of(measured(device=device))
    assert view.cards == () and view.readings[0].where.endswith(f"on {device}")
