"""Cells, statistics, shares, tables and shapes of jobs, of tables written by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hakaru.figures import draw
from tests.figures._draw import values
from tests.figures._result import result

BEGIN = datetime(2018, 1, 1, tzinfo=UTC)
BEGIN_MS = 1514764800_000
BIN_S = 900


# ---- cells


def cells(**columns: list[Any]) -> dict[str, list[Any]]:
    """A cell from 1 to 10 h asked for and 0.1 to 1 h run, and one further out."""
    return {
        "requested_from_h": [1.0, 10.0],
        "requested_to_h": [10.0, 100.0],
        "run_from_h": [0.1, 1.0],
        "run_to_h": [1.0, 10.0],
        "num_jobs": [250, 1],
        "pe_hours": [4.5, 12.5],
    } | columns


def test_a_cell_lies_at_the_middle_of_its_logarithms() -> None:
    option = draw(result("request-vs-run", cells())).option
    assert values(option["series"][0]) == [[3.16228, 0.316228, 250], [31.6228, 3.16228, 1]]
    assert (option["xAxis"]["min"], option["xAxis"]["max"]) == (1.0, 100.0)
    assert (option["yAxis"]["min"], option["yAxis"]["max"]) == (0.1, 10.0)
    assert option["series"][0]["data"][0]["where"].startswith(
        "requested_s > 3600 AND requested_s <= 36000 AND run_s > 360 AND run_s <= 3600"
    )
    (line,) = option["series"][0]["markLine"]["data"]
    assert [end["coord"] for end in line] == [[1.0, 1.0], [10.0, 10.0]]


def test_a_cell_s_colour_says_its_power_of_ten() -> None:
    pieces = draw(result("request-vs-run", cells())).option["visualMap"]["pieces"]
    assert [(p["gte"], p["lt"], p["label"]) for p in pieces] == [
        (0, 10, "1–9"),
        (10, 100, "10–99"),
        (100, 1000, "100–999"),
    ]
    ten = draw(result("request-vs-run", cells(num_jobs=[10, 9]))).option["visualMap"]["pieces"]
    assert [piece["label"] for piece in ten] == ["1–9", "10–99"]
    hours = draw(result("request-vs-run", cells(), weight="gpu-hours")).option["visualMap"]
    assert [piece["label"] for piece in hours["pieces"]] == ["< 10", "10–100"]
    assert hours["text"][0] == "GPU-hours"
    assert hours["dimension"] == 2, "the count, after the two axes"


def test_the_area_of_a_group_s_mark_goes_with_its_count() -> None:
    table = {"queue": ["a", "b"]} | cells(num_jobs=[100, 25])
    figure = draw(result("request-vs-run", table, by="queue"))
    assert [s["data"][0]["symbolSize"] for s in figure.option["series"]] == [26, 13]


# ---- statistics


def test_each_mark_is_its_own_statistic() -> None:
    table = {
        "part": ["submit to start"],
        "num_jobs": [1234],
        "mean_s": [500.0],
        "median_s": [20.0],
        "p90_s": [900.0],
        "p95_s": [2000.0],
        "p99_s": [9000.0],
        "max_s": [70000.0],
    }
    option = draw(result("waits", table)).option
    drawn = {s["name"]: s["data"][0] for s in option["series"]}
    assert drawn.pop("Median to maximum") == [20.0, 20.0, 20.0, 20.0, 70000.0]
    assert {name: item["value"] for name, item in drawn.items()} == {
        "Mean": [500.0, 0],
        "Median": [20.0, 0],
        "90 %": [900.0, 0],
        "95 %": [2000.0, 0],
        "99 %": [9000.0, 0],
    }
    assert drawn["99 %"]["tooltip"]["formatter"] == "{a}: 9,000 s"
    assert option["yAxis"]["data"] == ["submit to start (1,234)"]
    assert option["xAxis"]["name"] == "Seconds"


def test_each_row_s_marks_lie_on_its_own_line() -> None:
    table = {"part": ["submit to start", "eligible to start"], "num_jobs": [9, 8]}
    table |= {"mean_s": [500.0, 40.0], "median_s": [20.0, 3.0], "max_s": [900.0, 70.0]}
    drawn = {s["name"]: s["data"] for s in draw(result("waits", table)).option["series"]}
    assert [item["value"] for item in drawn["Mean"]] == [[500.0, 0], [40.0, 1]]
    assert [item["value"] for item in drawn["Median"]] == [[20.0, 0], [3.0, 1]]
    assert [span[-1] for span in drawn["Median to maximum"]] == [900.0, 70.0]


def test_a_row_that_lacks_a_statistic_keeps_its_line() -> None:
    """Of the first row the median is unknown, of the second the 90 %."""
    table = {"part": ["submit to eligible", "eligible to start", "submit to start"]}
    table |= {"num_jobs": [9, 8, 7], "mean_s": [50.0, 40.0, 600.0], "max_s": [99.0, 70.0, 900.0]}
    table |= {"median_s": [None, 3.0, 30.0], "p90_s": [80.0, None, 700.0]}
    drawn = {s["name"]: values(s) for s in draw(result("waits", table)).option["series"]}
    assert drawn["Median"] == [[3.0, 1], [30.0, 2]]
    assert drawn["90 %"] == [[80.0, 0], [700.0, 2]]
    assert drawn["Median to maximum"] == ["-", [3.0] * 4 + [70.0], [30.0] * 4 + [900.0]]


def test_rows_beyond_the_first_twenty_four_are_told() -> None:
    names = [f"u{n:02}" for n in range(26)]
    table = {"user": names, "class": ["all"] * 26, "num_jobs": [1] * 26}
    table |= {name: [2.0] * 25 + [None] for name in ("mean_h", "median_h", "min_h", "max_h")}
    figure = draw(result("walltime", table))
    assert len(figure.option["yAxis"]["data"]) == 24
    assert figure.own_notes[-1] == "drawn: the first 24 of 26 rows"


@pytest.mark.parametrize("num", [3, 4])
def test_rows_without_data_are_listed_where_they_are_few(num: int) -> None:
    parts = ["submit to start", *(f"part {n}" for n in range(num))]
    table = {"part": parts, "num_jobs": [9] + [0] * num}
    table |= {name: [50.0] + [None] * num for name in ("mean_s", "median_s", "p90_s", "max_s")}
    (note,) = draw(result("waits", table)).own_notes
    assert ("part 0 (0); part 1 (0)" in note) == (num == 3)
    assert ("4 rows" in note) == (num == 4)


# ---- shares


def test_shares_of_the_heaviest() -> None:
    table = {
        "holder": ["user", "account"],
        "num_holders": [1500, 40],
        "share_top1": [0.1234, 0.5],
        "share_top3": [0.25, 0.75],
        "share_top10": [0.5, 0.9],
        "share_top_tenth": [0.8, 0.7],
        "gini": [0.9126, None],
        "share_unknown": [0.0, 0.01],
    }
    figure = draw(result("concentration", table))
    users, accounts = figure.option["series"]
    assert (users["name"], users["data"]) == ("1,500 users", [12.3, 25.0, 50.0, 80.0, 0.0])
    assert (accounts["name"], accounts["data"]) == ("40 accounts", [50.0, 75.0, 90.0, 70.0, 1.0])
    assert figure.option["xAxis"]["data"] == [
        "top 1",
        "top 3",
        "top 10",
        "top tenth",
        "unknown",
    ]
    assert figure.own_notes == ("Gini coefficient of 1,500 users: 0.913",)
    assert figure.option["yAxis"]["name"] == "Share of jobs (%)"
    weighed = draw(result("concentration", table, weight="gpu-hours")).option
    assert weighed["yAxis"]["name"] == "Share of GPU-hours (%)"


# ---- tables


def test_a_table_keeps_every_number_in_its_place() -> None:
    table = {"user": ["ann", "bob"], "num_jobs": [12345, 6], "share_failed": [0.5, 0.021]}
    figure = draw(result("users", table))
    cells = {tuple(c["coord"]): c["value"] for c in figure.option["matrix"]["body"]["data"]}
    assert cells == {
        (0, 0): "ann", (1, 0): "12,345", (2, 0): "50.0 %",
        (0, 1): "bob", (1, 1): "6", (2, 1): "2.1 %",
    }  # fmt: skip
    assert [each["value"] for each in figure.option["matrix"]["x"]["data"]] == [
        "User",
        "Jobs",
        "Share failed, incl. memory and node (%)",
    ]


def test_a_table_is_cut_after_24_rows_and_10_columns() -> None:
    table = {f"num_{n}": list(range(25)) for n in range(11)}
    figure = draw(result("users", table))
    assert figure.own_notes == (
        "drawn: the first 24 of 25 rows",
        "drawn: the first 10 of 11 columns",
    )
    coords = [c["coord"] for c in figure.option["matrix"]["body"]["data"]]
    assert len(coords) == 240 and max(coords) == [9, 23]
    whole = {f"num_{n}": list(range(24)) for n in range(10)}
    assert draw(result("users", whole)).own_notes == ()


# ---- parallel coordinates


def shapes(num: int = 3, **columns: list[Any]) -> dict[str, list[Any]]:
    return {
        "cluster": ["c"] * num,
        "job_id": [str(n) for n in range(num)],
        "submitted_at": [BEGIN] * num,
        "num_nodes": ([1, 2, 5] * num)[:num],
        "num_pes": ([1, 16, 40] * num)[:num],
        "wait_h": ([0.0, 2.0, 30.0] * num)[:num],
        "run_h": ([0.25, 0.5, 7.0] * num)[:num],
        "application": [None] * num,
    } | columns


def test_a_line_a_job_by_the_number_of_its_nodes() -> None:
    option = draw(result("job-shapes", shapes())).option
    assert [(s["name"], values(s)) for s in option["series"]] == [
        ("1 node", [[1, 1, 0.001, 0.25]]),
        ("2 nodes", [[2, 16, 2.0, 0.5]]),
        ("5–8 nodes", [[5, 40, 30.0, 7.0]]),
    ]
    assert option["legend"]["data"] == ["1 node", "2 nodes", "5–8 nodes"]
    ends = [(a["column"], a["min"], a["max"], a["logBase"]) for a in option["parallelAxis"]]
    assert ends == [
        ("num_nodes", 1.0, 8, 2),
        ("num_pes", 1.0, 64, 2),
        ("wait_s", 0.001, 100, 10),
        ("run_s", 0.001, 10, 10),
    ]
    assert option["series"][1]["data"][0]["where"] == (
        "cluster = 'c' AND job_id = '1' AND submitted_at = '2018-01-01T00:00:00+00:00'"
    )


def test_an_axis_ends_at_a_power_that_is_the_largest_value_itself() -> None:
    one = {"num_nodes": [8], "num_pes": [64], "wait_h": [100.0], "run_h": [10.0]}
    option = draw(result("job-shapes", shapes(1, **one))).option
    assert [axis["max"] for axis in option["parallelAxis"]] == [8, 64, 100, 10]
    small = {"num_nodes": [1], "num_pes": [1], "wait_h": [0.0], "run_h": [0.0]}
    ends = [a["max"] for a in draw(result("job-shapes", shapes(1, **small))).option["parallelAxis"]]
    assert ends == [2, 2, 1, 1]


def test_panels_share_the_lines_that_a_screen_can_show() -> None:
    """Four panels of 600 jobs, one in two of them drawn: 300 lines each."""
    groups = [f"q{n // 600}" for n in range(2400)]
    table = {"queue": groups} | shapes(2400)
    figure = draw(result("job-shapes", table, by="queue"))
    lines = [len(s["data"]) for s in figure.option["series"]]
    assert sum(lines) == 1200
    assert (
        figure.own_notes[0] == "a sample of 1,200 jobs, drawn at random within each number of nodes"
    )


def test_only_four_panels_are_drawn() -> None:
    table = {"queue": [f"q{n}" for n in range(5)]} | shapes(5)
    figure = draw(result("job-shapes", table, by="queue"))
    assert [title["text"] for title in figure.option["title"]] == ["q0", "q1", "q2", "q3"]
    assert figure.own_notes[-1] == "drawn: the first 4 of these groups"
