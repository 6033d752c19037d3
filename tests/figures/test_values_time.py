"""Hours, days and levels over time, of tables written by hand; merged bins lose neither peak nor end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hakaru.figures import draw
from tests.figures._draw import values
from tests.figures._result import result

BEGIN = datetime(2018, 1, 1, tzinfo=UTC)
BEGIN_MS = 1514764800_000
BIN_S = 900


# ---- hours and days


def hours(**columns: list[Any]) -> dict[str, list[Any]]:
    """Hour h has the mean h + 1, of 8 to 17 o'clock as hours of work."""
    return {
        "hour": list(range(24)),
        "is_working": [8 <= hour < 17 for hour in range(24)],
        "num_days": [10] * 24,
        "num_jobs": [10 * (hour + 1) for hour in range(24)],
        "mean": [hour + 1.0 for hour in range(24)],
        "sd": [0.5] * 24,
    } | columns


def test_whiskers_reach_one_deviation_each_way() -> None:
    figure = draw(result("arrivals-by-hour", hours(sd=[4.0] * 24)))
    shade, bars, means = figure.option["series"]
    assert bars["data"][9] == [6.0, 10.0, 10.0, 10.0, 14.0]
    assert bars["data"][1] == [0.0, 2.0, 2.0, 2.0, 6.0]
    assert figure.notes[-1] == "deviations are cut off at 0"
    assert values(means) == [hour + 1.0 for hour in range(24)]
    assert [hour for hour, on in enumerate(shade["data"]) if on] == list(range(8, 17))
    even = draw(result("arrivals-by-hour", hours(sd=[1.0] * 24)))
    assert even.own_notes == (), "a deviation as large as the mean is not cut"


def test_an_hour_without_a_mean_is_a_gap() -> None:
    means: list[Any] = [1.0] * 24
    means[3] = None
    _, bars, line = draw(result("arrivals-by-hour", hours(mean=means))).option["series"]
    assert line["data"][3] == {"value": None} and bars["data"][3] == "-"
    assert line["data"][4]["where"] == "hour = 4"


def test_the_week_s_hours_are_in_their_places() -> None:
    """Saturday at five is row 5, column 5 of a table that leaves Sunday out."""
    table = {
        "weekday": [0, 0, 5],
        "hour": [4, 5, 5],
        "num_jobs": [3, 40, 7],
        "mean": [0.5, 9.25, None],
    }
    option = draw(result("arrivals-by-week", table)).option
    assert values(option["series"][0]) == [[0, 0, 0.5], [1, 0, 9.25]]
    assert option["xAxis"][0]["data"] == ["4", "5"]
    assert option["yAxis"][0]["data"] == ["Mon", "Sat"]
    assert (option["visualMap"]["min"], option["visualMap"]["max"]) == (0, 9.25)
    assert option["series"][0]["data"][1]["where"] == "weekday = 0 AND hour = 5"
    assert option["yAxis"][0]["inverse"], "Monday is on top"


def test_three_groups_are_panels_on_one_scale() -> None:
    """The largest mean is the last group's; three panels of two a row need two rows of 274 pixels."""
    table = {
        "queue": ["a", "b", "c"], "weekday": [0, 0, 0], "hour": [1, 1, 1],
        "num_jobs": [1, 2, 3], "mean": [0.5, 1.5, 7.5],
    }  # fmt: skip
    figure = draw(result("arrivals-by-week", table, by="queue"))
    assert figure.option["visualMap"]["max"] == 7.5
    assert [title["text"] for title in figure.option["title"]] == ["a", "b", "c"]
    tops = [grid["top"] for grid in figure.option["grid"]]
    assert tops[0] == tops[1] and tops[2] == tops[0] + 274
    assert figure.height == tops[0] + 2 * 274
    assert [values(s)[0][2] for s in figure.option["series"]] == [0.5, 1.5, 7.5]


def test_days_are_counted_a_day_and_hours_an_hour() -> None:
    days = {"weekday": list(range(7)), "num_jobs": [1] * 7, "mean": [1.0] * 7, "sd": [0.0] * 7}
    option = draw(result("arrivals-by-weekday", days)).option
    assert option["yAxis"][0]["name"].endswith("a day")
    assert option["series"][0]["data"] == [1, 1, 1, 1, 1, None, None]
    assert draw(result("arrivals-by-hour", hours())).option["yAxis"][0]["name"].endswith("an hour")


# ---- levels over time


def load(busy: list[float], **columns: list[Any]) -> dict[str, list[Any]]:
    """Bins of a quarter of an hour; the queue is ten times as long as the machine is busy."""
    at = [BEGIN + timedelta(seconds=BIN_S * n) for n in range(len(busy))]
    return {
        "since_at": at,
        "until_at": [each + timedelta(seconds=BIN_S) for each in at],
        "num_pes_busy": busy,
        "num_jobs_waiting": [10 * value for value in busy],
        "num_pes_installed": [None] * len(busy),
        "utilisation": [None] * len(busy),
    } | columns


def test_levels_are_steps_that_hold_until_the_next_bin() -> None:
    busy, waiting = draw(result("load", load([1.0, 4.0]))).option["series"]
    assert values(busy) == [
        [BEGIN_MS, 1.0],
        [BEGIN_MS + 900_000, 4.0],
        [BEGIN_MS + 1_800_000, 4.0],
    ]
    assert [value for _, value in values(waiting)] == [10.0, 40.0, 40.0]
    assert busy["step"] == "end"
    assert "where" in busy["data"][0] and "where" not in busy["data"][-1]


def without(table: dict[str, list[Any]], *bins: int) -> dict[str, list[Any]]:
    return {
        name: [value for at, value in enumerate(column) if at not in bins]
        for name, column in table.items()
    }


def test_a_bin_that_is_withheld_is_a_gap() -> None:
    """Of five bins the third is not there: the line ends with the second and begins again."""
    table = without(load([1.0, 4.0, 9.0, 2.0, 3.0]), 2)
    for series in draw(result("load", table)).option["series"]:
        times = [(at - BEGIN_MS) // 900_000 for at, _ in values(series)]
        assert times == [0, 1, 2, 2, 3, 4, 5]
        assert [value is None for _, value in values(series)] == [False] * 3 + [True] + [False] * 3
        assert not series.get("connectNulls")
    busy = draw(result("load", table)).option["series"][0]
    assert [value for _, value in values(busy)] == [1.0, 4.0, 4.0, None, 2.0, 3.0, 3.0]


def test_bins_are_not_merged_across_one_that_is_withheld() -> None:
    """2,001 bins are three to a point. Of bins 0 to 3 the second is not there: 0 alone, then 2, 3 and 4."""
    levels = [30.0, 99.0, 3.0, 6.0, 9.0] + [0.0] * 1997
    busy = draw(result("load", without(load(levels), 1))).option["series"][0]
    assert values(busy)[:4] == [
        [BEGIN_MS, 30.0],
        [BEGIN_MS + 900_000, 30.0],
        [BEGIN_MS + 900_000, None],
        [BEGIN_MS + 1_800_000, 6.0],
    ]


def test_installed_pes_are_drawn_up_to_the_period_s_end() -> None:
    sizes: dict[str, list[Any]] = {"num_pes_installed": [8.0, 16.0], "utilisation": [0.1, 0.1]}
    *_, installed = draw(result("load", load([1.0, 4.0], **sizes))).option["series"]
    assert values(installed) == [
        [BEGIN_MS, 8.0],
        [BEGIN_MS + 900_000, 16.0],
        [BEGIN_MS + 1_800_000, 16.0],
    ]


def test_too_many_bins_are_merged_and_the_period_s_end_is_drawn() -> None:
    """2,002 bins are three to a point: 668 points, the last of them of one bin. No peak is lost."""
    levels = [0.0] * 2002
    levels[1] = 30.0  # within the first three
    levels[2001] = 7.0  # the last bin
    figure = draw(result("load", load(levels)))
    busy, waiting = figure.option["series"]
    assert len(busy["data"]) == 668 + 1
    assert values(busy)[0] == [BEGIN_MS, 10.0]
    assert values(busy)[-2:] == [
        [BEGIN_MS + 2001 * 900_000, 7.0],
        [BEGIN_MS + 2002 * 900_000, 7.0],
    ]
    assert values(waiting)[0][1] == 100.0
    assert "submitted_at < '2018-01-01T00:45:00Z'" in busy["data"][0]["where"]
    assert figure.own_notes[0].startswith("drawn: means of 3 bins each, 2,002 bins in all")
    whole = draw(result("load", load([1.0] * 1000)))
    assert len(whole.option["series"][0]["data"]) == 1001 and "bins" not in " ".join(whole.notes)


def test_merged_bins_are_weighed_by_their_length() -> None:
    """A first bin of five minutes at 30 and two of a quarter of an hour at 9: 12 over 35 minutes."""
    table = load([30.0, 9.0, 9.0] + [0.0] * 2000)
    table["since_at"][0] += timedelta(minutes=10)
    busy = draw(result("load", table)).option["series"][0]
    assert values(busy)[0] == [BEGIN_MS + 600_000, 12.0]


def test_a_size_that_is_unknown_in_a_part_of_a_merged_bin_stays_unknown() -> None:
    sizes: dict[str, list[Any]] = {"num_pes_installed": [None] + [8.0] * 2002}
    *_, installed = draw(result("load", load([1.0] * 2003, **sizes))).option["series"]
    assert [value for _, value in values(installed)][:2] == [None, 8.0]
