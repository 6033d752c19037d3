"""The share of a cluster's rows that is not in the lake, of ingests written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.lake._missing import missing_shares, num_dropped
from hakaru.schema import INGESTS, REJECTS
from tests.conftest import put, utc


def ingest(
    cluster: str, *inputs: str, read: int, rejected: int = 0, dropped: int = 0, known: int = 0
) -> dict[str, Any]:
    """An ingest of `read` rows, of which `known` jobs were stored before."""
    counts = {"num_read": read, "num_rejected": rejected, "num_dropped": dropped}
    jobs = {"num_new": read - rejected - dropped - known, "num_updated": 0, "num_unchanged": known}
    return {"cluster": cluster, "inputs": list(inputs), **counts, **jobs}


def test_a_file_of_the_same_name_is_another_cluster_s_own() -> None:
    """Both sites call their log jobs.csv; that of `b` was read twice."""
    ingests = [
        ingest("a", "jobs.csv", read=100, rejected=30, dropped=10),
        ingest("b", "jobs.csv", read=50, rejected=20, dropped=3),
        ingest("b", "jobs.csv", read=200, rejected=4, dropped=2, known=27),
    ]
    assert missing_shares(ingests) == {"a": pytest.approx(0.4), "b": pytest.approx(0.03)}
    assert (num_dropped(ingests, "a"), num_dropped(ingests, "b")) == (10, 2)


def test_of_files_read_together_those_not_read_again_count_with_their_part() -> None:
    """Three of four files hold: 3/4 of 80 rows and of 16 lost ones, and 40 rows with 1 lost."""
    together = ingest("a", "1", "2", "3", "4", read=80, rejected=12, dropped=4)
    again = ingest("a", "2", read=40, rejected=1, known=16)
    assert missing_shares([together, again]) == {"a": pytest.approx(13 / 100)}
    assert num_dropped([together, again], "a") == 3


def test_reading_the_same_jobs_again_makes_no_row_less_missing() -> None:
    """5 of 100 rows were rejected; six exports of the 95 good ones lie over them."""
    history = ingest("a", "2024", read=100, rejected=5)
    overlapping = [ingest("a", str(n), read=95, known=95) for n in range(6)]
    assert missing_shares([history, *overlapping]) == {"a": pytest.approx(0.05)}


def test_a_row_that_overlapping_files_lose_counts_once() -> None:
    """Each day's export holds a week of 70 rows, and one row of each day cannot be read."""
    first = ingest("a", "day 0", read=70, rejected=7)
    days = [ingest("a", f"day {n}", read=70, rejected=7, known=54) for n in range(1, 8)]
    assert missing_shares([first, *days]) == {"a": pytest.approx(0.1)}


def test_a_file_that_keeps_the_last_week_forgets_no_earlier_day() -> None:
    """Rows of days that the file no longer holds were lost, whatever it holds now."""
    first = ingest("a", "week", read=70, rejected=7)
    later = [ingest("a", "week", read=63, known=54) for _ in range(3)]
    (share,) = missing_shares([first, *later[:1]]).values()
    assert share == pytest.approx(1 / 73)  # a seventh of 7, beside 63 + 9 jobs
    assert missing_shares([first, *later])["a"] == pytest.approx(1 / 91)


def test_counts_that_are_unknown_are_no_share() -> None:
    old = dict.fromkeys(ingest("a", read=1), None) | {"cluster": "a"}
    assert missing_shares([old]) == {}


def test_the_last_ingest_of_a_file_is_the_one_that_is_corrected(lake: Lake) -> None:
    """a.csv was read twice, of 100 rows first 40 and then 30 bad; those were read from elsewhere since."""
    at = [utc(f"2018-05-0{day}T00:00:00") for day in (1, 2)]
    rows = [
        ingest("c", "/in/a.csv", read=100, rejected=rejected)
        | {"ingest_id": str(n), "source": "swf", "synthetic": False, "started_at": t, "ended_at": t}
        for n, (t, rejected) in enumerate(zip(at, (40, 30), strict=True))
    ]
    put(lake, INGESTS.name, rows)
    bad = {"cluster": "c", "source": "swf", "file": "/in/a.csv", "reason": "no end", "text": "…"}
    put(lake, REJECTS.name, [bad | {"line": n} for n in range(30)])
    assert lake.forget_rejects("c", "/in/a.csv") == 30
    assert [row["num_rejected"] for row in lake.ingests()] == [40, 0]
