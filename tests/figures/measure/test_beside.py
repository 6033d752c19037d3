"""Two runs side by side: a line a quantity, which says what has changed on which devices."""

from __future__ import annotations

from datetime import timedelta

from hakaru.figures.measure.beside import beside, set_beside
from hakaru.measure.record import Measurement, Run
from tests.figures.measure._runs import card, run_of
from tests.measure.lakes import BEGIN


def night(day: int, rates: dict[str, float]) -> Run:
    when = BEGIN + timedelta(days=day)
    cards: list[Measurement] = [
        card(host, "cuda:0", *(rate * (1 + each / 1000) for each in range(-3, 4)), started_at=when)
        for host, rate in rates.items()
    ]
    return run_of(*cards, id=f"r{day}", started_at=when)


def test_a_line_names_the_device_that_changed_most_and_counts_the_others() -> None:
    earlier = night(0, dict.fromkeys(("n1", "n2", "n3", "n4", "n5", "n6"), 100.0))
    later = night(1, {"n1": 90.0, "n2": 80.0, "n3": 120.0, "n4": 100.0, "n7": 100.0})
    (line,) = set_beside(earlier, later)
    counts = {"worse": 2, "better": 1, "no sure change": 1, "only before": 2, "only after": 1}
    assert line.devices == counts
    (cells,) = beside([line]).lines
    assert cells.change == (
        "2 of 7 worse: n2/cuda:0 −20.0 %; 1 only after, 2 only before, 1 better"
    )  # fmt: skip


def test_a_device_that_is_gone_is_a_difference_and_doubt_is_none() -> None:
    both = {"n1": 100.0, "n2": 100.0}
    (gone,) = set_beside(night(0, both), night(1, {"n1": 100.0}))
    (alike,) = set_beside(night(0, both), night(1, both))
    assert (gone.differs, alike.differs) == (True, False)
    assert beside([gone]).lines[0].change == "1 of 2 no sure change; 1 only before"
