"""A whole log through a mapping, worked by hand, and the times that follow from others."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from hakaru.engine.duckdb import connect
from hakaru.lake import Lake
from hakaru.schema import JOBS
from hakaru.settings import Engine
from hakaru.settings import parse as parse_settings
from hakaru.sources.ingest import ingest
from tests.conftest import utc
from tests.sources.table._site import DATA, MINIMAL, Site, picked


def test_a_home_made_log(site: Site) -> None:
    summary = site.read(DATA / "table" / "home-made.csv", DATA / "table" / "home-made.toml")
    assert (summary.num_read, summary.num_rejected) == (5, 0)
    jobs = site.jobs()
    assert picked(jobs, "job_id", "user", "state", "num_nodes", "num_gpus", "requested_s") == [
        ("101", "ann", "completed", 1, 1, 7200.0),
        ("102", "bob", "timeout", 2, 8, 86400.0),
        ("103", "chu, lab", "completed", 1, 0, None),
        ("104", "ann", "cancelled", 1, 8, 43200.0),
        ("105", "bob", "running", 1, 2, 3600.0),
    ]
    assert picked(jobs, "submitted_at", "started_at", "wait_s", "run_s") == [
        (utc("2019-04-01T00:00:00"), utc("2019-04-01T00:00:10"), 10.0, 3600.0),
        (utc("2019-04-01T03:30:00"), utc("2019-04-01T04:00:00"), 1800.0, 86400.0),
        (utc("2019-04-01T15:00:00"), utc("2019-04-01T15:00:00"), 0.0, 1800.0),
        (utc("2019-04-01T23:00:00"), None, None, None),
        (utc("2019-04-03T14:59:59"), utc("2019-04-03T15:00:01"), 2.0, None),
    ]
    # 16 GB are 16e9 bytes, and a MiB is 1,048,576
    assert [row["memory_mib"] for row in jobs] == pytest.approx(
        [15258.7890625, 61035.15625, 7629.39453125, 122070.3125, None]
    )


def test_the_cluster_facts_are_settings(site: Site) -> None:
    site.read(DATA / "table" / "home-made.csv", DATA / "table" / "home-made.toml")
    facts = site.lake.facts()
    assert facts["c"]["zone"] == "Asia/Tokyo"  # the times' zone is the site's
    cluster = parse_settings({}, facts, "").cluster("c")
    assert (cluster.gpus_per_node, cluster.nodes[0].count) == (8, 4)
    assert cluster.nodes[0].since == datetime.fromisoformat("2019-01-01T00:00:00+09:00")


def test_aaic_through_a_mapping_is_aaic(aaic_files: list[Path], site: Site, tmp_path: Path) -> None:
    path = aaic_files[-1]
    other = Lake.create(tmp_path / "aaic")
    ingest(other, [path], "c", format="aaic")
    summary = site.read(path, DATA / "table" / "aaic.toml")
    assert summary.num_rejected == 0
    con = connect(Engine())
    con.register("by_aaic", other.read(con, JOBS))
    con.register("by_table", site.lake.read(con, JOBS))
    ours = "SELECT * REPLACE (split_part(job_id, '/', 2) AS job_id, "
    ours += "split_part(\"user\", '/', 2) AS \"user\", split_part(account, '/', 2) AS account)"
    (counts,) = con.execute(
        f"""SELECT (SELECT count(*) FROM by_table), (SELECT count(*) FROM by_aaic),
            (SELECT count(*) FROM ({ours} FROM by_aaic EXCEPT ALL SELECT * FROM by_table))"""
    ).fetchall()
    assert counts[0] > 50_000
    assert counts == (counts[0], counts[0], 0)


# ---- times that follow from others


def test_without_a_submission_the_wait_is_unknown(site: Site) -> None:
    mapping = '[columns]\njob_id = "id"\nstarted_at = "at"\nrun_s = "run"\n'
    site.read("id,at,run\n1,2018-04-01,60\n", mapping, zone="UTC")
    (row,) = site.jobs()
    assert (row["submitted_at"], row["wait_s"]) == (utc("2018-04-01T00:00:00"), None)
    assert (row["run_s"], row["ended_at"]) == (60.0, utc("2018-04-01T00:01:00"))
    assert row["state"] is None


def test_the_start_follows_from_the_wait_and_a_running_job_has_no_end(site: Site) -> None:
    mapping = MINIMAL + 'wait_s = "w"\nrun_s = "r"\nstate = "s"\n'
    site.read("id,at,w,r,s\n1,1522540800,10,5,running\n2,1522540800,10,5,failed\n", mapping)
    assert picked(site.jobs(), "started_at", "ended_at", "run_s") == [
        (utc("2018-04-01T00:00:10"), None, 5.0),
        (utc("2018-04-01T00:00:10"), utc("2018-04-01T00:00:15"), 5.0),
    ]


def test_a_recorded_run_time_is_kept_and_a_missing_one_derived(site: Site) -> None:
    mapping = MINIMAL + (
        'started_at = { column = "at", unit = "s" }\n'
        'ended_at = { column = "end", unit = "s" }\nrun_s = "run"\n'
    )
    site.read("id,at,end,run\n1,1522540800,1522540860,42\n2,1522540800,1522540860,\n", mapping)
    assert picked(site.jobs(), "run_s", "wait_s") == [(42.0, 0.0), (60.0, 0.0)]


def test_a_job_without_an_id_is_known_by_its_line(site: Site) -> None:
    site.read("at\n1522540800\n\n1522540801\n", MINIMAL.replace('"id"', "{ line = true }"))
    assert picked(site.jobs(), "job_id") == [("log/2",), ("log/4",)]


def test_a_date_and_a_clock_in_two_columns(site: Site) -> None:
    mapping = '[columns]\njob_id = "id"\nsubmitted_at = { column = ["day", "clock"] }\n'
    mapping += 'started_at = { column = ["day2", "clock2"] }\n[time]\nzone = "Asia/Tokyo"\n'
    site.read("id,day,clock,day2,clock2\n1,2018-04-01,09:00:00,-,-\n", mapping)
    assert picked(site.jobs(), "submitted_at", "started_at") == [(utc("2018-04-01T00:00:00"), None)]


def test_the_zone_option_wins(site: Site) -> None:
    mapping = '[columns]\njob_id = "id"\nsubmitted_at = "at"\n[time]\nzone = "UTC"\n'
    site.read("id,at\n1,2018-04-01 09:00\n", mapping, zone="Asia/Tokyo")
    assert picked(site.jobs(), "submitted_at") == [(utc("2018-04-01T00:00:00"),)]


def test_times_may_be_written_in_another_zone_than_the_site_s(site: Site) -> None:
    """A scheduler that writes UTC, on a site whose hours of work are Tokyo's."""
    mapping = '[columns]\njob_id = "id"\nsubmitted_at = "at"\n[time]\nzone = "UTC"\n'
    site.read("id,at\n1,2018-04-01 09:00:00\n", mapping + '[cluster]\nzone = "Asia/Tokyo"\n')
    assert picked(site.jobs(), "submitted_at") == [(utc("2018-04-01T09:00:00"),)]
    assert site.lake.facts()["c"]["zone"] == "Asia/Tokyo"
