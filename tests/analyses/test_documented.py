"""Rules that the documentation states, each at its edge and with values worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.analyses.test_load import stay
from tests.conftest import job, utc

Make = Callable[..., Lake]
TOKYO = '{"zone": "Asia/Tokyo"}'


@pytest.mark.parametrize(
    ("facts", "midnight"),
    [("{}", "2018-01-02T00:00:00"), (TOKYO, "2018-01-01T15:00:00")],
)
def test_a_job_at_midnight_is_in_one_period_only(lake_of: Make, facts: str, midnight: str) -> None:
    """One second before the site's midnight, at midnight, and a second after: one day, then the next."""
    moments = [utc(midnight) + timedelta(seconds=s) for s in (-1, 0, 1)]
    lake = lake_of([job(i, submitted_at=at) for i, at in enumerate(moments)], facts=facts)

    def num_jobs(**period: Any) -> int:
        return ask(lake, "states", **period).num_selected

    assert num_jobs(until="2018-01-01") == 1
    assert num_jobs(since="2018-01-02") == 2
    assert num_jobs(since="2018-01-01", until="2018-01-01") == 1
    assert num_jobs(since="2018-01-02", until="2018-01-02") == 2
    assert num_jobs(until="2018-01-02T00:00:00") == 1, "a time is excluded, a day included"
    assert num_jobs(since="2018-01-02T00:00:01") == 1


def test_a_stay_that_ends_at_midnight_is_not_in_the_next_day(lake_of: Make) -> None:
    """Two hours up to midnight and two from it on: each day has its own two."""
    rows = [
        stay(1, 22 * 60, 22 * 60, 24 * 60),
        stay(2, 24 * 60, 24 * 60, 26 * 60, num_gpus=3),
    ]
    lake = lake_of(rows)

    def busy_hours(day: str) -> float:
        found = ask(lake, "utilisation", since=day, until=day).rows
        return float(next(row for row in found if row["quarter"] == "all")["busy_pe_hours"])

    assert (busy_hours("2018-01-01"), busy_hours("2018-01-02")) == (2.0, 6.0)


def test_weeks_begin_on_monday(lake_of: Make) -> None:
    """2018-01-03 is a Wednesday: bins of a week end on Mondays, by the site's clock."""
    first = utc("2018-01-03T03:00:00")
    rows = [
        job(i, submitted_at=at, started_at=at, ended_at=at + timedelta(hours=1))
        for i, at in enumerate(first + timedelta(days=n) for n in (0, 20))
    ]
    lake = lake_of(rows, facts=TOKYO)
    found = ask(lake, "load", {"bins": 4}).rows
    begins = [row["since_at"] for row in found]
    monday = utc("2018-01-07T15:00:00")  # the Monday after in Tokyo
    assert begins == [first, *(monday + timedelta(weeks=n) for n in range(3))]


@pytest.mark.parametrize(
    ("state", "fate"),
    [
        ("killed", "abandoned"),
        ("cancelled", "abandoned"),
        ("failed", "abandoned"),
        ("timeout", "unknown"),
        ("completed", "unknown"),
        ("running", "unknown"),
    ],
)
def test_what_ended_before_it_started_was_given_up(lake_of: Make, state: str, fate: str) -> None:
    """Submitted at 0 and over at 30 minutes without a start; `killed` as `cancelled`."""
    rows = [stay(1, 0, None, 30, state=state), stay(2, 0, 10, 60)]
    lake = lake_of(rows)
    found = {row["fate"]: row for row in ask(lake, "abandoned-waits").rows}
    assert (found[fate]["num_jobs"], found["started"]["num_jobs"]) == (1, 1)
    waited = found["abandoned"]["mean_s"]
    assert waited == (1800 if fate == "abandoned" else None)
    assert ask(lake, "load").num_used == (2 if fate == "abandoned" else 1)


def test_what_runs_or_waits_has_not_ended(lake_of: Make) -> None:
    rows = [
        stay(1, 0, 0, 60),
        stay(2, 0, 0, 60, state="failed"),
        stay(3, 0, 0, None, state="running"),
        stay(4, 0, None, None, state="pending"),
        stay(5, 0, 0, 60, state=None),
    ]
    lake = lake_of(rows)
    shares = {row["state"]: row["share"] for row in ask(lake, "states").rows}
    assert shares == {"completed": 0.5, "failed": 0.5, "running": None, "pending": None, None: None}
    (user,) = ask(lake, "users").rows
    assert (user["share_completed"], user["share_failed"]) == (0.5, 0.5)
    hours = {row["state"]: row["share"] for row in ask(lake, "states", weight="gpu-hours").rows}
    assert (hours["completed"], hours["failed"]) == (0.5, 0.5)


def test_a_size_that_is_known_for_a_part_of_the_time(lake_of: Make) -> None:
    """Four GPUs from 00:30 on; one is busy from 00:00 to 01:00. The quarter and the whole are unknown."""
    facts = '{"nodes": [{"since": "2018-01-01T00:30:00Z", "count": 1}], "gpus_per_node": 4}'
    lake = lake_of([stay(1, 0, 0, 60)], facts=facts)
    found = ask(lake, "load").rows
    assert [row["num_pes_installed"] for row in found] == [None, None, 4, 4]
    assert [row["utilisation"] for row in found] == [None, None, 0.25, 0.25]
    for row in ask(lake, "utilisation").rows:
        assert (row["utilisation"], row["installed_pe_hours"]) == (None, None)
    later = ask(lake, "utilisation", since="2018-01-01T00:30:00").rows
    assert [row["utilisation"] for row in later] == [0.25, 0.25]
    wide = ask(lake, "load", {"bins": 2}).rows
    assert wide[0]["utilisation"] is None, "a bin of which half is known"


def test_a_quarter_of_unknown_size_leaves_the_whole_unknown(lake_of: Make) -> None:
    """Two hours around the new year, four GPUs from midnight on: the new quarter alone is known."""
    facts = '{"nodes": [{"since": "2018-01-01T00:00:00Z", "count": 1}], "gpus_per_node": 4}'
    found = ask(lake_of([stay(1, -60, -60, 60)], facts=facts), "utilisation").rows
    known = {row["quarter"]: (row["installed_pe_hours"], row["utilisation"]) for row in found}
    assert known == {"all": (None, None), "2017Q4": (None, None), "2018Q1": (4.0, 0.25)}


def test_a_size_changes_within_a_bin(lake_of: Make) -> None:
    """Four GPUs until 00:30 and eight after it: six in the mean of the hour."""
    facts = '{"nodes": [{"count": 1}, {"since": "2018-01-01T00:30:00Z", "count": 2}], "gpus_per_node": 4}'
    (whole, _) = ask(lake_of([stay(1, 0, 0, 60, num_gpus=3)], facts=facts), "utilisation").rows
    assert (whole["installed_pe_hours"], whole["utilisation"]) == (6.0, 0.5)


def test_a_least_run_time_counts_itself(lake_of: Make) -> None:
    lake = lake_of([job(i, run_s=run_s) for i, run_s in enumerate((59.0, 60.0, 61.0))])
    assert ask(lake, "parallelism").num_used == 2
    assert ask(lake, "states", min_run_s=61).num_used == 1


def test_quartiles_of_request_accuracy(lake_of: Make) -> None:
    """Of 0.1, 0.2, 0.3, 0.4 and 0.9 of their request: the second, third and fourth, exactly."""
    runs = (1000.0, 2000.0, 3000.0, 4000.0, 9000.0)
    lake = lake_of([job(i, run_s=run_s, requested_s=1e4) for i, run_s in enumerate(runs)])
    (row,) = ask(lake, "request-accuracy").rows
    assert [row[name] for name in ("p25", "median", "p75")] == pytest.approx([0.2, 0.3, 0.4])
    assert (row["mean"], row["least"], row["most"]) == pytest.approx((0.38, 0.1, 0.9))


def test_a_pause_of_nothing_and_one_of_the_limit_are_thought(lake_of: Make) -> None:
    """Jobs end at 60, 120 and 660 minutes; the next come at once, after 8 h, and after 8 h and a minute."""
    rows = [
        stay(1, 0, 0, 60),
        stay(2, 60, 60, 120),
        stay(3, 600, 600, 660),
        stay(4, 1141, 1141, 1200),
    ]
    (row,) = ask(lake_of(rows), "think-time").rows
    assert (row["num_pairs"], row["num_within"]) == (3, 2)
    assert row["share_longer"] == pytest.approx(1 / 3)
