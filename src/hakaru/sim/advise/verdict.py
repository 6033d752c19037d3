"""One verdict on what the search found: change it, try it on a part of the machine, or keep what you have.

A change is advised only if nothing speaks against it: it is better on the weeks held out, its interval leaves
zero out, it is larger than the replay's own error, nobody loses more than they may, and Slurm can do it. What
is better but not known well enough is to be tried; everything else is to be left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hakaru.sim.advise.losses import LEAST_JOBS
from hakaru.sim.advise.words import change_text, losses_text, name_of
from hakaru.sim.notation import counted
from hakaru.sim.whatif.bounds import held_to_scale
from hakaru.sim.whatif.intervals import LEAST_WEEKS, bounds_of
from hakaru.sim.words import value_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hakaru.sim.advise._advice import Found
    from hakaru.sim.advise.case import Constraints, Objective
    from hakaru.sim.advise.space import Rule, Space
    from hakaru.sim.whatif.intervals import Interval

FEW_TRIALS = 50  # below it the sampler has hardly begun to learn


@dataclass(frozen=True)
class Verdict:
    """`why` are the reasons against a change; `sentence` is what to do, first of all that is printed."""

    kind: Literal["change", "try", "keep"]
    why: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Evidence:
    """What a verdict is drawn from: the best that was found, on the weeks searched and on those held out.

    `refused` is the largest gain of those that break what must be kept, where no other gain was found.
    `interval` is of the metric's change on the weeks held out, `error` the replay's own in a month's metric.
    """

    objective: Objective
    constraints: Constraints
    space: Space
    rule: Rule
    baseline: Found
    found: Found
    refused: Found | None
    interval: Interval
    num_weeks: int
    error: float | None
    num_trials: int
    num_settings: int

    @property
    def values(self) -> tuple[float, float]:
        metric = self.objective.metric
        return self.baseline.held_out.chosen[metric], self.found.held_out.chosen[metric]

    @property
    def bounds(self) -> Interval:
        """The interval as it is shown; none where it is too wide to say anything."""
        held = held_to_scale(self.objective.metric, self.interval, *self.values)
        return bounds_of(held, *self.values)


def verdict_of(evidence: Evidence) -> Verdict:
    keep = next(_against(evidence), None)
    if keep is not None:
        return Verdict("keep", (keep,), f"Do not change anything: {keep}.")
    doubts = tuple(_doubts(evidence))
    if doubts:
        why = "; ".join(doubts)
        told = (
            f"Try the settings below on a part of the machine first: {_gain(evidence)}. But {why}."
        )
        return Verdict("try", doubts, told)
    told = f"Change the settings below: {_gain(evidence)}{_sureness(evidence)}.{_nobody(evidence)}"
    return Verdict("change", (), told)


def _against(evidence: Evidence) -> Iterator[str]:
    """Why nothing is to be changed."""
    baseline, found, sign = evidence.baseline, evidence.found, evidence.objective.sign
    if not found.searched.value < baseline.searched.value:
        yield _nothing_found(evidence)
    if not found.held_out.value < baseline.held_out.value:
        yield "what was best on the weeks searched is no better than what you have on those held out"
    if found.held_out.broken:
        losses = losses_text([each for each in found.held_out.losses if each.is_certain])
        broken = ", ".join(found.held_out.broken)
        yield f"on the weeks held out the best that was found breaks: {broken}" + (
            f"; who would lose: {losses}" if losses else ""
        )
    if evidence.interval and max(bound * sign for bound in evidence.interval) >= 0:
        yield (
            f"on the {evidence.num_weeks} weeks held out the best that was found is better as a whole, but "
            "weeks differ so much that the 95 % interval of the change holds zero"
        )
    before, after = evidence.values
    if evidence.error is not None and abs(after - before) <= evidence.error:
        metric = evidence.objective.metric
        yield (
            f"the best that was found brings {name_of(metric)} from {value_text(metric, before)} to "
            f"{value_text(metric, after)}, and the replay itself is farther from the record (by "
            f"{value_text(metric, evidence.error)} in a month's {name_of(metric)} of "
            f"{evidence.objective.words}, on average over the weeks held out)"
        )


def _nothing_found(evidence: Evidence) -> str:
    few = (
        f" ({counted(evidence.num_trials, 'trial')} {'is' if evidence.num_trials == 1 else 'are'} few for "
        f"{counted(len(evidence.space.knobs), 'setting')}: more may find something, --trials 100)"
        if evidence.num_trials < FEW_TRIALS
        else ""
    )
    text = (
        f"none of the {evidence.num_settings} settings tried keeps what must be kept and beats what you have "
        f"on the weeks searched{few}"
    )
    refused, metric = evidence.refused, evidence.objective.metric
    if refused is None:
        return text
    both = (evidence.baseline.searched.chosen[metric], refused.searched.chosen[metric])
    before, after = (value_text(metric, value) for value in both)
    certain = [each for each in refused.searched.losses if each.is_certain]
    losers = f"; who would lose: {losses_text(certain)}" if certain else ""
    return (
        f"{text}. The largest gain ({name_of(metric)} from {before} to {after} there) breaks: "
        f"{', '.join(refused.searched.broken)}{losers}"
    )


def _doubts(evidence: Evidence) -> Iterator[str]:
    """Why a gain is to be tried on a part of the machine before all of it is changed."""
    if losses := evidence.found.held_out.losses:
        yield f"some with fewer than {LEAST_JOBS} jobs would lose: {losses_text(losses)}"
    if evidence.bounds is None:
        few = evidence.num_weeks < LEAST_WEEKS
        yield (
            f"an interval needs {LEAST_WEEKS} weeks held out and has {evidence.num_weeks}, so how much of "
            "the gain is chance is not known"
            if few
            else "this change has no interval, so how much of it is chance is not known"
        )
    if evidence.error is None:
        yield f"how far the replay is from the record in {name_of(evidence.objective.metric)} is not known"
    policy, now = evidence.rule.policy, evidence.space.baseline.policy
    if (policy.scan, policy.predictor) != (now.scan, now.predictor):
        yield "Slurm cannot backfill in this way, so there are no lines for it"


def _gain(evidence: Evidence) -> str:
    metric, (before, after) = evidence.objective.metric, evidence.values
    return (
        f"{name_of(metric)} of {evidence.objective.words} goes from {value_text(metric, before)} to "
        f"{value_text(metric, after)} ({change_text(before, after)}) on the weeks that were not searched"
    )


def _sureness(evidence: Evidence) -> str:
    metric = evidence.objective.metric
    assert evidence.bounds is not None and evidence.error is not None
    low, high = (value_text(metric, bound) for bound in evidence.bounds)
    return (
        f" (95 % interval of the change {low} to {high} from {evidence.num_weeks} weeks; the replay's own "
        f"error on these weeks is {value_text(metric, evidence.error)})"
    )


def _nobody(evidence: Evidence) -> str:
    named = [
        f"no {kind} loses more than {most * 100:g} %"
        for kind, most in evidence.constraints.loses.items()
    ]
    if not named:
        return ""
    text = " and ".join(named)
    return f" {text[0].upper()}{text[1:]} in mean wait."
