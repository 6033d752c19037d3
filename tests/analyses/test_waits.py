from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hakaru.lake import Lake
from tests.analyses._ask import ask
from tests.conftest import job, utc

T0 = utc("2018-01-01T00:00:00")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def waited(number: int, wait_s: float, **columns: Any) -> dict[str, Any]:
    times = {"started_at": at(wait_s), "ended_at": at(wait_s + 60), "wait_s": wait_s}
    return job(number, **(times | columns))


NEVER_STARTED = {"started_at": None, "ended_at": None, "wait_s": None, "run_s": None}


@pytest.fixture
def held(lake_of: Callable[..., Lake]) -> Lake:
    rows = [
        waited(1, 10.0, eligible_at=at(0)),
        waited(2, 160.0, eligible_at=at(100)),
        waited(3, 4000.0),
        waited(4, 30.0, eligible_at=at(31)),  # eligible after its start: no part is known
        job(5, **(NEVER_STARTED | {"state": "cancelled", "ended_at": at(600)})),
    ]
    return lake_of(rows)


def test_the_parts_of_a_wait(held: Lake) -> None:
    result = ask(held, "waits")
    hold, queue, whole = result.rows
    assert [hold["part"], queue["part"], whole["part"]] == [
        "submit to eligible",
        "eligible to start",
        "submit to start",
    ]
    assert (hold["num_jobs"], hold["mean_s"], hold["max_s"]) == (2, 50.0, 100.0)
    assert (queue["num_jobs"], queue["mean_s"], queue["median_s"]) == (2, 35.0, 35.0)
    assert queue["sd_s"] == pytest.approx(50 / 2**0.5)
    assert (whole["num_jobs"], whole["mean_s"], whole["median_s"]) == (4, 1050.0, 95.0)
    assert whole["p90_s"] == pytest.approx(160 + 0.7 * 3840)
    assert (whole["share_within_1min"], whole["share_within_1h"]) == (0.5, 0.75)
    assert [entry.num_jobs for entry in result.left_out] == [1]


def test_the_whole_is_the_recorded_wait(lake_of: Callable[..., Lake]) -> None:
    whole = ask(lake_of([waited(1, 10.0) | {"wait_s": 12.0}]), "waits").rows[2]
    assert (whole["mean_s"], whole["sd_s"]) == (12.0, None)


def test_unknown_eligible_times_leave_the_parts_empty(lake_of: Callable[..., Lake]) -> None:
    rows = ask(lake_of([waited(1, 10.0)]), "waits").rows
    assert [row["num_jobs"] for row in rows] == [0, 0, 1]
    assert {rows[0][name] for name in rows[0] if name not in ("part", "num_jobs")} == {None}


def test_what_became_of_the_wait(lake_of: Callable[..., Lake]) -> None:
    gone = NEVER_STARTED | {"state": "cancelled"}
    rows = [
        waited(1, 10.0, ended_at=at(9000)),
        waited(2, 20.0, ended_at=None, state="running"),
        job(3, **(gone | {"ended_at": at(600)})),
        job(4, **(gone | {"ended_at": at(1800), "state": "failed"})),
        job(5, **(NEVER_STARTED | {"state": "pending", "submitted_at": at(1000)})),
        job(6, **(NEVER_STARTED | {"state": "completed", "ended_at": at(50)})),
        job(7, **(NEVER_STARTED | {"state": None})),
        job(8, **gone),
    ]
    found = {row["fate"]: row for row in ask(lake_of(rows), "abandoned-waits").rows}
    assert list(found) == ["started", "abandoned", "pending", "unknown"]
    assert [row["num_jobs"] for row in found.values()] == [2, 2, 1, 3]
    assert [row["share"] for row in found.values()] == [0.25, 0.25, 0.125, 0.375]
    assert found["started"]["mean_s"] == 15.0
    assert (found["abandoned"]["median_s"], found["abandoned"]["p90_s"]) == (1200.0, 1680.0)
    assert found["pending"]["median_s"] == 8000.0  # until the last event, the end of job 1
    assert found["unknown"]["median_s"] is None


def test_groups_keep_to_themselves(lake_of: Callable[..., Lake]) -> None:
    rows = [waited(1, 10.0), waited(2, 30.0, queue="long"), waited(3, 50.0, queue="long")]
    found = ask(lake_of(rows), "waits", by="queue").rows
    whole = {row["queue"]: row["mean_s"] for row in found if row["part"] == "submit to start"}
    assert whole == {"long": 40.0, "normal": 10.0}
    fates = ask(lake_of(rows), "abandoned-waits", by="queue").rows
    assert [row["num_jobs"] for row in fates] == [2, 0, 0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("id", ["waits", "abandoned-waits"])
def test_no_jobs_no_rows(lake_of: Callable[..., Lake], id: str) -> None:
    assert ask(lake_of([]), id).rows == []


def test_the_published_log(aaic_lake: Lake, aaic_files: list[Path]) -> None:
    frames = [pd.read_csv(path, skipinitialspace=True) for path in aaic_files]
    wait_s = pd.concat(frames)["waittime"].to_numpy(dtype=float)
    whole = ask(aaic_lake, "waits").rows[2]
    assert whole["num_jobs"] == len(wait_s) == 459_545
    assert whole["mean_s"] == pytest.approx(wait_s.mean())
    assert whole["sd_s"] == pytest.approx(wait_s.std(ddof=1))
    for name, p in (("median_s", 50), ("p90_s", 90), ("p95_s", 95), ("p99_s", 99)):
        assert whole[name] == pytest.approx(np.percentile(wait_s, p))
    assert whole["share_within_1min"] == pytest.approx((wait_s <= 60).mean())
    assert ask(aaic_lake, "abandoned-waits").rows[1]["num_jobs"] == 0


def test_percentiles_and_bounds_at_their_edges(lake_of: Callable[..., Lake]) -> None:
    """21 waits of 0, 60, …, 1200 s: the 95th percentile is the 20th of them."""
    lake = lake_of([job(i, wait_s=60.0 * i) for i in range(21)])
    whole = next(row for row in ask(lake, "waits").rows if row["part"] == "submit to start")
    assert (whole["median_s"], whole["p90_s"], whole["p95_s"]) == (600, 1080, 1140)
    assert whole["p99_s"] == pytest.approx(1188)
    assert whole["share_within_1min"] == pytest.approx(2 / 21), "0 s and 60 s itself"


def test_an_hour_itself_is_within_an_hour(lake_of: Callable[..., Lake]) -> None:
    lake = lake_of([job(i, wait_s=wait) for i, wait in enumerate((10.0, 3600.0, 3601.0, 9000.0))])
    whole = next(row for row in ask(lake, "waits").rows if row["part"] == "submit to start")
    assert whole["share_within_1h"] == 0.5
