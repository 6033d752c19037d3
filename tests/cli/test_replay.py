"""What `hakaru simulate --replay` says of months, of the replay's error, and of a naive prediction."""

from __future__ import annotations

import pytest

from hakaru.cli import _replay


@pytest.mark.parametrize(
    ("part", "text"),
    [(None, "–"), (0.5, "+50.0 %"), (-0.25, "−25.0 %"), (9.5, "+950.0 %"), (10.0, "11 times")],
)
def test_how_far_a_month_is_off(part: float | None, text: str) -> None:
    assert _replay._part(part) == text
