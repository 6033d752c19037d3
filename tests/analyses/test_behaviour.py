from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hakaru.errors import HakaruError
from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.conftest import job, utc

T0 = utc("2018-01-01T00:00:00")
HOUR = 3600


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def stay(number: int, submit: float, end: float | None, **columns: Any) -> dict[str, Any]:
    """A job that starts at once; without an end it still runs."""
    times = {"submitted_at": at(submit), "started_at": at(submit), "wait_s": 0.0}
    if end is None:
        times |= {"ended_at": None, "run_s": None, "state": "running"}
    else:
        times |= {"ended_at": at(end), "run_s": float(end - submit)}
    return job(number, **(times | columns))


def submitted(times_by_user: dict[str | None, list[float]]) -> list[dict[str, Any]]:
    pairs = [(user, t) for user, times in times_by_user.items() for t in times]
    return [stay(i, t, t + 1, user=user) for i, (user, t) in enumerate(pairs)]


def test_gaps_of_anyone_and_of_one_user(lake_of: Callable[..., Lake]) -> None:
    anyone, same = ask(
        lake_of(submitted({"ann": [10, 0, 0], "bob": [4], None: [5, 5]})), "interarrivals"
    ).rows
    # 0 0 4 5 5 10
    assert (anyone["submissions"], anyone["num_gaps"], anyone["mean_s"]) == ("all", 5, 2.0)
    assert (anyone["median_s"], anyone["p75_s"], anyone["share_zero"]) == (1.0, 4.0, 0.4)
    assert anyone["sd_s"] == pytest.approx(np.std([0, 4, 1, 0, 5], ddof=1))
    assert anyone["cv"] == pytest.approx(np.std([0, 4, 1, 0, 5], ddof=1) / 2)
    # ann's 0 and 10; nobody's two are not one user's
    assert (same["submissions"], same["num_gaps"], same["mean_s"]) == ("same user", 2, 5.0)
    assert (same["p90_s"], same["share_zero"]) == (9.0, 0.5)


def test_one_job_has_no_gap(lake_of: Callable[..., Lake]) -> None:
    rows = ask(lake_of(submitted({None: [0]})), "interarrivals").rows
    assert [row["num_gaps"] for row in rows] == [0, 0]
    assert [row["mean_s"] for row in rows] == [None, None]


def test_gaps_within_groups(lake_of: Callable[..., Lake]) -> None:
    rows = [stay(i, t, t + 1, queue=q) for i, (t, q) in enumerate([(0, "a"), (5, "b"), (20, "a")])]
    found = ask(lake_of(rows), "interarrivals", by="queue").rows
    assert [(r["queue"], r["num_gaps"], r["mean_s"]) for r in found[:3]] == [
        ("a", 1, 20.0),
        ("a", 1, 20.0),
        ("b", 0, None),
    ]


def test_think_time(lake_of: Callable[..., Lake]) -> None:
    late = 300 + 8 * HOUR
    rows = [
        stay(1, 0, 100),
        stay(2, 50, 200),  # submitted while 1 runs
        stay(3, 260, 300),  # 60 s after 2
        stay(4, late, late + 10),  # 8 h after 3, just within
        stay(5, late + 11 + 8 * HOUR, None),  # a second more than 8 h after 4, and still running
        stay(6, late + 20 + 8 * HOUR, late + 30 + 8 * HOUR),
        stay(7, 210, 220, user="bob"),
    ]
    (row,) = ask(lake_of(rows), "think-time").rows
    assert (row["num_pairs"], row["num_within"]) == (4, 2)
    assert (row["share_overlapping"], row["share_within"], row["share_longer"]) == (0.25, 0.5, 0.25)
    assert (row["mean_s"], row["median_s"]) == (14430.0, 14430.0)
    assert row["p25_s"] == 60 + 0.25 * (8 * HOUR - 60)
    (row,) = ask(lake_of(rows), "think-time", {"max_h": 1}).rows
    assert (row["num_within"], row["share_longer"], row["mean_s"]) == (1, 0.5, 60.0)


def test_of_a_burst_the_last_to_end_counts(lake_of: Callable[..., Lake]) -> None:
    rows = [stay(1, 0, 90), stay(2, 0, 10), stay(3, 100, 110), stay(4, 0, 20, user=None)]
    result = ask(lake_of(rows), "think-time")
    (row,) = result.rows
    assert (row["num_pairs"], row["share_overlapping"], row["mean_s"]) == (2, 0.5, 10.0)
    assert [entry.num_jobs for entry in result.left_out] == [1]


def test_a_pause_is_not_negative(lake_of: Callable[..., Lake]) -> None:
    with pytest.raises(HakaruError, match="max_h is between"):
        ask(lake_of([]), "think-time", {"max_h": -1})


def test_concentration(lake_of: Callable[..., Lake]) -> None:
    rows = submitted({"ann": list(range(6)), "bob": [7, 8, 9], "cyd": [10], None: [11, 12]})
    rows[0] |= {"run_s": 91 * 3600.0}
    for row in rows[1:]:
        row["run_s"] = 3600.0
    lake = lake_of(rows)
    user, account = ask(lake, "concentration").rows
    assert (user["holder"], user["num_holders"], user["total_weight"]) == ("user", 3, 12.0)
    assert (user["share_top1"], user["share_top3"]) == (0.6, 1.0)
    assert (user["share_top_tenth"], user["share_top10"]) == (0.6, 1.0)
    assert user["gini"] == pytest.approx(2 * (1 * 1 + 2 * 3 + 3 * 6) / (3 * 10) - 4 / 3)
    assert user["share_unknown"] == pytest.approx(2 / 12)
    assert (account["holder"], account["num_holders"]) == ("account", 1)
    assert (account["gini"], account["share_unknown"]) == (0.0, 0.0)

    hours, _ = ask(lake, "concentration", weight="gpu-hours").rows
    assert hours["total_weight"] == 102.0
    assert hours["share_top1"] == pytest.approx(96 / 100)


def test_jobs_of_unknown_weight_are_left_out_and_counted(lake_of: Callable[..., Lake]) -> None:
    rows = [stay(1, 0, HOUR), stay(2, 0, HOUR, user="bob", run_s=None)]
    result = ask(lake_of(rows), "concentration", weight="gpu-hours")
    assert result.rows[0]["num_holders"] == 1
    assert [entry.num_jobs for entry in result.left_out] == [1]


def test_no_weight_no_share(lake_of: Callable[..., Lake]) -> None:
    row = ask(lake_of([stay(1, 0, 0)]), "concentration", weight="gpu-hours").rows[0]
    assert (row["num_holders"], row["share_top1"], row["gini"]) == (1, None, None)


@pytest.mark.parametrize("id", ["interarrivals", "think-time", "concentration"])
def test_no_jobs_no_rows(lake_of: Callable[..., Lake], id: str) -> None:
    assert ask(lake_of([]), id).rows == []


@pytest.fixture(scope="module")
def log(aaic_files: list[Path]) -> pd.DataFrame:
    frames = [pd.read_csv(p, skipinitialspace=True).assign(log=i) for i, p in enumerate(aaic_files)]
    return pd.concat(frames, ignore_index=True)


def test_gaps_of_the_published_log(aaic_lake: Lake, log: pd.DataFrame) -> None:
    ordered = log.sort_values("time_submit")
    gaps = {
        "all": np.diff(ordered["time_submit"]),
        "same user": ordered.groupby(["log", "user"])["time_submit"].diff().dropna(),
    }
    for row in ask(aaic_lake, "interarrivals").rows:
        expected = np.asarray(gaps[row["submissions"]], dtype=float)
        assert row["num_gaps"] == len(expected)
        assert row["mean_s"] == pytest.approx(expected.mean())
        assert row["sd_s"] == pytest.approx(expected.std(ddof=1))
        assert row["p90_s"] == pytest.approx(np.percentile(expected, 90))
        assert row["share_zero"] == pytest.approx((expected == 0).mean())


def test_think_time_of_the_published_log(aaic_lake: Lake, log: pd.DataFrame) -> None:
    ordered = log.sort_values(["time_submit", "time_end"], kind="stable")
    after = ordered.groupby(["log", "user"])["time_submit"].shift(-1)
    pauses = (after - ordered["time_end"]).dropna().to_numpy()
    within = pauses[(pauses >= 0) & (pauses <= 8 * HOUR)]
    (row,) = ask(aaic_lake, "think-time").rows
    assert (row["num_pairs"], row["num_within"]) == (len(pauses), len(within))
    assert row["share_overlapping"] == pytest.approx((pauses < 0).mean())
    assert row["mean_s"] == pytest.approx(within.mean())
    assert row["sd_s"] == pytest.approx(within.std(ddof=1))
    assert row["p75_s"] == pytest.approx(np.percentile(within, 75))


def test_concentration_of_the_published_log(aaic_lake: Lake, log: pd.DataFrame) -> None:
    hours = log["nodes"] * log["gpus"] * log["walltime"] / 3600
    totals = hours.groupby([log["log"], log["user"]]).sum().sort_values().to_numpy()
    user = ask(aaic_lake, "concentration", weight="gpu-hours").rows[0]
    assert (user["num_holders"], len(totals)) == (275, 275)
    assert user["share_top3"] == pytest.approx(totals[-3:].sum() / totals.sum())
    assert user["share_top_tenth"] == pytest.approx(totals[-28:].sum() / totals.sum())
    apart = np.abs(totals[:, None] - totals[None, :]).mean()
    assert user["gini"] == pytest.approx(apart / (2 * totals.mean()))
