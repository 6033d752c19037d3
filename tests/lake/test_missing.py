"""The share of a cluster's rows that is not in the lake, of ingests written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.lake._missing import missing_shares, num_dropped
from hakaru.schema import INGESTS, REJECTS
from tests.conftest import put, utc


def ingest(
    cluster: str, *inputs: str, read: int, rejected: int = 0, dropped: int = 0
) -> dict[str, Any]:
    counts = {"num_read": read, "num_rejected": rejected, "num_dropped": dropped}
    return {"cluster": cluster, "inputs": list(inputs), **counts}


def test_a_file_of_the_same_name_is_another_cluster_s_own() -> None:
    """Both sites call their log jobs.csv; that of `b` was read twice."""
    ingests = [
        ingest("a", "jobs.csv", read=100, rejected=30, dropped=10),
        ingest("b", "jobs.csv", read=50, rejected=20, dropped=3),
        ingest("b", "jobs.csv", read=200, rejected=4, dropped=2),
    ]
    assert missing_shares(ingests) == {"a": pytest.approx(0.4), "b": pytest.approx(0.03)}
    assert (num_dropped(ingests, "a"), num_dropped(ingests, "b")) == (10, 2)


def test_of_files_read_together_those_not_read_again_count_with_their_part() -> None:
    """Three of four files hold: 3/4 of 80 rows and of 16 lost ones, and 40 rows with 1 lost."""
    together = ingest("a", "1", "2", "3", "4", read=80, rejected=12, dropped=4)
    again = ingest("a", "2", read=40, rejected=1)
    assert missing_shares([together, again]) == {"a": pytest.approx(13 / 100)}
    assert num_dropped([together, again], "a") == 3


def test_counts_that_are_unknown_are_no_share() -> None:
    old = {"cluster": "a", "inputs": None, "num_read": None, "num_rejected": None}
    assert missing_shares([old | {"num_dropped": None}]) == {}


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
