"""Figures of simulated runs, of an outcome written by hand: waits, who gains and who loses, busy GPUs."""

from __future__ import annotations

from typing import Any

from hakaru.figures import Figure, figures_of_runs, theme
from hakaru.sim.whatif.outcome import Change, GroupChange, Outcome, Variant

HOUR_S = 3600.0


def group(by: str, name: str, before_h: float, after_h: float, *ends_h: float) -> GroupChange:
    low, high = (end * HOUR_S for end in ends_h) if ends_h else (None, None)
    change = Change(before_h * HOUR_S, after_h * HOUR_S, low, high)
    return GroupChange(by, name, 10, {"mean_wait_s": change})


def outcome(*groups: GroupChange, unit: str = "gpu", zone: str = "UTC") -> Outcome:
    base = Variant(
        "as it is",
        {"num_jobs": 4.0},
        waits=((0.0, 0.25), (600.0, 1.0)),
        busy=((0, 3.0), (900, 8.0)),
    )
    more = Variant(
        "more nodes", {"num_jobs": 4.0}, groups=groups, waits=((30.0, 1.0),), busy=((0, 2.5),)
    )
    return Outcome(base, (more,), (), "", (), 12, 100, 1, unit=unit, zone=zone)


def drawn(*groups: GroupChange, **how: Any) -> list[Figure]:
    return figures_of_runs(outcome(*groups, **how))


def test_waits_are_in_percent_and_at_least_a_second() -> None:
    waits = drawn()[0]
    assert [(s["name"], s["data"]) for s in waits.option["series"]] == [
        ("as it is", [[1.0, 25.0], [600.0, 100.0]]),
        ("more nodes", [[30.0, 100.0]]),
    ]
    assert len({s["color"] for s in waits.option["series"]}) == 2
    assert waits.option["xAxis"]["type"] == "log"


def test_a_box_is_the_interval_and_its_line_the_change() -> None:
    gains = group("queue", "long", 5.0, 3.0, -3.0, -0.5)
    loses = group("user group", "the busiest tenth", 1.0, 2.0, 0.25, 1.75)
    unsure = group("size", "1 GPU", 1.0, 1.5, -0.5, 1.0)
    unknown = group("size", "2 GPUs", 1.0, 9.0)
    changes = drawn(gains, loses, unsure, unknown)[1]
    assert changes.option["yAxis"]["data"] == ["queue: long", "the busiest tenth", "size: 1 GPU"]
    (series,) = changes.option["series"]
    assert [item["value"] for item in series["data"]] == [
        [-3.0, -3.0, -2.0, -0.5, -0.5],
        [0.25, 0.25, 1.0, 1.75, 1.75],
        [-0.5, -0.5, 0.5, 1.0, 1.0],
    ]
    colours = [item["itemStyle"]["color"] for item in series["data"]]
    assert colours == [theme.GREEN, theme.ORANGE, theme.GREY]
    assert len(changes.notes) == 1 and changes.height == 90 + 3 * 22


def test_an_unsure_interval_is_cut_at_four_times_the_largest_change() -> None:
    """The largest change is 2 h; the unsure interval reaches to 30 h and is cut at 8 h."""
    sure, unsure = (
        group("queue", "a", 5.0, 3.0, -3.0, -0.5),
        group("queue", "b", 1.0, 1.5, -0.5, 30.0),
    )
    changes = drawn(sure, unsure)[1]
    assert changes.option["series"][0]["data"][1]["value"][-1] == 8.0
    assert any("8 h" in note for note in changes.notes)
    whole = drawn(group("queue", "a", 5.0, 3.0, -30.0, -0.5))[1]
    assert whole.option["series"][0]["data"][0]["value"][0] == -30.0, "a sure one is never cut"
    assert len(whole.notes) == 1


def test_busy_pes_by_the_site_s_clock() -> None:
    busy = drawn(zone="Asia/Tokyo", unit="cpu")[-1]
    nine_h_ms = 9 * 3600 * 1000
    assert busy.option["series"][0]["data"] == [[nine_h_ms, 3.0], [nine_h_ms + 900_000, 8.0]]
    assert busy.option["xAxis"]["name"] == "Time (Asia/Tokyo)"
    assert "processors" in busy.option["yAxis"]["name"] and "processors" in busy.title
    assert busy.option["series"][0]["step"] == "end"
