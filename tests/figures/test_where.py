"""A click leads to the jobs behind it: each item's filter finds as many jobs as the item counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from hakaru.analyses import Result, Selection, Session, load_all, open_session
from hakaru.figures import _where as where
from hakaru.figures import draw
from hakaru.lake import Lake
from tests.conftest import job, utc
from tests.figures._draw import items, run

COUNT = "SELECT count(*) AS num FROM jobs"


def found(session: Session, result: Result, text: str) -> int:
    """Jobs that the filter keeps of what was selected, without the analysis' own rules and groups."""
    chosen = replace(result.selection, where=text, by=None, weight="jobs")
    return int(session.ask(COUNT, chosen)["num"][0].as_py())


def check(session: Session, result: Result, counts: list[int]) -> None:
    texts = [item["where"] for item in items(draw(result)) if "where" in item]
    assert [found(session, result, text) for text in texts] == counts


@pytest.mark.parametrize("by", [None, "user", "num_gpus"])
@pytest.mark.parametrize(
    "id",
    ["queues", "states", "jobs-by-quarter", "parallelism", "gpus-single-node", "gpus-multi-node"],
)
def test_bars(sample: Session, id: str, by: str | None) -> None:
    """Every bar, of every group that is drawn."""
    result = run(sample, id, by=by)
    figure = draw(result)
    told = [item for item in items(figure) if item["value"] is not None]
    assert told
    step = max(1, len(told) // 12)
    for item in told[::step]:
        assert found(sample, result, item["where"]) == item["value"], item


@pytest.mark.parametrize("id", ["users-by-quarter", "states"])
def test_hours_are_not_counted_but_their_jobs_are_found(sample: Session, id: str) -> None:
    weight = "gpu-hours" if id == "states" else "jobs"
    result = run(sample, id, weight=weight)
    # two measures of one quarter lead to the same jobs
    twice = 2 if id == "users-by-quarter" else 1
    check(sample, result, [row["num_jobs"] for row in result.rows] * twice)


def test_quarters_of_the_end(sample: Session) -> None:
    result = sample.run(load_all().get("jobs-by-quarter"), quarter="ended")
    check(sample, result, [row["num_jobs"] for row in result.rows])


def test_a_log_is_found_by_its_name(lake_of: Callable[..., Lake]) -> None:
    ids = ["2018Q1/1", "2018Q1/2", "2018Q2/1", "77"]
    rows = [job(0) | {"job_id": id, "submitted_at": utc("2018-03-01T00:00:00")} for id in ids]
    with open_session(lake_of(rows)) as session:
        result = session.run(load_all().get("jobs-by-quarter"), quarter="log")
        check(session, result, [2, 1, 1])


def test_stacked_bars(sample: Session) -> None:
    result = run(sample, "parallelism-by-quarter")
    counts = [i for i in items(draw(result)) if "where" in i]
    half = counts[: len(counts) // 2]  # the panel of counts comes before that of shares
    assert [found(sample, result, i["where"]) for i in half] == [i["value"] for i in half]


def test_boxes(sample: Session) -> None:
    result = run(sample, "request-accuracy-by-quarter")
    check(sample, result, [row["num_jobs"] for row in result.rows])


def test_curves(sample: Session) -> None:
    """A point leads to the jobs up to it."""
    for id, key in (("walltime-cdf", "class"), ("walltime-by-application", "application")):
        result = run(sample, id)
        figure = draw(result)
        expected = list(running_totals(result.rows, key))
        points = list(items(figure))
        assert len(points) == len(expected)
        for item, count in list(zip(points, expected, strict=True))[::17]:
            if "where" in item:
                assert found(sample, result, item["where"]) == count
    assert "where" not in points[-1], "the applications that count together have no filter"


def running_totals(rows: list[dict[str, Any]], key: str) -> Iterator[int]:
    total, last = 0, None
    for row in rows:
        total = row["num_jobs"] + (total if row[key] == last else 0)
        last = row[key]
        yield total


def test_cells(sample: Session) -> None:
    result = run(sample, "request-vs-run")
    cells = list(items(draw(result)))
    for item in cells[:: max(1, len(cells) // 15)]:
        assert found(sample, result, item["where"]) == item["value"][2]
    texts = " OR ".join(f"({item['where']})" for item in cells[:3])
    assert found(sample, result, texts) == sum(item["value"][2] for item in cells[:3])


@pytest.mark.parametrize("weight", ["jobs", "gpu-hours"])
@pytest.mark.parametrize("by", [None, "state"])
@pytest.mark.parametrize("id", ["arrivals-by-hour", "arrivals-by-weekday", "arrivals-by-week"])
def test_hours_and_weekdays(sample: Session, id: str, by: str | None, weight: str) -> None:
    """Every mean leads to the jobs that it was made of."""
    result = run(sample, id, by=by, weight=weight)
    told = [item for item in items(draw(result)) if "where" in item]
    counts = [row["num_jobs"] for row in result.rows if row["mean"] is not None]
    assert len(told) == len(counts)
    step = max(1, len(told) // 15)
    assert any(counts[::step])
    assert [found(sample, result, i["where"]) for i in told[::step]] == counts[::step]


def test_hours_are_those_of_the_sites_clock(lake_of: Callable[..., Lake]) -> None:
    """Sunday evening in UTC is Monday morning in Tokyo."""
    late = {"submitted_at": utc("2018-01-07T23:30:00")}
    lake = lake_of([job(1, **late), job(2)], facts='{"zone": "Asia/Tokyo"}')
    with open_session(lake) as session:
        result = run(session, "states")
        assert found(session, result, "hour = 8 AND weekday = 0") == 1
        assert found(session, result, "hour = 9 AND weekday = 0") == 1
        assert found(session, result, "hour = 23 OR weekday = 6") == 0


def test_lines_are_single_jobs(sample: Session) -> None:
    result = run(sample, "job-shapes")
    lines = list(items(draw(result)))
    assert [found(sample, result, i["where"]) for i in lines[::100]] == [1] * len(lines[::100])


def test_bins_of_time(lake_of: Callable[..., Lake]) -> None:
    """Two jobs an hour apart: one bin sees the first, one both of them, one the second."""
    late = {
        "submitted_at": utc("2018-01-01T00:40:00"),
        "started_at": utc("2018-01-01T00:50:00"),
        "ended_at": utc("2018-01-01T02:00:00"),
    }
    with open_session(lake_of([job(1), job(2, **late)])) as session:
        result = run(session, "load")
        told = [i for i in items(draw(result)) if "where" in i]
        assert [found(session, result, i["where"]) for i in told] == [1, 1, 2, 2, 2, 1, 1, 1]


def test_quarters_of_use(lake_of: Callable[..., Lake]) -> None:
    """A job that runs over the turn of a quarter, by the site's clock, is in both."""
    across = {
        "submitted_at": utc("2018-03-31T12:00:00"),
        "started_at": utc("2018-03-31T13:00:00"),
        "ended_at": utc("2018-03-31T16:00:00"),  # April in Tokyo
    }
    facts = '{"zone": "Asia/Tokyo", "nodes": 1, "gpus_per_node": 4}'
    lake = lake_of([job(1), job(2, **across)], facts=facts)
    with open_session(lake) as session:
        result = run(session, "utilisation")
        assert [row["quarter"] for row in result.rows] == ["all", "2018Q1", "2018Q2"]
        check(session, result, [2, 2, 1])


def test_names_that_would_break_a_filter(lake_of: Callable[..., Lake]) -> None:
    names = ["o'neill", "a\\b", "100%", "x' OR 1=1 --", "(unknown", None, "日本 語"]
    rows = [job(i, queue=name) for i, name in enumerate(names)]
    with open_session(lake_of(rows)) as session:
        check(session, run(session, "queues"), [1] * len(names))
        by = draw(session.run(load_all().get("states"), Selection(by="queue")))
        assert len([i for i in items(by) if "where" in i]) == len(names)


def test_what_cannot_be_said_is_left_unsaid() -> None:
    assert where.conjunction(["a = 1", None]) is None
    assert where.conjunction(["a = 1", "", "b = 2"]) == "a = 1 AND b = 2"
    assert where.between("run_s", 10**0.05, 10**2) == "run_s > 1.122018 AND run_s <= 100"
