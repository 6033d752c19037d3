"""`hakaru advise`: how its options are read, and how settings are written."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.cli import _advice, advise


@pytest.mark.parametrize(("text", "part"), [("10%", 0.1), ("0.1", 0.1), ("25 %", 0.25), ("1", 1.0)])
def test_a_part_is_in_percent_only_if_it_says_so(text: str, part: float) -> None:
    assert advise.part_of(text, "--keep") == pytest.approx(part)


def test_what_advice_must_keep() -> None:
    unbounded: Any = advise._loss(None, None, "any")  # type: ignore[arg-type]
    given = {"keep": ("utilisation:5%", "p95-wait"), "account": None, "user": unbounded}
    found = advise._constraints(given)
    assert found.keep == {"utilisation": pytest.approx(0.05), "p95_wait_s": 0.01}
    assert found.loses["user"] == math.inf


def test_settings_are_written_in_their_units() -> None:
    told: Any = SimpleNamespace(machine=SimpleNamespace(num_pes=8), unit="gpu")
    written = [_advice._setting_value(told, name, value) for name, value in (
        ("half_life_h", 48), ("gpus_per_user", 7), ("gpus_per_user", 8), ("age", 1500),
        ("backfill", "easy"),
    )]  # fmt: skip
    assert written == ["2.0 days", "7", "no limit", "1,500", "easy"]
