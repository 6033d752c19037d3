"""What `guess` makes of small logs in the styles of many sites: the values read, worked by hand."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from hakaru.errors import SourceError
from hakaru.sources.table import guess
from tests.conftest import utc
from tests.sources.table._site import DATA, Site, picked

FOLDER = DATA / "table" / "guess"
TIMES = ("submitted_at", "started_at", "ended_at")


def read(site: Site, name: str) -> list[dict[str, Any]]:
    path = FOLDER / f"{name}.csv"
    summary = site.read(path, guess(path), zone="UTC")
    assert (summary.num_rejected, summary.upsert.num_conflicts) == (0, 0)
    return site.jobs()


def unsure(name: str) -> dict[str, str]:
    """What the guess lists as not sure, a column."""
    lines = guess(FOLDER / f"{name}.csv").splitlines()
    if "# Not sure, check these first:" not in lines:
        return {}
    listed = lines[lines.index("# Not sure, check these first:") + 1 :]
    end = next(i for i, line in enumerate(listed) if not line.startswith("#   "))
    doubts = dict(line.removeprefix("#   ").split(": ", 1) for line in listed[:end])
    return {name: why for name, why in doubts.items() if name != "zone"}  # it is in all of them


def test_milliseconds(site: Site) -> None:
    """A duration in ms beside times in ms; node_hour is no number of nodes; wall_time is the limit."""
    jobs = read(site, "milliseconds")
    assert picked(jobs, "job_id", "state", "num_nodes", "num_gpus", "requested_s", "run_s") == [
        ("j1", "completed", 1, 4, 7200.0, 3600.0),
        ("j2", "failed", 2, 8, 3600.0, 60.0),
        ("j3", "completed", 2, 16, 86400.0, 7200.0),
    ]
    assert picked(jobs, *TIMES)[0] == (
        utc("2019-04-01T00:00:00"),
        utc("2019-04-01T00:00:10.500"),
        utc("2019-04-01T01:00:10.500"),
    )
    text = guess(FOLDER / "milliseconds.csv")
    assert '#   "node_hour": "0.03", "1.0", "4.0"' in text
    assert unsure("milliseconds") == {
        "num_gpus": 'total, or per "nodes_req"?',
        "requested_s": '"wall_time" could be the run time',
    }


def test_whole_node_hours_are_no_nodes(site: Site) -> None:
    jobs = read(site, "home")
    assert picked(jobs, "job_id", "num_nodes", "nodes", "run_s", "ended_at") == [
        ("1", None, ["n1"], 1800.0, utc("2019-04-01T09:30:00")),
        ("2", None, ["n2"], 5400.0, utc("2019-04-01T11:30:00")),
    ]


def test_attempts_join_the_id(site: Site) -> None:
    """Philly: each attempt of a job has a row, under one id and submit time."""
    jobs = read(site, "philly")
    assert picked(jobs, "job_id", "queue", "state", "num_gpus", "wait_s", "run_s") == [
        ("application_1.0", "6214e9", "completed", 8, 154.0, 3600.0),
        ("application_2.0", "11cb48", "killed", 1, 10.0, 3600.0),
        ("application_2.1", "11cb48", "failed", 1, 3660.0, 60.0),
        ("application_3.0", "6214e9", "failed", 16, 30.0, 10800.0),
    ]
    assert unsure("philly") == {"job_id": 'is "attempt_id" what sets apart the jobs of one id?'}


def test_array_tasks_join_the_id(site: Site) -> None:
    jobs = read(site, "array")
    assert picked(jobs, "job_id", "state", "num_gpus", "run_s") == [
        ("500.1", "completed", 1, 3590.0),
        ("500.2", "completed", 1, 7180.0),
        ("500.3", "failed", 1, 10770.0),
        ("501.1", "completed", 8, 14360.0),
    ]
    assert jobs[0]["submitted_at"] == utc("2019-12-31T15:00:00")


def test_relative_seconds(site: Site) -> None:
    jobs = read(site, "relative")
    assert picked(jobs, "job_id", "num_cpus", "requested_s", "wait_s", "run_s") == [
        ("1", 64, 7200.0, 10.0, 3600.0),
        ("2", 128, 600.0, 3580.0, 300.0),
        ("3", 32, 7200.0, 0.0, 3600.0),
    ]
    assert jobs[0]["submitted_at"] == utc("1970-01-01T00:00:00")
    assert unsure("relative")["times"].startswith('"submit" and the like are relative (read in s)')
    assert unsure("relative")["requested_s"] == "s fits, but so does min and h"


def test_relative_times_count_from_the_start_that_is_given(site: Site) -> None:
    path = FOLDER / "relative.csv"
    text = guess(path).replace('start = "1970-01-01"', 'start = "2018-04-01"\nzone = "Asia/Tokyo"')
    site.read(path, text)
    assert picked(site.jobs(), "submitted_at") == [
        (utc("2018-03-31T15:00:00"),),
        (utc("2018-03-31T15:00:30"),),
        (utc("2018-04-01T15:00:00"),),
    ]


def test_a_start_can_be_given_with_the_ingest(site: Site) -> None:
    path = FOLDER / "relative.csv"
    site.read(path, guess(path), start="2018-04-01", zone="Asia/Tokyo")
    assert site.jobs()[2]["submitted_at"] == utc("2018-04-01T15:00:00")


def test_relative_dates_are_known_to_be(site: Site) -> None:
    path = FOLDER / "relative.csv"
    summary = site.read(path, guess(path))
    assert any("relative and count from 1970-01-01" in text for text in summary.warnings)
    assert site.lake.facts()["c"]["relative_dates"] is True
    dated = site.read(path, guess(path).replace('start = "1970', 'start = "2018'))
    assert not any("count from 1970" in text for text in dated.warnings)
    assert [job["submitted_at"].year for job in site.jobs()] == [2018] * 3  # and none of 1970


def test_a_start_is_refused_where_times_are_dates(site: Site) -> None:
    path = FOLDER / "milliseconds.csv"
    with pytest.raises(SourceError, match="--start is for relative times"):
        site.read(path, guess(path), start="2018-04-01")


def test_microseconds_of_a_trace(site: Site) -> None:
    """Google: microseconds since the trace began, and an index beside the id."""
    jobs = read(site, "google")
    assert picked(jobs, "job_id", "user", "state", "wait_s", "run_s") == [
        ("375000667413.0", "k3", "completed", 16.0, 584.0),
        ("375000667413.1", "k3", "completed", 46.0, 1154.0),
        ("375000669999.0", "k9", "killed", 6.0, 1494.0),
        ("375000670001.0", "k9", "preempted", 0.5, 0.5),
    ]
    assert jobs[3]["submitted_at"] == utc("1970-02-01T00:00:00")
    assert "(read in us)" in unsure("google")["times"]


def test_virtual_machines(site: Site) -> None:
    """Azure: relative seconds, created and deleted, memory in GB without a unit."""
    jobs = read(site, "azure")
    assert picked(jobs, "job_id", "user", "num_cpus", "submitted_at", "ended_at") == [
        ("v1", "s1", 4, utc("1970-01-01T00:00:00"), utc("1970-01-30T23:55:00")),
        ("v2", "s2", 2, utc("1970-01-03T23:00:00"), utc("1970-01-03T23:40:00")),
        ("v3", "s1", 16, utc("1970-01-05T21:55:00"), utc("1970-01-05T22:10:00")),
    ]
    assert jobs[0]["memory_mib"] == pytest.approx(30517.578125)  # 32e9 / 2**20
    assert set(unsure("azure")) == {"times", "memory_mib", "started_at"}


def test_per_cent_of_gpus(site: Site) -> None:
    """PAI: CPUs and GPUs in per cent, names for ids, Terminated for completed."""
    jobs = read(site, "pai")
    names = ("job_id", "state", "num_cpus", "num_gpus", "gpu_model", "run_s")
    assert picked(jobs, *names) == [
        ("3a1", "completed", 6, None, "MISC", 3600.0),
        ("3a2", "failed", 6, None, "P100", 600.0),
        ("3a3", "running", 8, None, "T4", None),
    ]
    assert unsure("pai")["num_gpus"] == '"plan_gpu" looks like per cent of a GPU: not placed'
    assert {"times", "num_cpus", "memory_mib", "job_id", "state"} < set(unsure("pai"))


def test_slurms_own_names(site: Site) -> None:
    """TimelimitRaw is in minutes; ReqMem's c is per CPU."""
    jobs = read(site, "slurm")
    names = ("job_id", "state", "num_nodes", "num_cpus", "num_gpus", "memory_mib", "requested_s")
    assert picked(jobs, *names) == [
        ("101", "completed", 1, 8, 1, 32000.0, 7200.0),
        ("102", "cancelled", 2, 64, 8, 256000.0, 86400.0),
        ("103", "timeout", 4, 16, 16, 32768.0, 86400.0),
    ]
    assert picked(jobs, "wait_s", "run_s") == [(60.0, 3600.0), (60.0, 60.0), (7200.0, 86400.0)]


def test_days_as_spreadsheets_count(site: Site) -> None:
    jobs = read(site, "spreadsheet")
    assert picked(jobs, "job_id", "state", "wait_s", "run_s") == [
        ("1", "completed", 10800.0, 21600.0),
        ("2", "failed", 0.0, 2700.0),
    ]
    assert picked(jobs, "submitted_at", "ended_at") == [
        (utc("2019-04-01T09:00:00"), utc("2019-04-01T18:00:00")),
        (utc("2019-04-02T06:00:00"), utc("2019-04-02T06:45:00")),
    ]
    assert jobs[0]["memory_mib"] == 61035.15625  # 64e9 / 2**20


def test_japanese_dates(site: Site) -> None:
    jobs = read(site, "japanese")
    assert picked(jobs, "job_id", "user", "account", "num_nodes", "num_gpus", "state") == [
        ("11", "佐藤", "研究室A", 2, 8, "completed"),
        ("12", "鈴木", "研究室B", 1, 4, "failed"),
    ]
    assert picked(jobs, "submitted_at", "wait_s", "run_s") == [
        (utc("2019-04-01T09:05:00"), 300.0, 5400.0),
        (utc("2019-04-02T18:00:00"), 21600.0, 131400.0),
    ]


def test_american_dates_and_hours(site: Site) -> None:
    jobs = read(site, "american")
    assert picked(jobs, "job_id", "name", "num_gpus", "state", "submitted_at", "run_s") == [
        ("7", "train", 4, "completed", utc("2019-04-01T09:05:00"), 14400.0),
        ("8", "test", 1, "failed", utc("2019-04-25T18:00:00"), 1800.0),
    ]
    assert unsure("american") == {}


def test_nanoseconds(site: Site) -> None:
    jobs = read(site, "nanoseconds")
    assert picked(jobs, "job_id", "num_cpus", "memory_mib", "wait_s", "run_s") == [
        ("t1", 4, 1953.125, 1.5, 60.0),
        ("t2", 64, 488281.25, 0.0, 7200.0),
    ]
    assert jobs[1]["submitted_at"] == utc("2019-04-01T01:00:00")


def test_three_rows_are_shown_as_they_would_be_read() -> None:
    text = guess(FOLDER / "philly.csv")
    assert tomllib.loads(text)["columns"]["job_id"] == ["jobid", "attempt_id"]
    lines = text.splitlines()
    at = lines.index("# The first 3 rows as they would be read (– is unknown):")
    cells = [line.split() for line in lines[at + 1 :] if line.startswith("#   ")]
    shown = {cell[1]: cell[2:] for cell in cells}
    assert shown["job_id"] == ["application_1.0", "application_2.0", "application_2.1"]
    assert shown["num_gpus"] == ["8", "1", "1"]
    assert shown["submitted_at"][:3] == ["2017-10-09", "07:02:26", "UTC"]
    assert shown["wait_s"] == ["154", "s", "10", "s", "3,660", "s"]
    assert shown["run_s"] == ["3,600", "s", "3,600", "s", "60", "s"]
