"""The site's clock: an offset where it never moves, the zone's calendar where it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hakaru.analyses import Selection, open_session
from hakaru.analyses._site import clock
from hakaru.lake import Lake
from tests.conftest import job, utc

SUMMER = (utc("2018-07-01 00:00"), utc("2018-07-05 00:00"))


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Asia/Tokyo", "+09:00"),
        ("Asia/Kolkata", "+05:30"),
        ("America/Phoenix", "-07:00"),
        ("UTC", "+00:00"),
        ("Europe/Berlin", "Europe/Berlin"),
    ],
)
def test_a_clock_that_never_moves_is_an_offset(zone: str, expected: str) -> None:
    assert clock(zone, SUMMER) == expected


def test_a_clock_that_moved_long_ago_is_an_offset_since() -> None:
    # Seoul had summer time in 1987 and 1988
    assert clock("Asia/Seoul", SUMMER) == "+09:00"
    assert clock("Asia/Seoul", (utc("1987-01-01 00:00"), SUMMER[1])) == "Asia/Seoul"
    assert clock("Asia/Tokyo", None) == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("zone", "hour"),
    [("Asia/Tokyo", 7), ("Asia/Kolkata", 3), ("America/Phoenix", 15), ("Europe/Berlin", 0)],
)
def test_both_ways_tell_the_site_s_hour(lake_of: Callable[..., Lake], zone: str, hour: int) -> None:
    lake = lake_of([job(1, submitted_at=utc("2018-07-03 22:15"))], facts=f'{{"zone": "{zone}"}}')
    with open_session(lake) as session:
        sql = "SELECT hour(submitted_local) AS hour FROM jobs"
        assert session.ask(sql, Selection()).to_pylist() == [{"hour": hour}]
