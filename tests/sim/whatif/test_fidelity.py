"""Which months of a log a what-if compares, and how far their replay is from the record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hakaru.sim.site import Site
from hakaru.sim.whatif import read, run
from hakaru.sim.whatif.fidelity import Fidelity
from tests.sim._jobs import workload


@pytest.mark.parametrize(
    ("zone", "kept"), [("UTC", [True, True, False]), ("Asia/Tokyo", [True, False, False])]
)
def test_months_are_those_of_the_site_s_clock(zone: str, kept: list[bool]) -> None:
    """20:00 UTC on 31 March is 05:00 on 1 April in Tokyo."""
    moments = [(3, 31, 12), (3, 31, 20), (4, 1, 0)]
    seconds = [datetime(2018, *moment, tzinfo=UTC).timestamp() for moment in moments]
    jobs = workload(*((at, 10, 1) for at in seconds))
    compared = Fidelity(frozenset({"2018-03"}), "", (), zone).keep(jobs)
    assert compared.tolist() == kept
    assert Fidelity(None, "", (), zone).keep(jobs).tolist() == [True] * 3


MONTHS = """
seed = 7
num_resamples = 1200
{}
[machine]
processors = 4
[[variant]]
name = "half"
machine = {{ processors = 2 }}
"""
LEFT_OUT = (
    "Compared are the 10 of 15 jobs submitted in months the log can reproduce (2018-05, 2018-07); all are "
    "replayed. Left out: 2018-06, as the recorded jobs need more than 1.25 times the machine 3.3 % of the "
    'time: they cannot have had all that is recorded. `months = "plausible"` or "all" compares more.'
)


def weekly() -> Any:
    """An hour on one of four PEs each Tuesday from May to July, recorded to wait 40 s at most.

    On 5 June two jobs of the whole machine are recorded at once, for a day each.
    """
    day, may = 86400, int(datetime(2018, 5, 1, 9, tzinfo=UTC).timestamp())
    jobs = []
    for week in range(14):
        wide = week == 5
        at, wait = may + week * 7 * day, 40.0 if week >= 12 else 10.0
        started = datetime.fromtimestamp(at + wait, UTC)
        told = {"wait_s": wait, "started_at": started}
        jobs += [(at, day if wide else 3600, 4 if wide else 1, told)] * (2 if wide else 1)
    return workload(*jobs)


def test_only_weeks_of_months_that_are_compared_are_drawn() -> None:
    """Ten Tuesdays of May and July: enough for intervals; the four of June are replayed only."""
    told = run(read(MONTHS.format("")), weekly(), Site(unit="cpu"), num_processes=1)
    assert (told.num_weeks, told.num_resamples, told.seed) == (10, 1200, 7)
    assert told.baseline.metrics["num_jobs"] == 10
    used = told.variants[0].changes["utilisation"]
    assert (used.before, used.after) == (pytest.approx(1 / 672), pytest.approx(1 / 336))
    assert used.num_weeks == 10 and used.is_sure
    assert told.notes[0] == LEFT_OUT
    assert (
        told.notes[1] == "The baseline's machine is as it was asked for: 4 processors in one pool."
    )
    assert told.notes[2] == (
        "95 % intervals are from 1,200 resamples of the 10 weeks of submission, drawn in blocks of 3 as "
        "weeks that follow one another are alike (seed 7). They say how much the weeks differ, not how "
        "true the replay is."
    )
    assert told.notes[3].startswith(
        "Groups are as in the log. Heavy users are those who together have"
    )
    assert "half of the CPU-hours, light ones the last tenth; accounts are the 8" in told.notes[3]
    assert told.notes[3].endswith("groups of fewer than 30 jobs are not compared.")


def test_the_known_error_is_that_of_the_jobs_compared() -> None:
    """Nobody waits in the replay; in May 10 s are recorded, in July 10 s three times and 40 s twice."""
    told = run(read(MONTHS.format("")), weekly(), Site(unit="cpu"), num_processes=1)
    assert told.known_error == (
        "The known error of the replay: for the 10 jobs compared the log records a mean wait of 16 s and the "
        "baseline gives 0 s; 100.0 % of the waits are within 5 min of the recorded ones. Month by month the "
        "mean is off by 16 s on average and the 95th percentile by 25 s (each month counts by its number of "
        "jobs): a change smaller than that is marked ≈, as the replay itself is farther from the record. The "
        "mean is off most in 2018-07 (5 jobs): recorded 22 s, replayed 0 s."
    )
    assert told.variants[0].changes["mean_wait_s"].error == pytest.approx(16)


def test_all_months_are_compared_where_that_is_asked_for() -> None:
    told = run(read(MONTHS.format('months = "all"')), weekly(), Site(unit="cpu"), num_processes=1)
    assert (told.num_weeks, told.baseline.metrics["num_jobs"]) == (14, 15)
    assert told.notes[0].startswith("The baseline's machine is")


def test_where_no_month_can_be_reproduced_all_are_compared_and_that_is_said() -> None:
    jobs = weekly()
    june = jobs.take(jobs.pes == 4)
    told = run(read(MONTHS.format("")), june, Site(unit="cpu"), num_processes=1)
    assert told.baseline.metrics["num_jobs"] == 2
    assert told.notes[0].startswith("The log cannot reproduce any month (its jobs need more than")


def test_a_baseline_of_another_load_is_not_compared_with_the_record() -> None:
    text = MONTHS.format("[baseline]\nload = 0.5")
    told = run(read(text), weekly(), Site(unit="cpu"), num_processes=1)
    assert told.known_error.startswith(
        "The baseline's load is not the log's, so it cannot be compared"
    )
    assert told.variants[0].changes["mean_wait_s"].error is None
