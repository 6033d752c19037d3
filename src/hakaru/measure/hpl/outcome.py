"""What a search says in the end: a verdict with its reason, the margins, the efficiency and its history."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from hakaru.measure.hpl.blas import Blas
from hakaru.measure.hpl.choose import changes
from hakaru.measure.hpl.confirm import LEAST_PAIRS, Margin, Measured, margin, measured
from hakaru.measure.hpl.dat import Config, default_for
from hakaru.measure.hpl.history import History, Launch, Scale, Trial
from hakaru.measure.hpl.program import Program
from hakaru.measure.verdict import Verdict

MOST_REASON = 1500


@dataclass(frozen=True)
class Efficiency:
    """The share of a peak that the best configuration reaches, and which peak that is."""

    share: float
    peak_gflops: float
    relative_to: str


@dataclass(frozen=True)
class Outcome:
    """All of a search; what is None was not measured."""

    verdict: Verdict
    reason: str
    ranks: int
    program: Program
    blas: Blas
    best: Measured | None
    default: Measured | None  # the default settings at the N of the best
    default_own: Measured | None  # the default file as it is, at its own N
    margin: Margin | None  # the best against `default`
    margin_own: Margin | None  # the best against `default_own`
    rejected: (
        Margin | None
    )  # what won the search, where it was slower than the default when measured again
    efficiency: Efficiency | None
    scales: tuple[Scale, ...]
    trials: tuple[Trial, ...]
    launches: tuple[Launch, ...]
    notes: tuple[str, ...]
    nodes: (
        str | None
    )  # what is known of other nodes' load; None where all ranks ran on this machine
    budget_s: float
    spent_s: float

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(shlex.join(launch.command) for launch in self.launches)

    @property
    def changed(self) -> tuple[str, ...]:
        """The settings, apart from N, in which the best differs from the default."""
        return tuple(changes(self.best.config)) if self.best else ()


@dataclass(frozen=True)
class Comparison:
    """The confirming runs, put together."""

    best: Measured | None = None
    default: Measured | None = None
    default_own: Measured | None = None
    margin: Margin | None = None
    margin_own: Margin | None = None
    rejected: Margin | None = None


def compare(history: History, winner: Config | None, ranks: int) -> Comparison:
    """The winner of the search against the default, whose settings stand where all pairs speak for them."""
    if winner is None:
        return Comparison()
    trials = history.of("confirm")
    same, own = default_for(ranks, winner.n), default_for(ranks)
    found = margin(trials, winner, same)
    is_rejected = found is not None and found.high < 0
    best = same if is_rejected else winner
    ours, theirs, distributed = (_sampled(trials, each) for each in (best, same, own))
    return Comparison(
        ours,
        theirs,
        distributed,
        margin=None if is_rejected else found,
        margin_own=margin(trials, best, own),
        rejected=found if is_rejected else None,
    )


def efficiency(
    history: History, ranks: int, best: Measured | None, peak: float | None
) -> Efficiency | None:
    """Against the peak given, or against hpcc's DGEMM on all ranks at once; None without either."""
    if best is None or best.gflops is None:
        return None
    if peak is not None:
        return Efficiency(best.gflops / peak, peak, "the given peak")
    launches = [each for each in history.launches if each.ranks == ranks and each.star_gflops]
    if not launches:
        return None
    environment = launches[-1].environment  # a slower kernel's peak is another one
    like = [each for each in launches if each.environment == environment]
    top = max(like, key=lambda launch: launch.star_gflops or 0.0)
    found = (top.star_gflops or 0.0) * ranks
    source = f"the best of {len(like)} launches' StarDGEMM (order {top.dgemm_n}) × {ranks} ranks"
    return Efficiency(best.gflops / found, found, source)


def judge(history: History, comparison: Comparison) -> tuple[Verdict, str]:
    """Fail closed: good only where all came to an end, was right, was undisturbed and is not slower."""
    wrong = [trial for trial in history.trials if trial.is_wrong]
    broken = [launch for launch in history.launches if launch.failure and not launch.timed_out]
    if wrong:
        first = wrong[0]
        return Verdict.FAILED, (
            f"{len(wrong)} of {len(history.trials)} runs computed a wrong result, first"
            f" {first.config.variant} with N {first.config.n:,}, NB {first.config.nb}:"
            f" residual {first.residual}, {first.status}"
        )
    if broken:
        return Verdict.FAILED, f"launch {broken[0].number} failed: {broken[0].failure}"[
            :MOST_REASON
        ]
    unknown = [trial for trial in history.of("confirm") if not trial.passed]
    if unknown:
        number = len(history.of("confirm"))
        return Verdict.FAILED, f"{len(unknown)} of {number} confirming runs have no checked result"
    confirming = [launch for launch in history.launches if launch.phase == "confirm"]
    disturbed = _disturbed(confirming or history.launches)
    if comparison.best is None or comparison.default is None:
        missing = "the budget ended before the best and the default were compared"
        if disturbed:
            return Verdict.CONTAMINATED, f"{missing}; {disturbed}"
        return Verdict.NOT_MEASURED, missing
    summary = _summarise(comparison)
    if disturbed:
        return Verdict.CONTAMINATED, f"{disturbed}; {summary}"
    own = comparison.margin_own
    if own is None and comparison.best.config != default_for(comparison.best.config.ranks):
        return Verdict.NOT_MEASURED, f"the default HPL.dat at its own N has no rate: {summary}"
    if own is not None and own.num_pairs < LEAST_PAIRS:
        few = f"{own.num_pairs} of {LEAST_PAIRS} pairs were measured, which are too few to compare"
        return Verdict.NOT_MEASURED, f"{few}; give a larger --budget: {summary}"
    if own is not None and own.high < 0:
        return Verdict.SLOW, f"nothing found is as fast as the default HPL.dat: {summary}"
    if own is not None and own.low < 0:
        return Verdict.NOT_MEASURED, f"the repetitions differ too much to compare: {summary}"
    return Verdict.GOOD, summary


def _sampled(trials: Sequence[Trial], config: Config) -> Measured | None:
    found = measured(trials, config)
    return found if found.samples else None


def _disturbed(launches: Sequence[Launch]) -> str | None:
    found = [launch.disturbances[0] for launch in launches if launch.disturbances]
    if not found:
        return None
    return f"{found[0]} in {len(found)} of {len(launches)} launches"


def _summarise(comparison: Comparison) -> str:
    best, own = comparison.best, comparison.margin_own
    assert best is not None and best.gflops is not None
    config = best.config
    parts = [
        f"{best.gflops:.4g} GFLOP/s with N {config.n:,}, NB {config.nb}, {config.p} × {config.q},"
        f" {config.variant}"
    ]
    if own is not None:
        parts.append(f"{_share(own)} the default HPL.dat (N {own.against.n:,})")
    if comparison.margin is not None:
        parts.append(f"{_share(comparison.margin)} its settings at the same N")
    elif comparison.rejected is not None:
        parts.append(
            f"the search's winner is rejected: {_share(comparison.rejected)} these settings"
        )
    elif config == default_for(config.ranks, config.n):
        parts.append("no other settings are faster at this N")
    return "; ".join(parts) + "; every residual passed"


def _share(margin: Margin) -> str:
    return (
        f"{margin.share:+.1%} ({margin.low:+.1%} to {margin.high:+.1%}, {margin.level:.0%} interval of"
        f" {margin.num_pairs} pairs) against"
    )
