from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.conftest import job, utc

ACCURACIES = [0.1, 0.2, 0.3, 0.8]


@pytest.fixture
def small(lake_of: Callable[..., Lake]) -> Lake:
    """Requests of 10 h in a queue that allows 10 h, and others that do not count."""
    rows = [job(i, requested_s=36000.0, run_s=a * 36000.0) for i, a in enumerate(ACCURACIES)]
    rows.append(job(10, requested_s=None))
    rows.append(job(11, state="failed"))
    rows.append(job(12, run_s=30.0))
    return lake_of(rows, '{"queues": {"normal": {"max_walltime_h": 10}}}')


def test_accuracy(small: Lake) -> None:
    result = ask(small, "request-accuracy")
    (row,) = result.rows
    assert row["num_jobs"] == 4
    assert row["mean"] == pytest.approx(0.35)
    assert row["sd"] == pytest.approx(statistics.stdev(ACCURACIES))
    assert row["median"] == pytest.approx(0.25)
    assert (row["least"], row["most"]) == pytest.approx((0.1, 0.8))
    assert row["p25"] == pytest.approx(0.175)
    assert row["share_at_max"] == 1.0
    assert {entry.num_jobs for entry in result.left_out if entry.num_jobs} == {1}
    assert sum(entry.num_jobs for entry in result.left_out) == 3


def test_a_configured_limit_is_what_counts_as_the_maximum(lake_of: Callable[..., Lake]) -> None:
    """Of 2, 10, 20 and 24 h two reach the queue's 20: who asks for more, as some may, counts too."""
    rows = [job(n, requested_s=hours * 3600.0) for n, hours in enumerate((2, 10, 20, 24))]
    lake = lake_of(rows, '{"queues": {"normal": {"max_walltime_h": 20}}}')
    assert ask(lake, "request-accuracy").rows[0]["share_at_max"] == 0.5


def test_without_a_limit_the_largest_request_of_the_queue_counts(
    lake_of: Callable[..., Lake],
) -> None:
    rows = [
        job(1, requested_s=7200.0),
        job(2, requested_s=36000.0),
        job(3, requested_s=7200.0, queue=None),
        job(4, requested_s=3600.0, queue=None),
    ]
    assert ask(lake_of(rows), "request-accuracy").rows[0]["share_at_max"] == 0.5


def test_the_largest_request_is_that_of_the_whole_log(lake_of: Callable[..., Lake]) -> None:
    """Who always asks for an hour does not ask for the most, even when seen alone."""
    lake = lake_of([job(1, requested_s=3600.0), job(2, user="bob", requested_s=36000.0)])
    (row,) = ask(lake, "request-accuracy", where="user = 'ann'").rows
    assert (row["num_jobs"], row["share_at_max"], row["share_with_known_limit"]) == (1, 0.0, 0.0)


def test_by_quarter(lake_of: Callable[..., Lake]) -> None:
    rows = [
        job(1, requested_s=7200.0),
        job(2, submitted_at=utc("2018-05-01T00:00:00"), run_s=7200.0),
    ]
    table = ask(lake_of(rows), "request-accuracy-by-quarter").rows
    assert [(r["quarter"], r["median"], r["sd"]) for r in table] == [
        ("2018Q1", 0.5, None),
        ("2018Q2", 1.0, None),
    ]


def test_no_jobs_no_rows(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([])
    assert ask(lake, "request-accuracy").rows == []
    assert ask(lake, "request-accuracy-by-quarter").rows == []


def test_the_published_log(aaic_lake: Lake) -> None:
    (row,) = ask(aaic_lake, "request-accuracy").rows
    assert row["num_jobs"] == 308_555
    assert [round(row[name], 3) for name in ("mean", "sd", "median")] == [0.107, 0.150, 0.040]
    assert row["p75"] < 0.2
    assert round(100 * row["share_at_max"], 2) == 36.54
