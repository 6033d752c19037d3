"""The synthetic cluster's jobs fit the machine that it states, and wait where it is full."""

from __future__ import annotations

import numpy as np
import pytest

from hakaru.engine.duckdb import connect, one_row
from hakaru.settings import Engine
from hakaru.sources.synth import Synth, jobs_table
from hakaru.sources.synth._jobs import BLOCK
from hakaru.sources.synth._schedule import PIECE, Room
from tests.sources.synth._made import as_one

BUSIEST = """
    SELECT max(busy) FROM (
        SELECT sum(change) OVER (ORDER BY moment, change) AS busy
        FROM (SELECT started_at AS moment, num_gpus AS change FROM jobs
              UNION ALL SELECT ended_at, -num_gpus FROM jobs))
"""


@pytest.mark.parametrize(
    ("spec", "num_gpus"),
    [
        (Synth(num_jobs=30_000, cluster="demo", samples_days=1), 304),
        (Synth(num_jobs=30_000, samples_days=0, load=1.0), 304),
        (Synth(num_jobs=BLOCK + 20_000, samples_days=3, seed=5, load=0.9), 304),
        (Synth(num_jobs=6_000, seed=3, num_nodes=6, days=5, samples_days=1), 48),
        (Synth(num_jobs=400, num_nodes=1, gpus_per_node=1, samples_days=0.5), 1),
    ],
)
def test_no_more_gpus_are_busy_than_the_machine_has(spec: Synth, num_gpus: int) -> None:
    """At any moment, with and without samples, however much work there is."""
    con = connect(Engine())
    con.register("jobs", as_one(jobs_table(spec)))
    assert one_row(con, BUSIEST)[0] <= num_gpus
    early = "SELECT count(*) FROM jobs WHERE started_at < submitted_at OR wait_s < 4"
    assert one_row(con, early) == (0,)


def test_waits_come_from_the_load() -> None:
    con = connect(Engine())
    waits = {}
    for load in (0.1, 0.9):
        con.register("jobs", as_one(jobs_table(Synth(num_jobs=20_000, load=load, samples_days=0))))
        waits[load] = one_row(con, "SELECT avg(wait_s) FROM jobs")[0]
    assert waits[0.9] > 5 * waits[0.1]


def test_first_come_first_served_by_hand() -> None:
    """Ten GPUs. The third finds 2 free and waits for the first; the fourth may not pass it."""
    room = Room(10)
    ready, gpus, run_s = np.array([[0, 1, 2, 3, 60], [4, 4, 6, 1, 10], [50, 100, 8, 5, 7]])
    # 50: the first ends, 6 free, the third takes them; 58: it ends, the fourth takes one of 6;
    # 101: the second ends, all ten are free
    assert room.begin(ready, gpus, run_s).tolist() == [0, 1, 50, 58, 101]
    assert room.begin(np.array([104]), np.array([1]), np.array([1])).tolist() == [108]


def test_jobs_that_find_room_begin_as_they_come() -> None:
    """A job that ends in the same second makes room."""
    ready = np.arange(3 * PIECE)
    one = np.ones_like(ready)
    assert (Room(1).begin(ready, one, one) == ready).all()
    # each runs for 2 s on the only GPU, so each waits a second longer than the one before
    assert (Room(1).begin(ready, one, 2 * one) == 2 * ready).all()


def test_tried_at_once_or_one_by_one_is_the_same() -> None:
    rng = np.random.default_rng(1)
    ready = np.sort(rng.integers(0, 150_000, 8 * PIECE))
    gpus, run_s = rng.integers(1, 9, len(ready)), rng.integers(1, 700, len(ready))
    slow = Room(64)
    alone = [
        slow.begin(*(column[i : i + 1] for column in (ready, gpus, run_s)))
        for i in range(len(ready))
    ]
    started = Room(64).begin(ready, gpus, run_s)
    assert 0 < (started > ready).mean() < 0.9
    assert (started == np.concatenate(alone)).all()
