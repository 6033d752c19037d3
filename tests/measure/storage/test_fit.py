"""The knee is found where there is one, and where there is none it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hakaru.measure.storage._bend import Slope
from hakaru.measure.storage._fit import SizeFit, fit_sizes, without_waiting

SIZES = (24, 48, 96, 192)
MEMORY = 96.0


def epochs(
    seconds: Callable[[float], float], noise: float, seed: int = 0, num: int = 3
) -> dict[float, list[float]]:
    random = np.random.default_rng(seed)
    return {
        size: [seconds(size) * (1 + noise * random.standard_normal()) for _ in range(num)]
        for size in SIZES
    }


def straight(size: float) -> float:
    return 0.1 + 0.02 * size


def bent(size: float) -> float:
    return straight(size) + 0.06 * max(0.0, size - 80)


def jumping(size: float) -> float:
    """What least-recently-used does: above memory nothing of the whole set is left."""
    return straight(size) if size < 80 else 0.1 * size


def test_a_straight_line_has_no_knee_and_equal_slopes() -> None:
    found = fit_sizes(epochs(straight, 0.02), MEMORY)
    assert found.state == "none"
    assert found.knee_mib is None
    assert found.below is not None
    assert found.above is not None
    for slope in (found.below, found.above):
        assert slope.low < 0.02 * 1024 < slope.high
    assert found.sentence.startswith("No knee: an epoch takes ")
    assert "keeps up" not in found.sentence  # that is told by the time that training waits


def test_a_bend_is_found_at_its_place_with_both_slopes() -> None:
    found = fit_sizes(epochs(bent, 0.01), MEMORY)
    assert found.state == "knee"
    assert found.knee_mib == pytest.approx(80, abs=6)
    assert found.between == (48, 96)
    assert found.below is not None
    assert found.above is not None
    assert found.below.s_per_gib == pytest.approx(0.02 * 1024, rel=0.1)
    assert found.above.s_per_gib == pytest.approx(0.08 * 1024, rel=0.1)
    assert "knee between 48 and 96 MiB" in found.sentence
    assert "96 MiB of files" in found.sentence


def test_a_jump_between_two_sizes_is_a_knee_between_them() -> None:
    found = fit_sizes(epochs(jumping, 0.02), MEMORY)
    assert found.state == "knee"
    assert found.between == (48, 96)
    assert found.knee_mib is not None
    assert 48 < found.knee_mib < 96


def test_exact_times_are_no_trouble() -> None:
    assert fit_sizes(epochs(straight, 0.0), MEMORY).state == "none"
    assert fit_sizes(epochs(bent, 0.0), MEMORY).state == "knee"


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_straight_lines_are_hardly_ever_called_bent(noise: float) -> None:
    """At most 1 % by the rule; of 80 lines four would be far too many."""
    states = Counter(fit_sizes(epochs(straight, noise, seed), MEMORY).state for seed in range(80))
    assert states["knee"] < 4
    assert states["none"] > 0


def test_noise_never_hides_a_doubled_time_behind_no_knee() -> None:
    """With little noise it is found; with much of it the answer is that nobody can tell."""

    def doubled(size: float) -> float:
        return straight(size) * (2 if size > MEMORY else 1)

    small = Counter(fit_sizes(epochs(doubled, 0.03, seed), MEMORY).state for seed in range(40))
    assert small == {"knee": 40}
    large = Counter(
        fit_sizes(epochs(doubled, 0.3, seed, num=2), MEMORY).state for seed in range(40)
    )
    assert large["none"] <= 4


def test_sizes_below_memory_alone_say_nothing_of_larger_ones() -> None:
    found = fit_sizes(epochs(straight, 0.01), 1000.0)
    assert found.state == "below"
    assert found.above is None
    assert "nothing is known of larger ones" in found.sentence


def test_two_sizes_are_too_few_for_a_knee() -> None:
    found = fit_sizes({48.0: [1.0, 1.0], 192.0: [8.0, 8.0]}, MEMORY)
    assert found.state == "few"  # one is larger than memory all the same
    assert "Too few sizes" in found.sentence
    assert "up to 192 MiB" in found.sentence


def test_a_single_size_has_a_time_and_no_slope() -> None:
    found = fit_sizes({48.0: [1.0, 1.25, 1.5]}, MEMORY)
    assert found.state == "below"
    assert found.sentence.startswith("An epoch of 48 MiB takes 1.25 s.")


def labelled(label: str) -> dict[float, list[str]]:
    return {size: ["cached" if size <= MEMORY else label] * 3 for size in SIZES}


@pytest.mark.parametrize(
    ("label", "state"),
    [
        ("from the device", "none"),
        ("over the network", "none"),
        ("partly cached", "unsure"),
        ("cached", "unsure"),
        ("unknown", "unsure"),
    ],
)
def test_no_knee_is_told_of_storage_alone(label: str, state: str) -> None:
    found = fit_sizes(epochs(straight, 0.02), MEMORY, labelled(label))
    assert found.state == state
    assert found.sentence.startswith("No knee") == (state == "none")
    if state == "unsure":
        assert "not known to come from storage" in found.sentence
        assert label in found.sentence


def test_a_bend_of_cached_epochs_is_no_knee() -> None:
    found = fit_sizes(epochs(bent, 0.01), MEMORY, labelled("cached"))
    assert (found.state, found.knee_mib) == ("unsure", None)
    assert "There is a bend, but" in found.sentence
    assert fit_sizes(epochs(bent, 0.01), MEMORY, labelled("partly cached")).state == "knee"


def test_three_epochs_are_too_few_for_a_knee() -> None:
    found = fit_sizes({24.0: [0.5], 48.0: [1.0], 192.0: [8.0]}, MEMORY)
    assert found.state == "unsure"
    assert "Too few epochs" in found.sentence


def test_times_that_fall_with_size_are_not_called_a_knee() -> None:
    falling = {24.0: [0.9, 0.92], 48.0: [0.5, 0.52], 96.0: [0.9, 0.92], 192.0: [9.0, 9.1]}
    found = fit_sizes(falling, MEMORY)
    assert found.state == "unsure"
    assert "choose larger sizes" in found.sentence


def test_json_has_the_names_that_figures_read() -> None:
    found: SizeFit = fit_sizes(epochs(bent, 0.01), MEMORY)
    document = found.to_json()
    assert document["knee_mib"] == found.knee_mib
    assert document["slope_below_s_per_gib"] < document["slope_above_s_per_gib"]
    assert document["sentence"] == found.sentence


def test_a_bend_without_waiting_is_no_knee_of_storage() -> None:
    bent = SizeFit(
        "knee", Slope(8.0, 7.9, 8.1), Slope(9.5, 9.4, 9.6), 96.0, (48.0, 96.0), 0.0, 0.2, "a knee"
    )
    found = without_waiting(bent)
    assert (found.state, found.knee_mib, found.between) == ("none", None, None)
    assert "9.5 s a GiB above memory and 8 below it" in found.sentence
    assert "training does not wait for data" in found.sentence
    straight = replace(bent, state="none", sentence="straight")
    assert without_waiting(straight) is straight
