"""Intervals of shares and of the Gini coefficient end where these do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hakaru.sim.whatif import compare
from hakaru.sim.whatif.bounds import held_to_scale
from hakaru.sim.whatif.compare import _changes
from hakaru.sim.whatif.intervals import Interval, Weeks


@pytest.mark.parametrize(
    ("metric", "found", "before", "after", "held"),
    [
        ("gini_wait", (-0.404, 1.817), 0.985, 0.98, (-0.404, pytest.approx(0.015))),
        ("gini_wait", (-1.2, 0.1), 0.5, 0.4, (-0.5, 0.1)),
        ("utilisation", (0.1, 0.7), 0.6, 0.8, (0.1, pytest.approx(0.4))),
        ("utilisation", (-0.2, 0.3), 1.1, 1.0, (-0.2, 0.0)),  # a log may exceed its machine
        ("mean_wait_s", (-5.0, 100.0), 2.0, 3.0, (-5.0, 100.0)),
        ("gini_wait", None, 0.5, 0.5, None),
    ],
)
def test_a_change_stays_on_the_metric_s_scale(
    metric: str, found: Interval, before: float, after: float, held: object
) -> None:
    assert held_to_scale(metric, found, before, after) == held


def test_an_inequality_that_is_told_ends_at_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was found for a baseline of 0.985; of few weeks the resampled change reaches beyond one."""

    def metrics(gini: float) -> Any:
        return lambda both: {"gini_wait": gini, "utilisation": 0.5}

    run = {"use": None, "origin": np.zeros(0, int)}
    pair: Any = SimpleNamespace(
        before=SimpleNamespace(metrics=metrics(0.985), **run),
        after=SimpleNamespace(metrics=metrics(0.98), **run),
        both=None,
        stopped=np.zeros(1, bool),
    )
    weeks = Weeks(np.arange(12), None, None, 3)
    monkeypatch.setattr(compare.draw, "ratio_change", lambda *_: None)
    monkeypatch.setattr(compare, "_wait_intervals", lambda *_: {"gini_wait": (-0.404, 1.817)})
    change = _changes(weeks, pair, None)["gini_wait"]
    assert (change.low, change.high) == (-0.404, pytest.approx(0.015))
