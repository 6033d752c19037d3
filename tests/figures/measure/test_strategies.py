"""Strategies side by side: the fastest first, and whether they compute the same loss."""

from __future__ import annotations

from hakaru.figures.measure.strategies import strategies_sentences, strategies_sheet
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import view_of
from tests.measure.lakes_training import strategy_rows


def test_the_table_has_the_fastest_first_and_says_which_losses_agree() -> None:
    sheet = strategies_sheet(view_of(*strategy_rows()))
    assert sheet is not None and len(sheet.heads) == len(sheet.numbers)
    assert [(row[0], row[3], row[6]) for row in sheet.rows] == [
        ("ddp", "5,000 samples/s", "equal"), ("fsdp", "4,100 samples/s", "agrees, 3.0e-04 apart"),
        ("gpipe, 8 micro-batches", "3,900 samples/s", "agrees, 2.1e-07 apart"),
    ]  # fmt: skip
    assert strategies_sheet(view_of()) is None
    assert strategies_sentences(view_of(*strategy_rows())) == [
        "On 4 ranks ddp is the fastest, 28 % before gpipe."
    ]


def test_a_number_that_does_not_count_says_why() -> None:
    rows = list(strategy_rows())
    bad = [each.judged(Verdict.FAILED, "the loss differs by 3 %")
           for each in rows if each.parameters["strategy"] == "ddp"]  # fmt: skip
    rows = [*bad, *(each for each in rows if each.parameters["strategy"] != "ddp")]
    sheet = strategies_sheet(view_of(*rows))
    assert sheet is not None
    assert [row[-1] for row in sheet.rows if row[0] == "ddp"] == ["failed: the loss differs by 3 %"]
    assert sheet.rows[0][0] == "fsdp", "what does not count does not lead"
