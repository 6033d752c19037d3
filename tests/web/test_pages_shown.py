"""How pages write numbers, changes, tiles and addresses; worked by hand, without a browser."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hakaru.web.models import ClusterOverview, Measures, Now, Period
from hakaru.web.pages import _address as address
from hakaru.web.pages import _shown as shown
from hakaru.web.pages.compare import _strip
from hakaru.web.pages.overview import _tiles

AT = datetime(2018, 1, 1, 15, 30, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0, "0"),
        (43.66, "43.7"),
        (43.0, "43"),
        (99.96, "100.0"),
        (100.4, "100"),
        (459545.4, "459,545"),
        (999_999.0, "999,999"),
        (2_114_000.0, "2.11 M"),
        (-12.34, "−12.3"),
    ],
)
def test_large_numbers_in_few_digits(value: float | None, text: str) -> None:
    assert shown.brief(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0.0, "±0 %"),
        (0.004, "±0 %"),
        (0.116, "+12 %"),
        (-0.034, "−3 %"),
        (9.99, "+999 %"),
        (10.0, "×11"),
        (float("inf"), ""),
    ],
)
def test_changes_have_a_sign(value: float | None, text: str) -> None:
    assert shown.change(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(999, "999 B"), (1000, "1.0 kB"), (2_500_000, "2.5 MB"), (10**9, "1.0 GB")]
)
def test_bytes(value: int, text: str) -> None:
    assert shown.bytes_(value) == text


def test_a_moment_is_the_site_s_and_names_utc() -> None:
    assert shown.moment(AT, "Asia/Tokyo") == (
        '<time datetime="2018-01-01T15:30:05Z" title="2018-01-01 15:30:05 UTC">'
        "2018-01-02 00:30:05</time>"
    )
    assert (shown.day(AT, "Asia/Tokyo"), shown.day(AT)) == ("2018-01-02", "2018-01-01")
    assert shown.moment(None) == shown.day(None) == "–"


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("wait_s", 5400, "90.0 min"),
        ("p95_wait_s", 0.0, "0 s"),
        ("wait_s", None, "–"),
        ("median_request_accuracy", 0.228, "22.8 %"),
        ("share_failed", 0.066, "6.6 %"),
        ("num_jobs", 12345, "12,345"),
        ("pe_hours", 1234.5, "1,234"),
        ("nodes", ["n1", "n2"], "n1 n2"),
        ("nodes", [], "–"),
    ],
)
def test_cells_by_their_column(column: str, value: Any, text: str) -> None:
    assert shown.cell(value, column) == text


def test_a_share_s_bar_is_as_wide_as_the_share() -> None:
    assert 'width="37.50"' in shown.bar(0.375, "x")
    assert 'width="100.00"' in shown.bar(1.7, "x") and 'width="0.00"' in shown.bar(-1.0, "x")
    assert "&lt;b&gt;" in shown.bar(0.5, "<b>")


def test_prose_marks_code_and_nothing_else() -> None:
    assert shown.prose("a `b < c` <d>") == "a <code>b &lt; c</code> &lt;d&gt;"
    assert (shown.state("out_of_memory"), shown.state(None)) == ("out of memory", "unknown")


# ---- tiles of the overview


def overview(change: dict[str, float | None], **more: Any) -> ClusterOverview:
    """All numbers differ, so that none can stand in another's place."""
    measures = Measures(
        num_jobs=12345, num_users=67, pe_hours=89.5, wait_median_s=30.0, wait_p95_s=7200.0,
        run_median_s=600.0, share_completed=0.836, busy_pes=82.4, jobs_waiting=3.25, utilisation=0.27,
    )  # fmt: skip
    none = Period(since=None, until=None)
    values = {"cluster": "c", "zone": "UTC", "unit": "gpu", "synthetic": False, "users_note": None}
    values |= {"zone_known": True, "relative_dates": False, "missing": None}
    values |= {"period": none, "now": Now(), "measures": measures, "before": None, "warnings": []}
    return ClusterOverview(**(values | {"before_period": None, "change": change} | more))


def test_each_tile_has_its_own_number() -> None:
    tiles = {tile["measure"]: tile for tile in _tiles(overview({}))}
    assert {name: tile["value"] for name, tile in tiles.items()} == {
        "busy_pes": "82.4", "jobs_waiting": "3.2", "wait_median_s": "30 s", "pe_hours": "89.5",
        "num_users": "67", "share_completed": "83.6 %",
    }  # fmt: skip
    assert "27.0 %" in tiles["busy_pes"]["note"]
    assert "95 %" in tiles["wait_median_s"]["note"] and "2.0 h" in tiles["wait_median_s"]["note"]
    assert "12,345" in tiles["pe_hours"]["note"] and "10.0 min" in tiles["pe_hours"]["note"]
    assert tiles["busy_pes"]["label"].startswith("Busy GPUs")
    assert tiles["pe_hours"]["label"] == "GPU-hours"


@pytest.mark.parametrize(
    ("num_by_state", "note"),
    [
        (None, "of the jobs that ended"),
        (200, "of the jobs that ended"),
        (150, "of 150 jobs, in groups of 6 or more people"),
    ],
)
def test_the_share_of_completed_jobs_says_which_a_user_sees(
    num_by_state: int | None, note: str
) -> None:
    measures = Measures(num_jobs=200, share_completed=0.9, num_by_state=num_by_state)
    tiles = {tile["measure"]: tile for tile in _tiles(overview({}, measures=measures))}
    assert tiles["share_completed"]["note"] == note


@pytest.mark.parametrize(
    ("share", "more"),
    [
        (1.0, ""),
        (0.4, "; of the jobs that started (40.0 %)"),
        (None, "; of the jobs that started"),
    ],
)
def test_the_tile_of_waits_says_that_they_are_of_the_jobs_that_started(
    share: float | None, more: str
) -> None:
    measures = Measures(wait_median_s=60.0, wait_p95_s=120.0, share_started=share)
    tiles = {tile["measure"]: tile for tile in _tiles(overview({}, measures=measures))}
    assert tiles["wait_median_s"]["note"] == f"95 % wait under 2.0 min{more}"


def test_hours_of_people_are_whole_where_they_are_many_or_none() -> None:
    cells = [shown.cell(value, "lost_pe_hours") for value in (0.0, 0.25, 7.25, 1234.5, None)]
    assert cells == ["0", "0.250", "7.2", "1,234", "–"]
    assert shown.cell(0.5, "share_pe_hours") == "50.0 %"


def test_one_job_is_one_job_on_its_tile() -> None:
    tiles = {t["measure"]: t for t in _tiles(overview({}, measures=Measures(num_jobs=1)))}
    assert tiles["pe_hours"]["note"].startswith("1 job; median run")


def test_users_that_are_not_people_have_no_number() -> None:
    unknown = overview({}, users_note="ids only", unit="cpu", measures=Measures(num_jobs=3))
    tiles = {tile["measure"]: tile for tile in _tiles(unknown)}
    assert (tiles["num_users"]["value"], tiles["num_users"]["note"]) == ("–", "ids only")
    assert tiles["busy_pes"]["label"].startswith("Busy processors")
    assert tiles["pe_hours"]["label"] == "Processor-hours"
    assert [tile["value"] for tile in tiles.values()] == ["–"] * 6


@pytest.mark.parametrize(
    ("measure", "change", "tone"),
    [
        ("wait_median_s", 0.2, "worse"),
        ("wait_median_s", -0.2, "better"),
        ("jobs_waiting", 0.2, "worse"),
        ("share_completed", 0.2, "better"),
        ("share_completed", -0.2, "worse"),
        ("share_completed", 0.004, "even"),
        ("share_completed", -0.005, "worse"),
        ("pe_hours", 0.2, "even"),
        ("busy_pes", -0.9, "even"),
    ],
)
def test_a_change_is_better_worse_or_neither(measure: str, change: float, tone: str) -> None:
    tiles = {tile["measure"]: tile for tile in _tiles(overview({measure: change}))}
    assert tiles[measure]["tone"] == tone
    assert [t["change"] for m, t in tiles.items() if m != measure] == [""] * 5


# ---- addresses


def test_an_address_keeps_what_is_given_once() -> None:
    pairs = [("state", "failed"), ("state", "timeout"), ("queue", "a&b")]
    assert address.written("/jobs", pairs) == "/jobs?state=failed&state=timeout&queue=a%26b"
    assert address.written("/jobs", pairs, queue=None, page=2) == (
        "/jobs?state=failed&state=timeout&page=2"
    )
    assert address.written("/jobs", []) == "/jobs"
    assert address.without(pairs, "state", "failed") == [pairs[1], pairs[2]]
    assert address.without(pairs, "state") == [pairs[2]]
    assert address.only(pairs, ("queue",)) == [pairs[2]]
    assert address.split([*pairs, ("sort", "run_s")]) == (pairs, [("sort", "run_s")])


# ---- published figures beside one's own


def metric(own: float | None, **others: float) -> dict[str, Any]:
    return {
        "computed": {"c": {"value": own}},
        "published": {name: {"value": value} for name, value in others.items()},
    }


def test_places_between_the_least_and_the_greatest() -> None:
    assert _strip(metric(2.0, A=1.0, B=3.0, D=5.0)) == {"own": [25.0], "others": [0.0, 50.0, 100.0]}
    decades = _strip(metric(10.0, A=1.0, B=100.0, D=1000.0))
    assert decades is not None
    assert decades["own"] == pytest.approx([100 / 3])
    assert decades["others"] == pytest.approx([0.0, 200 / 3, 100.0])


def test_a_drawing_needs_three_others_and_a_span() -> None:
    assert _strip(metric(2.0, A=1.0, B=3.0)) is None
    assert _strip(metric(None, A=1.0, B=3.0, D=4.0)) is None
    assert _strip(metric(2.0, A=2.0, B=2.0, D=2.0)) is None
    assert _strip(metric(2.0, A=1.0, B=3.0, D=9.0)) is not None
    assert _strip(metric(2.0, A=1.0, B=3.0, C=9.0)) is None, "c itself is not another"
