"""Which jobs are compared, and how far the baseline, as a replay, is from what was recorded for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.sim import replay
from hakaru.sim.metrics import groups_of
from hakaru.sim.notation import counted
from hakaru.sim.replay import TRUST, Known
from hakaru.sim.words import decimal, duration, share

if TYPE_CHECKING:
    from hakaru.sim.replay import Month
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.whatif.scenario import Scenario
    from hakaru.sim.workload import Workload

NONE_LEFT = (
    "The log cannot reproduce any month (its jobs need more than the machine has): all are compared, and "
    "little can be said."
)


@dataclass(frozen=True)
class Fidelity:
    """`months` are those whose jobs are compared (none: all); `error` is the known one, in a sentence."""

    months: frozenset[str] | None
    error: str
    notes: tuple[str, ...]
    zone: str
    known: Known | None = None

    @classmethod
    def of(cls, baseline: Schedule, scenario: Scenario, zone: str) -> Fidelity:
        if scenario.baseline.load is not None:
            error = (
                "The baseline's load is not the log's, so it cannot be compared with the record."
            )
            return cls(None, error, (), zone)
        months = replay.months_of(baseline, zone)
        chosen = [month for month in months if month.trusted in TRUST[scenario.months]]
        if not chosen or len(chosen) == len(months):
            notes = () if chosen else (NONE_LEFT,)
            known = Known.of(baseline, zone)
            return cls(None, _error(baseline, known), notes, zone, known)
        names = frozenset(month.name for month in chosen)
        keep = _in_months(baseline.workload, names, zone)
        known = Known.of(baseline, zone, keep)
        left_out = _left_out(months, chosen, scenario)
        return cls(names, _error(baseline, known), (left_out,), zone, known)

    def keep(self, workload: Workload) -> Any:
        """The jobs that are compared, as a mask."""
        if self.months is None:
            return np.ones(len(workload), bool)
        return _in_months(workload, self.months, self.zone)


def _in_months(workload: Workload, months: frozenset[str], zone: str) -> Any:
    codes, names = groups_of(workload, "month", zone)
    return np.array([name in months for name in names], bool)[codes]


def _left_out(months: Sequence[Month], chosen: Sequence[Month], scenario: Scenario) -> str:
    num, total = (sum(month.num_jobs for month in each) for each in (chosen, months))
    others = [month for month in months if month not in chosen]
    worst = next((month for month in others if month.trusted == "no"), others[0])
    named = ", ".join(month.name for month in others)
    why = f"{named}, as {worst.why}"
    if len(others) > 1:
        why = f"{named}; {worst.name}, for one, as {worst.why}"
    return (
        f"Compared are the {num:,} of {counted(total)} submitted in months the log can reproduce "
        f"({', '.join(month.name for month in chosen)}); all are replayed. Left out: {why}. "
        f'`months = "plausible"` or "all" compares more.'
    )


def _error(baseline: Schedule, known: Known) -> str:
    found = replay.differences(baseline, keep=known.keep).to_pylist()[0]
    if not found["num_jobs"]:
        return "The log records no waits, so the replay's error is not known."
    rank = found["rank_correlation"]
    ranked = "" if rank is None or math.isnan(rank) else f" (rank correlation {decimal(rank)})"
    return (
        f"The known error of the replay: for the {counted(found['num_jobs'])} compared the log records a "
        f"mean wait of {duration(found['recorded_mean_s'])} and the baseline gives "
        f"{duration(found['simulated_mean_s'])}; {share(found['share_within_5min'])} of the waits are "
        f"within 5 min of the recorded ones{ranked}. {_by_month(known)}"
    )


def _by_month(known: Known) -> str:
    """What is too long in one month and too short in another cancels in the whole, and is told here."""
    errors, worst = known.errors(), known.worst_month()
    assert worst is not None
    name, num_jobs, recorded, simulated = worst
    return (
        f"Month by month the mean is off by {duration(errors['mean_wait_s'])} on average and the 95th "
        f"percentile by {duration(errors['p95_wait_s'])} (each month counts by its number of jobs): a change "
        "smaller than that is marked ≈, as the replay itself is farther from the record. The mean is off "
        f"most in {name} ({counted(num_jobs)}): recorded {duration(recorded)}, replayed "
        f"{duration(simulated)}."
    )
