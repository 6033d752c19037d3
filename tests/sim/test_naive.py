"""The naive prediction of waits: a log worked by hand, and random ones worked the long way."""

from __future__ import annotations

import math
import statistics
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from hakaru import sim
from hakaru.cli import main
from hakaru.cli._replay import _judged
from hakaru.sim.naive import Score, better_naive, naive_waits, scores
from tests.sim._jobs import play, workload


def job(submit: int, wait: float | None, **more: Any) -> tuple[Any, ...]:
    start = None if wait is None else datetime.fromtimestamp(submit + wait, UTC)
    return submit, 10, 1, {"wait_s": wait, "started_at": start, **more}


def test_predictions_worked_by_hand():
    jobs = workload(
        job(0, 10, user="ann", queue="a"),  # nobody has begun: 0
        job(5, 5, user="ann", queue="a"),  # the first begins at 10: 0
        job(10, 40, user="ann", queue="a"),  # both begin at 10, which is not before: 0
        job(11, 100, user="ann", queue="a"),  # the median of 10 and 5
        job(20, 7, user="ben", queue="a"),  # knows none of ben: the queue's 10 and 5
        job(21, 1, user=None, queue="b"),  # nor of the queue: the log's 10 and 5
        job(28, 2, user="ben", queue="b"),  # ben's own, begun at 27: 7
        job(
            60, 3, user="ann", queue="b"
        ),  # 10, 5 and the 40 that ended at 50; the 100 has not begun
        job(200, 0, user="cat", queue="b"),  # the queue's: 1 (22), 2 (30), 3 (63)
        job(201, None, user="ann", queue="b"),  # 10, 5, 40, 3 and 100: not recorded, but predicted
        job(202, 9, user="dan", queue=None),  # the log's: 10, 5, 7, 1, 2, 40, 3, 100 and 0
    )
    expected = [0, 0, 0, 7.5, 7.5, 7.5, 7, 10, 2, 10, 5]
    assert naive_waits(jobs).tolist() == expected


def test_only_the_last_twenty_count():
    """Thirty waits of 1000 s, then twelve of 10 s: eight of the last twenty are long."""
    jobs = [job(2000 * i, 1000.0) for i in range(30)]
    jobs += [job(60_000 + 100 * i, 10.0) for i in range(11)]
    found = naive_waits(workload(*jobs, job(70_000, 0), job(70_010, 10)))
    assert found[30] == 1000
    assert found[39] == 1000  # nine short ones of twenty
    assert found[40] == 505  # ten and ten
    assert found[41] == 10  # eleven


def slow(rows: list[tuple[int, float | None, str | None, str | None]]) -> list[float]:
    """The definition, job by job."""
    found = []
    for submit, _, user, queue in rows:
        began = [
            (at + wait, number, wait, who, where)
            for number, (at, wait, who, where) in enumerate(rows)
            if wait is not None and at + wait < submit
        ]
        began.sort(key=lambda each: each[:2])
        for mine in (
            [each[2] for each in began if user is not None and each[3] == user],
            [each[2] for each in began if queue is not None and each[4] == queue],
            [each[2] for each in began],
        ):
            if mine:
                found.append(float(statistics.median(mine[-20:])))
                break
        else:
            found.append(0.0)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_random_logs_the_long_way(seed: int) -> None:
    random = np.random.default_rng(seed)
    submits = np.sort(random.integers(0, 4000, 300)).tolist()
    rows: list[Any] = []
    for submit in submits:
        wait = None if random.random() < 0.1 else float(random.integers(0, 5) ** 4)
        user = None if random.random() < 0.1 else str(random.choice(list("abcdefgh")))
        queue = None if random.random() < 0.2 else str(random.choice(["x", "y"]))
        rows.append((submit, wait, user, queue))
    jobs = workload(*(job(s, w, user=u, queue=q) for s, w, u, q in rows))
    assert naive_waits(jobs).tolist() == slow(rows)


# On one processor the waits are replayed as 0, 90 and 180 s; naively they are 0, 0 and 0 (nobody has begun).
JOBS = [(0, 100, 1), (10, 100, 1), (20, 100, 1)]


def test_both_are_held_against_the_record_by_the_same_measures():
    waits = (0.0, 30.0, 60.0)
    jobs = [(*each, job(each[0], wait)[3]) for each, wait in zip(JOBS, waits, strict=True)]
    schedule = play(jobs, sim.Machine.flat(1), "fcfs")
    replay, naive = scores(schedule, "UTC", None)
    # replayed in the mean 90 s and recorded 30 s; naively the third sees the first: 0 s
    assert (replay.mean_off_s, naive.mean_off_s) == (60, 30)
    # 60 s of the 60 that the record counts at least, and 30 of them
    assert (replay.months_within, naive.months_within, naive.num_months) == (0, 0, 1)
    assert (replay.share_within_5min, naive.share_within_5min) == (1, 1)
    assert replay.rank_correlation == pytest.approx(1)
    assert math.isnan(naive.rank_correlation)
    assert better_naive(replay, naive) == ["mean_off_s", "p95_off_s", "share_within_twice"]
    assert replay.share_within_twice == pytest.approx(2 / 3)  # 180 s for 60 s
    assert scores(schedule, "UTC", np.zeros(3, bool)) == []


def test_which_is_better_is_said_plainly():
    replay = Score("replay", 60, 60, 1, 2, 0.5, 0.5, 0.5)
    assert better_naive(replay, replay) == []
    assert _judged(replay, []) == (
        "The naive prediction is in no measure nearer to the record than the replay."
    )
    naive = Score("naive", 59, 61, 2, 2, 0.6, 0.4, 0.6)
    better = better_naive(replay, naive)
    assert better == ["mean_off_s", "months_within", "share_within_5min", "rank_correlation"]
    assert _judged(replay, better) == (
        "The naive prediction is better than the replay in 4 of 6 measures: mean of a month off by, months "
        "within 25 %, within 5 min, rank correlation."
    )
    assert _judged(replay, ["p95_off_s"]).startswith(
        "The replay is better by the mean of a month, but "
    )


def test_the_terminal_has_both(tmp_path):
    lines = ["; UnixStartTime: 0", "; MaxProcs: 1"]
    for number, (submit, wait) in enumerate(((0, 0), (10, 30), (20, 60)), 1):
        lines.append(f"{number} {submit} {wait} 100 1 -1 -1 1 100 -1 1 1 1 -1 1 -1 -1 -1")
    path = tmp_path / "small.swf"
    path.write_text("\n".join(lines) + "\n")
    result = CliRunner(env={"COLUMNS": "200"}).invoke(
        main, ["simulate", "--from", str(path), "--replay"]
    )
    assert result.exit_code == 0, result.output
    rows = {line.split("  ")[0]: line.split() for line in result.output.splitlines()}
    assert rows["the replay"][2:4] == ["60", "s"]
    assert rows["naive: the user's recent median"][5:7] == ["30", "s"]
    assert "The naive prediction is better than the replay in 3 of 6 measures" in result.output
