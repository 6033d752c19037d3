"""Colours that everyone can tell apart: the distances are computed, not believed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from hakaru.figures import theme
from hakaru.figures.theme import DARK, LIGHT, Theme
from hakaru.schema import STATES

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
SIGHT = {
    "normal": np.eye(3),
    "no red cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no green cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "no blue cones": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    bright = sorted(float(TO_XYZ[1] @ linear(each)) for each in (one, other))
    return (bright[1] + 0.05) / (bright[0] + 0.05)


def test_the_measure_itself() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert lab(linear("#ffffff"))[0] == pytest.approx(100, abs=0.01)


@pytest.mark.parametrize("sight", SIGHT)
def test_series_are_told_apart(sight: str) -> None:
    seen = {each: lab(SIGHT[sight] @ linear(each)) for each in theme.PALETTE}
    nearest = min(np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(seen, 2))
    assert nearest > 20  # a just noticeable difference is about 2.3


@pytest.mark.parametrize("sight", SIGHT)
def test_states_are_told_apart(sight: str) -> None:
    seen = [lab(SIGHT[sight] @ linear(theme.STATE_COLOURS[each])) for each in STATES]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 13


@pytest.mark.parametrize("chosen", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(chosen: Theme) -> None:
    """WCAG AA: 4.5 for text, 3 for what is drawn."""
    for words in (chosen.text, chosen.muted):
        assert contrast(words, chosen.background) >= 4.5
    for colour in (*theme.PALETTE, *theme.STATE_COLOURS.values(), *theme.CLASS_COLOURS.values()):
        assert contrast(colour, chosen.background) >= 3, colour


def test_ramps_go_one_way() -> None:
    for chosen, sign in ((LIGHT, -1), (DARK, 1)):
        steps = np.diff([lab(linear(each))[0] for each in chosen.ramp])
        assert (steps * sign > 5).all()


def test_a_name_keeps_its_colour() -> None:
    assert LIGHT.colour("cluster", "aaic") == DARK.colour("cluster", "aaic") == theme.BLUE
    assert LIGHT.colour("state", "completed") == theme.GREEN
    assert LIGHT.colour("class", "multi-node") == LIGHT.colour("parallelism", "multi-node")
    assert LIGHT.colour("queue", None) == LIGHT.colour("queue", "(unknown)") == theme.GREY
    assert (LIGHT.colour("class", "all"), DARK.colour("class", "all")) == (LIGHT.text, DARK.text)


def test_two_names_in_one_figure_never_share_a_colour() -> None:
    names = [f"queue{i}" for i in range(8)]
    chosen = LIGHT.colours("queue", names)
    assert list(chosen) == names
    assert set(chosen.values()) == set(theme.PALETTE)
    # whatever the order in which they come
    assert LIGHT.colours("queue", names[::-1]) == chosen
