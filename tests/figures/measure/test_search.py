"""LINPACK's search as a figure."""

from __future__ import annotations

from typing import Any

from hakaru.figures.measure.search import search_history, search_of, search_sentence
from hakaru.measure.record import Measurement
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import view_of
from tests.measure.lakes import measured


def test_the_search_draws_the_best_so_far_and_the_default() -> None:
    def trial(number: int, rate: float, **more: Any) -> Measurement:
        parameters = {"n": 100, "nb": 8, "trial": number, "stage": "search", "origin": "sampler"}
        own = {"parameters": parameters | more.pop("parameters", {})} | more
        return measured(benchmark="hpl", device="2 ranks", samples=(rate,), **own)

    final = measured(
        benchmark="hpl", device="2 ranks", parameters={"ranks": 2}, samples=(13.0,), reference=10.5
    )
    steps = [
        trial(0, 10.0, parameters={"origin": "default"}), trial(1, 9.0), trial(2, 12.0),
        trial(3, 50.0, verdict=Verdict.FAILED, reason="residual 71"), trial(4, 11.0),
    ]  # fmt: skip
    view = view_of(*steps, final)
    found = search_of(view)
    assert found is not None and found.default == 10.5, "at the size of the best settings"
    trials, best, level = search_history(found).option["series"]
    assert [each["value"] for each in trials["data"]] == [[0, 10.0], [1, 9.0], [2, 12.0], [4, 11.0]]
    assert best["data"] == [[0, 10.0], [1, 10.0], [2, 12.0], [3, 12.0], [4, 12.0]]
    assert level["data"] == [[0, 10.5], [4, 10.5]]
    assert search_sentence(found) == "The best LINPACK settings reach 13 GFLOP/s."
    doubtful = final.judged(Verdict.CONTAMINATED, "others")
    again = search_of(view_of(*steps, doubtful))
    assert again is not None
    assert search_sentence(again) == "The best LINPACK settings reach 13 GFLOP/s (contaminated)."
    assert view.verdict is Verdict.GOOD, "a trial that failed is a step of the search"
    assert search_of(view_of(final)) is None


def test_the_best_so_far_says_where_it_starts_again() -> None:
    trials = [
        measured(benchmark="hpl", device="4 ranks", parameters={"trial": at, "n": n, "ranks": 4})
        for at, n in enumerate((1000, 1000, 2000))
    ]
    several, alone = search_of(view_of(*trials)), search_of(view_of(*trials[:2]))
    assert several and alone
    note = "starts again with each number of ranks and N"
    assert note in " ".join(search_history(several).notes)
    assert note not in " ".join(search_history(alone).notes)


def test_the_best_so_far_ends_with_the_search() -> None:
    """The confirming pairs have two sizes in turn, so that each would begin a line of its own."""
    stages = ("calibrate", "search", "search", "confirm", "confirm", "confirm")
    trials = [
        measured(benchmark="hpl", device="2 ranks", samples=(10.0 + at,),
                 parameters={"trial": at, "n": n, "ranks": 2, "stage": stage})
        for at, (n, stage) in enumerate(zip((500, 2000, 2000, 2000, 1000, 2000), stages, strict=True))
    ]  # fmt: skip
    found = search_of(view_of(*trials))
    assert found is not None
    drawn = search_history(found)
    marks, best = drawn.option["series"]
    assert [each["value"][0] for each in marks["data"]] == [0, 1, 2, 3, 4, 5]
    assert best["data"] == [[1, 11.0], [2, 12.0]]
    assert not any("starts again" in note for note in drawn.notes)
