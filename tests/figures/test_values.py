"""Bars, boxes and curves of tables written by hand, with numbers that are skewed and all different."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hakaru.figures import draw, theme
from tests.figures._draw import values
from tests.figures._result import result

BEGIN = datetime(2018, 1, 1, tzinfo=UTC)
BEGIN_MS = 1514764800_000
BIN_S = 900


# ---- notes


def test_how_many_jobs_it_rests_on_and_who_was_left_out() -> None:
    left_out = {"that ran": 1200, "with a user": 0, "with a queue": 34}
    figure = draw(result("queues", queues(2), left_out, num_selected=5000, synthetic=True))
    assert figure.notes == (
        "SYNTHETIC data: these jobs, or the times when they ran, were made up",
        "c: 3,766 of 5,000 jobs",
        "left out 1,200: only jobs that ran",
        "left out 34: only jobs with a queue",
    )
    assert figure.own_notes == ()


def test_the_groups_that_count_most_are_drawn() -> None:
    """Ten users whose jobs are 1, 2, … 10: the two smallest are not drawn; the order is the table's."""
    table = {
        "user": [f"u{n}" for n in range(1, 11)],
        "state": ["completed"] * 10,
        "num_jobs": list(range(1, 11)),
        "pe_hours": [float(20 - n) for n in range(1, 11)],
        "share": [1.0] * 10,
    }
    by_jobs = draw(result("states", table, by="user"))
    assert [s["name"] for s in by_jobs.option["series"]] == [f"u{n}" for n in range(3, 11)]
    by_hours = draw(result("states", table, by="user", weight="gpu-hours"))
    assert [s["name"] for s in by_hours.option["series"]] == [f"u{n}" for n in range(1, 9)]
    assert by_hours.notes[-1] == "drawn: the 8 largest of 10 groups of user"


def test_one_group_that_is_not_drawn_is_told() -> None:
    def drawn(num: int) -> str:
        table = {"user": [f"u{n}" for n in range(num)], "state": ["completed"] * num}
        table |= {"num_jobs": list(range(1, num + 1)), "share": [1.0] * num}
        return draw(result("states", table, by="user")).notes[-1]

    assert drawn(9) == "drawn: the 8 largest of 9 groups of user"
    assert drawn(8) == "c: 100 of 100 jobs"


def test_a_group_s_size_is_all_its_rows() -> None:
    """u9 has 9 rows of 2 jobs, the others one row of 10: u9 is the largest."""
    names = [f"u{n}" for n in range(9)] + ["u9"] * 9
    states = ["completed"] * 9 + list(theme.STATE_COLOURS)[:9]
    table = {
        "user": names,
        "state": states,
        "num_jobs": [10 - (n == 0) for n in range(9)] + [2] * 9,
        "share": [0.5] * 18,
    }
    drawn = draw(result("states", table, by="user"))
    assert [s["name"] for s in drawn.option["series"]] == [
        f"u{n}" for n in (1, 2, 3, 4, 5, 6, 7, 9)
    ]


# ---- bars


def queues(num: int) -> dict[str, list[Any]]:
    return {
        "queue": [f"q{n:02}" for n in range(num)],
        "num_jobs": [1000 * (n + 1) for n in range(num)],
        "pe_hours": [0.5 + n for n in range(num)],
        "share": [0.004 * (n + 1) for n in range(num)],
    }


def test_a_bar_carries_its_count_and_its_share() -> None:
    data = draw(result("queues", queues(3))).option["series"][0]["data"]
    assert [item["label"]["formatter"] for item in data] == [
        "1,000\n0.4 %",
        "2,000\n0.8 %",
        "3,000\n1.2 %",
    ]
    hours = draw(result("queues", queues(3), weight="gpu-hours")).option["series"][0]
    assert values(hours) == [0.5, 1.5, 2.5]


@pytest.mark.parametrize(
    ("num", "lying", "shown"), [(12, False, True), (13, True, False), (40, True, False)]
)
def test_from_thirteen_names_on_bars_lie(num: int, lying: bool, shown: bool) -> None:
    option = draw(result("queues", queues(num))).option
    assert (option["yAxis"]["type"] == "category") == lying
    assert option["series"][0]["label"]["show"] == shown
    assert len(option["series"][0]["data"]) == num
    if lying:
        assert option["yAxis"]["inverse"], "the first name is the topmost"


def test_bars_are_cut_after_forty() -> None:
    figure = draw(result("queues", queues(41)))
    assert values(figure.option["series"][0])[-1] == 40_000
    assert figure.notes[-1] == "drawn: the first 40 of 41 values of queue"
    assert figure.height == 120 + 26 * 40


@pytest.mark.parametrize(
    ("id", "klass"), [("gpus-single-node", "single-node"), ("gpus-multi-node", "multi-node")]
)
def test_the_filter_of_a_size_names_the_figure_s_class(id: str, klass: str) -> None:
    (item,) = draw(result(id, {"num_pes": [4], "num_jobs": [3], "share": [1.0]})).option["series"][
        0
    ]["data"]
    assert f"parallelism = '{klass}'" in item["where"].split(" AND ")
    assert item["where"].startswith("num_pes = 4")


def test_quarters_stand_in_their_order_however_many() -> None:
    quarters = [f"{year}Q{n}" for year in range(2015, 2019) for n in range(1, 5)]
    table = {"quarter": quarters, "num_jobs": list(range(16)), "share": [1 / 16] * 16}
    option = draw(result("jobs-by-quarter", table)).option
    assert option["xAxis"]["data"] == quarters


def test_utilisation_is_in_percent_and_names_the_whole_period() -> None:
    table = {"quarter": ["all", "2018Q1", "2018Q2"], "utilisation": [0.375, 0.25, None]}
    figure = draw(result("utilisation", table))
    assert values(figure.option["series"][0]) == [37.5, 25.0, None]
    assert figure.option["xAxis"]["data"] == ["whole period", "2018Q1", "2018Q2"]
    assert figure.option["yAxis"]["name"] == "Utilisation (%)"
    assert figure.option["series"][0]["data"][0]["label"]["formatter"] == "37.5 %"
    where = [item["where"] for item in figure.option["series"][0]["data"]]
    ran = "started_at < '2018-04-01' AND (ended_at IS NULL OR ended_at > '2018-01-01')"
    assert where[1].startswith(ran)
    assert where[2].startswith(
        "started_at < '2018-07-01' AND (ended_at IS NULL OR ended_at > '2018-04-01')"
    )
    assert where[0].startswith("started_at IS NOT NULL")


def test_the_last_quarter_ends_with_its_year() -> None:
    table = {"quarter": ["2018Q4"], "num_jobs": [3], "share": [1.0]}
    (item,) = draw(result("jobs-by-quarter", table, params={"quarter": "ended"})).option["series"][
        0
    ]["data"]
    assert item["where"] == "ended_at >= '2018-10-01' AND ended_at < '2019-01-01'"


def test_users_and_accounts_are_not_mixed_up() -> None:
    table = {"quarter": ["2018Q1", "2018Q2"], "num_users": [7, 9], "num_accounts": [3, 2]}
    table["num_jobs"] = [70, 90]
    option = draw(result("users-by-quarter", table)).option
    assert {s["name"]: values(s) for s in option["series"]} == {
        "Active users": [7, 9],
        "Active groups (accounts)": [3, 2],
    }
    assert option["yAxis"]["name"] == "Number"
    assert len({s["color"] for s in option["series"]}) == 2


def test_grouped_bars_of_people_count_users() -> None:
    table = {"queue": ["a", "b"], "quarter": ["2018Q1", "2018Q1"], "num_users": [7, 9]}
    table |= {"num_accounts": [3, 2], "num_jobs": [70, 90]}
    option = draw(result("users-by-quarter", table, by="queue")).option
    assert {s["name"]: values(s) for s in option["series"]} == {"a": [7], "b": [9]}
    assert option["yAxis"]["name"] == "Active users"


# ---- stacked bars


def test_stacked_bars_count_above_and_share_below() -> None:
    table = {
        "quarter": ["2018Q1", "2018Q1", "2018Q2"],
        "parallelism": ["single-pe", "multi-node", "single-pe"],
        "num_jobs": [30, 10, 7],
        "pe_hours": [3.0, 9.0, 5.0],
        "share": [0.75, 0.25, 1.0],
    }
    option = draw(result("parallelism-by-quarter", table)).option
    assert [values(s) for s in option["series"]] == [
        [30, 7],
        [10, None],
        [75.0, 100.0],
        [25.0, None],
    ]
    assert [s["xAxisIndex"] for s in option["series"]] == [0, 0, 1, 1]
    assert [s["yAxisIndex"] for s in option["series"]] == [0, 0, 1, 1]
    assert [s["stack"] for s in option["series"]] == ["panel 0", "panel 0", "panel 1", "panel 1"]
    hours = draw(result("parallelism-by-quarter", table, weight="gpu-hours")).option
    assert [values(s) for s in hours["series"][:2]] == [[3.0, 5.0], [9.0, None]]
    assert [axis["name"] for axis in hours["yAxis"]] == ["GPU-hours", "Share of GPU-hours (%)"]
    first = option["series"][1]["data"][0]["where"]
    assert first.startswith("quarter = '2018Q1' AND parallelism = 'multi-node'")


# ---- boxes


def boxes(num: int) -> dict[str, list[Any]]:
    """The mean is far above the median, and no two of the seven numbers are the same."""
    one = {
        "least": 0.01, "p25": 0.02, "median": 0.05, "p75": 0.4, "most": 1.5, "mean": 0.3, "sd": 0.6,
    }  # fmt: skip
    quarters = {"quarter": [f"{2000 + n // 4}Q{n % 4 + 1}" for n in range(num)]}
    return quarters | {name: [value] * num for name, value in one.items()}


def test_a_box_s_median_is_not_its_mean() -> None:
    box, median, mean = draw(result("request-accuracy-by-quarter", boxes(1))).option["series"]
    assert box["data"][0]["value"] == [0.01, 0.02, 0.05, 0.4, 1.5]
    assert (median["name"], median["data"]) == ("Median", [0.05])
    assert (mean["name"], mean["data"]) == ("Mean", [0.3])


def test_boxes_are_cut_after_twenty_four() -> None:
    whole = draw(result("request-accuracy-by-quarter", boxes(24)))
    assert "boxes" not in " ".join(whole.notes)
    cut = draw(result("request-accuracy-by-quarter", boxes(25)))
    assert cut.notes[-1] == "drawn: the first 24 of 25 boxes"
    assert [len(s["data"]) for s in cut.option["series"]] == [24, 24, 24]
    assert cut.option["xAxis"]["data"][-1] == "2005Q4"


def test_a_box_names_its_five_numbers_in_the_reader_s_language() -> None:
    box = draw(result("request-accuracy-by-quarter", boxes(1)), lang="ja").option["series"][0]
    told = box["data"][0]["tooltip"]["formatter"]
    numbers = [part.rsplit(" ", 1)[1] for part in told.split(" · ")]
    assert numbers == ["0.01", "0.02", "0.05", "0.4", "1.5"]


def test_a_box_a_group_is_named_by_quarter_and_group() -> None:
    table = {"queue": ["long", "short"]} | boxes(2)
    option = draw(result("request-accuracy-by-quarter", table, by="queue")).option
    assert option["xAxis"]["data"] == ["2000Q1\nlong", "2000Q2\nshort"]
    assert option["xAxis"]["name"] == "Queue, Quarter"


# ---- curves


def test_a_curve_is_in_percent_and_counts_its_jobs() -> None:
    table = {
        "class": ["all", "all", "single-pe", "multi-node"],
        "run_h": [0.5, 40.0, 0.5, 40.0],
        "num_jobs": [300, 100, 300, 100],
        "share": [0.75, 1.0, 1.0, 1.0],
    }
    option = draw(result("walltime-cdf", table)).option
    assert [s["name"] for s in option["series"]] == [
        "all jobs (400)",
        "1 GPU (300)",
        "several nodes (100)",
    ]
    assert values(option["series"][0]) == [[0.5, 75.0], [40.0, 100.0]]
    where = [item["where"].split(" AND ")[0] for item in option["series"][0]["data"]]
    assert where == ["run_s <= 1800", "run_s <= 144000"]
    assert option["series"][2]["data"][0]["where"].startswith(
        "parallelism = 'multi-node' AND run_s <= 144000"
    )
    assert (option["yAxis"]["min"], option["yAxis"]["max"]) == (0, 100)


def test_a_curve_a_group_is_that_of_all_classes() -> None:
    table = {
        "queue": ["long", "long", "short"],
        "class": ["all", "single-pe", "all"],
        "run_h": [8.0, 4.0, 1.0],
        "num_jobs": [5, 2, 9],
        "share": [1.0, 1.0, 1.0],
    }
    figure = draw(result("walltime-cdf", table, by="queue"))
    assert [(s["name"], values(s)) for s in figure.option["series"]] == [
        ("long (5)", [[8.0, 100.0]]),
        ("short (9)", [[1.0, 100.0]]),
    ]
