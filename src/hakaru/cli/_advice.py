"""Advice on the terminal and as a document: the settings, the evidence, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from hakaru.cli._replay import fit_lines, naive_lines, trust_lines
from hakaru.cli._schedule import SHOWN
from hakaru.cli._table import Column, Line, table_lines, wrapped
from hakaru.sim.advise.words import change_text, name_of
from hakaru.sim.words import duration, share, value_text

if TYPE_CHECKING:
    from hakaru.sim.advise import Advice, Found, Measured, Objective, SlurmLines
    from hakaru.sim.machine import Machine

WORDS = {
    "age": "points for age",
    "size": "points for size",
    "fair_share": "points for fair share",
    "half_life_h": "half-life of usage",
    "gpus_per_user": "{unit}s at once for each user",
    "jobs_per_user": "jobs at once for each user",
    "backfill": "backfilling",
}
HEADINGS = {"change": "advised", "try": "to try", "keep": "best found, not advised"}


@dataclass(frozen=True)
class Told:
    """Advice, and what it was asked of."""

    advice: Advice
    cluster: str
    unit: str
    zone: str
    machine: Machine
    objective: Objective
    qos: str = "normal"
    whence: str = ""  # where the machine comes from
    date_notes: Sequence[str] = ()

    @property
    def slurm(self) -> SlurmLines | None:
        from hakaru.sim.advise import slurm_lines

        if self.advice.rule is None:
            return None
        return slurm_lines(self.advice.rule, self.advice.space.baseline, self.unit, self.qos)


def advice_lines(told: Told, width: int) -> Iterator[Line]:
    """The verdict, what was asked, why, and how far the replay is from the record."""
    for text in wrapped(told.advice.verdict.sentence, width):
        yield text, "bold"
    yield "", ""
    yield from _asked(told, width)
    for table, note in (
        (_settings(told), _without(told)),
        (evidence := _evidence(told), _marks(evidence)),
        (_best(told), ""),
    ):
        if table and table[0].cells:
            yield "", ""
            yield from table_lines(table, 1, width)
            yield from ((line, "dim") for line in wrapped(note, width) if line)
    yield "", ""
    if told.slurm is not None:
        for line in told.slurm.text().splitlines():
            yield line, "dim" if line.startswith("#") else ""
        yield "", ""
    yield from _fidelity(told, width)


def as_document(told: Told) -> dict[str, Any]:
    """The advice as plain data."""
    from hakaru.sim.naive import scores as scores_of
    from hakaru.sim.replay import differences, months_of

    advice, slurm = told.advice, told.slurm
    months = months_of(advice.replayed, told.zone)
    scores = scores_of(advice.replayed, told.zone, advice.counted)
    return {
        "cluster": told.cluster,
        "num_pes": told.machine.num_pes,
        "objective": {"metric": told.objective.metric, "jobs": told.objective.words},
        "constraints": asdict(advice.constraints),
        "verdict": advice.verdict.kind,
        "sentence": advice.verdict.sentence,
        "why": list(advice.verdict.why),
        "losses": [asdict(loss) for loss in _judged(advice).losses],
        "gain": advice.gain,
        "change_interval": list(advice.change) if advice.change else None,
        "num_weeks_held_out": advice.num_weeks,
        "settings": dict(advice.point),
        "settings_now": advice.space.now,
        "slurm": asdict(slurm) if slurm else None,
        "split": _moment(told).isoformat(),
        "num_jobs": {"searched": advice.num_searched, "held_out": advice.num_held_out},
        "num_months": {"counted": advice.months[0], "all": advice.months[1]},
        "num_trials": advice.num_trials,
        "num_settings": advice.num_settings,
        "num_allowed": advice.num_allowed,
        "broken": dict(advice.broken),
        "seconds": advice.seconds,
        "baseline": _found(advice.baseline),
        "found": _found(advice.advised),
        "refused": _found(advice.refused) if advice.refused else None,
        "best": [_found(found) for found in advice.best],
        "importance": dict(advice.importance),
        "replay_error": {whose: dict(errors) for whose, errors in advice.errors.items()},
        "without": _signed(told, advice.without),
        "broken_without": {name: list(each) for name, each in advice.broken_without.items()},
        "left_out": dict(advice.replayed.workload.left_out),
        "replay": {
            "differences": differences(advice.replayed, keep=advice.counted).to_pylist(),
            "predictors": [asdict(score) for score in scores],
            "months": [{"month": m.name, "trusted": m.trusted, "why": m.why} for m in months],
        },
    }


def _asked(told: Told, width: int) -> Iterator[Line]:
    from hakaru.sim.notation import counted, write_limit, write_machine, write_note
    from hakaru.sim.workload import notes_on

    advice, baseline = told.advice, told.advice.space.baseline
    have = ", ".join([baseline.policy.id, *(write_limit(limit) for limit in baseline.limits)])
    aim = "highest" if told.objective.sign < 0 else "lowest"
    keeps = [
        f"{name_of(m)} kept within {p * 100:g} %" for m, p in told.advice.constraints.keep.items()
    ]
    keeps += [
        f"no {kind} losing more than {p * 100:g} %"
        for kind, p in told.advice.constraints.loses.items()
    ]
    texts = [
        f"for {told.cluster}, {write_machine(told.machine, told.unit)}",
        f"asked: the {aim} {name_of(told.objective.metric)} of {told.objective.words}, "
        + (", ".join(keeps) or "nothing to be kept"),
        f"the machine is {told.whence}",
        f"what you have: {have}",
        f"searched: {counted(advice.num_searched)} submitted before {_moment(told):%Y-%m-%d %H:%M}, "
        f"{counted(advice.num_trials, 'trial')} in {duration(advice.seconds)}, {advice.num_allowed} of "
        f"{advice.num_settings} settings keep what must be kept{_broken(advice)}; judged by the "
        f"{counted(advice.num_held_out)} after",
    ]
    num, total = advice.months
    if num < total:
        texts.append(
            f"counted are the jobs of the {num} of {total} months the log can reproduce (see below); all are "
            "replayed; --months all counts them all"
        )
    replayed = advice.replayed.workload
    notes = notes_on(replayed, told.machine)
    texts += [f"left out {number:,}: {reason}" for reason, number in replayed.left_out.items()]
    texts += [f"assumed: {write_note(number, note)}" for note, number in notes.items()]
    for text in texts:
        for line in wrapped(text, width):
            yield line, ""


def _judged(advice: Advice) -> Measured:
    """What is said of who loses: of what was found, else of what was refused for it."""
    return (advice.refused or advice.advised).held_out


def _is_within(told: Told, whose: str, metric: str, before: float, after: float) -> bool:
    error = told.advice.errors[whose].get(metric)
    return error is not None and before != after and abs(after - before) <= error


def _settings(told: Told) -> list[Column]:
    """What changes, and what the objective would be if one setting stayed."""
    advice = told.advice
    names = [name for name, value in advice.point.items() if value != advice.space.now[name]]
    without = _signed(told, advice.without)
    metric = told.objective.metric
    found = HEADINGS[advice.verdict.kind]
    broken = [", ".join(advice.broken_without[name]) or "–" for name in names]
    breaks = [Column("breaks without it", broken, right=False)] if advice.broken else []
    return [
        Column("setting", [_setting(told, name) for name in names], right=False),
        Column("now", [_setting_value(told, name, advice.space.now[name]) for name in names]),
        Column(found, [_setting_value(told, name, advice.point[name]) for name in names]),
        Column(f"{name_of(metric)} without it", [value_text(metric, without[n]) for n in names]),
        Column("importance", [share(advice.importance.get(name)) for name in names]),
        *breaks,
    ]


def _marks(evidence: list[Column]) -> str:
    marked = any(cell.endswith("≈") for column in evidence for cell in column.cells)
    return "≈: the change is smaller than the replay's own error" if marked else ""


def _without(told: Told) -> str:
    metric = told.objective.metric
    both = (told.advice.baseline.searched, told.advice.advised.searched)
    before, after = (value_text(metric, each.chosen[metric]) for each in both)
    return (
        f"without it: if this setting alone stayed, on the weeks searched, where all together bring "
        f"{before} to {after}; importance: its part in what the trials differ by"
    )


def _broken(advice: Advice) -> str:
    told = ", ".join(f"{name}: {number}" for name, number in advice.broken.items())
    return f" (broken by others: {told})" if told else ""


def _evidence(told: Told) -> list[Column]:
    """Each metric now and as advised, on the weeks held out, of the chosen jobs and of all."""
    if told.advice.point == told.advice.space.now:
        return []
    before, after = told.advice.baseline.held_out, told.advice.advised.held_out
    shown = {id: title for id, title in SHOWN.items() if not id.startswith("num_")}
    unit = "GPU" if told.unit == "gpu" else "processor"
    names = [_of_whole(id, title.format(unit=unit)) for id, title in shown.items()]
    columns = [Column("weeks held out", names, right=False)]
    sides = [("all", before.all_jobs, after.all_jobs)]
    if told.objective.of is not None:
        sides.insert(0, ("chosen", before.chosen, after.chosen))
    for name, old, new in sides:
        columns += [
            Column(f"{name}: now", [value_text(id, old[id]) for id in shown]),
            Column("then", [value_text(id, new[id]) for id in shown]),
            Column("change", [_marked(told, name, id, old, new) for id in shown]),
        ]
    return columns


def _marked(
    told: Told, whose: str, metric: str, old: Mapping[str, float], new: Mapping[str, float]
) -> str:
    """The change, with a mark where the replay's own error is larger."""
    text = change_text(old[metric], new[metric])
    return f"{text} ≈" if _is_within(told, whose, metric, old[metric], new[metric]) else text


def _of_whole(metric: str, title: str) -> str:
    from hakaru.sim.advise.case import OF_WHOLE_REPLAY

    return f"{title} (whole replay)" if metric in OF_WHOLE_REPLAY else title


def _best(told: Told) -> list[Column]:
    """The best of the search, with what the weeks held out say of them."""
    best, metric = told.advice.best, told.objective.metric
    names = [knob.name for knob in told.advice.space.knobs]
    rows = [[_setting_value(told, name, found.point[name]) for name in names] for found in best]
    return [
        Column("best of the search", [str(number) for number in range(1, len(best) + 1)]),
        *(Column(name, [row[at] for row in rows]) for at, name in enumerate(names)),
        Column("searched", [value_text(metric, found.searched.chosen[metric]) for found in best]),
        Column("held out", [value_text(metric, found.held_out.chosen[metric]) for found in best]),
        Column("breaks there", [", ".join(found.held_out.broken) or "–" for found in best], False),
    ]


def _fidelity(told: Told, width: int) -> Iterator[Line]:
    """The error of the replay: what a gain must exceed."""
    from hakaru.sim.notation import counted
    from hakaru.sim.replay import Known, differences, months_of

    replayed = told.advice.replayed
    (row,) = differences(replayed, keep=told.advice.counted).to_pylist()
    yield "The error of the replay", "bold"
    if not row["num_jobs"]:
        yield "the log records no waits to compare the replay with", ""
        return
    times = {name: duration(value) for name, value in row.items() if name.endswith("_s")}
    text = (
        f"for the {counted(row['num_jobs'])} compared, the recorded median wait is "
        f"{times['recorded_median_s']} and that replayed under what you have "
        f"{times['simulated_median_s']} (means {times['recorded_mean_s']} and "
        f"{times['simulated_mean_s']}); half of the jobs are less than {times['median_apart_s']} "
        f"apart, {share(row['share_within_5min'])} within 5 min"
    )
    for line in wrapped(text, width):
        yield line, ""
    months = months_of(replayed, told.zone)
    for note in told.date_notes:
        yield from ((line, "bold") for line in wrapped(note, width))
    yield from trust_lines(months, width)
    known = Known.of(replayed, told.zone, told.advice.counted)
    yield from fit_lines(differences(replayed, "month", told.zone), months, known, width)
    yield from naive_lines(replayed, told.zone, told.advice.counted, width)


def _found(found: Found) -> dict[str, Any]:
    return {
        "settings": dict(found.point),
        "searched": asdict(found.searched),
        "held_out": asdict(found.held_out),
    }


def _signed(told: Told, values: Mapping[str, float]) -> dict[str, float]:
    """What the search made small, as the metric itself."""
    return {name: value * told.objective.sign for name, value in values.items()}


def _moment(told: Told) -> datetime:
    return datetime.fromtimestamp(told.advice.split, ZoneInfo(told.zone))


def _setting(told: Told, name: str) -> str:
    return WORDS[name].format(unit="GPU" if told.unit == "gpu" else "processor")


def _setting_value(told: Told, name: str, value: int | str) -> str:
    if isinstance(value, str):
        return value
    if name in ("gpus_per_user", "jobs_per_user") and value >= told.machine.num_pes:
        return "no limit"
    return duration(value * 3600) if name == "half_life_h" else f"{value:,}"
