"""Small lakes, worked by hand: what is withheld cannot be summed up from what is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hakaru.lake import Lake
from hakaru.web.access import Viewer
from hakaru.web.filters import AnalysisQuery, FigureQuery
from hakaru.web.models import Table
from hakaru.web.problems import Refused
from hakaru.web.readers import Readers
from hakaru.web.service import Asker, Service
from tests.conftest import job, put_jobs, utc
from tests.web.privacy._ask import Params

U0 = Viewer("user", "u0", "u0")


def asker_of(tmp_path: Path, rows: list[dict[str, Any]]) -> Asker:
    return Service(Readers(put_jobs(Lake.create(tmp_path), rows))).of(U0)


def jobs_of(users: str, first: int, **columns: Any) -> list[dict[str, Any]]:
    """A job for each letter."""
    return [job(first + i, user=f"u{user}", **columns) for i, user in enumerate(users)]


def answered(asker: Asker, id: str, **query: Any) -> Table:
    return asker.table(id, AnalysisQuery(cluster=("c",), **query))


def test_a_curve_tells_no_counts_and_ends_before_few_people(tmp_path: Path) -> None:
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
        shown = [(row[name], round(row["run_h"] * 60)) for row in table.rows]
        assert shown == [(curve, minutes) for curve in curves for minutes in (11, 66)]
        assert {row["num_jobs"] for row in table.rows} == {None}
        assert table.withheld is not None and table.withheld.columns == ["num_jobs"]
        assert (table.num_used, table.num_selected) == (None, None)
        figure = asker.figure(id, FigureQuery(cluster=("c",)))
        assert figure.notes == [] and figure.withheld == table.withheld
        assert not any("(" in each["name"] for each in figure.option["series"])


def test_groups_that_are_withheld_whole_are_of_many_people(tmp_path: Path) -> None:
    """Two people use eight GPUs; the sum of all less one and two GPUs would be theirs."""
    rows = (
        jobs_of("0123456", 0, num_gpus=1, state="completed")
        + jobs_of("0123456", 10, num_gpus=1, state="failed")
        + jobs_of("0", 20, num_gpus=1, state="timeout")
        + jobs_of("12345", 30, num_gpus=2, state="completed")
        + jobs_of("67", 40, num_gpus=8, state="completed")
    )
    table = answered(asker_of(tmp_path, rows), "states", by="num_gpus")
    assert {row["num_gpus"] for row in table.rows} == {1}
    assert (table.num_used, table.num_selected) == (None, None)
    assert all(entry.num_jobs is None for entry in table.left_out)
    assert table.withheld is not None and "withheld" in table.withheld.why


def test_one_person_in_many_rows_is_one_person(tmp_path: Path) -> None:
    """u0 alone uses ten queues: as ten people they would seem many enough."""
    rows = jobs_of("0123456", 0, queue="wide") + jobs_of("123456", 10, queue="short")
    rows += [job(20 + i, user="u0", queue=f"own{i}") for i in range(10)]
    table = answered(asker_of(tmp_path, rows), "queues")
    assert [row["queue"] for row in table.rows] == ["wide"]


def test_a_state_withheld_in_one_group_is_withheld_in_another(tmp_path: Path) -> None:
    """Failed jobs of all queues are known from another answer: less those of `wide` they are u0's."""
    rows = (
        jobs_of("0123456", 0, queue="wide")
        + jobs_of("123456", 10, queue="wide", state="failed")
        + jobs_of("0123456", 20, queue="short")
        + jobs_of("0", 30, queue="short", state="failed")
        + jobs_of("123456", 40, queue="short", state="timeout")
    )
    table = answered(asker_of(tmp_path, rows), "states", by="queue")
    assert "failed" not in {row["state"] for row in table.rows}


def test_a_queue_called_all_is_a_queue(tmp_path: Path) -> None:
    rows = jobs_of("0123456", 0, queue="wide") + jobs_of("0", 10, queue="all")
    assert answered(asker_of(tmp_path, rows), "queues").rows == []


def test_what_each_rule_leaves_out_is_of_many_people(tmp_path: Path) -> None:
    """Seven people failed, and one ran for less than a minute: together eight, apart not."""
    rows = (
        jobs_of("0123456", 0)
        + jobs_of("0123456", 10, state="failed")
        + jobs_of("7", 20, run_s=30.0)
    )
    table = answered(asker_of(tmp_path, rows), "request-accuracy")
    assert table.rows and (table.num_used, table.num_selected) == (None, None)
    assert table.left_out and all(entry.num_jobs is None for entry in table.left_out)
    assert table.withheld is not None and "numbers of jobs" in table.withheld.why


def test_side_by_side_a_period_is_widened_for_each_cluster(tmp_path: Path) -> None:
    """In b one person is there in February, whom the six of c would hide from a count over both."""
    rows = [
        job(100 * month + i, cluster=cluster, user=f"u{i}", submitted_at=utc(f"2018-0{month}-10"))
        for cluster, people in (("b", (6, 1, 6)), ("c", (6, 6, 6)))
        for month, num in enumerate(people, 1)
        for i in range(num)
    ]
    asker = asker_of(tmp_path, rows)
    february: Params = {"since": "2018-02-01", "until": "2018-02-28"}
    with pytest.raises(Refused, match="different months") as error:
        asker.table("states", AnalysisQuery(by="cluster", **february))
    assert "one cluster" in str(error.value.fix)
    assert answered(asker, "states", **february).num_selected == 6
    both = asker.table("states", AnalysisQuery(by="cluster"))
    assert [(row["cluster"], row["num_jobs"]) for row in both.rows] == [("b", 13), ("c", 18)]
