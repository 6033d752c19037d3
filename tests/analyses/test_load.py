from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hakaru.analyses import load_all, open_session
from hakaru.lake import Lake
from hakaru.settings import parse
from tests.analyses._ask import ask
from tests.conftest import job, utc

T0 = utc("2018-01-01T00:00:00")
FOUR_GPUS = '{"nodes": 1, "gpus_per_node": 4}'
LEVELS = ("num_jobs_waiting", "num_pes_waiting", "num_jobs_running", "num_pes_busy")


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def stay(
    number: int, submit: float, start: float | None, end: float | None, **columns: Any
) -> dict[str, Any]:
    """A job by its minutes of submission, start and end."""
    times = {
        "submitted_at": at(submit),
        "started_at": None if start is None else at(start),
        "ended_at": None if end is None else at(end),
        "wait_s": None if start is None else (start - submit) * 60.0,
        "run_s": None if start is None or end is None else (end - start) * 60.0,
    }
    return job(number, **(times | columns))


@pytest.fixture
def two(lake_of: Callable[..., Lake]) -> Lake:
    return lake_of(
        [stay(1, 0, 10, 30, num_gpus=2), stay(2, 20, 20, 50, queue="long")], facts=FOUR_GPUS
    )


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def test_means_over_quarters_of_an_hour(two: Lake) -> None:
    rows = ask(two, "load").rows
    assert column(rows, "since_at") == [at(0), at(15), at(30), at(45)]
    assert column(rows, "until_at") == [at(15), at(30), at(45), at(50)]
    assert column(rows, "num_jobs_waiting") == pytest.approx([10 / 15, 0, 0, 0])
    assert column(rows, "num_pes_waiting") == pytest.approx([20 / 15, 0, 0, 0])
    assert column(rows, "num_jobs_running") == pytest.approx([5 / 15, 25 / 15, 1, 1])
    assert column(rows, "num_pes_busy") == pytest.approx([10 / 15, 40 / 15, 1, 1])
    assert column(rows, "num_pes_installed") == [4, 4, 4, 4]
    assert column(rows, "utilisation") == pytest.approx([1 / 6, 2 / 3, 0.25, 0.25])


def test_groups_share_the_time_axis(two: Lake) -> None:
    rows = ask(two, "load", by="queue").rows
    assert column(rows, "queue") == ["long"] * 4 + ["normal"] * 4
    assert column(rows, "num_pes_busy") == pytest.approx([0, 10 / 15, 1, 1, 10 / 15, 30 / 15, 0, 0])


def test_empty_bins_stand_between(lake_of: Callable[..., Lake]) -> None:
    rows = ask(lake_of([stay(1, 0, 0, 15), stay(2, 45, 45, 60)]), "load").rows
    assert column(rows, "num_pes_busy") == [1, 0, 0, 1]
    assert column(rows, "num_pes_installed") == [None] * 4
    assert column(rows, "utilisation") == [None] * 4


def test_who_still_waits_or_runs_does_so_to_the_end(lake_of: Callable[..., Lake]) -> None:
    rows = [
        stay(1, 0, 0, 60),
        stay(2, 15, 15, None, state="running"),
        stay(3, 30, None, None, state="pending", num_gpus=8),
        stay(4, 0, None, 45, state="cancelled", num_gpus=0),
        stay(5, 0, None, None, state="completed"),
        stay(6, 0, 0, 60, num_gpus=None),
    ]
    result = ask(lake_of(rows), "load")
    assert column(result.rows, "num_pes_busy") == [1, 2, 2, 2]
    assert column(result.rows, "num_jobs_waiting") == [1, 1, 2, 1]
    assert column(result.rows, "num_pes_waiting") == [0, 0, 8, 8]
    assert [entry.num_jobs for entry in result.left_out] == [1, 1]


def test_a_chosen_period_holds_what_was_there_already(lake_of: Callable[..., Lake]) -> None:
    rows = [
        stay(1, 0, 0, 600),
        stay(2, 0, 1, 2),
        stay(3, 0, 30, None, state="running"),
        stay(4, 0, 100, 110),
    ]
    chosen = {"since": "2018-01-01T01:00", "until": "2018-01-01T02:00"}
    result = ask(lake_of(rows), "load", **chosen)
    assert column(result.rows, "since_at") == [at(60), at(75), at(90), at(105)]
    assert column(result.rows, "num_pes_busy") == pytest.approx([2, 2, 2 + 5 / 15, 2 + 5 / 15])
    assert column(result.rows, "num_jobs_waiting") == pytest.approx([1, 1, 10 / 15, 0])
    assert result.num_selected == 3


def test_a_machine_that_grew(lake_of: Callable[..., Lake]) -> None:
    facts = (
        '{"gpus_per_node": 1, "nodes": [{"since": "2018-01-01T00:15", "count": 1},'
        ' {"since": "2018-01-01T00:40", "count": 4}]}'
    )
    rows = ask(lake_of([stay(1, 0, 0, 60)], facts=facts), "load").rows
    assert column(rows, "num_pes_installed") == [None, 1, 2, 4]
    assert column(rows, "utilisation") == [None, 1, 0.5, 0.25]


@pytest.mark.parametrize("bins", [2, 3, 10, 97, 400])
def test_never_more_bins_than_asked_for(lake_of: Callable[..., Lake], bins: int) -> None:
    lake = lake_of([stay(1, 7, 8, 60 * 24 * 100)])
    rows = ask(lake, "load", {"bins": bins}).rows
    assert 1 <= len(rows) <= bins
    assert rows[0]["since_at"] == at(7)
    assert rows[-1]["until_at"] == at(60 * 24 * 100)
    assert column(rows[:-1], "until_at") == column(rows[1:], "since_at")


def test_days_begin_on_the_sites_clock(lake_of: Callable[..., Lake]) -> None:
    """In Berlin the 28th of October 2018 had 25 hours."""
    rows = [job(1, submitted_at=utc("2018-10-26T00:00"), ended_at=utc("2018-10-31T12:00"))]
    rows[0]["started_at"] = rows[0]["submitted_at"]
    found = ask(lake_of(rows, facts='{"zone": "Europe/Berlin"}'), "load", {"bins": 7}).rows
    assert column(found, "since_at")[1:4] == [
        utc("2018-10-26T22:00"),
        utc("2018-10-27T22:00"),
        utc("2018-10-28T23:00"),
    ]
    assert set(column(found, "num_pes_busy")) == {1.0}


def test_a_moment_is_a_second(lake_of: Callable[..., Lake]) -> None:
    rows = ask(lake_of([stay(1, 0, 0, 0)]), "load").rows
    assert column(rows, "num_pes_busy") == [0.0]


def test_utilisation_by_quarter_on_the_sites_clock(lake_of: Callable[..., Lake]) -> None:
    facts = (
        '{"zone": "Asia/Tokyo", "gpus_per_node": 4, "nodes": [{"since": "2018-01-01", "count": 1}]}'
    )
    new_year = {"started_at": utc("2017-12-31T14:00"), "ended_at": utc("2017-12-31T17:00")}
    rows = [job(1, submitted_at=utc("2017-12-31T14:00"), num_gpus=2, **new_year)]
    whole, old, new = ask(lake_of(rows, facts=facts), "utilisation").rows
    assert (old["quarter"], old["span_h"], old["busy_pe_hours"]) == ("2017Q4", 1.0, 2.0)
    assert (old["installed_pe_hours"], old["utilisation"]) == (None, None)
    assert (new["quarter"], new["busy_pe_hours"]) == ("2018Q1", 4.0)
    assert (new["installed_pe_hours"], new["utilisation"]) == (8.0, 0.5)
    assert (whole["quarter"], whole["busy_pe_hours"], whole["utilisation"]) == ("all", 6.0, None)


def test_utilisation_of_groups_adds_up(two: Lake) -> None:
    whole = ask(two, "utilisation").rows[0]
    parts = [row for row in ask(two, "utilisation", by="queue").rows if row["quarter"] == "all"]
    assert whole["utilisation"] == pytest.approx(70 / 200)
    assert column(parts, "utilisation") == pytest.approx([30 / 200, 40 / 200])


@pytest.mark.parametrize("id", ["load", "utilisation"])
def test_no_jobs_no_rows(lake_of: Callable[..., Lake], id: str) -> None:
    assert ask(lake_of([]), id).rows == []


@pytest.fixture(scope="module")
def log(aaic_files: list[Path]) -> pd.DataFrame:
    return pd.concat([pd.read_csv(path, skipinitialspace=True) for path in aaic_files])


def overlap_s(log: pd.DataFrame, first: str, last: str, since: float, until: float) -> np.ndarray:
    ends = np.minimum(log[last].to_numpy(), until) - np.maximum(log[first].to_numpy(), since)
    return np.maximum(ends, 0)


def test_the_published_log(aaic_lake: Lake, log: pd.DataFrame) -> None:
    gpus = (log["nodes"] * log["gpus"]).to_numpy()
    rows = ask(aaic_lake, "load", {"bins": 60}).rows
    assert 20 < len(rows) <= 60
    for row in rows:
        since, until = row["since_at"].timestamp(), row["until_at"].timestamp()
        waiting = overlap_s(log, "time_submit", "time_start", since, until) / (until - since)
        running = overlap_s(log, "time_start", "time_end", since, until) / (until - since)
        expected = [waiting.sum(), gpus @ waiting, running.sum(), gpus @ running]
        assert [row[name] for name in LEVELS] == pytest.approx(expected)


def test_utilisation_of_the_published_log(aaic_lake: Lake, log: pd.DataFrame) -> None:
    gpus = (log["nodes"] * log["gpus"]).to_numpy()
    rows = {row["quarter"]: row for row in ask(aaic_lake, "utilisation").rows}
    assert list(rows) == ["all", "2017Q3", "2017Q4", "2018Q1", "2018Q2", "2018Q3", "2018Q4"]
    whole = gpus @ (log["time_end"] - log["time_start"]).to_numpy() / 3600
    assert rows["all"]["busy_pe_hours"] == pytest.approx(whole)
    spring = [
        pd.Timestamp(day, tz="Asia/Tokyo").timestamp() for day in ("2018-04-01", "2018-07-01")
    ]
    busy = gpus @ overlap_s(log, "time_start", "time_end", *spring) / 3600
    assert rows["2018Q2"]["busy_pe_hours"] == pytest.approx(busy)
    assert rows["2018Q2"]["utilisation"] is None  # the log does not say how many nodes there were


def test_utilisation_where_the_settings_know_the_nodes(aaic_lake: Lake) -> None:
    settings = parse({"clusters": {"aaic": {"nodes": 38}}}, aaic_lake.facts(), "hakaru.toml")
    with open_session(aaic_lake, settings=settings) as session:
        rows = session.run(load_all().get("utilisation")).rows
    spring = next(row for row in rows if row["quarter"] == "2018Q2")
    assert spring["installed_pe_hours"] == pytest.approx(91 * 24 * 38 * 8)
    assert spring["utilisation"] == pytest.approx(spring["busy_pe_hours"] / (91 * 24 * 38 * 8))
