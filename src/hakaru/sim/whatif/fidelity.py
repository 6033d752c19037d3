"""Which jobs are compared, and how far the baseline, as a replay, is from what was recorded for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.sim import replay
from hakaru.sim.metrics import groups_of
from hakaru.sim.whatif.words import duration

if TYPE_CHECKING:
    from hakaru.sim.replay import Month
    from hakaru.sim.schedule import Schedule
    from hakaru.sim.whatif.scenario import Scenario
    from hakaru.sim.workload import Workload

TRUST = {"trusted": ("yes",), "plausible": ("yes", "partly"), "all": ("yes", "partly", "no")}


@dataclass(frozen=True)
class Fidelity:
    """`months` are those whose jobs are compared (none: all); `error` is the known one, in a sentence."""

    months: frozenset[str] | None
    error: str
    notes: tuple[str, ...]
    zone: str

    @classmethod
    def of(cls, baseline: Schedule, scenario: Scenario, zone: str) -> Fidelity:
        if scenario.baseline.load is not None:
            error = "The baseline's load is not the log's, so it cannot be held against what was recorded."
            return cls(None, error, (), zone)
        months = replay.months_of(baseline, zone)
        chosen = [month for month in months if month.trusted in TRUST[scenario.months]]
        if not chosen or len(chosen) == len(months):
            notes = () if chosen else (f"No month is {scenario.months}: all are compared.",)
            return cls(None, _error(baseline, None), notes, zone)
        names = frozenset(month.name for month in chosen)
        keep = _in_months(baseline.workload, names, zone)
        return cls(names, _error(baseline, keep), (_left_out(months, chosen, scenario),), zone)

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
        f"Compared are the {num:,} of {total:,} jobs submitted in months that a replay can be held "
        f"against ({', '.join(month.name for month in chosen)}); all are replayed. Left out: "
        f"{why}. "
        f'`months = "plausible"` or "all" compares more.'
    )


def _error(baseline: Schedule, keep: Any) -> str:
    found = replay.differences(baseline, keep=keep).to_pylist()[0]
    if not found["num_jobs"]:
        return "The log records no waits, so the replay's error is not known."
    rank = found["rank_correlation"]
    ranked = "" if rank is None or math.isnan(rank) else f" (rank correlation {rank:.2f})"
    return (
        f"The known error of the replay: for these {found['num_jobs']:,} jobs the log records a mean "
        f"wait of {duration(found['recorded_mean_s'])} and the baseline gives "
        f"{duration(found['simulated_mean_s'])}; {found['share_within_5min'] * 100:.0f} % of the waits are "
        f"within 5 min of the recorded ones{ranked}. "
        "A change smaller than that error proves little."
    )
