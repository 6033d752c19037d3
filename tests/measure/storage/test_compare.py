"""Which layout is fastest is said only where it is sure."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hakaru.measure.storage._compare import answer, ratio


def rates(usual: float, noise: float, seed: int, num: int = 10) -> list[float]:
    return (usual * (1 + noise * np.random.default_rng(seed).standard_normal(num))).tolist()


def test_a_clear_order_is_told_with_the_cost_of_one_file_a_sample() -> None:
    found = answer(
        {"files": rates(500, 0.02, 1), "packed": rates(1000, 0.02, 2), "tar": rates(800, 0.02, 3)},
        "cold",
    )
    assert found.startswith("Cold: packed is the fastest layout, ")
    assert "faster than tar" in found
    assert "One file a sample loads 49.9 % slower than packed (48.8 % to 50.7 %)." in found


def test_noise_tells_nothing_and_says_so() -> None:
    found = answer({"files": rates(1000, 0.4, 1), "packed": rates(1000, 0.4, 2)}, "warm")
    assert "is ahead, but not surely faster than" in found
    assert "No sure difference between one file a sample and packed" in found


def test_drift_from_round_to_round_cancels() -> None:
    drift = np.linspace(1, 3, 10)
    found = ratio((900 * drift).tolist(), (1000 * drift).tolist())
    assert found is not None
    assert found.low == pytest.approx(0.9)
    assert found.high == pytest.approx(0.9)


def test_equal_layouts_cost_nothing() -> None:
    same = rates(1000, 0.05, 1)
    found = answer({"files": [1.001 * each for each in same], "packed": same}, "warm")
    assert "One file a sample costs nothing against packed here." in found


def test_files_may_be_faster() -> None:
    found = answer({"files": rates(2000, 0.01, 1), "tar": rates(1000, 0.01, 2)}, "warm")
    assert re.search(r"One file a sample loads (99|10\d)\.\d % faster than tar", found)


def test_few_rounds_are_too_few() -> None:
    assert ratio([1.0, 2.0], [1.0, 1.0]) is None
    found = answer({"files": [1.0, 1.1], "packed": [3.0, 3.1]}, "cold")
    assert "too few rounds" in found
    assert "slower" not in found


def test_a_single_layout_is_compared_with_nothing() -> None:
    assert answer({"packed": [1.0] * 8}, "cold") == ""
