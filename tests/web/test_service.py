"""What the service answers on skewed jobs, worked by hand, without a server."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.schema import INGESTS, REJECTS
from hakaru.web.access import Viewer
from hakaru.web.filters import CompareQuery, FigureQuery, Filters, JobsQuery, PeopleQuery
from hakaru.web.readers import Readers
from hakaru.web.service import Asker, Service
from hakaru.web.service._overview import _levels
from tests.conftest import job, put, put_jobs, utc

BOSS, U1 = Viewer("operator", "boss"), Viewer("user", "u1", "u1")
TOKYO = '{"zone": "Asia/Tokyo"}'


def asker_of(
    folder: Path, rows: list[dict[str, Any]], facts: str = "{}", viewer: Viewer = BOSS
) -> Asker:
    return Service(Readers(put_jobs(Lake.create(folder), rows, facts))).of(viewer)


def test_medians_and_percentiles_are_of_skewed_waits_and_runs(tmp_path: Path) -> None:
    """21 jobs wait 100, 200, … 2100 s: the 20th of them is the 95th percentile; the last ran for a day."""
    rows = [job(n, wait_s=100.0 * n, run_s=10.0 * n) for n in range(1, 21)]
    rows.append(job(21, wait_s=2100.0, run_s=86400.0))
    found = asker_of(tmp_path, rows).overview(Filters()).clusters[0].measures
    assert (found.wait_median_s, found.wait_p95_s, found.run_median_s) == (1100, 2000, 110)


@pytest.mark.parametrize(
    ("since", "until", "before"),
    [
        ("2018-03-01", "2018-04-30", ("2018-01-01", "2018-02-28")),  # whole months
        ("2018-03-01", "2018-03-10", ("2018-02-19", "2018-02-28")),  # ten days
        ("2018-03-10", "2018-03-31", ("2018-02-16", "2018-03-09")),
        (  # twelve hours
            "2018-03-10T06:00:00",
            "2018-03-10T18:00:00",
            ("2018-03-09T18:00:00+09:00", "2018-03-10T06:00:00+09:00"),
        ),
        # open: it ends with the day of the last submission, which is the first of April in Tokyo
        ("2018-03-31", None, ("2018-03-29", "2018-03-30")),
    ],
)
def test_the_period_before_is_as_long_and_ends_where_this_one_begins(
    tmp_path: Path, since: str, until: str | None, before: tuple[str, str]
) -> None:
    days = ("2017-12-20T00:00:00", "2018-03-09T22:00:00", "2018-03-31T16:00:00")
    rows = [job(n, submitted_at=utc(day)) for n, day in enumerate(days)]
    filters = Filters(since=since, until=until)
    found = asker_of(tmp_path, rows, TOKYO).overview(filters).clusters[0].before_period
    assert found is not None and (found.since, found.until) == before


def test_means_over_the_period_weigh_its_bins_by_their_length() -> None:
    """An hour with 4 of 8 GPUs in use and 2 jobs waiting, then three with none of 4 and 6 waiting."""
    at = utc("2018-01-01T00:00:00")
    names = ("since_at", "until_at", "num_pes_busy", "num_jobs_waiting", "num_pes_installed")
    bins = [(at, at + timedelta(hours=1), 4, 2, 8),
            (at + timedelta(hours=1), at + timedelta(hours=4), 0, 6, 4)]  # fmt: skip
    rows = [dict(zip(names, each, strict=True)) for each in bins]
    load: Any = SimpleNamespace(rows=rows, table=SimpleNamespace(num_rows=2))
    assert _levels(load) == {"busy_pes": 1.0, "jobs_waiting": 5.0, "utilisation": 4 / 20}
    rows[1]["num_pes_installed"] = None
    assert _levels(load) == {"busy_pes": 1.0, "jobs_waiting": 5.0, "utilisation": None}


def test_jobs_of_unknown_run_time_come_last_either_way(tmp_path: Path) -> None:
    rows = [job(1, run_s=5.0), job(2, run_s=None), job(3, run_s=7.0)]
    asker = asker_of(tmp_path, rows)
    for order, ids in (("asc", ["1", "3", "2"]), ("desc", ["3", "1", "2"])):
        found = asker.jobs(JobsQuery(sort="run_s", order=order))  # type: ignore[arg-type]
        assert [row["job_id"] for row in found.rows] == ids


def test_people_are_paged_and_searched_by_the_name_that_is_listed(tmp_path: Path) -> None:
    rows = [job(n, user=f"u{n}", account=f"lab{n % 2}") for n in range(5)]
    asker = asker_of(tmp_path, rows)
    second = asker.people(PeopleQuery(sort="name", order="asc", size=2, page=2))
    assert ([row["user"] for row in second.rows], second.num_pages) == (["u2", "u3"], 3)
    found = asker.people(PeopleQuery(kind="accounts", q="LAB1"))
    assert [(row["account"], row["num_jobs"]) for row in found.rows] == [("lab1", 2)]
    assert asker.people(PeopleQuery(kind="accounts", q="u1")).rows == []


def test_a_user_sees_whole_months_of_the_sites_clock(tmp_path: Path) -> None:
    """The first job is of the last hours of January in UTC, and of February in Tokyo."""
    days = ("2018-01-31T16:00:00", "2018-03-31T16:00:00")
    rows = [job(10 * n + i, user=f"u{i}", submitted_at=utc(day))
            for n, day in enumerate(days) for i in range(6)]  # fmt: skip
    (found,) = asker_of(tmp_path, rows, TOKYO, U1).clusters().clusters
    assert found.first_submit is not None and found.last_submit is not None
    assert f"{found.first_submit:%Y-%m-%d} {found.last_submit:%Y-%m-%d}" == "2018-02-01 2018-04-30"


def test_a_user_is_neither_warned_of_a_peak_nor_shown_more_metrics(tmp_path: Path) -> None:
    """Six people's jobs at once on one GPU: who makes a peak may be one person."""
    rows = [job(n, user=f"u{n}") for n in range(6)]
    boss = asker_of(tmp_path, rows, '{"nodes": 1, "gpus_per_node": 1}')
    user = Service(boss.readers).of(U1)
    (seen,), (told,) = (asker.overview(Filters()).clusters for asker in (user, boss))
    assert told.warnings and seen.warnings == []
    few, every = (CompareQuery(metrics="headline"), CompareQuery(metrics="all"))
    shown = [[metric["id"] for metric in user.compare(query).metrics] for query in (few, every)]
    assert shown[0] == shown[1] and len(boss.compare(every).metrics) > len(shown[0])


def test_sizes_count_in_the_unit_that_is_asked_for(tmp_path: Path) -> None:
    lake = put_jobs(Lake.create(tmp_path), [job(1, num_gpus=2, num_cpus=16)])
    for unit, size in (("gpu", 2), ("cpu", 16)):
        asker = Service(Readers(lake, unit=unit)).of(BOSS)  # type: ignore[arg-type]
        assert asker.clusters().clusters[0].unit == unit
        assert asker.jobs(JobsQuery()).rows[0]["num_pes"] == size


def test_the_data_page_has_the_last_fifty_ingests_the_latest_first(tmp_path: Path) -> None:
    lake = put_jobs(Lake.create(tmp_path), [job(1)])
    at = [utc(f"2099-01-{day:02}T00:00:00") for day in range(1, 32)]
    at += [utc(f"2099-02-{day:02}T00:00:00") for day in range(1, 22)]
    base = {"cluster": "c", "source": "swf", "synthetic": False, "inputs": ["a"]}
    rows = [base | {"ingest_id": str(n), "started_at": t, "ended_at": t} for n, t in enumerate(at)]
    put(lake, INGESTS.name, rows)
    listed = [each["ingest_id"] for each in Service(Readers(lake)).of(BOSS).lake().ingests]
    assert listed == [str(n) for n in range(51, 1, -1)]


def test_the_first_place_of_a_reject_is_that_of_one_record(tmp_path: Path) -> None:
    lake = put_jobs(Lake.create(tmp_path), [job(1)])
    bad = {"cluster": "c", "source": "swf", "reason": "no end", "text": "…"}
    put(
        lake,
        REJECTS.name,
        [bad | {"file": f, "line": n} for f, n in (("b", 3), ("a", 9), ("a", 7))],
    )
    (found,) = Service(Readers(lake)).of(BOSS).lake().rejects or []
    assert (found.num_rejects, found.first_file, found.first_line) == (3, "a", 7)


def test_figures_of_processors_do_not_say_gpus(tmp_path: Path) -> None:
    rows = [job(n, num_gpus=None, num_cpus=8 * n) for n in range(1, 4)]
    drawn = asker_of(tmp_path, rows).figure("load", FigureQuery())
    assert "rocessors" in str(drawn.option) and "GPU" not in str(drawn.option)
