"""Throughput over ranks, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hakaru.figures.measure._curves import curves_of
from hakaru.figures.measure.scaling import IDEAL, scaling, scaling_sentences
from hakaru.figures.measure.words import share
from hakaru.measure.verdict import Verdict
from tests.figures.measure._runs import view_of
from tests.measure.lakes_training import law, scaling_rows, timed

RATE = {"model": "mlp", "scaling": "weak", "strategy": "ddp", "compression": "none"}


def point(ranks: int, rate: float, facts: Any = None, **parameters: Any) -> Any:
    given = RATE | {"batch": 64 * ranks, "ranks": ranks, "hosts": 1} | parameters
    return timed("scaling", given, {"throughput": rate}, facts or {}, ranks)


def named(figure: Any, name: str, type: str) -> list[dict[str, Any]]:
    return [
        each for each in figure.option["series"] if (each["name"], each["type"]) == (name, type)
    ]


def test_a_curve_stands_beside_linear_scaling_and_the_law() -> None:
    """64 samples in 40 ms are 1,600 a second; two ranks need 43 ms for 128, the law from 0.9 to 1.1 of it."""
    (curve,) = curves_of(view_of(*scaling_rows(ranks=(1, 2))))
    assert (curve.model, curve.name, curve.rate_of_rank) == ("mlp", "ddp, weak", 1600.0)
    second = curve.points[1]
    assert second.median == pytest.approx(128 / 0.043)
    assert second.law is not None and second.law.was_fitted
    assert (second.law.low, second.law.high) == pytest.approx((128 / 0.0473, 128 / 0.0387))
    figure = scaling([curve])
    marks, hollow = named(figure, "ddp, weak", "scatter")
    assert [each["value"] for each in marks["data"]] == [[1, 1600.0], [2, 2976.7]]
    assert f"efficiency {share(40 / 43)}" in marks["data"][1]["name"]
    assert "exposed communication 4 ms" in marks["data"][1]["name"]
    assert [each["value"] for each in hollow["data"]] == [[1.0, 1600.0], [2.0, 2976.7]]
    (ideal,) = named(figure, IDEAL, "line")
    assert ideal["data"] == [[1.0, 1600.0], [2.0, 3200.0]]
    assert [each["type"] for each in (figure.option["xAxis"], figure.option["yAxis"])] == [
        "value"
    ] * 2
    assert "By the law, a step takes 40 ms and 3 ms more for each rank." in figure.notes


def test_efficiency_that_was_not_measured_is_of_the_fewest_ranks() -> None:
    figure = scaling(curves_of(view_of(*point(2, 1000.0), *point(4, 1500.0))))
    assert "efficiency 75.0 %" in named(figure, "ddp, weak", "scatter")[0]["data"][1]["name"]


def test_ranks_that_span_more_than_eight_times_have_axes_of_powers() -> None:
    few = scaling(curves_of(view_of(*point(1, 10.0), *point(8, 70.0))))
    many = scaling(curves_of(view_of(*point(1, 10.0), *point(16, 120.0))))
    assert (few.option["xAxis"]["type"], many.option["xAxis"]["type"]) == ("value", "log")
    assert many.option["yAxis"]["type"] == "log"
    assert many.option["xAxis"]["axisTick"]["customValues"] == [1, 16]
    assert many.option["yAxis"]["axisTick"]["customValues"] == [10, 20, 50, 100, 200]


def test_ways_to_train_are_lines_of_their_own_and_a_number_that_does_not_count_is_none() -> None:
    rows = [*point(1, 10.0), *point(2, 18.0), *point(1, 10.0, compression="fp16"),
            *point(1, 9.0, scaling="strong", batch=128), *point(2, 9.9, scaling="strong", batch=128),
            *point(1, 10.0, batch=32), *point(1, 7.0, model="vgg16")]  # fmt: skip
    dirty = [each.judged(Verdict.CONTAMINATED, "busy") for each in point(4, 30.0)]
    curves = curves_of(view_of(*rows, *dirty))
    assert [(each.model, each.name, len(each.points)) for each in curves] == [
        ("mlp", "ddp, strong", 2), ("mlp", "ddp, weak, batch 32 a rank", 1),
        ("mlp", "ddp, weak, batch 64 a rank", 2), ("mlp", "ddp, fp16 gradients, weak", 1),
        ("vgg16", "ddp, weak", 1),
    ]  # fmt: skip
    drawn = scaling(curves, "vgg16")
    assert (
        drawn.title == "Scaling of training: vgg16"
        and len(named(drawn, "ddp, weak", "scatter")) == 1
    )
    ideals = named(scaling(curves, "mlp"), IDEAL, "line")
    assert len(ideals) == 2, "those within 5 % are one"


def test_a_law_without_an_interval_or_a_batch_still_draws() -> None:
    bare = {"law": law(40.0) | {"low_ms": None, "high_ms": None}}
    (curve,) = curves_of(view_of(*point(1, 1600.0, bare)))
    assert (
        curve.points[0].law is not None
        and curve.points[0].law.low == curve.points[0].law.high == 1600.0
    )
    (none,) = curves_of(view_of(*point(1, 1600.0, bare, batch="?")))
    assert none.points[0].law is None


def test_the_sentence_is_that_of_the_most_ranks_that_have_one() -> None:
    rows = [
        *point(1, 10.0, {"verdict": "one"}),
        *point(2, 18.0, {"verdict": "two"}),
        *point(4, 30.0),
    ]
    assert scaling_sentences(curves_of(view_of(*rows))) == ["two"]
    strong = point(1, 10.0, {"verdict": "other"}, scaling="strong")
    assert scaling_sentences(curves_of(view_of(*rows, *strong))) == [
        "mlp, strong: other", "mlp, weak: two",
    ]  # fmt: skip


def test_every_strategy_begins_with_one_rank_alone() -> None:
    """One rank has no strategy; where it was measured with none other it is a curve of one point."""
    alone = point(1, 10.0, strategy="single")
    rows = [
        *alone,
        *point(2, 18.0),
        *point(2, 19.0, compression="fp16"),
        *point(2, 17.0, batch=256),
    ]
    curves = {each.name: [one.ranks for one in each.points] for each in curves_of(view_of(*rows))}
    assert curves == {
        "ddp, weak, batch 128 a rank": [2], "ddp, weak, batch 64 a rank": [1, 2],
        "ddp, fp16 gradients, weak": [1, 2],
    }  # fmt: skip
    (only,) = curves_of(view_of(*alone))
    assert (only.name, only.last.ranks) == ("single, weak", 1)


@pytest.mark.parametrize(("scaling_of", "rate"), [("weak", 5120.0), ("strong", 2560.0)])
def test_the_law_predicts_the_next_size(scaling_of: str, rate: float) -> None:
    """128 samples on two ranks are 256 on four if weak: at 50 ms a step 5,120 a second, else 2,560."""
    following = {"ranks": 4, "fitted_on": [1, 2], "predicted_step_ms": 50.0, "low_ms": 40.0,
                 "high_ms": 64.0, "sentence": "On 4 ranks a step takes 50 ms."}  # fmt: skip
    rows = point(2, 2000.0, {"next": following}, scaling=scaling_of, batch=128)
    (curve,) = curves_of(view_of(*rows))
    (law,) = curve.laws
    assert (law.ranks, law.rate, law.low, law.high) == (4, rate, rate / 64 * 50, rate / 40 * 50)
    figure = scaling([curve])
    assert named(figure, IDEAL, "line")[0]["data"][-1] == [4.0, 4000.0]
    dashed = named(figure, curve.name, "line")[-1]
    assert dashed["data"] == [[2.0, 2000.0], [4.0, rate]], "from the last that was measured"
    assert figure.notes[-1] == "On 4 ranks a step takes 50 ms."
    told = point(2, 2000.0, {"next": following, "verdict": f"So so. {following['sentence']}"})
    assert following["sentence"] not in scaling(curves_of(view_of(*told))).notes, (
        "the verdict says it"
    )
