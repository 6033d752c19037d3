"""Columns, orders and shares that are easily taken for one another: values worked by hand, none equal."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.analyses.test_waits import at, waited
from tests.conftest import job, utc

Make = Callable[..., Lake]


def users(*amounts: int) -> list[dict[str, Any]]:
    """Users u0, u1, … with so many jobs each."""
    names = [f"u{n:02}" for n, amount in enumerate(amounts) for _ in range(amount)]
    return [job(i, user=name) for i, name in enumerate(names)]


# ---- parameters


@pytest.mark.parametrize(
    ("id", "params", "message"),
    [
        ("users", {"limit": 100_001}, "limit is between 1 and 100000, not 100001"),
        ("job-shapes", {"sample": 5001}, "sample is between 10 and 5000"),
        ("load", {"bins": 1}, "bins is between 2 and 100000"),
        ("walltime", {"long_h": "inf"}, "long_h is a finite number"),
        ("walltime", {"long_h": "nan"}, "long_h is a finite number"),
        ("users", {"limit": 1.5e9}, "limit is between"),
    ],
)
def test_parameters_have_two_ends(
    lake_of: Make, id: str, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(HakaruError, match=message):
        ask(lake_of([]), id, params)


def test_the_ends_of_a_parameter_are_allowed(lake_of: Make) -> None:
    lake = lake_of([job(1), job(2)])
    assert len(ask(lake, "users", {"limit": 1}).rows) == 1
    assert len(ask(lake, "users", {"limit": 10_000}).rows) == 1


# ---- queues and states


def test_the_most_jobs_come_first_and_the_most_is_each_column_s_own(lake_of: Make) -> None:
    rows = [job(1, queue="a"), *(job(i, queue="b", state="timeout") for i in (2, 3))]
    rows.append(job(4, queue="b", num_nodes=3, num_gpus=24, requested_s=18000.0, state="failed"))
    lake = lake_of(rows)
    assert [row["queue"] for row in ask(lake, "queues").rows] == ["b", "a"]
    first = ask(lake, "queues").rows[0]
    assert (first["max_requested_h"], first["max_nodes"], first["max_pes"]) == (5.0, 3, 24)
    assert [row["state"] for row in ask(lake, "states").rows] == ["timeout", "completed", "failed"]


# ---- people


def test_a_user_with_jobs_of_two_accounts_and_of_none(lake_of: Make) -> None:
    days = [utc(f"2018-01-{day:02}T00:00:00") for day in (5, 3, 9)]
    accounts = ("x", "y", None)
    rows = [
        job(i, account=account, submitted_at=day)
        for i, (account, day) in enumerate(zip(accounts, days, strict=True))
    ]
    (row,) = ask(lake_of(rows), "users").rows
    assert row["num_accounts"] == 2, "an unknown account is none"
    assert (row["first_submit"], row["last_submit"]) == (days[1], days[2])


def test_jobs_may_use_more_than_they_asked_for(lake_of: Make) -> None:
    rows = [job(i, run_s=run_s, requested_s=3600.0) for i, run_s in enumerate((5400.0, 7200.0))]
    assert ask(lake_of(rows), "users").rows[0]["median_request_accuracy"] == 1.75
    assert ask(lake_of(rows), "request-accuracy").rows[0]["most"] == 2.0


def test_quantiles_of_people_are_those_of_numpy(lake_of: Make) -> None:
    """Users of 1 to 12 jobs with waits from seconds to weeks, some of them equal and some unknown."""
    rng = np.random.default_rng(7)
    waits = {f"u{n:02}": np.round(10 ** rng.uniform(0, 6, n)) for n in range(1, 13)}
    waits["u13"] = np.array([0.0, 0.0, 5.0, 5.0, 5.0, 400.0])
    rows = [
        job(f"{user}-{i}", user=user, wait_s=float(wait))
        for user, values in waits.items()
        for i, wait in enumerate(values)
    ]
    rows += [job(f"{user}-none", user=user, wait_s=None) for user in waits]
    found = {row["user"]: row for row in ask(lake_of(rows), "users").rows}
    for user, values in waits.items():
        assert found[user]["median_wait_s"] == pytest.approx(np.percentile(values, 50))
        assert found[user]["p95_wait_s"] == pytest.approx(np.percentile(values, 95))


def test_shares_of_the_first_one_three_ten_and_tenth(lake_of: Make) -> None:
    """Twelve users with 12, 11, … 1 jobs, 78 in all; a tenth of twelve users are two."""
    lake = lake_of(users(*range(12, 0, -1)))
    user = ask(lake, "concentration").rows[0]
    taken = [user[f"share_{top}"] * 78 for top in ("top1", "top3", "top10", "top_tenth")]
    assert taken == pytest.approx([12, 33, 75, 23])


# ---- times


def test_the_quartiles_of_gaps_and_pauses(lake_of: Make) -> None:
    """Gaps, and pauses after jobs of no length, of 10, 20, … 110 s: the quarter is 35, nine tenths 100."""
    begin = utc("2018-01-01T00:00:00")
    moments = [begin + timedelta(seconds=5 * n * (n + 1)) for n in range(12)]
    rows = [
        job(i, submitted_at=moment, started_at=moment, ended_at=moment, run_s=0.0)
        for i, moment in enumerate(moments)
    ]
    lake = lake_of(rows)
    names = ("p25_s", "median_s", "p75_s", "p90_s")
    for row in (*ask(lake, "interarrivals").rows, *ask(lake, "think-time").rows):
        assert [row[name] for name in names] == pytest.approx([35, 60, 85, 100])


def test_a_job_that_was_eligible_before_its_submission_has_no_parts(lake_of: Make) -> None:
    rows = [
        waited(1, 100.0, eligible_at=at(-5)),
        waited(2, 100.0, eligible_at=at(0)),
        waited(3, 100.0, eligible_at=at(100)),
    ]
    hold, queue, _ = ask(lake_of(rows), "waits").rows
    assert (hold["num_jobs"], hold["mean_s"], queue["mean_s"]) == (2, 50.0, 50.0)


def test_a_fate_s_share_is_of_its_group(lake_of: Make) -> None:
    gone = {"started_at": None, "wait_s": None, "run_s": None, "state": "cancelled"}
    rows = [
        waited(1, 1.0),
        *(waited(i, 1.0, queue="b") for i in (2, 3, 4)),
        job(5, queue="b", **gone),
    ]
    found = ask(lake_of(rows), "abandoned-waits", by="queue").rows
    shares = {(row["queue"], row["fate"]): row["share"] for row in found}
    assert (shares["b", "started"], shares["b", "abandoned"]) == (0.75, 0.25)
    assert shares["normal", "started"] == 1.0


# ---- shapes


def test_applications_are_ranked_by_their_jobs_whatever_is_weighed(lake_of: Make) -> None:
    rows = [job(i, application="small") for i in range(3)]
    rows += [job(9, application="large", num_gpus=64)]
    found = ask(lake_of(rows), "walltime-by-application", {"top": 1}, weight="gpu-hours").rows
    assert {row["application"]: row["num_jobs"] for row in found} == {"small": 3, "(others)": 1}


def test_a_cell_s_share_is_of_its_group(lake_of: Make) -> None:
    rows = [job(i, queue="ab"[i > 0], requested_s=[100.0, 100.0, 9000.0][i]) for i in range(3)]
    found = ask(lake_of(rows), "request-vs-run", by="queue").rows
    assert [(row["queue"], row["share"]) for row in found] == [("a", 1.0), ("b", 0.5), ("b", 0.5)]


def test_jobs_on_an_unknown_number_of_nodes_span_none(lake_of: Make) -> None:
    rows = [job(1, num_gpus=16, num_nodes=None), job(2, num_gpus=4, num_nodes=2)]
    lake = lake_of(rows)
    assert [row["num_pes"] for row in ask(lake, "gpus-multi-node").rows] == [4]
    assert ask(lake, "gpus-single-node").rows == []


@pytest.mark.parametrize(("num", "is_enough"), [(29, False), (30, True)])
def test_thirty_jobs_on_a_side_are_enough(lake_of: Make, num: int, is_enough: bool) -> None:
    rows = [job(i, run_s=600.0 + i) for i in range(num)]
    rows += [job(100 + i, num_gpus=8, run_s=90_000.0 + i) for i in range(num)]
    readings = {row["reading"] for row in ask(lake_of(rows), "size-vs-walltime").rows}
    assert readings == ({"weak scaling"} if is_enough else {"too few jobs"})
