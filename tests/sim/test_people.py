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
