"""What is said of fair shares where users are numbered anew in every file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hakaru import sim
from hakaru.sim.people import fair_share_note
from tests.sim._jobs import workload

MULTIFACTOR = sim.POLICIES.get("multifactor")


def ids(*names: str) -> Any:
    """A job for each user, whose id has the same log before it."""
    rows = [
        (at, 1, 1, {"user": name, "job_id": f"{name.partition('/')[0]}/{at}"})
        for at, name in enumerate(names)
    ]
    return workload(*rows)


def test_fair_share_forgets_where_a_file_ends() -> None:
    note = fair_share_note(ids("2018Q1/1", "2018Q1/2", "2018Q2/1"), MULTIFACTOR)
    assert "within one of 2 log files" in note
    assert "all 3 ids" in note


def test_nothing_is_said_where_it_does_not_matter() -> None:
    two = ids("2018Q1/1", "2018Q2/1")
    assert fair_share_note(ids("2018Q1/1", "2018Q1/2"), MULTIFACTOR) == ""
    assert fair_share_note(two, sim.POLICIES.get("easy")) == ""
    assert fair_share_note(two, replace(MULTIFACTOR, weights=sim.Weights(age=1))) == ""
    # A slash of their own: no job has it before its id.
    slashed = workload((0, 1, 1, {"user": "lab/ann"}), (0, 1, 1, {"user": "hub/bob"}))
    assert fair_share_note(slashed, MULTIFACTOR) == ""


def test_the_whole_note_and_who_counts_in_it() -> None:
    """Users without a log before them, and logs that no job is of, are of no file; job ids may have more."""
    names = [f"2018Q{n % 2 + 1}/{n}" for n in range(1200)]
    rows = [
        (at, 1, 1, {"user": name, "job_id": f"{name.partition('/')[0]}/{at}/0"})
        for at, name in enumerate(names)
    ]
    jobs = workload(*rows, (2000, 1, 1, {"user": "eve"}), (2001, 1, 1, {"user": "lab/ann"}))
    assert fair_share_note(jobs, MULTIFACTOR) == (
        "user ids hold within one of 2 log files: fair share forgets at each file's end what everybody "
        "used, and shares are equal among all 1,202 ids"
    )


def test_a_name_that_is_a_log_s_is_no_log_before_an_id() -> None:
    """Jobs `ann/0` and `bob/1` of the users ann and bob: nothing stands before their names."""
    rows = [(at, 1, 1, {"user": name, "job_id": f"{name}/{at}"}) for at, name in enumerate("ab")]
    assert fair_share_note(workload(*rows), MULTIFACTOR) == ""


def test_jobs_without_ids_are_of_no_file() -> None:
    two = ids("2018Q1/1", "2018Q2/1")
    bare = replace(two, table=two.table.drop_columns(["job_id"]))
    assert fair_share_note(bare, MULTIFACTOR) == ""
