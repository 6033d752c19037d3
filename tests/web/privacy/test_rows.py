"""Tables of cells and of a whole cluster, worked by hand: what is withheld cannot be summed up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hakaru.lake import Lake
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, CompareQuery, FigureQuery, Filters, JobQuery
from hakaru.web.models import Table
from hakaru.web.privacy import RULES, to_digits
from hakaru.web.privacy._mask import COUNTS
from hakaru.web.privacy._place import _Bucket, _joined, _share
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


def test_what_is_cut_finer_than_the_cells_is_for_operators(tmp_path: Path) -> None:
    """Hours, steps of run time, sizes and moments: differences from the cells could be one person's."""
    asker = asker_of(tmp_path, jobs_of("0123456", 0))
    finer = ("arrivals-by-hour", "arrivals-by-weekday", "arrivals-by-week", "walltime-cdf", "load",
             "walltime-by-application", "request-vs-run", "gpus-single-node", "gpus-multi-node",
             "think-time", "users-by-quarter")  # fmt: skip
    for id in finer:
        with pytest.raises(Refused, match="individual people"):
            answered(asker, id)
        assert answered(asker, id, user="u0").columns


def test_shares_count_whole_cells(tmp_path: Path) -> None:
    """Nine people ran on one GPU and on two; u9 ran on two for seconds only.

    If u9's jobs were left out of the share, but counted elsewhere, the difference would be theirs: so the
    cell of two GPUs, which holds them, is left out of it as a whole.
    """
    rows = jobs_of("012345678", 0) + jobs_of("012345678", 10, num_gpus=2)
    rows += jobs_of("9" * 30, 20, num_gpus=2, run_s=30.0)
    asker = asker_of(tmp_path, rows)
    (row,) = answered(asker, "states", min_gpus=2).rows
    assert row["num_jobs"] == 39
    table = answered(asker, "parallelism")
    assert [(row["parallelism"], row["num_jobs"], row["share"]) for row in table.rows] == [
        ("single-pe", 9, 1.0)
    ]
    assert table.withheld is not None and "left out" in table.withheld.why


def test_a_class_of_few_people_in_one_quarter_leaves_that_quarter_out(tmp_path: Path) -> None:
    """All jobs on two GPUs are known from another table: less those of spring they are u0's of winter."""
    winter, spring = utc("2018-01-10"), utc("2018-04-10")
    rows = (
        jobs_of("0123456", 0, submitted_at=winter)
        + jobs_of("0", 10, submitted_at=winter, num_gpus=2)
        + jobs_of("0123456", 20, submitted_at=spring)
        + jobs_of("123456", 30, submitted_at=spring, num_gpus=2)
    )
    table = answered(asker_of(tmp_path, rows), "parallelism-by-quarter")
    found = [(row["quarter"], row["parallelism"], row["num_jobs"]) for row in table.rows]
    assert found == [("2018Q1", "single-pe", 7), ("2018Q2", "single-pe", 7)]


def test_an_analysis_of_few_peoples_jobs_is_refused(tmp_path: Path) -> None:
    """Seven people ran jobs, four of them for a minute or longer."""
    rows = jobs_of("456", 0, run_s=30.0) + jobs_of("0123", 10)
    asker = asker_of(tmp_path, rows)
    with pytest.raises(Refused, match="too few people"):
        answered(asker, "request-accuracy")
    with pytest.raises(Refused, match="too few people"):
        answered(asker, "walltime", queue="none such")
    short = jobs_of("456789", 0, run_s=30.0)
    six = asker_of(tmp_path / "six", [*short, *jobs_of("012345", 10)])
    assert len(answered(six, "request-accuracy").rows) == 1


def test_requests_of_few_people_are_refused(tmp_path: Path) -> None:
    """Seven people ran jobs; five of them said for how long."""
    asker = asker_of(tmp_path, jobs_of("01234", 0) + jobs_of("56", 10, requested_s=None))
    with pytest.raises(Refused, match="fewer than 6 people stand behind this figure"):
        answered(asker, "request-accuracy")


def test_what_became_of_the_wait_is_counted_in_cells(tmp_path: Path) -> None:
    gone = {"started_at": None, "wait_s": None, "run_s": None, "state": "cancelled"}
    rows = jobs_of("01234567", 0) + jobs_of("012345", 10, **gone)
    table = answered(asker_of(tmp_path, rows), "abandoned-waits")
    found = {row["fate"]: (row["num_jobs"], row["share"], row["median_s"]) for row in table.rows}
    assert found["started"] == (8, 8 / 14, None) and found["abandoned"] == (6, 6 / 14, None)
    few = jobs_of("01234567", 0) + jobs_of("01234", 10, **gone)
    with pytest.raises(Refused, match="too few people"):
        answered(asker_of(tmp_path / "few", few), "abandoned-waits")


def test_figures_of_those_who_came_again_are_of_six(tmp_path: Path) -> None:
    """Seven people have a job each; a user's next submission is of those who have two: five, then six."""
    for again, is_shown in (("01234", False), ("012345", True)):
        rows = jobs_of("0123456", 0) + jobs_of(again, 10, submitted_at=utc("2018-01-02"))
        asker = asker_of(tmp_path / again, rows)
        if is_shown:
            table = answered(asker, "interarrivals")
            hidden = [name for name in table.columns if name.startswith(("num_", "share"))]
            assert {row[name] for row in table.rows for name in hidden} == {None}
        else:
            with pytest.raises(Refused, match="fewer than 6 people"):
                answered(asker, "interarrivals")


def test_what_is_busy_is_of_six_people_whose_jobs_took_time(tmp_path: Path) -> None:
    """Seven people have a job in the log; those of two never began, or were over at once: five are busy."""
    began = utc("2018-01-01T00:00:10")
    never = {"started_at": None, "wait_s": None, "run_s": None, "state": "cancelled"}
    at_once = {"ended_at": began, "run_s": 0.0}
    size = '{"nodes": 2, "gpus_per_node": 4}'
    for name, idle, is_shown in (
        ("five", jobs_of("5", 10, **never) + jobs_of("6", 11, **at_once), False),
        ("no GPU", jobs_of("56", 10, num_gpus=0), False),
        ("six", jobs_of("5", 10) + jobs_of("6", 11, **at_once), True),
    ):
        lake = put_jobs(Lake.create(tmp_path / name), jobs_of("01234", 0) + idle, size)
        asker = Service(Readers(lake)).of(U0)
        (found,) = asker.overview(Filters(cluster=("c",))).clusters
        assert (found.measures.busy_pes is not None) == is_shown, name
        if is_shown:
            assert answered(asker, "utilisation").rows
            continue
        assert (found.measures.jobs_waiting, found.measures.utilisation) == (None, None)
        with pytest.raises(Refused, match="fewer than 6 people"):
            answered(asker, "utilisation")


def test_people_are_not_counted_by_quarter(tmp_path: Path) -> None:
    """Seven people in winter, eight in spring, eight in all: one of them is new, with a new account."""
    rows = jobs_of("0123456", 0, submitted_at=utc("2018-01-10"))
    rows += jobs_of("0123456", 10, submitted_at=utc("2018-04-10"))
    rows += jobs_of("7", 20, submitted_at=utc("2018-04-10"), account="secret")
    asker = asker_of(tmp_path, rows)
    with pytest.raises(Refused, match="individual people"):
        answered(asker, "users-by-quarter")
    own = answered(asker, "users-by-quarter", user="u0").rows
    assert [(row["quarter"], row["num_users"], row["num_accounts"]) for row in own] == [
        ("2018Q1", 1, 1), ("2018Q2", 1, 1),
    ]  # fmt: skip


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
    with pytest.raises(Refused, match="fewer than 6 people stand behind this figure"):
        answered(asker, "waits", queue="normal")
    with pytest.raises(Refused, match="too few people"):
        answered(asker, "walltime", queue="normal")
    many = asker_of(tmp_path / "many", jobs_of("345678", 20) + rows)
    (row,) = answered(many, "waits", queue="normal").rows
    assert row["median_s"] == 10.0


def test_a_spread_is_of_twenty_jobs(tmp_path: Path) -> None:
    """Six people, nineteen jobs, then twenty: of fewer each wait could be worked out from the quantiles."""
    for num, is_shown in ((19, False), (20, True)):
        asker = asker_of(tmp_path / str(num), jobs_of(("012345" * 4)[:num], 0))
        (row,) = answered(asker, "waits").rows
        assert (row["median_s"], row["mean_s"]) == (10.0, 10.0)
        assert [row[name] is not None for name in ("sd_s", "p90_s", "p95_s")] == [is_shown] * 3
        (row,) = answered(asker, "request-accuracy").rows
        assert (row["median"], row["mean"]) == (0.5, 0.5)
        assert [row[name] is not None for name in ("sd", "p25", "p75")] == [is_shown] * 3
        (found,) = asker.overview(Filters(cluster=("c",))).clusters
        assert (found.measures.wait_median_s, found.measures.run_median_s) == (10.0, 3600.0)
        assert (found.measures.wait_p95_s is not None) == is_shown
        (own,) = asker.overview(Filters(cluster=("c",), user="u0")).clusters
        assert own.measures.wait_p95_s == 10.0


def test_gaps_give_no_deviation_and_no_span(tmp_path: Path) -> None:
    """The mean times the gaps is the time from the first submission to the last; cv × mean is sd."""
    for num, is_shown in ((20, False), (26, True)):  # of one user there are six gaps fewer
        rows = jobs_of(("012345" * 5)[:num], 0)
        for k, row in enumerate(rows):
            row["submitted_at"] = utc(f"2018-01-{k + 1:02}T0{k % 7}:00:00")
        table = answered(asker_of(tmp_path / str(num), rows), "interarrivals")
        whole, same = table.rows
        assert whole["median_s"] is not None and same["median_s"] is not None
        assert {row[name] for row in table.rows for name in ("mean_s", "sd_s")} == {None}
        for row, shown in ((whole, is_shown), (same, is_shown)):
            names = ("cv", "p25_s", "p75_s", "p90_s")
            assert [row[name] is not None for name in names] == [shown] * 4


def test_a_correlation_has_an_interval_from_twenty_jobs_on(tmp_path: Path) -> None:
    for num, is_shown in ((9, False), (10, True)):
        people = ("012345" * 2)[:num]
        rows = [
            row | {"run_s": 100.0 + k * k % 7}
            for size in (1, 2)
            for k, row in enumerate(jobs_of(people, 50 * size, num_gpus=size))
        ]
        for row in answered(asker_of(tmp_path / str(num), rows), "size-vs-walltime").rows:
            assert [row[name] is not None for name in ("low", "high")] == [is_shown] * 2


MIDDLE = {"mean", "mean_h", "mean_s", "median", "median_h", "median_s", "utilisation"}


@pytest.mark.parametrize("id", [id for id, r in RULES.items() if r.measure or r.cells is None])
def test_every_column_of_a_statistic_is_decided(tmp_path: Path, id: str) -> None:
    """A number is a mean or a median, a count that is withheld, one job's, or declared as a spread."""
    rule = RULES[id]
    rows = jobs_of("012345" * 2, 0) + jobs_of("012345" * 2, 20, num_gpus=2)
    table = guarded_table(asker_of(tmp_path, rows), id)
    numbers = {field.name for field in table.schema if not pa.types.is_string(field.type)}
    decided = {*MIDDLE, *rule.single, *rule.spread, *COUNTS, "num_draws"}
    assert {name for name in numbers if not name.startswith("share")} <= decided
    assert {*rule.spread, *rule.single} <= set(table.column_names)
    assert not rule.spread or rule.count in table.column_names


def guarded_table(asker: Asker, id: str) -> pa.Table:
    return asker.result(id, AnalysisQuery(cluster=("c",))).result.table


def test_a_spread_counts_the_jobs_that_have_the_measure(tmp_path: Path) -> None:
    """Thirty jobs, and eighteen of them waited: of so few there is no quantile."""
    rows = jobs_of("012345" * 3, 0) + jobs_of("012345" * 2, 50, wait_s=None)
    (found,) = asker_of(tmp_path, rows).overview(Filters(cluster=("c",))).clusters
    assert (found.measures.num_jobs, found.measures.wait_p95_s) == (30, None)


def test_either_side_of_a_correlation_is_of_six(tmp_path: Path) -> None:
    """Seven people run on one GPU; on two, u0 alone, or six of them."""
    one = [row for k in range(30) for row in jobs_of("0123456", 10 * k, run_s=60.0 + k)]
    alone = [row for k in range(40) for row in jobs_of("0", 500 + k, num_gpus=2, run_s=600.0 + k)]
    with pytest.raises(Refused, match="too few people"):
        answered(asker_of(tmp_path, one + alone), "size-vs-walltime")
    six = [
        row
        for k in range(9)
        for row in jobs_of("012345", 500 + 10 * k, num_gpus=2, run_s=600.0 + k)
    ]
    rows = answered(asker_of(tmp_path / "six", one + six), "size-vs-walltime").rows
    assert rows[0]["reading"] == "weak scaling"


def test_each_cluster_has_people_of_its_own(tmp_path: Path) -> None:
    """Seven people came again to c, and two others to b: there they are too few."""
    rows = jobs_of("0123456", 0) + jobs_of("0123456", 10, submitted_at=utc("2018-01-02"))
    b = jobs_of("0123456", 20, cluster="b") + jobs_of("78", 30, cluster="b")
    b += jobs_of("78", 40, cluster="b", submitted_at=utc("2018-01-02"))
    asker = asker_of(tmp_path, rows + b)
    both = AnalysisQuery(cluster=("b", "c"), by="cluster")
    with pytest.raises(Refused, match="fewer than 6 people"):
        asker.table("interarrivals", both)
    assert asker.table("interarrivals", AnalysisQuery(cluster=("c",))).rows


def test_one_person_in_many_queues_is_one_person(tmp_path: Path) -> None:
    """u0 alone uses ten queues: as ten people they would seem many enough."""
    rows = jobs_of("0123456", 0, queue="wide") + jobs_of("123456", 10, queue="short")
    rows += [row | {"queue": f"own{i}"} for i, row in enumerate(jobs_of("0" * 10, 20))]
    table = answered(asker_of(tmp_path, rows), "queues")
    assert [(row["queue"], row["num_jobs"]) for row in table.rows] == [("wide", 7)]


def test_utilisation_is_of_the_whole_log_and_has_no_hours(tmp_path: Path) -> None:
    """Of a quarter it would be the hours of its jobs and of those that began earlier: few people's."""
    rows = jobs_of("012345", 0, num_gpus=1) + jobs_of("012345", 10, submitted_at=utc("2018-04-05"),
           started_at=utc("2018-04-05"), ended_at=utc("2018-04-06"))  # fmt: skip
    table = answered(asker_of(tmp_path, rows), "utilisation")
    assert [row["quarter"] for row in table.rows] == ["all"]
    hidden = ("span_h", "busy_pe_hours", "installed_pe_hours")
    assert {row[name] for row in table.rows for name in hidden} == {None}


def test_own_requests_are_not_held_against_those_of_others(tmp_path: Path) -> None:
    """The largest request of a queue is one person's: only a limit that is set is told."""
    rows = jobs_of("0123456", 0) + jobs_of("0", 10, requested_s=99000.0)
    (row,) = answered(asker_of(tmp_path, rows), "request-accuracy", user="u0").rows
    assert (row["share_at_max"], row["share_with_known_limit"]) == (None, 0.0)
    limit = '{"queues": {"normal": {"max_walltime_h": 27.5}}}'
    lake = put_jobs(Lake.create(tmp_path / "set"), rows, limit)
    (row,) = answered(Service(Readers(lake)).of(U0), "request-accuracy", user="u0").rows
    assert (row["share_at_max"], row["share_with_known_limit"]) == (0.5, 1.0)


def test_a_machine_of_unknown_size_is_drawn_without_what_was_seen(tmp_path: Path) -> None:
    """The most that was seen in use is one person's jobs."""
    drawn = asker_of(tmp_path, jobs_of("0123456", 0)).figure(
        "utilisation", FigureQuery(cluster=("c",))
    )
    assert drawn.option["series"] is not None and "seen" not in str((drawn.option, drawn.notes))


# ---- a job's place, and numbers


def test_a_place_is_that_of_its_bucket(tmp_path: Path) -> None:
    """u0's jobs with any run time between others' find out nothing more than the bucket."""
    rows = [row for k in range(10) for row in jobs_of("123456", 10 * k, run_s=100.0 * (k + 1))]
    rows += [row | {"run_s": 410.0 + 10 * i} for i, row in enumerate(jobs_of("00000", 900))]
    asker = asker_of(tmp_path, rows)
    found = [asker.job(JobQuery(cluster="c", job_id=str(900 + i))).among_cluster for i in range(5)]
    assert [each.run for each in found if each] == [found[0].run if found[0] else None] * 5


def test_the_last_people_of_a_histogram_join_the_bucket_before() -> None:
    """Six people have a job each of at most 1, the same of at most 2; one person has more."""
    six = {f"u{i}" for i in range(6)}
    whole = [_Bucket(1.0, 3, {*six}), _Bucket(2.0, 8, {*six}), _Bucket(math.inf, 10, {"u0"})]
    buckets = _joined(whole, by_file=False)
    assert [(each.to, each.tenths) for each in buckets] == [(1.0, 3), (math.inf, 10)]
    assert [_share(buckets, value) for value in (1.0, 1.5, 99.0)] == [0.15, 0.65, 0.65]
    assert _joined([_Bucket(1.0, 5, {"u0"}), _Bucket(math.inf, 10, {"u1"})], by_file=False) == []


def test_a_table_is_rounded_to_three_digits() -> None:
    table = pa.table({"class": ["all"], "num": [12345], "median_s": [3.4567], "low": [None]})
    assert rounded(table).to_pylist() == [
        {"class": "all", "num": 12345, "median_s": 3.46, "low": None}
    ]


def test_rounding() -> None:
    assert [to_digits(value) for value in (123456.0, 0.0012345, 0.0, -9.996)] == [
        123000.0, 0.00123, 0.0, -10.0,
    ]  # fmt: skip


def test_run_times_give_nothing_of_the_one_who_failed(tmp_path: Path) -> None:
    """Nine people completed a job of an hour, and u7 failed after a hundred.

    All jobs took 109 hours, as the overview says: ten times the mean of all, less nine times that of the
    completed ones, would be u7's hundred. So there is no figure of the completed ones, but where six
    people failed.
    """
    rows = jobs_of("012345678", 0) + jobs_of("7", 20, state="failed", run_s=360000.0)
    asker = asker_of(tmp_path, rows)
    with pytest.raises(Refused, match="too few people"):
        answered(asker, "walltime")
    found = asker.compare(CompareQuery(cluster=("c",))).metrics
    cells = {each["id"]: each["computed"]["c"] for each in found}
    assert cells["run_mean_s"]["value"] is None
    assert cells["wait_median_s"]["value"] == 10.0
    many = asker_of(tmp_path / "many", rows + jobs_of("12345", 30, state="failed"))
    assert answered(many, "walltime").rows[0]["mean_h"] == 1.0
    # of all 15 jobs: nine and five of an hour, and one of a hundred
    assert answered(many, "walltime", state=("any",)).rows[0]["mean_h"] == 7.6


def test_why_a_value_is_missing_tells_nothing_of_one_person(tmp_path: Path) -> None:
    """Seven people, and what u6 did besides: nothing, a request, a failure, two jobs that still wait."""
    base = [
        row for k in range(6) for row in jobs_of("0123456", 10 * k, requested_s=None, wait_s=None)
    ]
    waiting = {"started_at": None, "ended_at": None, "wait_s": None, "run_s": None}
    told = []
    for name, own in {
        "nothing": [],
        "request": jobs_of("6", 90, wait_s=None),
        "failure": jobs_of("6", 90, requested_s=None, wait_s=None, state="failed"),
        "pending": jobs_of("66", 90, requested_s=None, state="pending", **waiting),
        "waited": jobs_of("6", 90, requested_s=None),
        "Sunday": jobs_of("6", 90, submitted_at=utc("2018-01-07"), requested_s=None, wait_s=None),
    }.items():
        asker = asker_of(tmp_path / name, base + own)
        found = asker.compare(CompareQuery(cluster=("c",))).metrics
        cells = {each["id"]: each["computed"]["c"] for each in found}
        told.append({id: cell for id, cell in cells.items() if cell["value"] is None})
    assert {"wra_mean", "share_at_max", "weekday_peak_ratio", "wait_median_s"} <= set(told[0])
    reasons = {cell["reason"] for cells in told for cell in cells.values()}
    assert reasons == {"not shown: too few people or no data"}


def test_that_all_jobs_ended_alike_is_for_operators(tmp_path: Path) -> None:
    """One person's failure would take the remark away."""
    asker = asker_of(tmp_path, jobs_of("0123456" * 4, 0))
    boss = Service(asker.readers).of(Viewer("operator", "boss"))
    query = FigureQuery(cluster=("c",))
    assert any("completed" in note for note in boss.figure("states", query).notes)
    assert not any("completed" in note for note in asker.figure("states", query).notes)


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
