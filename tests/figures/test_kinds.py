"""Each kind of figure, worked by hand from a few jobs: values, names, axes, colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hakaru.figures import draw, theme
from hakaru.figures._labels import label, name, number, text
from hakaru.lake import Lake
from hakaru.texts import language
from tests.conftest import job, utc
from tests.figures._draw import drawn, items, values
from tests.figures._result import result

Make = Callable[..., Lake]


@pytest.fixture
def three(lake_of: Make) -> Lake:
    """Two jobs in `short`, one of them of 2 GPUs and half an hour that failed; one in `long`, of 4 nodes."""
    return lake_of(
        [
            job(1, queue="short"),
            job(2, queue="short", num_gpus=2, run_s=1800.0, state="failed"),
            job(3, queue="long", num_gpus=32, num_nodes=4, submitted_at=utc("2018-04-05T00:00:00")),
        ]
    )


def test_bars(three: Lake) -> None:
    figure = drawn(three, "queues")
    option = figure.option
    assert option["xAxis"]["data"] == ["short", "long"]
    assert (option["xAxis"]["name"], option["yAxis"]["name"]) == ("Queue", "Jobs")
    (series,) = option["series"]
    assert (series["type"], series["name"]) == ("bar", "c")
    assert [(i["value"], i["where"]) for i in series["data"]] == [
        (2, "queue = 'short'"),
        (1, "queue = 'long'"),
    ]
    assert series["data"][0]["label"]["formatter"] == "2\n66.7 %"
    assert figure.notes == ("c: 3 of 3 jobs",)


def test_bars_of_hours(three: Lake) -> None:
    option = drawn(three, "queues", weight="gpu-hours").option
    assert option["yAxis"]["name"] == "GPU-hours"
    assert values(option["series"][0]) == [1 + 2 * 0.5, 32]


def test_bars_have_the_colours_of_what_they_stand_for(three: Lake) -> None:
    data = drawn(three, "states").option["series"][0]["data"]
    assert [i["itemStyle"]["color"] for i in data] == [theme.GREEN, theme.ORANGE]
    data = drawn(three, "parallelism").option["series"][0]["data"]
    assert [i["itemStyle"]["color"] for i in data] == [theme.BLUE, theme.ORANGE, theme.GREEN]


def test_bars_of_groups_stand_side_by_side(three: Lake) -> None:
    option = drawn(three, "states", by="queue").option
    assert option["xAxis"]["data"] == ["completed", "failed"]
    assert {s["name"]: values(s) for s in option["series"]} == {"long": [1, None], "short": [1, 1]}
    assert option["legend"]["data"] == ["long", "short"]
    assert len({s["color"] for s in option["series"]}) == 2
    last = option["series"][1]["data"][1]
    assert last["where"] == "state = 'failed' AND queue = 'short'"


def test_bars_of_people(three: Lake) -> None:
    option = drawn(three, "users-by-quarter").option
    assert option["xAxis"]["data"] == ["2018Q1", "2018Q2"]
    assert {s["name"]: values(s) for s in option["series"]} == {
        "Active users": [1, 1],
        "Active groups (accounts)": [1, 1],
    }


def test_many_bars_lie_and_are_cut(lake_of: Make) -> None:
    rows = [job(i, queue=f"q{i:02}") for i in range(50)]
    figure = drawn(lake_of(rows), "queues")
    assert figure.option["yAxis"]["type"] == "category"
    assert len(figure.option["yAxis"]["data"]) == 40
    assert figure.notes[1] == "drawn: the first 40 of 50 values of queue"


def test_the_rules_are_part_of_the_filter(three: Lake) -> None:
    (first, *_) = items(drawn(three, "parallelism"))
    assert first["where"] == "parallelism = 'single-pe' AND num_pes >= 1 AND run_s >= 60"


def test_stacked_bars(three: Lake) -> None:
    option = drawn(three, "parallelism-by-quarter").option
    counts, shares = option["series"][:3], option["series"][3:]
    names = ["1 GPU", "several GPUs, one node", "several nodes"]
    assert [s["name"] for s in counts] == [s["name"] for s in shares] == names
    assert [values(s) for s in counts] == [[1, None], [1, None], [None, 1]]
    assert [values(s) for s in shares] == [[50.0, None], [50.0, None], [None, 100.0]]
    assert len({s["stack"] for s in counts}) == 1
    assert [axis["name"] for axis in option["yAxis"]] == ["Jobs", "Share of jobs (%)"]
    assert option["yAxis"][1]["max"] == 100


def test_stacked_bars_of_groups_are_panels(three: Lake) -> None:
    option = drawn(three, "parallelism-by-quarter", by="queue").option
    assert [title["text"] for title in option["title"]] == ["long", "short"]
    assert len(option["grid"]) == len(option["xAxis"]) == 2


def test_curves(lake_of: Make) -> None:
    """Runs of 100 s, 100 s and 10,000 s: two thirds are over after the first step."""
    rows = [job(i, run_s=run_s) for i, run_s in enumerate([100.0, 100.0, 10_000.0])]
    option = drawn(lake_of(rows), "walltime-cdf").option
    assert option["xAxis"]["type"] == "log"
    assert (option["xAxis"]["name"], option["yAxis"]["name"]) == (
        "Run time (hours)",
        "Cumulative share of jobs (%)",
    )
    whole, single = option["series"]
    assert (whole["name"], single["name"]) == ("all jobs (3)", "1 GPU (3)")
    assert values(whole) == [[0.0277778, 66.6667], [2.77778, 100.0]]
    assert whole["data"][0]["where"].startswith("run_s <= 100 AND num_pes >= 1")
    assert whole["lineStyle"]["type"] != single["lineStyle"]["type"]


def test_curves_of_groups(three: Lake) -> None:
    figure = drawn(three, "walltime-cdf", by="queue", states=("any",))
    assert [s["name"] for s in figure.option["series"]] == ["long (1)", "short (2)"]
    assert "drawn: one curve for each queue; without groups, one for each class" in figure.notes


def test_boxes(lake_of: Make) -> None:
    """Requests of 1000 s of which 100, 110, 130, 200 and 960 s are used: the mean is 300."""
    rows = [
        job(i, requested_s=1000.0, run_s=run_s)
        for i, run_s in enumerate([100.0, 110.0, 130.0, 200.0, 960.0])
    ]
    option = drawn(lake_of(rows), "request-accuracy").option
    box, median, mean = option["series"]
    assert box["data"][0]["value"] == [0.1, 0.11, 0.13, 0.2, 0.96]
    assert (median["name"], median["data"], median["color"]) == ("Median", [0.13], theme.ORANGE)
    assert (mean["name"], mean["data"], mean["symbol"]) == ("Mean", [0.3], "triangle")
    assert option["yAxis"]["name"] == "Run time ÷ requested time"


def test_mean_and_deviation(lake_of: Make) -> None:
    """Two jobs on Monday at nine, none on Tuesday: mean 1, deviation √2, cut at 0."""
    moments = ["2018-01-01T09:10:00", "2018-01-01T09:50:00", "2018-01-02T10:00:00"]
    lake = lake_of([job(i, submitted_at=utc(m)) for i, m in enumerate(moments)])
    figure = drawn(lake, "arrivals-by-hour")
    shade, bars, means = figure.option["series"]
    assert values(means)[9:11] == [1.0, 0.5]
    assert bars["data"][9] == [0.0, 1.0, 1.0, 1.0, 2.41421]
    assert [hour for hour, is_on in enumerate(shade["data"]) if is_on] == list(range(9, 18))
    assert figure.option["xAxis"]["data"] == [str(hour) for hour in range(24)]
    assert figure.option["yAxis"][0]["name"] == "Jobs submitted an hour"
    assert "deviations are cut off at 0" in figure.notes


def test_days_of_the_week(lake_of: Make) -> None:
    option = drawn(lake_of([job(1), job(2)]), "arrivals-by-weekday").option
    shade, bars, means = option["series"]
    assert option["xAxis"]["data"] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert shade["data"] == [1, 1, 1, 1, 1, None, None]
    assert values(means) == [2.0, None, None, None, None, None, None]
    assert bars["data"] == ["-"] * 7  # one Monday has no deviation


def test_heat_map(lake_of: Make) -> None:
    lake = lake_of([job(1), job(2, submitted_at=utc("2018-01-02T23:00:00"))])
    option = drawn(lake, "arrivals-by-week").option
    cells = {(x, y): value for x, y, value in values(option["series"][0])}
    assert (cells[0, 0], cells[23, 1], cells[5, 0]) == (1.0, 1.0, 0.0)
    assert {y for _, y in cells} == {0, 1}, "days that the period does not hold are blank"
    assert option["visualMap"]["max"] == 1.0
    assert option["yAxis"][0]["data"][0] == "Mon"


def test_hours_of_a_heat_map_are_in_order_though_the_first_day_lacks_some() -> None:
    """As where cells of few people are withheld."""
    columns = {"weekday": [1, 1, 2, 2], "hour": [0, 9, 0, 8], "mean": [1.0, 2.0, 3.0, 4.0]}
    option = draw(result("arrivals-by-week", columns)).option
    assert option["xAxis"][0]["data"] == ["0", "8", "9"]
    assert sorted(values(option["series"][0])) == [[0, 0, 1], [0, 1, 3], [1, 1, 4], [2, 0, 2]]


def test_bars_of_a_machine_of_unknown_size_say_so(lake_of: Make) -> None:
    figure = drawn(lake_of([job(1)]), "utilisation")
    assert figure.option["title"]["text"] == "The machine's size is unknown"
    assert figure.option["series"] == []
    assert figure.notes[-3].startswith("the size of c is unknown")
    assert figure.notes[-2:] == ("nodes = 32", "gpus_per_node = 8")
    assert "nodes = 32" in drawn(lake_of([job(1)]), "load").notes


def test_time_series(lake_of: Make) -> None:
    """A job that waits for half an hour and runs for half an hour on three GPUs."""
    row = job(
        1,
        num_gpus=3,
        started_at=utc("2018-01-01T00:30:00"),
        ended_at=utc("2018-01-01T01:00:00"),
    )
    facts = '{"gpus_per_node": 4, "nodes": [{"since": "2017-01-01", "count": 2}]}'
    option = drawn(lake_of([row], facts=facts), "load").option
    busy, waiting, installed = option["series"]
    assert [value for _, value in values(busy)] == [0, 0, 3, 3, 3]
    assert [value for _, value in values(waiting)] == [1, 1, 0, 0, 0]
    assert {value for _, value in values(installed)} == {8}
    first, last = values(busy)[0][0], values(busy)[-1][0]
    assert (first, last - first) == (1514764800_000, 3600_000)
    assert [axis["name"] for axis in option["yAxis"]] == ["Busy GPUs", "Waiting jobs"]
    assert {axis["name"] for axis in option["xAxis"]} == {"Time (UTC)"}
    assert option["useUTC"]


def test_time_series_by_the_site_s_clock(lake_of: Make) -> None:
    """Nine hours on from UTC, and told so: ECharts is given the site's clock as if it were UTC's."""
    option = drawn(lake_of([job(1)], facts='{"zone": "Asia/Tokyo"}'), "load").option
    assert values(option["series"][0])[0][0] == 1514764800_000 + 9 * 3600_000
    assert {axis["name"] for axis in option["xAxis"]} == {"Time (Asia/Tokyo)"}


def test_more_bins_than_a_screen_shows(lake_of: Make) -> None:
    late = utc("2018-02-01T00:00:00")
    lake = lake_of([job(1), job(2, submitted_at=late, started_at=late, ended_at=late)])
    figure = drawn(lake, "load", {"bins": 5000})
    assert all(len(series["data"]) <= 1001 for series in figure.option["series"])
    assert any(note.startswith("drawn: means of 3 bins each, 2,9") for note in figure.notes), (
        figure.notes
    )


def test_parallel_coordinates(three: Lake) -> None:
    figure = drawn(three, "job-shapes")
    option = figure.option
    names = ["Nodes", "GPUs of a job", "Wait (hours)", "Run time (hours)"]
    assert [axis["name"] for axis in option["parallelAxis"]] == names
    assert [(axis["column"], axis["factor"]) for axis in option["parallelAxis"]] == [
        ("num_nodes", 1), ("num_pes", 1), ("wait_s", 3600), ("run_s", 3600),
    ]  # fmt: skip
    one, four = option["series"]
    assert (one["name"], four["name"]) == ("1 node", "3–4 nodes")
    assert sorted(values(one)) == [[1, 1, 0.00277778, 1.0], [1, 2, 0.00277778, 0.5]]
    assert values(four) == [[4, 32, 0.00277778, 1.0]]
    assert "a sample of 3 jobs, drawn at random within each number of nodes" in figure.notes


def test_applications_are_an_axis_where_they_are_known(lake_of: Make) -> None:
    rows = [job(1, application="pytorch"), job(2, application="caffe"), job(3)]
    option = drawn(lake_of(rows), "job-shapes").option
    assert option["parallelAxis"][-1]["data"] == ["caffe", "pytorch"]
    assert sorted(str(line[4]) for line in values(option["series"][0])) == ["0", "1", "None"]


def test_a_panel_a_framework(lake_of: Make) -> None:
    rows = [job(i, application=each) for i, each in enumerate(["pytorch", "tensorflow"] * 3)]
    option = drawn(lake_of(rows), "job-shapes", by="application").option
    assert [title["text"] for title in option["title"]] == ["pytorch", "tensorflow"]
    assert len(option["parallel"]) == 2
    assert [series["parallelIndex"] for series in option["series"]] == [0, 1]


def test_density(lake_of: Make) -> None:
    """√(74.989 × 100) = 86.596 s is the middle of the cell that ends at 100 s."""
    rows = [job(i, requested_s=100.0, run_s=100.0) for i in range(12)]
    option = drawn(
        lake_of([*rows, job(99, requested_s=1000.0, run_s=100.0)]), "request-vs-run"
    ).option
    first, second = option["series"][0]["data"]
    assert first["value"] == [0.0240546, 0.0240546, 12]
    assert second["value"] == [0.240546, 0.0240546, 1]
    assert (option["xAxis"]["type"], option["yAxis"]["type"]) == ("log", "log")
    assert (option["xAxis"]["min"], option["xAxis"]["max"]) == (0.01, 1.0)
    assert [piece["label"] for piece in option["visualMap"]["pieces"]] == ["1–9", "10–99"]


def test_statistics(three: Lake) -> None:
    figure = drawn(three, "walltime", states=("any",))
    option = figure.option
    assert option["yAxis"]["data"][0] == "all jobs (3)"
    by_name = {series["name"]: series["data"] for series in option["series"]}
    assert by_name["Range"][0] == [0.5, 0.5, 0.5, 0.5, 1.0]
    assert by_name["Mean"][0]["value"] == [0.833333, 0]
    assert by_name["Median"][0]["value"] == [1.0, 0]
    assert by_name["Median"][0]["tooltip"]["formatter"] == "{a}: 1 h"
    assert (option["xAxis"]["type"], option["xAxis"]["name"]) == ("log", "Hours")


def test_statistics_of_what_is_not_known(lake_of: Make) -> None:
    figure = drawn(lake_of([job(1, wait_s=0.0)]), "waits")
    assert figure.option["yAxis"]["data"] == ["submit to start (1)"]
    unknown = "no data for: submit to eligible (0); eligible to start (0)"
    assert figure.notes[1:] == (unknown, "values below 1 s are drawn at 1 s")
    mean = next(s for s in figure.option["series"] if s["name"] == "Mean")
    assert mean["data"][0]["value"] == [1.0, 0]
    assert mean["data"][0]["tooltip"]["formatter"] == "{a}: 0 s"


def test_coefficients_are_not_times(three: Lake) -> None:
    figure = drawn(three, "size-vs-walltime", {"sample": 10})
    assert figure.option["xAxis"]["type"] == "value"
    assert any(note.endswith("too few jobs") for note in figure.notes)


def test_shares(lake_of: Make) -> None:
    rows = [job(i, user=user) for i, user in enumerate(["ann", "ann", "ann", "bob"])]
    figure = drawn(lake_of(rows), "concentration")
    users, accounts = figure.option["series"]
    assert (users["name"], users["data"][:2]) == ("2 users", [75.0, 100.0])
    assert accounts["data"][0] == 100.0
    assert "Gini coefficient of 2 users: 0.250" in figure.notes


def test_table(lake_of: Make) -> None:
    rows = [job(i, user=f"u{i:02}") for i in range(30)]
    figure = drawn(lake_of(rows), "users")
    matrix = figure.option["matrix"]
    assert matrix["x"]["data"][0]["value"] == "User"
    assert {"coord": [0, 0], "value": "u00"} in matrix["body"]["data"]
    assert len(matrix["y"]["data"]) == 24
    assert "drawn: the first 24 of 30 rows" in figure.notes


def test_groups_that_are_not_drawn_are_told(lake_of: Make) -> None:
    rows = [job(i, user=f"u{i % 10}") for i in range(15)]
    figure = drawn(lake_of(rows), "states", by="user")
    assert [s["name"] for s in figure.option["series"]] == [
        "u0",
        "u1",
        "u2",
        "u3",
        "u4",
        "u5",
        "u6",
        "u7",
    ]
    assert figure.notes[-1] == "drawn: the 8 largest of 10 groups of user"


@pytest.mark.parametrize(
    ("column", "unit", "expected"),
    [
        ("run_h", "gpu", "Run time (hours)"),
        ("p90_s", "gpu", "P90 (seconds)"),
        ("share_long", "gpu", "Share long (%)"),
        ("utilisation", "gpu", "Utilisation (%)"),
        ("pe_hours", "cpu", "Processor-hours"),
        ("num_pes_busy", "cpu", "Busy processors"),
        ("memory_mib", "gpu", "Memory (MiB)"),
    ],
)
def test_labels(column: str, unit: str, expected: str) -> None:
    assert label(column, language("en", unit)) == expected


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("share", 0.9621, "96.2 %"),
        ("share", 0.000239, "0.024 %"),
        ("share", 0.0, "0 %"),
        ("mean_h", 2.7304, "2.73"),
        ("mean_h", 123.456, "123.5"),
        ("mean_h", 1234.5678, "1,235"),
        ("mean_h", -0.00012345, "-0.00012"),
        ("num_jobs", 459545, "459,545"),
        ("mean_s", None, "–"),
        ("mean_s", float("nan"), "–"),
        ("is_working", True, "yes"),
        ("queue", "normal", "normal"),
    ],
)
def test_texts(column: str, value: Any, expected: str) -> None:
    assert text(column, value, language("en")) == expected


def test_numbers_and_names() -> None:
    assert number(0.5, "share") == 50.0
    assert number(float("inf")) is None
    assert number(1234567) == 1234567
    assert name("class", "single-pe", language("en", "cpu")) == "1 processor"
    assert name("state", "out_of_memory", language("en")) == "out of memory"
