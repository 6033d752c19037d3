"""Relative times, and times of an unknown zone, in a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.errors import SourceError
from hakaru.sources.table import guess
from tests._cli import hakaru
from tests.conftest import utc
from tests.sources.table._site import MINIMAL, Site, picked

OFFSETS = "id,at\n1,0\n2,60\n3,400\n"
LOCAL = "id,submit\n1,2018-04-01 09:00:00\n2,2018-04-01 10:00:00\n"
LOCAL_MAPPING = '[columns]\njob_id = "id"\nsubmitted_at = "submit"\n'


def test_relative_seconds_without_a_start_are_said_to_be(site: Site) -> None:
    (warning,) = site.read(OFFSETS, MINIMAL).warnings
    assert "its dates are relative" in warning and "--start 2014-03-01" in warning
    assert site.lake.facts()["c"]["relative_dates"] is True


def test_some_times_of_0_among_dates_are_not_relative(site: Site) -> None:
    rows = [f"{n},{0 if n < 3 else 1522540800 + n}" for n in range(9)]
    summary = site.read("id,at\n" + "\n".join(rows) + "\n", MINIMAL, zone="UTC")
    assert summary.warnings == [] and "relative_dates" not in site.lake.facts()["c"]


def test_start_dates_a_mapping_that_has_none(site: Site) -> None:
    site.read(OFFSETS, MINIMAL, start="2014-03-01", zone="Asia/Tokyo")
    assert picked(site.jobs(), "submitted_at") == [
        (utc("2014-02-28T15:00:00"),),
        (utc("2014-02-28T15:01:00"),),
        (utc("2014-02-28T15:06:40"),),
    ]
    assert "relative_dates" not in site.lake.facts()["c"]


def test_start_cannot_move_dates(site: Site) -> None:
    with pytest.raises(SourceError, match=r"these are dates \(2018-04-01\): leave it out"):
        site.read("id,at\n1,1522540800\n", MINIMAL, start="2014-03-01")
    with pytest.raises(SourceError, match="these are dates of 1970"):
        site.read("id,submit\n1,1970-01-02\n", LOCAL_MAPPING, start="2014-03-01", zone="UTC")


def test_local_times_need_a_zone(site: Site) -> None:
    with pytest.raises(SourceError, match=r"log.csv: a time in it has no offset: add --zone Asia"):
        site.read(LOCAL, LOCAL_MAPPING)
    assert site.lake.ingests() == []
    for mapping, zone in (
        (LOCAL_MAPPING, "Asia/Tokyo"),
        (LOCAL_MAPPING + '[time]\nzone = "Asia/Tokyo"\n', None),
        (LOCAL_MAPPING, None),  # the cluster's zone is known by now
    ):
        site.read(LOCAL, mapping, zone=zone)
        assert site.jobs()[0]["submitted_at"] == utc("2018-04-01T00:00:00")


def test_a_local_time_far_down_is_rejected(site: Site) -> None:
    rows = [f"{n},2018-04-01 09:00:00+09:00" for n in range(1200)]
    site.read("\n".join(["id,submit", *rows, "x,2018-04-01 09:00:00", ""]), LOCAL_MAPPING)
    assert site.rejects() == [
        (
            1202,
            "submit: '2018-04-01 09:00:00' has no offset: add --zone Asia/Tokyo (the site's time zone)",
        )
    ]


@pytest.mark.parametrize(
    ("times", "doubt"),
    [
        ("2018-04-01 09:00:00", "the times have no offset: set [time] zone, or add --zone"),
        ("1522540800", "hours are shown in UTC unless you set [time] zone or add --zone"),
        ("2018-04-01T09:00:00Z", "hours are shown in UTC unless you set [time] zone or add --zone"),
    ],
)
def test_a_guess_does_not_claim_a_zone(site: Site, times: str, doubt: str) -> None:
    """A zone that nobody gave would silence the warning that hours are in UTC."""
    log = site.folder / "log.csv"
    log.write_text(f"id,submit\n1,{times}\n2,{times}\n")
    text = guess(log)
    assert f"#   zone: {doubt}" in text.splitlines()
    assert '# zone = "Asia/Tokyo"' in text and '\nzone = "' not in text
    if "no offset" in doubt:
        with pytest.raises(SourceError, match="add --zone Asia/Tokyo"):
            site.read(log, text)
    else:
        (warning,) = site.read(log, text).warnings
        assert "the time zone of c is not known" in warning and "in UTC" in warning
        shown = hakaru("show", "arrivals-by-hour", "-w", site.lake.workspace).output
        assert "hours and days of c are in UTC" in " ".join(shown.split())


def test_a_column_of_numbers_in_parquet_needs_no_unit_to_be_dated(
    site: Site, tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [1], "submit": [60]}), tmp_path / "log.parquet")
    site.read(tmp_path / "log.parquet", LOCAL_MAPPING, start="2014-03-01")
    assert site.jobs()[0]["submitted_at"] == utc("2014-03-01T00:01:00")
