"""The search history of HPL: the rate of each trial, the best so far, and the default configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakaru.figures import _parts as parts
from hakaru.figures._base import Figure
from hakaru.figures.measure import _look as look
from hakaru.figures.measure.view import HPL, Reading, RunView
from hakaru.figures.theme import BLUE, GREEN, ORANGE, Theme
from hakaru.measure.numbers import amount, counted, share
from hakaru.measure.record import shown_parameters

TITLE, QUESTION = "The search for LINPACK", "What did the search gain over the default settings?"
DEFAULT, CONFIRM, CALIBRATE = "default", "confirm", "calibrate"
BEST = "best so far"
SHOWN = ("n", "nb", "p", "q", "bcast", "depth")


@dataclass(frozen=True)
class Trial:
    """One run of HPL; no rate where it failed or does not count."""

    number: int
    rate: float | None
    setting: str
    stage: str
    is_default: bool
    reading: Reading


@dataclass(frozen=True)
class Search:
    """Trials in their order, and what was measured of the best settings in the end, by quantity."""

    trials: list[Trial]
    unit: str
    final: dict[str, Reading]

    @property
    def default(self) -> float | None:
        """The default settings' rate: at the size of the best ones or, where that is unknown, at any."""
        rate = self.final.get("rate")
        if rate is not None and rate.reference:
            return rate.reference
        known = (t.rate for t in self.trials if t.is_default and t.rate and t.stage != CALIBRATE)
        return max(known, default=None)

    @property
    def best(self) -> Trial | None:
        found = [t for t in self.trials if t.rate is not None and t.stage != CALIBRATE]
        return max(found, key=lambda each: each.rate or 0.0, default=None)


def search_of(view: RunView) -> Search | None:
    """The trials of a run; None where HPL was not searched."""
    rows = [each for each in view.readings if each.benchmark == HPL]
    numbered = [each for each in rows if isinstance(each.options.get("trial"), int)]
    if not numbered:
        return None
    trials = sorted((_trial(each) for each in numbered), key=lambda trial: trial.number)
    return Search(
        trials, numbered[0].unit, {each.quantity: each for each in rows if not each.is_trial}
    )


def search_sentence(found: Search) -> str:
    """What was reached, what that is against the default, and how far it is from the peak."""
    rate, best = found.final.get("rate"), found.best
    if rate is not None and rate.median is not None:
        doubt = "" if rate.is_valid else f" ({rate.verdict})"
        parts = [f"The best LINPACK settings reach {amount(rate.median, rate.unit)}{doubt}"]
        gain, peak = found.final.get("gain"), found.final.get("efficiency")
        parts += [gain.reason] if gain is not None and gain.reason else []
        if peak is not None and peak.median is not None:
            parts.append(f"{share(peak.median)} {peak.reason or peak.unit}")
        return "; ".join(parts) + "."
    if best is None:
        return f"None of {counted(len(found.trials), 'LINPACK trial')} has a valid rate."
    many = counted(len(found.trials), "LINPACK trial")
    return f"The best of {many} reached {amount(best.rate, found.unit)} with {best.setting}."


def search_history(found: Search, dark: bool = False) -> Figure:
    theme = look.theme_of(dark)
    names = ["trials", BEST, *(["default"] if found.default else [])]
    last = found.trials[-1].number
    option = {
        "grid": parts.grid(),
        "legend": parts.legend(theme, names, type="plain"),
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "xAxis": parts.value_axis(theme, "Trial", min=min(0, found.trials[0].number),
                                  max=max(1, last), minInterval=1),
        "yAxis": parts.as_y(parts.value_axis(theme, f"Rate ({found.unit})", min=0)),
        "series": [
            parts.marks("trials", "circle", 8, BLUE, [_item(each, found.unit) for each in found.trials
                                                      if each.rate is not None]),
            _best_so_far(found),
            *_default(found, theme),
        ],
    }  # fmt: skip
    return look.figure("search", TITLE, QUESTION, option, theme, _notes(found))


def _trial(each: Reading) -> Trial:
    options = each.options
    is_default = (
        DEFAULT in (options.get("origin"), options.get("stage")) or options.get(DEFAULT) is True
    )
    return Trial(
        int(options["trial"]),
        each.median if each.is_valid else None,
        shown_parameters({name: options[name] for name in SHOWN if name in options}),
        str(options.get("stage") or ""),
        is_default,
        each,
    )


def _item(trial: Trial, unit: str) -> dict[str, Any]:
    words = [word for word in (trial.stage, DEFAULT if trial.is_default else "") if word]
    stage = f" ({', '.join(dict.fromkeys(words))})" if words else ""
    name = f"trial {trial.number}{stage}: {amount(trial.rate, unit)}\n{trial.setting}"
    shape = {"symbol": "diamond", "symbolSize": 12} if trial.stage == CONFIRM else {}
    return {"value": [trial.number, look.digits(trial.rate or 0.0)], "name": name, **shape}


def _best_so_far(found: Search) -> dict[str, Any]:
    """Rates of other sizes do not compare: the line begins anew with the number of ranks or the order.

    It ends with the search: what is measured again is no step of it.
    """
    steps: list[list[float | None]] = []
    best, now = 0.0, None
    for trial in _searched(found):
        scale = _scale(trial)
        if now not in (None, scale):
            best = 0.0
            steps.append([trial.number, None])
        best, now = max(best, trial.rate or 0.0), scale
        if best:
            steps.append([trial.number, look.digits(best)])
    return {
        "type": "line", "name": BEST, "color": GREEN, "step": "end", "symbol": "none",
        "silent": True, "lineStyle": {"width": 2}, "data": steps,
    }  # fmt: skip


def _searched(found: Search) -> list[Trial]:
    return [each for each in found.trials if each.stage not in (CALIBRATE, CONFIRM)]


def _scale(trial: Trial) -> tuple[int | None, str]:
    return trial.reading.num_ranks, str(trial.reading.options.get("n"))


def _default(found: Search, theme: Theme) -> Sequence[dict[str, Any]]:
    if not found.default:
        return []
    level = look.digits(found.default)
    first, last = found.trials[0].number, max(1, found.trials[-1].number)
    return [{
        "type": "line", "name": "default", "color": ORANGE, "symbol": "none", "silent": True,
        "lineStyle": {"width": 1.5, "type": "dashed"}, "data": [[min(0, first), level], [last, level]],
    }]  # fmt: skip


def _notes(found: Search) -> list[str]:
    notes = [search_sentence(found)]
    if len({_scale(each) for each in _searched(found)}) > 1:
        notes.append(
            "The line of the best so far starts again with each number of ranks and N, "
            "as rates of other sizes do not compare."
        )
    if any(trial.stage == CALIBRATE for trial in found.trials):
        notes.append("The first trials only learn how long HPL takes; they do not compete.")
    if any(trial.stage == CONFIRM for trial in found.trials):
        notes.append(
            "Diamonds are the best settings and the default, measured again beside each other."
        )
    lost = [each for each in found.trials if each.rate is None]
    if lost:
        reasons = list(dict.fromkeys(each.reading.reason for each in lost if each.reading.reason))
        why = f" ({'; '.join(reasons[:3])[:300]})" if reasons else ""
        many = counted(len(lost), "trial has", "trials have")
        notes.append(f"{many} no valid rate{why}.")
    return notes
