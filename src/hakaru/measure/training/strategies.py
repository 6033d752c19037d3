"""Strategies beside one another on the same ranks: which is fastest, and do they all learn the same?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from hakaru.measure._base import AUTO, NotApplicable, Parameter, Part, Procedure, benchmark
from hakaru.measure.context import Context
from hakaru.measure.networks import check_name, has_batch_norm, without_dropout
from hakaru.measure.networks.workload import Workload, shaken
from hakaru.measure.numbers import amount, share
from hakaru.measure.statistics import Interval, median_interval
from hakaru.measure.training._critical import breakdown_of
from hakaru.measure.training._results import (
    EXPOSED,
    MODEL_HELP,
    STEP,
    THROUGHPUT,
    not_measured,
    parameters_of,
    samples_of,
)
from hakaru.measure.training._strategy import Strategy
from hakaru.measure.training._study import SINGLE, Member, Study, Variant
from hakaru.measure.training._table import StepTable
from hakaru.measure.verdict import Verdict

ALONE = ("ddp", "fsdp", "tensor", "gpipe", "1f1b")
COMBINED = ("ddp2+fsdp", "ddp2+tensor", "ddp2+1f1b")
MOST_GAP = {"cpu": 1e-5, "cuda": 1e-3}  # cards may multiply in tf32, and in another order each time
MOST_ALLOWED = 1e-2  # whatever rounding does: a wrong gradient moves losses further
ROUNDING = 10.0  # times what rounding does in one process
SEARCH_SHARE = 0.3  # of the time, after which no more numbers of micro-batches are tried
MOST_SEARCHED = 3  # numbers of micro-batches
SEARCH_STEPS = 3


@benchmark(
    "strategies",
    title="Strategies of training",
    answers="Which way to spread a training over these ranks is fastest, and do all learn the same?",
    family="training",
    scope="ranks",
    reproduces="Flow/RaNNC §2",
    parameters=[
        Parameter(
            "model",
            ("mlp", "transformer"),
            MODEL_HELP,
            check=check_name,
            quick=("mlp",),
            on_gpu=("mlp", "transformer", "resnet50"),
        ),
        Parameter(
            "strategy",
            (AUTO,),
            "auto, which is all, or one of ddp, fsdp, tensor, gpipe, 1f1b, or several together as ddp2+1f1b.",
            is_word=True,
            check=Strategy.parse,
        ),
        Parameter("batch", (0,), "Samples a step of all ranks together; 0 is the model's own."),
        Parameter(
            "accumulate", (1,), "Parts of a batch whose gradients are added up before a step."
        ),
        Parameter("microbatches", (0,), "Of a pipeline; 0 measures some and takes the fastest."),
    ],
    quantities=[THROUGHPUT, STEP, EXPOSED],
    check="The losses of the first steps are those of one process with the same batch and seed.",
    judged="A strategy whose losses differ has failed; against a baseline.",
)
def strategies(
    context: Context, model: str, strategy: str, batch: int, accumulate: int, microbatches: int
) -> Procedure:
    """Data, sharded data, tensor and pipeline parallel and combinations, a repetition of each in turn."""
    if context.ranks.size < 2:
        raise NotApplicable("a strategy spreads a training over two ranks or more")
    study = Study(context.ranks, model, without_dropout)  # type: ignore[arg-type]
    samples = batch or study.workload.batch
    names = strategies_for(study.ranks.size) if strategy == AUTO else [strategy]
    asked = [
        Variant(
            name, study.ranks.size, samples, accumulate=accumulate,
            microbatches=microbatches if Strategy.parse(name).pipeline else 0,
        )
        for name in names
    ]  # fmt: skip

    def run(budget_s: float) -> list[Part]:
        try:
            return _run(study, asked, budget_s)
        finally:
            study.close()

    return Procedure(run)


def _run(study: Study, asked: Sequence[Variant], budget_s: float) -> list[Part]:
    members, left_out = [], []
    for each in asked:
        try:
            members.append(_fastest(study, each, SEARCH_SHARE * budget_s))
        except NotApplicable as reason:
            left_out.append(not_measured(each, str(reason)))
    reference = Reference(study)
    gaps = [reference.gap(each) for each in members]
    study.time_in_turn(members, budget_s)
    tables = study.tables(members)
    if tables is None:  # rank 0 has them
        return []
    parts = [
        _part(study, each, gap, table)
        for each, gap, table in zip(members, gaps, tables, strict=True)
    ]
    return [*_with_verdict(parts), *left_out]


def strategies_for(num_ranks: int) -> list[str]:
    """Those that fit so many ranks."""
    known = (*ALONE, *COMBINED)
    return [each for each in known if Strategy.parse(each).fits(num_ranks) is None]


def _fastest(study: Study, asked: Variant, until_s: float) -> Member:
    """The variant; of a pipeline whose micro-batches are open the number that steps fastest.

    The likeliest numbers are tried first, and as many as there is time for.
    """
    choices = _micro_batches(asked)
    if len(choices) < 2:
        return study.begin(_with(asked, choices[0] if choices else asked.microbatches))
    best: Member | None = None
    seconds: dict[int, float] = {}
    for number in choices:
        if seconds and study.elapsed_s() > until_s:
            break
        member = study.begin(_with(asked, number))
        taken = [member.block(study.ranks, study.sync, 1) for _ in range(SEARCH_STEPS)]
        seconds[number] = median(taken)
        slower = member if best and seconds[number] > min(seconds.values()) else best
        if slower:
            study.close(slower)
        best = best if slower is member else member
    assert best is not None
    best.trainer.facts["searched"] = {str(num): round(s * 1e3, 3) for num, s in seconds.items()}
    return best


def _micro_batches(asked: Variant) -> list[int]:
    from hakaru.measure.training._pipeline import micro_batch_choices

    strategy = Strategy.parse(asked.strategy)
    if strategy.pipeline is None or asked.microbatches or strategy.fits(asked.num_ranks):
        return []
    stages = strategy.sizes(asked.num_ranks)[strategy.pipeline]
    own = asked.batch // strategy.data_ranks(asked.num_ranks)
    return list(micro_batch_choices(own, stages))[:MOST_SEARCHED]


def _with(asked: Variant, microbatches: int) -> Variant:
    return Variant(
        asked.strategy, asked.num_ranks, asked.batch, asked.compression, asked.accumulate, microbatches
    )  # fmt: skip


@dataclass(frozen=True)
class Gap:
    """How far the losses of the first steps are from those of one process, relative to them, at most.

    More is allowed where rounding alone moves this network's losses further, up to a limit. `problem` says
    why nothing could be compared.
    """

    size: float
    usual: float
    rounding: float = 0.0  # what a change of 1e-7 in the weights does to the losses of one process
    problem: str = ""

    @property
    def allowed(self) -> float:
        return max(self.usual, ROUNDING * self.rounding)

    @property
    def verdict(self) -> Verdict | None:
        if self.problem:
            return Verdict.NOT_MEASURED
        if not math.isfinite(self.size) or self.size > MOST_ALLOWED:
            return Verdict.FAILED
        if self.size <= self.usual:
            return None
        if self.allowed > MOST_ALLOWED:  # so that a wrong strategy could hide in it
            return Verdict.NOT_MEASURED
        return None if self.size <= self.allowed else Verdict.FAILED

    @property
    def sentence(self) -> str:
        if self.problem:
            return f"the losses cannot be compared: {self.problem}"
        if self.verdict is Verdict.NOT_MEASURED:
            return (
                f"the losses tell nothing: rounding alone moves them by {self.rounding:.1g} of them"
            )
        if self.verdict is Verdict.FAILED:
            much = f"{self.size:.1g} of them; {min(self.allowed, MOST_ALLOWED):.0e} is allowed"
            return f"the losses differ from those of one process by {much}"
        wide = (
            f", and rounding alone moves them by {self.rounding:.1g}"
            if self.size > self.usual
            else ""
        )
        return f"the losses are those of one process, within {self.size:.1g} of them{wide}"


class Reference:
    """The losses of one process, by the number of parts that it divides its batch into."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.has_batch_norm = has_batch_norm(study.workload.make())
        self.losses: dict[tuple[int, int], list[float]] = {}
        self.rounding: dict[tuple[int, int], float] = {}

    def gap(self, member: Member) -> Gap:
        """All ranks call it together, and decide alike: losses are the same on all of them."""
        usual = MOST_GAP["cuda" if self.study.device.startswith("cuda") else "cpu"]
        if member.trainer.facts.get("dropout"):
            return Gap(math.nan, usual, problem="some of its layers draw at random")
        key = (member.variant.batch, self._num_apart(member.variant))
        try:
            if key not in self.losses:
                self.losses[key] = self._alone(*key, self.study.workload)
        except NotApplicable as reason:
            return Gap(math.nan, usual, problem=f"one process cannot train it: {reason}")
        size = largest_gap(member.losses, self.losses[key])
        if size <= usual:
            return Gap(size, usual)
        if key not in self.rounding:
            moved = self._alone(*key, shaken(self.study.workload))
            self.rounding[key] = largest_gap(moved, self.losses[key])
        return Gap(size, usual, self.rounding[key])

    def _alone(self, batch: int, num_apart: int, workload: Workload) -> list[float]:
        alone = self.study.begin(Variant(SINGLE, 1, batch, accumulate=num_apart), workload)
        self.study.close(alone)
        return alone.losses

    def _num_apart(self, variant: Variant) -> int:
        """Batch norm sees each part of a batch by itself, so that the reference takes the same parts."""
        if not self.has_batch_norm:
            return variant.accumulate
        data = Strategy.parse(variant.strategy).data_ranks(variant.num_ranks)
        return data * max(1, variant.microbatches) * variant.accumulate


def largest_gap(own: Sequence[float], wanted: Sequence[float]) -> float:
    """Relative to the largest loss: a sum of products may pass zero by chance."""
    whole = max((abs(each) for each in wanted), default=0.0)
    gaps = [abs(a - b) / max(whole, 1e-12) for a, b in zip(own, wanted, strict=True)]
    return max((each if math.isfinite(each) else math.inf for each in gaps), default=math.inf)


def _part(study: Study, member: Member, gap: Gap, table: StepTable) -> Part:
    variant = member.variant
    breakdown = breakdown_of(table, study.hosts_of(member), member.ranks)
    facts = {
        "breakdown": breakdown,
        "loss_gap": gap.size if math.isfinite(gap.size) else None,
        "plan": member.trainer.facts.get("plan"),
        "searched": member.trainer.facts.get("searched"),
        "microbatches": variant.microbatches or None,
        "whole": member.trainer.facts.get("whole"),  # layers that tensor parallel cannot divide
    }
    return Part(
        samples_of(member, table),
        parameters_of(variant),
        facts=facts,
        verdict=gap.verdict,
        reason=gap.sentence,
    )


def _with_verdict(parts: Sequence[Part]) -> Iterator[Part]:
    """The answer goes with each part, so that whatever is looked at says it."""
    sentence = verdict_of(parts)
    for each in parts:
        yield Part(
            each.samples, each.parameters, facts={**each.facts, "verdict": sentence},
            verdict=each.verdict, reason=each.reason,
        )  # fmt: skip


def verdict_of(parts: Sequence[Part]) -> str:
    """Which strategy is fastest, and whether that is sure."""
    right = [each for each in parts if each.verdict is None]
    if not right:
        return "No strategy was seen to learn what one process does."
    rates = {
        str(each.parameters["strategy"]): median_interval(each.samples["throughput"])
        for each in right
    }
    ordered = sorted(rates, key=lambda name: -rates[name].median)
    first, others = ordered[0], ordered[1:]
    what = (
        f"{first} is the fastest on {right[0].parameters['ranks']} ranks with {_rate(rates[first])}"
    )
    close = [name for name in others if rates[name].high >= rates[first].low]
    if not others:
        return f"{what}."
    if close:
        return f"{what}, with no sure difference to {' and '.join(close)}."
    second = others[0]
    ahead = rates[first].median / rates[second].median - 1
    return f"{what}, {share(ahead)} ahead of {second}."


def _rate(interval: Interval) -> str:
    return amount(interval.median, "samples/s")
