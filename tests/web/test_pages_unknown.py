"""What a log does not say: when its jobs started, the site's time zone, the day when it began."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hakaru.lake import Lake
from hakaru.sources import ingest
from hakaru.web.access.tokens import Tokens
from hakaru.web.app import create_app
from tests.conftest import job, put_jobs, utc
from tests.web._html import get, plain, table
from tests.web._site import running

NOW = ("busy_pes", "jobs_running", "jobs_waiting", "pes_waiting")
ZONED = "; UnixStartTime: 749433603\n; TimeZoneString: US/Pacific\n"
# job, submitted, wait, run time, processors, …, state, user, group, …
UNSTARTED = "{i} {at} -1 600 4 -1 -1 -1 -1 -1 -1 {user} 1 -1 -1 -1 -1 -1\n"
STARTED = "{i} {at} 30 600 4 -1 -1 -1 -1 -1 1 {user} 1 -1 -1 -1 -1 -1\n"
JOBS = "c: 30 of 30 jobs"


def swf(folder: Path, header: str, line: str) -> Lake:
    """Thirty jobs of six people, one an hour."""
    lines = [line.format(i=i, at=3600 * i, user=i % 6) for i in range(30)]
    path = folder / "log.swf"
    path.write_text(f"; MaxProcs: 128\n{header}{''.join(lines)}")
    lake = Lake.create(folder / "w")
    ingest(lake, [path], "c")
    return lake


@contextmanager
def asked(lake: Lake, token: str | None = None) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with running(create_app(lake)) as server, server.client(headers=headers) as client:
        yield client


def now_of(client: httpx.Client, **period: str) -> dict[str, Any]:
    (cluster,) = client.get("/api/v1/overview", params=period).json()["clusters"]
    return dict(cluster["now"])


def test_without_starts_nobody_knows_what_runs_at_the_end(tmp_path: Path) -> None:
    with asked(swf(tmp_path, ZONED, UNSTARTED)) as client:
        now, page = now_of(client), plain(get(client, "/"))
    assert {name: now[name] for name in NOW} == dict.fromkeys(NOW)
    assert now["installed_pes"] == 128 and now["at"] == "1993-10-02T05:00:03Z"  # 29 h later
    assert "Busy at the end – of 128 processors Running at the end – Waiting at the end – " in page
    assert "under –" not in page


def test_a_log_that_names_nobody_counts_nobody(tmp_path: Path) -> None:
    """No filter is set, so none can be removed."""
    rows = [job(n, user=None, account=None) for n in range(3)]
    with asked(put_jobs(Lake.create(tmp_path), rows)) as client:
        front, users = plain(get(client, "/")), plain(get(client, "/people"))
        accounts = plain(get(client, "/people?kind=accounts"))
        (cluster,) = client.get("/api/v1/clusters").json()["clusters"]
        (seen,) = client.get("/api/v1/overview").json()["clusters"]
    assert "Users – this log names no users" in front
    assert cluster["num_users"] is None and seen["measures"]["num_users"] is None
    assert "This log names no users" in users and "This log names no accounts" in accounts
    assert "Remove a filter" not in users + accounts


def test_ends_that_a_log_never_records_are_unknown_on_the_page_of_people(tmp_path: Path) -> None:
    rows = [job(n, state="completed" if n else "cancelled") for n in range(20)]
    with asked(put_jobs(Lake.create(tmp_path), rows)) as client:
        page = get(client, "/people")
        (row,) = client.get("/api/v1/people").json()["rows"]
    assert row["share_failed"] is None and row["share_timeout"] is None
    assert (
        "No job of c is failed, timeout, killed, preempted: its log may not record that"
        in plain(page)
    )


def test_one_row_of_one_is_no_range_and_no_plural(tmp_path: Path) -> None:
    with asked(put_jobs(Lake.create(tmp_path), [job(1)])) as client:
        pages = {path: plain(get(client, path)) for path in ("/people", "/jobs")}
    assert " 1 of 1 user " in pages["/people"] and " 1 of 1 job " in pages["/jobs"]


def test_a_job_s_unknown_place_is_said_once(tmp_path: Path) -> None:
    with asked(swf(tmp_path, ZONED, UNSTARTED)) as client:
        page = plain(get(client, "/job?cluster=c&job_id=7"))
    assert (
        "Wait – not known not known Run time 10.0 min " in page
    )  # this job, its user, the cluster
    assert "--unit" in page and "`" not in page  # code in a column's meaning


def test_jobs_whose_times_are_known_are_counted_at_the_end(tmp_path: Path) -> None:
    """The last submission is job 2's, while job 0 runs; job 1's start and end are unknown."""
    unknown = {"started_at": None, "ended_at": None, "wait_s": None}
    rows = [
        job(0, num_gpus=3, ended_at=utc("2018-01-10T12:00:00"), submitted_at=utc("2018-01-10T08:00:00"),
            started_at=utc("2018-01-10T08:00:00")),
        job(1, num_gpus=5, submitted_at=utc("2018-01-10T09:00:00"), **unknown),
        job(2, num_gpus=2, submitted_at=utc("2018-01-10T10:00:00"),
            started_at=utc("2018-01-10T11:00:00"), ended_at=utc("2018-01-10T13:00:00")),
    ]  # fmt: skip
    with asked(put_jobs(Lake.create(tmp_path), rows)) as client:
        now = now_of(client)
    assert [now[name] for name in NOW] == [3, 1, 1, 2]


def test_jobs_that_wait_count_whether_or_not_their_size_is_known(tmp_path: Path) -> None:
    """Three of unknown size wait for the two hours in which a fourth runs: three, for nobody knows what."""
    first, last = utc("2018-01-10T08:00:00"), utc("2018-01-10T10:00:00")
    waits = {
        "started_at": None,
        "ended_at": None,
        "wait_s": None,
        "run_s": None,
        "state": "pending",
    }
    rows = [job(n, num_gpus=None, num_cpus=None, submitted_at=first, **waits) for n in range(3)]
    rows += [job(9, submitted_at=first, started_at=first, ended_at=last, wait_s=0.0, run_s=7200.0)]
    with asked(put_jobs(Lake.create(tmp_path), rows)) as client:
        (found,) = client.get("/api/v1/overview").json()["clusters"]
        page = plain(get(client, "/"))
    assert [found["now"][name] for name in NOW] == [0, 0, 3, None]
    assert found["measures"]["jobs_waiting"] == 3 and found["measures"]["busy_pes"] == 1
    assert "Waiting at the end 3 jobs for – GPUs" in page


def test_the_end_of_a_period_knows_the_jobs_from_before_it(tmp_path: Path) -> None:
    """When the second day ends, job 0 of the first one still runs and job 1, also of the first, waits."""
    days = [utc(f"2018-01-{day}T08:00:00") for day in (10, 11, 12, 13)]
    rows = [
        job(0, num_gpus=3, submitted_at=days[0], started_at=days[0], ended_at=days[3]),
        job(1, num_gpus=5, submitted_at=days[0], started_at=days[3], ended_at=days[3]),
        job(2, num_gpus=2, submitted_at=days[1], started_at=days[1], ended_at=days[1]),
        job(3, num_gpus=7, submitted_at=days[2], started_at=days[2], ended_at=days[3]),
    ]
    with asked(put_jobs(Lake.create(tmp_path), rows)) as client:
        now = now_of(client, since="2018-01-11", until="2018-01-11")
    assert now["at"] == "2018-01-11T08:00:00Z", "the last submission of the period"
    assert [now[name] for name in NOW] == [3, 1, 1, 5]


@pytest.mark.parametrize("path", ["/", "/jobs", "/people", "/workload", "/data"])
def test_relative_dates_are_marked_on_every_page(tmp_path: Path, path: str) -> None:
    told = "Dates are relative. Those of this log count from an unknown day"
    with asked(swf(tmp_path, "", STARTED)) as client:
        assert told in plain(get(client, path))
    (tmp_path / "dated").mkdir()
    with asked(swf(tmp_path / "dated", ZONED, STARTED)) as client:
        assert "Dates are relative" not in plain(get(client, path))


@pytest.mark.parametrize(
    ("header", "zone_known", "relative", "clock", "times"),
    [
        ("", False, True, "dates are relative", "Dates are relative: the log does not say when"),
        ("; UnixStartTime: 749433603\n", False, False, "UTC (time zone unknown)",
         "Times are in UTC: the site’s time zone is unknown."),
        (ZONED, True, False, "US/Pacific", "Times are those of the site (US/Pacific)"),
    ],
)  # fmt: skip
def test_which_clock_the_times_are_on(
    tmp_path: Path, header: str, zone_known: bool, relative: bool, clock: str, times: str
) -> None:
    with asked(swf(tmp_path, header, STARTED)) as client:
        for path in ("clusters", "overview"):
            (told,) = client.get(f"/api/v1/{path}").json()["clusters"]
            assert (told["zone_known"], told["relative_dates"]) == (zone_known, relative)
        assert f"The whole log, {clock} " in plain(get(client, "/"))
        assert f" {clock} processors" in plain(get(client, "/data"))
        for path in ("/jobs", "/job?cluster=c&job_id=7", "/workload/load"):
            assert times in plain(get(client, path)), path


def test_sizes_of_several_clusters_are_pes_unless_they_count_the_same(tmp_path: Path) -> None:
    lake = swf(tmp_path, ZONED, STARTED)
    put_jobs(lake, [job(i, cluster="gpus") for i in range(3)])
    with asked(lake) as client:
        for query, names in (
            ("", {"PEs", "PE-hours"}),
            ("?cluster=c", {"Processors", "Processor-hours"}),
            ("?cluster=gpus", {"GPUs", "GPU-hours"}),
        ):
            assert names <= set(table(get(client, f"/jobs{query}"))[0]), query


@pytest.mark.parametrize(
    ("header", "line", "id", "told"),
    [
        ("", STARTED, "jobs-by-quarter", [JOBS, "the dates of c are relative"]),
        ("; UnixStartTime: 749433603\n", STARTED, "jobs-by-quarter",
         [JOBS, "hours and days of c are in UTC", "zone = "]),
        (ZONED, STARTED, "jobs-by-quarter", [JOBS]),
        (ZONED, UNSTARTED, "states?weight=gpu-hours", []),  # one person's job could change that remark
    ],
)  # fmt: skip
def test_a_user_reads_what_the_log_does_not_say(
    tmp_path: Path, header: str, line: str, id: str, told: list[str]
) -> None:
    """The caveats of a figure, also where they see no number of jobs."""
    lake = swf(tmp_path, header, line)
    _, secret = Tokens(lake.workspace).create("ann", "user", "1")
    with asked(lake, secret) as client:
        answer = client.get(f"/api/v1/figures/{id}")
    assert answer.status_code == 200, answer.text
    notes = answer.json()["notes"]
    assert len(notes) == len(told)
    assert all(note.startswith(begin) for note, begin in zip(notes, told, strict=True))


def test_cards_of_processors_do_not_say_gpus(tmp_path: Path) -> None:
    with asked(swf(tmp_path, ZONED, STARTED)) as client:
        page, single = get(client, "/workload"), get(client, "/workload/gpus-single-node")
        heads = table(get(client, "/workload/parallelism"))[0]
    assert "Processors of single-node jobs" in plain(page) and "GPUs of" not in plain(page)
    assert "How many processors of a node do" in plain(single) and "GPUs of" not in plain(single)
    assert "Processor-hours" in heads and "GPU-hours" not in heads
