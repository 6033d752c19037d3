"""Documents that anybody may have written: read by type, and never trusted."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hakaru.measure.documents import LARGEST, Document, parse_document
from tests.measure.lakes_training import HALF


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
    assert (found.truth("yes"), found.truth("n"), found.truth("text")) == (True, None, None)
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
