"""The synthetic cluster's figures against AAIC's published ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hakaru.engine.duckdb import connect, one_row
from hakaru.settings import Engine
from hakaru.sources.synth import Synth, jobs_table
from hakaru.sources.synth._tables import run_quantiles
from tests.sources.synth._made import as_one

MANY = Synth(num_jobs=200_000, seed=20, samples_days=0)


Ask = Callable[[str], tuple[Any, ...]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Questions to 200,000 jobs, with the paper's classes and the queues' maxima."""
    con = connect(Engine())
    con.register("made", as_one(jobs_table(MANY)))
    con.execute(
        """
        CREATE TABLE jobs AS
        SELECT *, CASE WHEN num_nodes > 1 THEN 'multi' WHEN num_gpus > 1 THEN 'node' ELSE 'single' END
                  AS class,
               CASE queue WHEN 'normal' THEN 72 WHEN 'short' THEN 3 WHEN 'middle' THEN 168
                    ELSE 336 END * 3600 AS max_s,
               timezone('Asia/Tokyo', submitted_at) AS local
        FROM made
        """
    )
    con.execute(
        "CREATE VIEW good AS SELECT *, run_s / 3600 AS run_h, run_s / requested_s AS wra FROM jobs "
        "WHERE run_s >= 60 AND state = 'completed'"
    )
    yield lambda sql: one_row(con, sql)
    con.close()


def share(ask: Ask, condition: str, table: str = "jobs") -> float:
    return float(ask(f"SELECT avg(CAST({condition} AS INTEGER)) FROM {table}")[0])


# ---- the published figures


# Tolerances are some three standard deviations over 30 seeds.
@pytest.mark.parametrize(
    ("condition", "table", "published", "tolerance"),
    [
        ("queue = 'normal'", "jobs", 0.852, 0.02),  # Fig. 2
        ("queue = 'short'", "jobs", 0.139, 0.02),
        ("queue = 'middle'", "jobs", 0.006, 0.005),
        ("queue = 'long'", "jobs", 0.003, 0.002),
        ("state = 'completed'", "jobs", 0.832, 0.004),  # Fig. 3
        ("state = 'failed'", "jobs", 0.054, 0.004),
        ("state = 'cancelled'", "jobs", 0.103, 0.005),
        ("state = 'timeout'", "jobs", 0.011, 0.004),
        ("run_s < 60", "jobs", 0.215, 0.01),  # section 5.1: 98,789 of 459,545
        ("run_h <= 3", "good WHERE class = 'single'", 0.84, 0.015),  # section 5.3
        ("run_h <= 3", "good WHERE class = 'node'", 0.35, 0.04),
        ("run_h >= 24", "good WHERE class = 'single'", 0.02, 0.009),
        ("run_h >= 24", "good WHERE class = 'node'", 0.22, 0.04),
        ("run_h >= 24", "good WHERE class = 'multi'", 0.04, 0.035),
        ("class = 'single'", "jobs WHERE run_s >= 60", 0.962, 0.003),  # Fig. 6a
        ("class = 'node'", "jobs WHERE run_s >= 60", 0.033, 0.003),
        ("class = 'multi'", "jobs WHERE run_s >= 60", 0.005, 0.001),
        (
            "num_gpus IN (2, 4, 8)",
            "jobs WHERE class = 'node' AND run_s >= 60",
            0.97,
            0.02,
        ),  # Fig. 6b
        ("requested_s = max_s", "good", 0.3654, 0.04),  # section 5.2
        ("wra < 0.2", "good", 0.813, 0.03),  # the log; Fig. 7a says three quarters and more
        ("wait_s <= 10", "jobs", 0.783, 0.04),  # the log
        ("wait_s > 3600", "jobs", 0.108, 0.05),
    ],
)
def test_shares(ask: Ask, condition: str, table: str, published: float, tolerance: float) -> None:
    assert share(ask, condition, table) == pytest.approx(published, abs=tolerance)


TABLE_3 = {"single": (2.461, 0.460), "node": (14.062, 5.576), "multi": (4.642, 0.187)}


@pytest.mark.parametrize("kind", TABLE_3)
def test_the_fitted_run_times_are_those_of_table_3(kind: str) -> None:
    """The fit itself, without sampling: mean and median of completed jobs of 60 s and more."""
    mean_h, median_h = TABLE_3[kind]
    chances, log_s = run_quantiles(kind, "completed")
    long = log_s >= np.log(60)
    share_below = (chances[long] - chances[long][0]) / (1 - chances[long][0])
    hours = np.exp(log_s[long]) / 3600
    mean = np.sum(np.diff(share_below) * (hours[1:] + hours[:-1]) / 2)
    assert mean == pytest.approx(mean_h, rel=0.04)
    assert np.interp(0.5, share_below, hours) == pytest.approx(median_h, rel=0.03)


# Tolerances are some three standard deviations over 30 seeds. There are but 200 multi-node jobs, from 60 s
# to 72 h with few around the median: the log's own median moves from 0.12 to 0.33 h in samples of 200,
# so what is compared is the share of jobs below the published median.
@pytest.mark.parametrize(
    ("kind", "mean_tolerance", "share_tolerance"),
    [("single", 0.1, 0.015), ("node", 0.15, 0.05), ("multi", 0.4, 0.09)],
)
def test_run_times(ask: Ask, kind: str, mean_tolerance: float, share_tolerance: float) -> None:
    mean_h, median_h = TABLE_3[kind]
    (mean,) = ask(f"SELECT avg(run_h) FROM good WHERE class = '{kind}'")
    assert mean == pytest.approx(mean_h, rel=mean_tolerance)
    below = share(ask, f"run_h <= {median_h}", f"good WHERE class = '{kind}'")
    assert below == pytest.approx(0.5, abs=share_tolerance)


def test_request_accuracy(ask: Ask) -> None:
    """Fig. 7a: mean 0.107, median 0.040."""
    mean, median = ask("SELECT avg(wra), median(wra) FROM good")
    assert mean == pytest.approx(0.107, abs=0.012)
    assert median == pytest.approx(0.040, abs=0.006)


def test_requests_are_round_and_kept(ask: Ask) -> None:
    assert share(ask, "requested_s % 60 = 0") == 1
    assert share(ask, "run_s <= requested_s AND requested_s <= max_s") == 1
    assert share(ask, "run_s = requested_s", "jobs WHERE state = 'timeout'") == 1


def test_queues_hold_what_they_allow(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM jobs WHERE num_nodes > 1 AND queue <> 'normal'") == (0,)
    assert ask("SELECT count(*) FROM jobs WHERE num_gpus > 1 AND queue = 'short'") == (0,)
    assert ask("SELECT count(*) FROM jobs WHERE num_nodes > 1 AND num_gpus <> 8 * num_nodes") == (
        0,
    )


def test_hours_and_weekdays(ask: Ask) -> None:
    """Fig. 9, in the site's zone: working hours and weekdays are busiest."""
    work = share(ask, "hour(local) BETWEEN 9 AND 20")
    assert work == pytest.approx(0.694, abs=0.05)
    assert share(ask, "isodow(local) > 5") == pytest.approx(0.137, abs=0.02)


def test_bursts_and_users(ask: Ask) -> None:
    """The log: half of a user's jobs follow the one before within a second, with a like run time."""
    (gap, alike) = ask(
        """
        SELECT median(gap), avg(CAST(abs(ln(run_s / last_run_s)) < ln(2) AS INTEGER))
        FROM (SELECT run_s, lag(run_s) OVER w AS last_run_s,
                     epoch(submitted_at) - lag(epoch(submitted_at)) OVER w AS gap
              FROM jobs WINDOW w AS (PARTITION BY "user" ORDER BY submitted_at, CAST(job_id AS INT)))
        """
    )
    assert gap <= 2
    assert alike > 0.56  # three standard deviations below the mean of the seeds; the log has 0.9
    top, num_users = ask(
        'SELECT max(n) / sum(n), count(*) FROM (SELECT count(*) n FROM jobs GROUP BY "user")'
    )
    assert 0.28 <= top <= 0.74
    assert 90 <= num_users <= 106


def test_mean_load_is_as_asked(ask: Ask) -> None:
    """38 nodes of 8 GPUs; the period follows from the load of 0.5."""
    (load_,) = ask(
        """
        SELECT sum(num_gpus * run_s) / (304 * (max(epoch(submitted_at)) - min(epoch(submitted_at))))
        FROM jobs
        """
    )
    assert load_ == pytest.approx(0.5, abs=0.05)
