"""What holds for the figure of every registered analysis, also of one that is added later."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hakaru.analyses import Analysis, Selection, Session, load_all, open_session
from hakaru.analyses._select import COLUMNS
from hakaru.engine.where import parse_where
from hakaru.figures import Figure, draw, load_kinds
from hakaru.figures.theme import DARK, LIGHT
from hakaru.lake import Lake
from tests.conftest import put_jobs
from tests.figures._draw import axes, items

ALL = tuple(load_all())
GROUPED = tuple(each for each in ALL if each.groups)


def named(analysis: Analysis) -> str:
    return analysis.id


def weight(figure: Figure) -> int:
    return len(json.dumps(figure.option, allow_nan=False))


@pytest.mark.parametrize("analysis", ALL, ids=named)
def test_the_figure_of_the_sample(sample: Session, analysis: Analysis) -> None:
    result = sample.run(analysis)
    figure = draw(result)
    assert figure.kind == analysis.figure, "its word is no kind: a table is drawn instead"
    assert json.loads(json.dumps(figure.option, allow_nan=False)) == figure.option
    assert figure.option["series"] or figure.kind == "table"
    assert (figure.title, figure.question) == (analysis.title, analysis.answers)
    assert figure.notes[0].startswith("SYNTHETIC")
    assert figure.notes[1] == f"sample: {result.num_used:,} of {result.num_selected:,} jobs"
    for entry in result.left_out:
        assert (f"left out {entry.num_jobs:,}: only jobs {entry.rule}" in figure.notes) == (
            entry.num_jobs > 0
        )
    check_items_and_axes(figure)


@pytest.mark.parametrize("by", ["queue", "user", "application", "num_gpus"])
@pytest.mark.parametrize("analysis", GROUPED, ids=named)
def test_groups(sample: Session, analysis: Analysis, by: str) -> None:
    figure = draw(sample.run(analysis, Selection(by=by)))
    check_items_and_axes(figure)
    assert weight(figure) < 400_000
    if by == "user":
        assert any("largest of" in note for note in figure.notes), "106 users are not all drawn"


@pytest.mark.parametrize("analysis", [each for each in ALL if each.weighted], ids=named)
def test_gpu_hours(sample: Session, analysis: Analysis) -> None:
    """The words on the axes follow what was counted."""
    counted, weighed = (
        json.dumps(draw(sample.run(analysis, Selection(weight=weight))).option)
        for weight in ("jobs", "gpu-hours")
    )
    assert "GPU-hours" in weighed
    assert "GPU-hours" not in counted


@pytest.mark.parametrize("analysis", ALL, ids=named)
def test_nothing_to_draw(lake: Lake, analysis: Analysis) -> None:
    put_jobs(lake, [])
    with open_session(lake) as session:
        figure = draw(session.run(analysis))
    assert figure.option["series"] == []
    assert figure.option["title"]["text"] == "No jobs to draw"
    assert figure.notes == ("c: 0 of 0 jobs",)


@pytest.mark.parametrize("analysis", ALL, ids=named)
def test_dark_changes_the_background_and_no_value(sample: Session, analysis: Analysis) -> None:
    result = sample.run(analysis)
    light, dark = draw(result), draw(result, dark=True)
    assert light.option["backgroundColor"] == LIGHT.background
    assert dark.option["backgroundColor"] == DARK.background
    assert LIGHT.text not in json.dumps(dark.option)
    assert [i.get("value") for i in items(light)] == [i.get("value") for i in items(dark)]


def test_ten_times_the_jobs_weigh_the_same(sample_lake: Lake, large_lake: Lake) -> None:
    weights: list[dict[str, int]] = []
    for lake in (sample_lake, large_lake):
        with open_session(lake) as session:
            weights.append({each.id: weight(draw(session.run(each))) for each in ALL})
    small, large = weights
    # a rare size or an hour that the small log happens not to have is a bar or a cell more
    slack = {id: 1.6 * small[id] + 3_000 for id in small}
    assert {id: large[id] for id in large if large[id] > slack[id]} == {}
    assert max(large.values()) < 300_000


def test_every_kind_is_used() -> None:
    assert {each.figure for each in ALL} == set(load_kinds().ids())


def check_items_and_axes(figure: Figure) -> None:
    for item in items(figure):
        assert "value" in item
        if "where" in item:
            parse_where(item["where"], "jobs_all", COLUMNS)
    for axis in axes(figure):
        if axis.get("show", True) and axis["type"] != "category":
            assert has_unit(axis["name"]), f"an axis without a unit: {axis['name']!r}"


def has_unit(name: Any) -> bool:
    words = (
        "Jobs",
        "jobs",
        "GPU",
        "hours",
        "Hours",
        "Seconds",
        "(%)",
        "Time (",
        "÷",
        "Nodes",
        "users",
        "−1",
    )
    return any(word in name for word in (*words, "Number"))
