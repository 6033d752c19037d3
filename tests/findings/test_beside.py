"""Where a cluster lies apart from all published ones: the bounds, the sides, and the sentence."""

from __future__ import annotations

import pytest

from hakaru.comparison import Comparison, Line
from hakaru.findings import Finding, find
from hakaru.reference.metrics import Cell, load_metrics
from hakaru.reference.published import Published


def figure(cluster: str, metric: str, value: float, bound: str = "") -> Published:
    return Published(cluster, metric, value, bound, load_metrics()[metric].unit, "", "s", "w")


def beside(metric: str, own: float | None, **others: float) -> list[Finding]:
    published = {name: figure(name, metric, value) for name, value in others.items()}
    line = Line(load_metrics()[metric], "", {"c": Cell(own)}, published)
    return find({}, beside=Comparison(["c"], {"c": "gpu"}, set(), [line], None))


@pytest.mark.parametrize(
    ("own", "is_apart"),
    [
        (0.2, False),  # between the two
        (0.37, False),  # less than 1.5 times the largest
        (0.375, True),
        (0.084, False),  # more than the least divided by 1.5
        (0.083, True),
        (None, False),
    ],
)
def test_apart_is_half_as_much_again_as_every_other(own: float | None, is_apart: bool) -> None:
    assert bool(beside("wra_mean", own, A=0.125, B=0.25)) == is_apart


def test_one_that_is_near_is_enough_for_silence() -> None:
    assert beside("share_failed", 0.3, A=0.01, B=0.02)
    assert not beside("share_failed", 0.3, A=0.01, B=0.25)


@pytest.mark.parametrize(
    ("own", "others", "is_apart"),
    [
        (0.3, {"A": -0.1, "B": -0.2}, True),
        (-0.3, {"A": 0.1, "B": 0.2}, True),
        (0.3, {"A": -0.1, "B": 0.2}, False),
        (0.9, {"A": -0.1, "B": 0.2}, False),
        (-0.3, {"A": -0.1, "B": -0.2}, False),
    ],
)
def test_correlations_are_apart_by_their_sign(
    own: float, others: dict[str, float], is_apart: bool
) -> None:
    assert bool(beside("spearman_size_run", own, **others)) == is_apart


def test_the_sentence_names_both_sides() -> None:
    (found,) = beside("wait_median_s", 7200.0, A=60.0, B=600.0)
    assert found.id == "beside-wait_median_s" and found.analysis == "waits"
    assert found.values == {"own": 7200.0, "A": 60.0, "B": 600.0}
    for part in ("2.0 h", "A 60 s", "B 10.0 min"):
        assert part in found.text
    assert found.text.index("2.0 h") < found.text.index("A 60 s")


def test_a_bound_of_the_source_is_kept() -> None:
    metric = "wra_mean"
    line = Line(load_metrics()[metric], "", {"c": Cell(0.9)}, {"A": figure("A", metric, 0.33, "~")})
    (found,) = find({}, beside=Comparison(["c"], {"c": "gpu"}, set(), [line], None))
    assert "A ~33.0 %" in found.text


def test_a_cluster_is_not_set_beside_itself_nor_beside_nothing() -> None:
    assert not beside("wra_mean", 0.9, C=0.1)
    assert not beside("wra_mean", 0.9)


def test_only_the_metrics_that_findings_speak_of() -> None:
    assert not beside("run_mean_s", 1e6, A=1.0)
