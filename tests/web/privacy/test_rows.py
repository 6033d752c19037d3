"""Tables of a whole cluster, worked by hand: what is withheld cannot be summed up from what is shown."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hakaru.lake import Lake
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, CompareQuery, FigureQuery, Filters, JobQuery
from hakaru.web.models import Table
from hakaru.web.privacy import step_of, to_digits, to_step
from hakaru.web.privacy._place import _joined, _share
from hakaru.web.privacy._rounded import rounded
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service import Asker, Service
from tests.conftest import put_jobs, utc
from tests.web.privacy._ask import jobs_of

U0 = Viewer("user", "u0", "u0")


def asker_of(tmp_path: Path, rows: list[dict[str, Any]]) -> Asker:
    return Service(Readers(put_jobs(Lake.create(tmp_path), rows))).of(U0)


def answered(asker: Asker, id: str, **query: Any) -> Table:
    return asker.table(id, AnalysisQuery(cluster=("c",), **query))


def test_a_curve_ends_before_few_people(tmp_path: Path) -> None:
    """The last step is one person's: without the one before it, the rest of the curve is of six."""
    rows = (
        jobs_of("012345", 0, run_s=600.0, application="a")
        + jobs_of("012345", 10, run_s=3600.0, application="a")
        + jobs_of("012345", 20, run_s=36000.0, application="a")
        + jobs_of("6", 30, run_s=360000.0, application="a")
    )
    asker = asker_of(tmp_path, rows)
    for id, curves in (
        ("walltime-cdf", ("all", "single-pe")),
        ("walltime-by-application", ("a",)),
    ):
        table = answered(asker, id)
        name = table.columns[0]
        shown = [(row[name], round(row["run_h"] * 60), row["share"]) for row in table.rows]
        # 6 and 12 of 19 jobs are 32 % and 63 %; half of them is the step that is five jobs
        steps = ((11, 0.5), (66, 0.5))
        assert shown == [(curve, *step) for curve in curves for step in steps]
        assert {row["num_jobs"] for row in table.rows} == {None}
        assert (table.num_used, table.num_selected) == (None, None)
        figure = asker.figure(id, FigureQuery(cluster=("c",)))
        assert figure.notes == [] and figure.withheld == table.withheld
        assert not any("(" in each["name"] for each in figure.option["series"])


def test_withheld_rows_are_of_five_people_together(tmp_path: Path) -> None:
    """Two people use eight GPUs: the four GPUs of the fewest people are withheld with them."""
    rows = (
        jobs_of("0123456", 0, num_gpus=2)
        + jobs_of("01234", 10, num_gpus=4)
        + jobs_of("67", 20, num_gpus=8)
    )
    table = answered(asker_of(tmp_path, rows), "gpus-single-node")
    assert [row["num_pes"] for row in table.rows] == [2]
    assert table.withheld is not None and table.withheld.num_rows == 2


def test_a_class_withheld_in_one_quarter_is_withheld_in_another(tmp_path: Path) -> None:
    """All jobs on two GPUs are known from another table: less those of spring they are u0's of winter."""
    winter, spring = utc("2018-01-10"), utc("2018-04-10")
    rows = (
        jobs_of("0123456", 0, submitted_at=winter)
        + jobs_of("0", 10, submitted_at=winter, num_gpus=2)
        + jobs_of("0123456", 20, submitted_at=spring)
        + jobs_of("123456", 30, submitted_at=spring, num_gpus=2)
    )
    table = answered(asker_of(tmp_path, rows), "parallelism-by-quarter")
    assert "single-node" not in {row["parallelism"] for row in table.rows}


def test_an_analysis_of_few_peoples_jobs_is_refused(tmp_path: Path) -> None:
    """Seven people ran jobs, four of them for a minute or longer."""
    rows = jobs_of("456", 0, run_s=30.0) + jobs_of("0123", 10)
    asker = asker_of(tmp_path, rows)
    with pytest.raises(Refused, match="fewer than 5 people"):
        answered(asker, "request-accuracy")
    with pytest.raises(Refused, match="5 or more people"):
        answered(asker, "walltime", queue="none such")
    five = asker_of(tmp_path / "five", [*rows, *jobs_of("4", 20)])
    assert len(answered(five, "request-accuracy").rows) == 1


def test_by_hours_people_without_hours_do_not_count(tmp_path: Path) -> None:
    """Six people ran on one GPU and six on two, but of these five ran for no time."""
    rows = (
        jobs_of("012345", 0)
        + jobs_of("01234", 10, num_gpus=2, run_s=60.0, num_nodes=1)
        + jobs_of("5", 20, num_gpus=2)
    )
    shown = answered(asker_of(tmp_path, rows), "parallelism", weight="gpu-hours")
    assert [row["parallelism"] for row in shown.rows] == ["single-pe", "single-node"]
    none = [row | ({"run_s": None} if 10 <= int(row["job_id"]) < 20 else {}) for row in rows]
    hidden = answered(asker_of(tmp_path / "none", none), "parallelism", weight="gpu-hours")
    assert hidden.rows == []


def test_by_hours_people_whose_jobs_ran_for_no_time_do_not_count(tmp_path: Path) -> None:
    """At noon six people submit, and five of their jobs run for no time: the hours are u5's alone."""
    noon = {"submitted_at": utc("2018-01-01T12:00:00")}
    many = jobs_of("012345", 0) + jobs_of("012345", 20, submitted_at=utc("2018-01-01T06:00:00"))
    rows = many + jobs_of("01234", 10, run_s=0.0, **noon) + jobs_of("5", 30, **noon)
    asker = asker_of(tmp_path, rows)
    for weight, is_shown in (("jobs", True), ("gpu-hours", False)):
        shown = answered(asker, "arrivals-by-hour", weight=weight)
        assert (12 in {row["hour"] for row in shown.rows}) is is_shown


def test_hours_of_few_people_are_withheld_and_so_are_shares_of_them(tmp_path: Path) -> None:
    """Six people ran jobs, and of three of them it is known for how long."""
    asker = asker_of(tmp_path, jobs_of("012", 0) + jobs_of("345", 10, run_s=None))
    (row,) = answered(asker, "states").rows
    assert (row["num_jobs"], row["pe_hours"], row["share"]) == (6, None, 1.0)
    by_hours = answered(asker, "states", weight="gpu-hours")
    assert by_hours.withheld is not None
    assert set(by_hours.withheld.columns) == {"num_jobs", "pe_hours", "share"}
    for row in by_hours.rows:
        assert (row["num_jobs"], row["pe_hours"], row["share"]) == (None, None, None)


def test_waits_and_run_times_of_few_people_are_refused_in_a_cell_too(tmp_path: Path) -> None:
    """All six people are in one cell; of three the wait is not known, and three ran for seconds only."""
    rows = jobs_of("012", 0, wait_s=None) + jobs_of("345", 10, run_s=5.0)
    asker = asker_of(tmp_path, rows)
    for id in ("waits", "walltime"):
        with pytest.raises(Refused, match="fewer than 5 people stand behind this figure"):
            answered(asker, id, queue="normal")
    many = asker_of(tmp_path / "many", jobs_of("01234", 0) + rows)
    (row,) = answered(many, "waits", queue="normal").rows
    assert row["median_s"] == 10.0


def test_one_person_in_many_queues_is_one_person(tmp_path: Path) -> None:
    """u0 alone uses ten queues: as ten people they would seem many enough."""
    rows = jobs_of("0123456", 0, queue="wide") + jobs_of("123456", 10, queue="short")
    rows += [row | {"queue": f"own{i}"} for i, row in enumerate(jobs_of("0" * 10, 20))]
    table = answered(asker_of(tmp_path, rows), "queues")
    assert [(row["queue"], row["num_jobs"]) for row in table.rows] == [("wide", 7)]


# ---- the machine over time


def running(users: str, first: int, day: int, **columns: Any) -> list[dict[str, Any]]:
    """Jobs that wait for an hour and run for a day."""
    at = utc(f"2018-01-{day:02}T00:00:00")
    times = {"submitted_at": at, "started_at": at + timedelta(hours=1), "wait_s": 3600.0}
    ended = {"ended_at": at + timedelta(days=1, hours=1), "run_s": 86400.0}
    return jobs_of(users, first, **times | ended | columns)


def days_of(table: Table) -> set[int]:
    return {row["since_at"].day for row in table.rows if row["num_pes_busy"]}


def test_a_day_of_few_people_is_withheld_with_one_more(tmp_path: Path) -> None:
    rows = running("012345", 0, 1) + running("0", 10, 5) + running("01234", 20, 9)
    table = answered(asker_of(tmp_path, rows), "load")
    # the fifth is u0's alone; alone withheld it would be the sum of all less the others
    assert 5 not in days_of(table) and 1 in days_of(table)
    assert table.withheld is not None and table.withheld.num_rows > 0
    all_of_many = running("012345", 0, 1) + running("01234", 20, 9)
    whole = answered(asker_of(tmp_path / "many", all_of_many), "load")
    assert whole.withheld is not None and whole.withheld.num_rows == 0
    assert days_of(whole) == {1, 2, 9, 10}


def test_who_waits_is_not_hidden_by_who_runs(tmp_path: Path) -> None:
    """On the fifth six people run, and u0 alone waits."""
    rows = running("012345", 0, 1) + running(
        "012345", 10, 5, started_at=utc("2018-01-05"), wait_s=0.0
    )
    rows += running("0", 20, 5, started_at=None, ended_at=utc("2018-01-05T12:00:00"), run_s=None,
                    wait_s=None, state="cancelled")  # fmt: skip
    table = answered(asker_of(tmp_path, rows), "load")
    morning = [row for row in table.rows if row["since_at"].day == 5 and row["since_at"].hour < 12]
    assert morning == []


def test_a_long_job_is_there_on_every_day_of_it(tmp_path: Path) -> None:
    """From the third u0 alone is there: until the eighth, or for ever where the job still runs."""
    whole = running("012345", 0, 1) + running("012345", 20, 10)
    ended = {"ended_at": utc("2018-01-08"), "run_s": 428400.0}
    still = {"ended_at": None, "run_s": None, "state": "running"}
    for name, end in (("ended", ended), ("still", still)):
        asker = asker_of(tmp_path / name, whole + running("0", 10, 3, **end))
        assert not days_of(answered(asker, "load")) & {3, 4, 5, 6, 7}, name


def test_only_those_whose_jobs_count_are_there(tmp_path: Path) -> None:
    """On the fifth the jobs of five people have no known size: the machine shows u0's alone."""
    rows = running("012345", 0, 1) + running("012345", 20, 9) + running("0", 10, 5)
    rows += running("12345", 30, 5, num_gpus=None)
    assert 5 not in days_of(answered(asker_of(tmp_path, rows), "load"))


def test_the_log_begins_and_ends_with_whole_days(tmp_path: Path) -> None:
    rows = running("012345", 0, 1, submitted_at=utc("2018-01-01T07:33:21"))
    table = answered(asker_of(tmp_path, rows), "load")
    assert table.rows[0]["since_at"] == utc("2018-01-01")
    assert table.rows[-1]["until_at"] == utc("2018-01-03")


def test_utilisation_has_no_hours(tmp_path: Path) -> None:
    rows = running("012345", 0, 1) + running("0", 10, 5, submitted_at=utc("2018-06-05"),
           started_at=utc("2018-06-05"), ended_at=utc("2018-06-06"))  # fmt: skip
    table = answered(asker_of(tmp_path, rows), "utilisation")
    shown = [row["quarter"] for row in table.rows]
    assert "2018Q2" not in shown
    gone = {row[name] for row in table.rows for name in ("span_h", "busy_pe_hours")}
    assert gone <= {None}


# ---- a job's place, and numbers


def test_a_place_is_that_of_its_bucket(tmp_path: Path) -> None:
    """u0's jobs with any run time between others' find out nothing more than the bucket."""
    rows = [row for k in range(10) for row in jobs_of("12345", 10 * k, run_s=100.0 * (k + 1))]
    rows += [row | {"run_s": 410.0 + 10 * i} for i, row in enumerate(jobs_of("00000", 900))]
    asker = asker_of(tmp_path, rows)
    found = [asker.job(JobQuery(cluster="c", job_id=str(900 + i))).among_cluster for i in range(5)]
    assert [each.run for each in found if each] == [found[0].run if found[0] else None] * 5


def test_the_last_people_of_a_histogram_join_the_bucket_before() -> None:
    """Five people have a job each of at most 1, and two of at most 2; one person has four of more."""
    found = [{"place": 0, "holder": f"u{i}", "num_jobs": 1} for i in range(5)]
    found += [{"place": 1, "holder": f"u{i}", "num_jobs": 2} for i in range(5)]
    found += [{"place": 2, "holder": "u0", "num_jobs": 4}]
    buckets = _joined([1.0, 2.0, math.inf], found, by_file=False)
    assert [(each.to, each.num_jobs) for each in buckets] == [(1.0, 5), (math.inf, 14)]
    # 12 of 19 are 63 %, 2.5 of them 13 %; half of the jobs is the step that is five of them
    assert [_share(buckets, value) for value in (1.0, 1.5, 99.0)] == [0.0, 0.5, 0.5]


def test_what_counts_jobs_is_as_coarse_as_shares() -> None:
    """Of fifty jobs a step is a tenth: of all arrivals, ten, it is one."""
    table = pa.table(
        {"hour": [0.25, 1.0], "mean": [3.4, 6.6], "median_s": [3.4567, 6.6], "share": [0.34, 0.66],
         "utilisation": [0.34, None], "run_to_h": [0.123456, 1.0]}
    )  # fmt: skip
    assert rounded(table, 50, ("hour",), ("mean",)).to_pydict() == {
        "hour": [0.25, 1.0], "mean": [3.0, 7.0], "median_s": [3.46, 6.6], "share": [0.3, 0.7],
        "utilisation": [0.3, None], "run_to_h": [0.123456, 1.0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("num_jobs", "step"),
    [(5000, 0.001), (4999, 0.002), (500, 0.01), (499, 0.02), (43, 0.2), (10, 0.5), (9, 1.0)],
)
def test_a_step_of_a_share_is_five_jobs_or_more(num_jobs: int, step: float) -> None:
    assert step_of(num_jobs) == step


def test_rounding() -> None:
    assert [to_step(value, 0.05) for value in (0.024, 0.026, 0.975, 1.0)] == [0.0, 0.05, 1.0, 1.0]
    assert [to_digits(value) for value in (123456.0, 0.0012345, 0.0, -9.996)] == [
        123000.0, 0.00123, 0.0, -10.0,
    ]  # fmt: skip


def test_run_times_give_nothing_of_the_one_who_failed(tmp_path: Path) -> None:
    """Nine people completed a job of an hour, and u7 failed after a hundred.

    All jobs took 109 hours, as the overview says: ten times the mean of all, less nine times that of the
    completed ones, would be u7's hundred. So neither mean is shown, but where five people failed.
    """
    rows = jobs_of("012345678", 0) + jobs_of("7", 20, state="failed", run_s=360000.0)
    asker = asker_of(tmp_path, rows)
    whole = answered(asker, "walltime")
    row = whole.rows[0]
    assert (row["mean_h"], row["sd_h"], row["median_h"]) == (None, None, 1.0)
    for id in ("walltime", "request-accuracy", "walltime-cdf"):
        with pytest.raises(Refused):
            answered(asker, id, state=("any",))
    found = asker.compare(CompareQuery(cluster=("c",))).metrics
    cells = {each["id"]: each["computed"]["c"] for each in found}
    assert cells["run_mean_s"]["value"] is None
    assert cells["wait_median_s"]["value"] is not None
    many = rows + jobs_of("1234", 30, state="failed")
    assert answered(asker_of(tmp_path / "many", many), "walltime").rows[0]["mean_h"] == 1.0
    # who was cancelled in the queue has no hours to be found out
    none = jobs_of("012345678", 0) + jobs_of("7", 20, state="cancelled", run_s=None)
    assert answered(asker_of(tmp_path / "none", none), "walltime").rows[0]["mean_h"] == 1.0


def test_the_days_of_the_log_are_not_counted(tmp_path: Path) -> None:
    """The days from the first to the last submission would give both, each one person's."""
    asker = asker_of(tmp_path, jobs_of("0123456", 0))
    for id in ("arrivals-by-hour", "arrivals-by-weekday", "arrivals-by-week"):
        assert {row["num_days"] for row in answered(asker, id).rows} <= {None}


def test_a_period_before_tells_nothing_of_the_first_and_the_last_submission(tmp_path: Path) -> None:
    """The log begins on 20 January, with u8: whether a day before that can be compared would find it."""
    rows = [each for month in "234" for each in jobs_of(
        "01234567", 10 * int(month), submitted_at=utc(f"2018-0{month}-05"))]  # fmt: skip
    rows += jobs_of("8", 5, submitted_at=utc("2018-01-20")) + jobs_of(
        "01234", 7, submitted_at=utc("2018-01-25")
    )
    asker = asker_of(tmp_path, rows)

    def before(**filters: str) -> tuple[str | None, str | None] | None:
        found = asker.overview(Filters(cluster=("c",), **filters)).clusters[0].before_period
        return (found.since, found.until) if found else None

    assert before(user="u0", since="2018-02-09", until="2018-02-12") == ("2018-02-05", "2018-02-08")
    assert before(user="u0", since="2018-01-30", until="2018-02-01") is None  # from 27 January
    assert before(since="2018-04-01") == ("2018-03-01", "2018-03-31")  # not of five days
    boss = Service(asker.readers).of(Viewer("operator", "boss"))
    found = boss.overview(Filters(cluster=("c",), since="2018-01-30", until="2018-02-01"))
    assert found.clusters[0].before_period is not None
