"""Epochs over sizes, layouts and timelines, worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hakaru.figures.measure.data_size import data_size, data_size_sentences, needed_sheet, sizes_of
from hakaru.figures.measure.layouts import layouts, loaders_of, loading_sentences
from hakaru.figures.measure.timeline import timeline, timeline_of, timelines_of
from hakaru.measure.documents import Document
from tests.figures.measure._runs import view_of
from tests.measure.lakes_training import (
    MEMORY_MIB,
    data_size_rows,
    epoch,
    loading_rows,
    timed,
    timeline_document,
)


def of_name(figure: Any, name: str) -> list[dict[str, Any]]:
    return [each for each in figure.option["series"] if each.get("name") == name]


def test_an_epoch_grows_by_its_slope_and_by_another_beyond_memory() -> None:
    """8 s a GiB to 1 GiB, 24 s beyond: the slopes meet at the knee, 8 s, and end at 32 s."""
    (sweep,) = sizes_of(view_of(*data_size_rows()))
    figure = data_size([sweep])
    points, _, below, above = of_name(figure, "resnet50")
    assert points["data"] == [[256, 2.0], [512, 4.0], [1024, 8.0], [1536, 20.0], [2048, 32.0]]
    assert below["data"] == [[0.0, 0.0], [1024.0, 8.0]] and above["data"] == [
        [1024.0, 8.0],
        [2048.0, 32.0],
    ]
    assert below["lineStyle"]["type"] != above["lineStyle"]["type"]
    (memory,) = [each for each in figure.option["series"] if "markLine" in each]
    (mark,) = memory["markLine"]["data"]
    assert (mark["xAxis"], mark["label"]["formatter"]) == (MEMORY_MIB, "memory 1 GiB")


def test_the_shape_of_a_point_says_where_its_bytes_came_from() -> None:
    figure = data_size(sizes_of(view_of(*data_size_rows())))
    shapes = {
        name: of_name(figure, name)[0] for name in ("cached", "partly cached", "from the device")
    }
    assert len({each["symbol"] for each in shapes.values()}) == 3
    assert {name: [item["value"][0] for item in each["data"]] for name, each in shapes.items()} == {
        "cached": [256, 512], "partly cached": [1024, 1536], "from the device": [2048],
    }  # fmt: skip
    told = shapes["from the device"]["data"][0]["name"]
    assert (
        "waits for data 21.0 %" in told
        and "epoch 2: 32 s, from the device, 50.0 % read from the device" in told
    )


def test_without_a_knee_one_slope_runs_over_all_sizes_and_far_memory_is_told() -> None:
    fit = {"slope_below_s_per_gib": 4.0, "slope_above_s_per_gib": None, "knee_mib": None}
    facts = {"memory_mib": 65_536, "epochs": [epoch(1.0, 256, 0.0, "odd")], "fit": fit}
    rows = [row for mib in (256, 512) for row in timed(
        "data-size", {"model": "none", "layout": "tar", "workers": 2, "memory": 0, "mib": mib},
        {"epoch": 4.0 * mib / 1024}, facts)]  # fmt: skip
    figure = data_size(sizes_of(view_of(*rows)))
    _, _, only = of_name(figure, "loader alone")
    assert only["data"] == [[0.0, 0.0], [512.0, 2.0]]
    assert not any("markLine" in each for each in figure.option["series"])
    assert "Memory of 64 GiB is far beyond the largest size, 512 MiB." in figure.notes
    assert of_name(figure, "unknown")[0]["data"], "a label that nobody knows is unknown"


def test_lines_are_named_by_what_differs() -> None:
    both = [*data_size_rows(), *data_size_rows("alexnet")]
    assert [each.name for each in sizes_of(view_of(*both))] == ["alexnet", "resnet50"]
    more = [
        timed("data-size", dict(each.parameters) | {"workers": 4}, {"epoch": 1.0}, {})[0]
        for each in both
    ]
    names = [each.name for each in sizes_of(view_of(*both, *more))]
    assert names == [
        "alexnet, 2 workers",
        "alexnet, 4 workers",
        "resnet50, 2 workers",
        "resnet50, 4 workers",
    ]


def test_what_storage_has_to_deliver_is_a_table() -> None:
    sweeps = sizes_of(view_of(*data_size_rows()))
    sheet = needed_sheet(sweeps)
    assert sheet is not None
    assert sheet.heads[3:] == ("2 times as fast", "4 times as fast")
    assert sheet.rows == (
        ("resnet50", "130 MB/s", "300 MB/s", "260 MB/s, delivered", "520 MB/s, too slow"),
    )
    assert needed_sheet([]) is None
    assert (
        data_size_sentences(sweeps)[1]
        == "resnet50: storage has to deliver 260 MB/s for devices twice as fast."
    )


@pytest.mark.parametrize(
    ("delivers", "label", "cells"),
    [
        (True, "from the device", ("300 MB/s (from the device)", "260 MB/s, delivered")),
        (False, "over the network", ("300 MB/s (over the network)", "260 MB/s, too slow")),
        (None, "cached", ("300 MB/s (cached)", "260 MB/s, unknown")),
        ("yes", 3, ("300 MB/s", "260 MB/s, unknown")),
        (None, None, ("–", "260 MB/s, unknown")),
    ],
)
def test_where_nobody_knows_storage_is_not_called_too_slow(
    delivers: Any, label: Any, cells: tuple[str, str]
) -> None:
    needed = {"mb_per_s_now": 130.0, "loader_mb_per_s": 300.0 if label else None,
              "loader_label": label,
              "for_faster": [{"times": 2, "mb_per_s": 260.0, "delivers": delivers}]}  # fmt: skip
    rows = timed("data-size", {"model": "mlp", "mib": 64}, {"epoch": 1.0}, {"needed": needed})
    sheet = needed_sheet(sizes_of(view_of(*rows)))
    assert sheet is not None and sheet.rows == (("mlp", "130 MB/s", *cells),)


def test_layouts_stand_side_by_side_and_a_cold_one_that_was_cached_is_hollow() -> None:
    """The slowest layout first; four marks share a layout's room of two thirds."""
    loaders = loaders_of(view_of(*loading_rows()))
    assert [each.name for each in loaders] == [
        "cold, 1 worker", "cold, 2 workers", "warm, 1 worker", "warm, 2 workers",
    ]  # fmt: skip
    figure = layouts(loaders)
    assert figure.option["xAxis"][0]["data"] == ["files", "tar", "packed"]
    cold = of_name(figure, "cold, 1 worker")[0]
    values = {item["name"].split(",")[0]: item["value"] for item in cold["data"]}
    assert values == {"files": [-0.2475, 300.0], "tar": [0.7525, 900.0], "packed": [1.7525, 1000.0]}
    hollow = {item["name"].split(",")[0] for item in cold["data"] if "itemStyle" in item}
    assert hollow == {"tar"} and "no speed of storage (tar)" in figure.notes[1]
    assert not any("itemStyle" in item for item in of_name(figure, "warm, 1 worker")[0]["data"])
    assert cold["symbol"] != of_name(figure, "warm, 1 worker")[0]["symbol"]
    assert figure.notes[-1] == "Measured with 512 MiB of data at /data/set (ext4)."


def test_only_the_largest_data_set_is_compared_and_far_rates_have_an_axis_of_powers() -> None:
    base = {"layout": "tar", "workers": 0, "state": "cold", "prefetch": 0}
    rows = [row for mib, state, rate in ((64, "cold", 9.0), (512, "cold", 10.0), (512, "warm", 1000.0))
            for row in timed("loading", base | {"mib": mib, "state": state}, {"rate": rate}, {})]  # fmt: skip
    figure = layouts(loaders_of(view_of(*rows)))
    assert figure.option["yAxis"]["type"] == "log"
    marks = [
        each["data"][0]["value"][1] for each in figure.option["series"] if each["type"] == "scatter"
    ]
    assert marks == [10.0, 1000.0]


def test_events_of_a_lane_that_follow_at_once_are_one() -> None:
    document = Document({
        "lanes": ["loading", "compute"],
        "events": [[0, 0, 10], [0, 10, 20], [0, 15, 30], [1, 40, 50], [0, 60, 100], [1, 70, 70]],
        "hidden": {"loading": 0.5, "copy": 7},
    })  # fmt: skip
    found = timeline_of("x", document)
    assert found.lanes["loading"] == [(0.0, 30.0), (60.0, 100.0)]
    assert found.lanes["compute"][0] == (40.0, 50.0)
    assert found.lanes["compute"][1] == pytest.approx((70.0, 70.0 + 100 / 1500)), (
        "wide enough to be seen"
    )
    figure = timeline(found)
    assert figure.option["yAxis"]["data"] == ["loading", "compute"]
    thick = figure.option["series"][0]
    assert thick["data"][:3] == [[0.0, 0], [30.0, 0], [30.0, None]]
    assert figure.notes == ("Hidden behind compute: 50.0 % of loading.",)


def test_a_timeline_is_of_the_largest_size() -> None:
    (found,) = timelines_of(view_of(*data_size_rows()))
    assert found.end == 239.0 and found.sentence == timeline_document()["sentence"]
    assert {name: len(events) for name, events in found.lanes.items()} == {
        "loading": 12, "copy": 12, "compute": 12, "waiting": 4,
    }  # fmt: skip


def test_without_a_knee_the_slopes_part_at_memory() -> None:
    fit = {"slope_below_s_per_gib": 4.0, "slope_above_s_per_gib": 4.2, "knee_mib": None}
    rows = [row for mib in (256, 1024) for row in timed(
        "data-size", {"model": "alexnet", "mib": mib}, {"epoch": 4.0 * mib / 1024},
        {"memory_mib": 512, "fit": fit})]  # fmt: skip
    _, _, below, above = of_name(data_size(sizes_of(view_of(*rows))), "alexnet")
    assert below["data"] == [[0.0, 0.0], [512.0, 2.0]]
    assert above["data"] == [[512.0, 1.9], [1024.0, 4.0]]


def test_loaders_say_which_is_ahead_why_one_is_not_cold_and_what_differs() -> None:
    base = {"layout": "tar", "state": "cold", "mib": 64, "image": 64, "workers": 1}
    facts = {"verdict": "Cold: tar is ahead.", "cold_problem": "tmpfs keeps files in memory."}
    one = timed("loading", base, {"rate": 9.0}, facts)
    loaders = loaders_of(view_of(*one))
    assert [each.name for each in loaders] == ["cold, 1 worker"]
    assert loading_sentences(loaders) == ["Cold: tar is ahead."]
    assert "tmpfs keeps files in memory." in layouts(loaders).notes
    other = timed("loading", base | {"image": 128}, {"rate": 9.0}, facts)
    names = [each.name for each in loaders_of(view_of(*one, *other))]
    assert names == ["cold, 1 worker, image 128", "cold, 1 worker, image 64"]
