"""How a comparison words its numbers, multiples, signs and citations."""

from __future__ import annotations

import pytest

from hakaru.comparison import scaling, short, shown, shown_published
from hakaru.comparison._compare import _finite
from hakaru.comparison._contrast import _say_scaling, _signs, times
from hakaru.reference.metrics import Cell
from hakaru.reference.published import Published


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Jeon et al., USENIX ATC 2019", "Jeon et al., USENIX ATC 2019"),
        ("A/b@12 c.csv (Hu et al., SC21, doi:10.1/2)", "A/b (Hu et al., SC21)"),
        ("X, Y & Z, a long title, IPSJ Report", "X, Y & Z, IPSJ Report"),
        ("msr-fiddle/philly-traces README", "msr-fiddle/philly-traces README"),
        ("A & B, a title, arXiv:2301.1, v2", "A & B, arXiv:2301.1"),
        ("Hu et al., a title, SC21, pp. 1-14", "Hu et al., SC21"),
        ("Archive/logs 1.swf (no paper)", "Archive/logs 1.swf (no paper)"),
    ],
)
def test_short_citations(source: str, text: str) -> None:
    assert short(source) == text


def test_what_is_not_a_number_is_unknown() -> None:
    for value in (float("nan"), float("inf")):
        assert _finite(Cell(value)) == Cell(None, "these jobs do not define it")
    assert _finite(Cell(None, "why")) == Cell(None, "why")
    assert _finite(Cell(0.5, low=0.1)) == Cell(0.5, low=0.1)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.9621, "share", "96.2 %"),
        (0.0, "s", "0 s"),
        (5.0, "s", "5 s"),
        (5.25, "s", "5.2 s"),
        (119.0, "s", "119 s"),
        (120.0, "s", "2.0 min"),
        (7199.0, "s", "120.0 min"),
        (7200.0, "s", "2.0 h"),
        (172_799.0, "s", "48.0 h"),
        (172_800.0, "s", "2.0 d"),
        (108_000_000.0, "s", "1,250.0 d"),
        (-7200.0, "s", "-2.0 h"),
        (189.0, "s", "3.1 min"),
        (15970.5, "s", "4.4 h"),
        (1209604.0, "s", "14.0 d"),
        (-0.2293, "correlation", "−0.229"),
        (15.0, "hour of day", "15:00"),
        (5.0, "hour of day", "05:00"),
        (0.0, "weekday", "Monday"),
        (6.0, "weekday", "Sunday"),
        (1.846, "ratio", "1.85"),
        (1234.5, "users", "1,234.50"),
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
        (12_000.0, 10.0, "1,200 times as long"),
        (100.0, 10.0, "10 times as long"),
        (99.0, 10.0, "9.9 times as long"),
        (1.0, 10.0, "0.10 times as long"),
        (0.5, 10.0, "1/20 as long"),
        (0.0, 0.0, "the same"),
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
        (Cell(0.2293), "weak scaling"),
        (Cell(0.1, "", 0.0, 0.2), "neither weak nor strong scaling"),
        (Cell(-0.1, "", -0.2, 0.0), "neither weak nor strong scaling"),
        (Cell(0.0), "neither weak nor strong scaling"),
    ],
)
def test_the_reading_of_the_sign(cell: Cell, reading: str) -> None:
    assert scaling(cell) == reading


def test_about_the_same_ends_at_one_in_twenty() -> None:
    judge = times("many", "more", "fewer")
    verdicts = [judge(Cell(value), Cell(100.0)) for value in (104.0, 96.0, 106.0, 94.0)]
    assert verdicts == ["about the same"] * 2 + ["1.1 times as many", "0.94 times as many"]


@pytest.mark.parametrize(
    ("x", "y", "told"),
    [
        (0.2, 0.3, "the same sign"),
        (-0.2, -0.3, "the same sign"),
        (0.2, -0.3, "opposite signs"),
        (-0.2, 0.3, "opposite signs"),
        (0.0, 0.0, "no sign in either"),
        (0.2, 0.0, "only one has a sign"),
        (0.0, -0.2, "only one has a sign"),
    ],
)
def test_signs(x: float, y: float, told: str) -> None:
    assert _signs(Cell(x), Cell(y)) == told


def test_the_ends_of_an_interval_stand_in_their_order() -> None:
    told = _say_scaling([Cell(-0.25, low=-0.5, high=0.125)], "gpu", "jobs")
    assert told == (
        "neither weak nor strong scaling of jobs "
        "(Spearman −0.250, 95 % of samples between −0.500 and 0.125)"
    )


@pytest.mark.parametrize(("bound", "text"), [("", "33.0 %"), ("~", "~33.0 %"), (">", ">33.0 %")])
def test_a_published_figure_keeps_its_bound(bound: str, text: str) -> None:
    figure = Published("Kraken", "wra_mean", 0.33, bound, "share", "", "A, 2019", "p.1")
    assert shown_published(figure) == text
