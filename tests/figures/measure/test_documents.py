"""Documents of stored rows: read by type, kept for training and storage alone, and never trusted."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from hakaru.analyses import open_session
from hakaru.figures.measure.documents import LARGEST, Document, parse_document
from hakaru.figures.measure.stored import load_view
from hakaru.figures.measure.view import WITH_DOCUMENTS, RunView
from hakaru.lake import Lake
from tests.figures.measure._runs import run_of, view_of
from tests.measure.lakes import measured, put_runs
from tests.measure.lakes_training import HALF, HOSTILE, hostile_rows, scaling_rows


@pytest.mark.parametrize(
    "value", [True, "1", None, [1], math.nan, math.inf, -1.0, 10 * LARGEST, 10**400]
)
def test_what_is_no_number_is_absent(value: Any) -> None:
    found = Document({"x": value, "list": [value, 2]})
    assert found.number("x") is None and found.whole("x") is None
    assert found.numbers("list") == [2.0]


def test_values_are_read_by_type() -> None:
    found = Document({"n": 3, "half": 0.5, "below": -2.0, "yes": True, "text": "a\nb", "part": {"n": 1},
                      "parts": [{"n": 1}, 4, None]})  # fmt: skip
    assert (found.number("n"), found.whole("n"), found.whole("half")) == (3.0, 3, None)
    assert (found.number("below"), found.number("below", -5.0)) == (None, -2.0)
    assert found.is_true("yes") and not found.is_true("n")
    assert found.text("text") == "a b" and found.text("n") == ""
    assert found.part("part").number("n") == 1.0 and not found.part("text")
    assert len(found.parts("parts")) == 1 and found.parts("part") == [] and found.items("n") == []
    assert found.without("n", "text") == {"yes": True}


def test_text_can_always_be_written() -> None:
    """A lone half of a character, which JSON may hold, cannot be encoded."""
    shown = Document({"x": HALF}).text("x")
    assert shown.encode() and "\x00" not in shown and "window.hit" in shown
    assert len(Document({"x": "a" * 10_000}).text("x")) == 600


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", "1", '{"a": ' * 5_000, "9" * 6_000, " " * 5_000_000 + "{}"]
)
def test_what_is_no_object_is_empty(text: str) -> None:
    assert not parse_document(text)


def test_a_stored_run_has_the_documents_of_the_run_at_hand(lake: Lake) -> None:
    """The rows of one document share its text; those of other benchmarks keep none."""
    other = measured(validity={"verdict": "not read"})
    run = run_of(*scaling_rows(ranks=(1, 2)), other)
    put_runs(lake, [run])
    with open_session(lake) as session:
        stored = load_view(session, "c", "r1")
    at_hand = RunView.of(run)
    for view in (stored, at_hand):
        assert {each.benchmark for each in view.readings if each.facts} == {"scaling"}
        assert all(
            not each.validity for each in view.readings if each.benchmark not in WITH_DOCUMENTS
        )
    told = [
        sorted(each.facts.text("verdict") for each in view.readings) for view in (stored, at_hand)
    ]
    assert told[0] == told[1] and sum(map(bool, told[0])) == 8
    rows = [each for each in stored.readings if each.validity]
    assert len({id(each.validity) for each in rows}) == len({each.validity for each in rows}) == 2
    assert (
        stored.nbytes
        < view_of(other).nbytes * 9
        + sum(len(text) for text in {each.validity for each in rows})
        + 1
    )


@pytest.mark.parametrize("facts", HOSTILE)
def test_a_damaged_document_is_stored_and_read(lake: Lake, facts: Any) -> None:
    put_runs(lake, [run_of(*hostile_rows(facts))])
    with open_session(lake) as session:
        view = load_view(session, "c", "r1")
    assert len(view.readings) == 4
    assert all(json.dumps(each.shown) for each in view.readings)
