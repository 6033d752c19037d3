"""Sizes are shares of memory or given, and what fits the time is chosen: fewer epochs before fewer sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.storage._sizes import Speed, has_shares, parse_sizes, schedule

SIZES = (16, 32, 64, 128)
SPEED = Speed(compute_s_per_mib=0.05, cold_s_per_mib=0.01, memory_mib=64)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1/4+1/2+1+2", [16, 32, 64, 128]),
        ("2 + 1/2", [32, 128]),
        ("64MiB+1GiB+10MiB", [10, 64, 1024]),
        ("1/4+16MiB", [16]),
    ],
)
def test_sizes(text: str, found: list[int]) -> None:
    assert parse_sizes(text, 64) == found


@pytest.mark.parametrize("text", ["", "1/0", "-1", "1.5", "64MB", "64", "1/4,1/2", "0", "1/1000"])
def test_what_is_no_size_is_refused(text: str) -> None:
    if text == "64":
        assert parse_sizes(text, 64) == [4096]  # times the memory
        return
    with pytest.raises(HakaruError, match="expected"):
        parse_sizes(text, 64)


def test_sizes_in_mib_are_no_shares() -> None:
    assert has_shares("1/4+1GiB")
    assert not has_shares("64MiB + 1GiB")


def test_much_time_takes_all_sizes_and_most_epochs() -> None:
    found = schedule(SIZES, SPEED, 1000)
    assert found.sizes == SIZES
    assert found.num_epochs == 8
    assert found.note == ""


def test_less_time_takes_fewer_epochs_first() -> None:
    """240 MiB at 0.05 s/MiB are 12 s an epoch; cold, the loader alone and starting are 20 s."""
    found = schedule(SIZES, SPEED, 20.4 + 2 * 12 + 1)
    assert found.sizes == SIZES
    assert found.num_epochs == 2


def test_then_the_size_at_memory_goes_and_the_largest_last() -> None:
    assert schedule(SIZES, SPEED, 40).sizes == (16, 32, 128)
    assert schedule(SIZES, SPEED, 40).left_out == (64,)
    assert schedule(SIZES, SPEED, 12).sizes == (16, 32)
    found = schedule(SIZES, SPEED, 0.1)
    assert found.sizes == (16,)
    assert found.note.startswith("32, 64, 128 MiB did not fit the time")


def test_writing_takes_time_but_for_what_is_there() -> None:
    """240 MiB at 0.1 s/MiB are 24 s more."""
    writing = replace(SPEED, write_s_per_mib=0.1)
    enough = 20.4 + 2 * 12 + 1
    assert schedule(SIZES, writing, enough).sizes == (16, 32)
    assert schedule(SIZES, writing, enough, made=SIZES).sizes == SIZES
    assert schedule(SIZES, writing, enough + 24).sizes == SIZES
    assert schedule(SIZES, writing, enough + 24 - 12.8, made=(128,)).sizes == SIZES


def test_a_slow_disk_counts_above_memory_alone() -> None:
    slow = Speed(compute_s_per_mib=0.01, cold_s_per_mib=1.0, memory_mib=64)
    assert slow.steady_s(32) == pytest.approx(0.32)
    assert slow.steady_s(128) == pytest.approx(128)
    assert slow.cold_s(32) == pytest.approx(32)
