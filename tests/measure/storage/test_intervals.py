"""Interval arithmetic, worked by hand and against counting every moment."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hakaru.measure.storage._intervals import (
    clipped,
    common,
    fewer,
    hidden_share,
    length,
    merged,
    spans_of,
)


def test_merging_joins_what_overlaps_or_touches() -> None:
    found = merged(spans_of([(5, 7), (0, 2), (1, 3), (3, 4)]))
    assert found.tolist() == [[0, 4], [5, 7]]
    assert merged(found, gap=1).tolist() == [[0, 7]]


def test_a_span_inside_another_adds_nothing() -> None:
    assert length(spans_of([(0, 10), (2, 3), (4, 5)])) == 10


def test_the_common_time_of_two() -> None:
    loading, compute = spans_of([(0, 4), (6, 9)]), spans_of([(1, 2), (3, 7), (8, 12)])
    assert common(loading, compute).tolist() == [[1, 2], [3, 4], [6, 7], [8, 9]]
    assert hidden_share(loading, compute) == pytest.approx(4 / 7)


def test_touching_spans_have_nothing_in_common() -> None:
    assert length(common(spans_of([(0, 1)]), spans_of([(1, 2)]))) == 0


def test_without_any_work_no_share_of_it_is_known() -> None:
    nothing = spans_of([])
    assert hidden_share(nothing, spans_of([(0, 1)])) is None
    assert hidden_share(spans_of([(0, 1)]), nothing) == 0


def test_spans_without_length_are_left_out() -> None:
    assert spans_of([(1, 1), (3, 2), (0, 1)]).tolist() == [[0, 1]]


def test_clipping_keeps_what_lies_in_the_window() -> None:
    assert clipped(spans_of([(0, 2), (3, 5), (8, 9)]), 1, 4).tolist() == [[1, 2], [3, 4]]


def test_few_enough_to_draw_over_the_smallest_gaps() -> None:
    spans = spans_of([(0, 1), (1.1, 2), (5, 6), (6.2, 7)])
    assert fewer(spans, 2).tolist() == [[0, 2], [5, 7]]
    assert fewer(spans, 4).tolist() == spans.tolist()


def test_random_spans_agree_with_counting_moments() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        first, second = _random(random), _random(random)
        both = _covered(first) & _covered(second)
        assert (_covered(common(first, second)) == both).all()
        assert length(first) == _covered(first).sum()
        most = int(random.integers(1, 6))
        assert len(fewer(first, most)) <= most


def _random(random: np.random.Generator) -> NDArray[np.float64]:
    begins = random.integers(0, 60, random.integers(0, 12))
    ends = begins + random.integers(0, 9, len(begins))
    return spans_of(zip(begins.tolist(), ends.tolist(), strict=True))


def _covered(spans: NDArray[np.float64]) -> NDArray[np.bool_]:
    moments = np.zeros(100, dtype=bool)
    for begin, end in spans.astype(int).tolist():
        moments[begin:end] = True
    return moments
