"""What figures name, colour, leave out and note at their limits, of tables written by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hakaru.figures import draw, save, theme
from hakaru.figures._labels import label, text
from hakaru.figures._page import embedded, height_of, still, to_html
from hakaru.figures._runs import _narrow
from hakaru.texts import language
from tests.figures._draw import values
from tests.figures._result import result
from tests.figures.test_runs import HOUR_S, drawn, group
from tests.figures.test_values_shapes import cells, shapes
from tests.figures.test_values_time import hours, load


def states(*names: str | None, **columns: list[Any]) -> dict[str, list[Any]]:
    num = [10 * (n + 1) for n in range(len(names))]
    return {"state": list(names), "num_jobs": num, "share": [n / sum(num) for n in num]} | columns


# ---- colours


def test_states_keep_their_colours() -> None:
    names = ("completed", "failed", "timeout", "cancelled", "killed", "out_of_memory", "pending")
    colours = [theme.LIGHT.colour("state", name) for name in names]
    assert colours == [
        *(
            theme.GREEN,
            theme.ORANGE,
            theme.BROWN,
            theme.ROSE,
            theme.VIOLET,
            theme.MAGENTA,
            theme.GREY,
        )
    ]
    assert (
        theme.LIGHT.colour("queue", "(unknown)") == theme.LIGHT.colour("queue", None) == theme.GREY
    )


def test_eight_names_have_eight_colours() -> None:
    names = ["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal"]
    assert len({theme.DARK.colour("user", name) for name in names}) < 8, "some fall on one colour"
    assert set(theme.DARK.colours("user", names).values()) == set(theme.PALETTE)


def test_bars_of_groups_have_the_colour_of_their_group() -> None:
    table = {"queue": ["a", "b"]} | states("failed", "failed")
    series = draw(result("states", table, by="queue")).option["series"]
    assert [("itemStyle" in item) for each in series for item in each["data"]] == [False, False]
    assert len({each["color"] for each in series}) == 2


# ---- names and labels


def test_counts_stand_on_twelve_bars_of_all_groups_together() -> None:
    def is_shown(num_states: int) -> bool:
        names = [*theme.STATE_COLOURS][:num_states]
        table = {"queue": ["a"] * num_states + ["b"] * num_states} | states(*names, *names)
        return bool(draw(result("states", table, by="queue")).option["series"][0]["label"]["show"])

    assert (is_shown(6), is_shown(7)) == (True, False)


def test_quarters_of_groups_are_in_order() -> None:
    table = {"queue": ["a", "b"], "quarter": ["2018Q2", "2018Q1"], "num_jobs": [2, 1]}
    option = draw(result("jobs-by-quarter", table | {"share": [1.0, 1.0]}, by="queue")).option
    assert option["xAxis"]["data"] == ["2018Q1", "2018Q2"]
    assert [values(each) for each in option["series"]] == [[None, 2], [1, None]]


def test_counts_that_are_withheld_leave_their_shares() -> None:
    table = states("completed", "failed", num_jobs=[None, None], share=[0.75, 0.25])
    option = draw(result("states", table)).option
    assert values(option["series"][0]) == [75.0, 25.0]
    assert option["yAxis"]["name"] == "Share (%)"
    curve = {"class": ["all"], "run_h": [2.0], "num_jobs": [None], "share": [1.0]}
    (series,) = draw(result("walltime-cdf", curve)).option["series"]
    assert series["name"] == "all jobs"


def test_rows_are_named_by_their_words_and_what_they_count() -> None:
    scaling = {"coefficient": ["spearman"], "num_jobs": [80], "num_draws": [9], "mean": [0.25]}
    scaling |= {"low": [0.2], "high": [0.3], "reading": ["weak scaling"]}
    figure = draw(result("size-vs-walltime", scaling))
    assert figure.option["yAxis"]["data"] == ["spearman (80)"]
    assert figure.own_notes == ("spearman (80): weak scaling",)
    pauses = {"num_pairs": [900], "num_within": [700], "mean_s": [60.0], "p25_s": [10.0]}
    pauses |= {"median_s": [30.0], "p75_s": [70.0], "p90_s": [99.0]}
    option = draw(result("think-time", pauses)).option
    assert option["yAxis"]["data"] == ["all (700)"]
    (spans,) = [each["data"] for each in option["series"] if each["type"] == "boxplot"]
    assert spans == [[10.0, 10.0, 10.0, 10.0, 99.0]]


def test_a_second_itself_is_not_below_a_second() -> None:
    def notes(least: float) -> tuple[str, ...]:
        table = {"part": ["submit to start"], "num_jobs": [2], "mean_s": [9.0]}
        table |= {"median_s": [least], "max_s": [99.0]}
        return draw(result("waits", table)).own_notes

    assert (notes(1.0), len(notes(0.9))) == ((), 1)


def test_yes_and_no_and_percent_once() -> None:
    words = language("en")
    assert [text("is_working", each, words) for each in (True, False)] == ["yes", "no"]
    assert label("utilization", words) == "GPU core use (%)"
    assert label("share_pe_hours", words) == "Share of GPU-hours (%)"


# ---- shares


def holders(num: int) -> dict[str, list[Any]]:
    shares = ("share_top1", "share_top3", "share_top10", "share_top_tenth", "share_unknown")
    table: dict[str, list[Any]] = {"holder": ["user"] * num, "num_holders": [7] * num}
    return table | {name: [0.5] * num for name in shares} | {"gini": [None] * num}


@pytest.mark.parametrize(("num", "is_shown"), [(2, True), (3, False)])
def test_shares_stand_on_the_bars_of_two_rows(num: int, is_shown: bool) -> None:
    series = draw(result("concentration", holders(num))).option["series"]
    assert [each["label"]["show"] for each in series] == [is_shown] * num


def test_shares_of_groups_name_the_group_and_are_cut_after_eight() -> None:
    table = {"queue": [f"q{n}" for n in range(9)]} | holders(9)
    table["queue"][8] = "q7"
    figure = draw(result("concentration", table, by="queue"))
    names = [each["name"] for each in figure.option["series"]]
    assert names == [f"q{n}: 7 users" for n in range(8)]
    assert figure.own_notes == ("drawn: the first 8 of 9 rows",)


# ---- hours and levels


def test_hours_of_work_that_differ_are_not_shaded() -> None:
    same = {"cluster": ["c"] * 24 + ["d"] * 24} | {k: v * 2 for k, v in hours().items()}
    other = same | {"is_working": hours()["is_working"] + [False] * 24}
    kinds = [
        [
            each["type"]
            for each in draw(result("arrivals-by-hour", table, by="cluster")).option["series"]
        ]
        for table in (same, other)
    ]
    assert kinds == [["bar", "line", "line"], ["line", "line"]]
    told = draw(result("arrivals-by-hour", same, by="cluster")).own_notes
    assert told == ("drawn: means; the deviations are in the table",)


def test_an_hour_without_jobs_is_a_cell_of_nothing() -> None:
    table = {"weekday": [0, 0], "hour": [4, 5], "num_jobs": [0, 3], "mean": [0.0, 1.5]}
    (series,) = draw(result("arrivals-by-week", table)).option["series"]
    assert values(series) == [[0, 0, 0.0], [1, 0, 1.5]]


def test_clusters_side_by_side_have_no_line_of_one_size() -> None:
    sized = load([1.0, 4.0], num_pes_installed=[8.0, 8.0], utilisation=[0.1, 0.5])
    for by, num_series in ((None, 3), ("cluster", 2)):
        table = sized if by is None else {by: ["c", "c"]} | sized
        assert len(draw(result("load", table, by=by)).option["series"]) == num_series


def test_a_bin_leads_to_who_was_there_and_is_not_known_to_have_ended() -> None:
    busy = draw(result("load", load([1.0]))).option["series"][0]
    assert busy["data"][0]["where"].startswith(
        "submitted_at < '2018-01-01T00:15:00Z' AND (ended_at IS NULL OR ended_at > '2018-01-01T00:00:00Z')"
    )


# ---- filters, cells and lines


def test_a_log_s_name_with_a_wildcard_cannot_be_asked_for() -> None:
    table = {"quarter": ["q1", "50%", "a_b"], "num_jobs": [1, 2, 3], "share": [0.1, 0.3, 0.6]}
    drawn = draw(result("jobs-by-quarter", table, params={"quarter": "log"}))
    assert ["where" in item for item in drawn.option["series"][0]["data"]] == [True, False, False]


def test_a_cell_under_a_second_holds_all_that_is_shorter() -> None:
    table = cells(run_from_h=[0.75 / 3600, 1.0], run_to_h=[1 / 3600, 10.0])
    first, second = draw(result("request-vs-run", table)).option["series"][0]["data"]
    assert "run_s <= 1 " in first["where"] and "run_s > " not in first["where"]
    assert "run_s > 3600 AND run_s <= 36000" in second["where"]


def test_a_small_mark_can_still_be_seen() -> None:
    table = {"queue": ["a", "b"]} | cells(num_jobs=[100_000, 1])
    series = draw(result("request-vs-run", table, by="queue")).option["series"]
    assert [each["data"][0]["symbolSize"] for each in series] == [26, 4]


@pytest.mark.parametrize(("num", "has_axis"), [(1, False), (2, True), (12, True), (13, False)])
def test_applications_are_an_axis_where_they_differ_and_fit(num: int, has_axis: bool) -> None:
    names = [f"app{n:02}" for n in range(num)]
    option = draw(result("job-shapes", shapes(num, application=names))).option
    assert (option["parallelAxis"][-1]["column"] == "application") == has_axis


# ---- runs


def test_intervals_are_cut_at_a_minute_at_least() -> None:
    minute = 1 / 60
    changes = drawn(group("queue", "a", 1.0, 1.0 + minute / 10, -1.5 * minute, 1.5 * minute))[1]
    ends = changes.option["series"][0]["data"][0]["value"]
    assert (ends[0], ends[-1]) == pytest.approx((-minute, minute)) and HOUR_S == 3600


def test_two_names_of_a_legend_stand_on_a_line_of_a_phone() -> None:
    tops = [_narrow(num)[0]["option"]["grid"]["top"] for num in (1, 2, 3)]
    assert tops == [16 + 24, 16 + 24, 16 + 2 * 24]


# ---- pages


def test_what_is_missing_stands_above_how_many_jobs_there_are() -> None:
    lacking = replace(result("states", states("completed")), missing={"c": 0.25})
    first, second, *_ = draw(lacking).notes
    assert first.startswith("c: 25.0 % of the rows of its log ")
    assert second == "c: 100 of 100 jobs"


def test_a_page_is_as_high_as_its_notes_need_and_shows_all_its_names() -> None:
    figure = draw(result("states", states("completed"), {"with <b>": 3}))
    assert len(figure.notes) == 2
    assert height_of(figure) - height_of(replace(figure, notes=figure.notes[:1])) == 21
    assert figure.option["legend"]["type"] == "scroll"
    assert still(figure).option["legend"]["type"] == "plain"
    page = to_html(figure, theme.LIGHT)
    assert "with &lt;b&gt;" in page and "with <b>" not in page
    assert embedded({"a": "</script>&"}) == '{"a":"\\u003c/script\\u003e\\u0026"}'


def test_a_dark_page_is_dark(tmp_path: Path) -> None:
    figure = draw(result("states", states("completed")))
    for dark, chosen in ((False, theme.LIGHT), (True, theme.DARK)):
        save(figure, tmp_path / "figure.html", dark)
        assert f"html {{ background: {chosen.background}" in (tmp_path / "figure.html").read_text()


def test_a_table_s_words_and_days() -> None:
    table = {"state": ["out_of_memory"], "num_jobs": [1]}
    table |= {"first_submit": [datetime(2018, 3, 4, 5, 6, tzinfo=UTC)]}
    matrix = draw(result("users", table)).option["matrix"]
    assert [each["value"] for each in matrix["body"]["data"]] == [
        "out of memory",
        "1",
        "2018-03-04",
    ]
