"""Play a scenario: the baseline and its variants side by side, then what differs and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakaru.errors import HakaruError
from hakaru.sim.notation import counted, write_machine, write_note
from hakaru.sim.site import Site
from hakaru.sim.whatif import compare, words
from hakaru.sim.whatif.fidelity import Fidelity
from hakaru.sim.whatif.intervals import LEAST_WEEKS, Weeks
from hakaru.sim.whatif.outcome import Outcome
from hakaru.sim.whatif.runners import Progress, play_all
from hakaru.sim.whatif.scenario import Scenario
from hakaru.sim.whatif.variants import prepare

if TYPE_CHECKING:
    from hakaru.sim.workload import Workload


def run(
    scenario: Scenario,
    workload: Workload,
    site: Site | None = None,
    *,
    on: str = "local",
    num_processes: int | None = None,
    folder: Path | None = None,
    slurm: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Play it; the site is whose log it is, as `Site.of` finds it.

    `progress(done, total, name)` is called after each run. `on` is `local` (with so many processes; 1 plays
    in this one) or `slurm`, which needs a `folder` that its nodes see and may take submitit's parameters.
    """
    site = site or Site()
    unit, zone = site.unit, site.cluster.zone
    if not len(workload):
        raise HakaruError("there is no job to replay; " + _left_out(workload))
    runs = prepare(scenario, workload, site)
    schedules = play_all(runs, on, num_processes, folder, progress, slurm)
    fidelity = Fidelity.of(schedules[0], scenario, zone)
    compared = workload.submit[fidelity.keep(workload)]
    weeks = Weeks.of(compared, scenario.seed, scenario.num_resamples)
    played = [
        compare.Run.of(prepared, schedule, weeks, fidelity.keep(schedule.workload))
        for prepared, schedule in zip(runs, schedules, strict=True)
    ]
    groupings = compare.groupings_of(workload)
    baseline, *variants = (
        compare.variant_of(
            prepared, each, played[0] if number else None, weeks, groupings, fidelity.known
        )
        for number, (prepared, each) in enumerate(zip(runs, played, strict=True))
    )
    return Outcome(
        baseline=baseline,
        variants=tuple(variants),
        headlines=tuple(words.headlines(baseline, variants, site.unit)),
        sentences=tuple(words.sentences(baseline, variants, unit)),
        known_error=fidelity.error,
        notes=(
            *fidelity.notes,
            *site.date_notes,
            f"The baseline's machine is {runs[0].taken.whence}: "
            f"{write_machine(runs[0].machine, unit)}.",
            *runs[0].taken.notes,
            *_notes(workload, weeks, scenario, unit),
        ),
        num_weeks=weeks.count,
        num_resamples=scenario.num_resamples,
        seed=scenario.seed,
        unit=unit,
        zone=zone,
    )


def _notes(workload: Workload, weeks: Weeks, scenario: Scenario, unit: str) -> list[str]:
    enough = (
        f"95 % intervals are from {scenario.num_resamples:,} resamples of the {weeks.count} weeks "
        f"of submission, drawn in blocks of {weeks.length} as weeks that follow one another are alike (seed "
        f"{scenario.seed}). They say how much the weeks differ, not how true the replay is."
        if weeks.are_enough
        else f"The log has {counted(weeks.count, 'week')}; intervals need {LEAST_WEEKS}, so nothing is "
        "claimed."
    )
    pes = f"{unit.upper()}-hours"
    groups = (
        f"Groups are as in the log. Heavy users are those who together have half of the {pes}, "
        "light ones the last tenth; accounts are the "
        f"{compare.MAX_GROUPS} with most; groups of fewer than {compare.LEAST_JOBS} jobs are not compared."
    )
    jobs = [write_note(num, note) for note, num in workload.notes.items()]
    return [enough, groups, *jobs, *([left] if (left := _left_out(workload)) else [])]


def _left_out(workload: Workload) -> str:
    listed = [f"{num:,} ({why})" for why, num in workload.left_out.items()]
    return f"left out of the log: {', '.join(listed)}" if listed else ""
