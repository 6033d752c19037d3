"""How a comparison words its numbers, multiples, signs and citations."""

from __future__ import annotations

import pytest

from hakaru.comparison import scaling, short, shown
from hakaru.comparison._compare import _finite
from hakaru.comparison._contrast import times
from hakaru.reference.metrics import Cell


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Jeon et al., USENIX ATC 2019", "Jeon et al., USENIX ATC 2019"),
        ("A/b@12 c.csv (Hu et al., SC21, doi:10.1/2)", "A/b (Hu et al., SC21)"),
        ("X, Y & Z, a long title, IPSJ Report", "X, Y & Z, IPSJ Report"),
        ("msr-fiddle/philly-traces README", "msr-fiddle/philly-traces README"),
    ],
)
def test_short_citations(source: str, text: str) -> None:
    assert short(source) == text


def test_what_is_not_a_number_is_unknown() -> None:
    assert _finite(Cell(float("nan"))).value is None
    assert _finite(Cell(0.5)) == Cell(0.5)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.9621, "share", "96.2 %"),
        (5.0, "s", "5 s"),
        (189.0, "s", "3.1 min"),
        (15970.5, "s", "4.4 h"),
        (1209604.0, "s", "14.0 d"),
        (-0.2293, "correlation", "−0.229"),
        (15.0, "hour of day", "15:00"),
        (0.0, "weekday", "Monday"),
        (459545.0, "jobs", "459,545"),
        (0.683, "GPUs", "0.68"),
    ],
)
def test_numbers_as_a_person_reads_them(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        (0.96, 0.39, "2.5 times as long"),
        (0.39, 0.96, "0.41 times as long"),
        (1.0, 90.0, "1/90 as long"),
        (300.0, 10.0, "30 times as long"),
        (1.0, 1.04, "about the same"),
        (2.0, 2.0, "the same"),
        (1.0, 0.0, "longer"),
        (0.0, 1.0, "shorter"),
    ],
)
def test_one_number_as_a_multiple_of_another(x: float, y: float, text: str) -> None:
    assert times("long", "longer", "shorter")(Cell(x), Cell(y)) == text


@pytest.mark.parametrize(
    ("cell", "reading"),
    [
        (Cell(0.25, "", 0.2, 0.3), "weak scaling"),
        (Cell(-0.5, "", -0.6, -0.4), "strong scaling"),
        (Cell(0.01, "", -0.1, 0.1), "neither weak nor strong scaling"),
        (Cell(-0.2293), "strong scaling"),
    ],
)
def test_the_reading_of_the_sign(cell: Cell, reading: str) -> None:
    assert scaling(cell) == reading


# ---- the real logs


def test_about_the_same_ends_at_one_in_twenty() -> None:
    judge = times("many", "more", "fewer")
    verdicts = [judge(Cell(value), Cell(100.0)) for value in (104.0, 96.0, 106.0, 94.0)]
    assert verdicts == ["about the same"] * 2 + ["1.1 times as many", "0.94 times as many"]
