"""What a paper found, and what a run on this machine says of it: published against measured.

A finding that holds for any machine agrees or differs. An absolute number of other hardware is shown and
never compared. What the run does not carry is not measured, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hakaru.measure._base import Value
from hakaru.measure.documents import text_of
from hakaru.measure.record import MOST_TEXT, Run
from hakaru.measure.reproduce.stored import NotMeasured, Stored


class Verdict(StrEnum):
    """How a published number or finding stands to what was measured."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not comparable"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Answer:
    """What the run says of a finding. `is_lacking`: it should have said more, and a row is missing or bad."""

    verdict: Verdict
    measured: str = ""
    why: str = ""
    is_lacking: bool = False


Judge = Callable[[Stored], Answer]


@dataclass(frozen=True)
class Finding:
    """A published number or sentence, and where in the paper it stands."""

    where: str
    says: str
    published: str
    judge: Judge


@dataclass(frozen=True)
class Size:
    """Of the machine that repeats an experiment, as far as the experiment goes by it."""

    quick: bool = False
    on_gpu: bool = False
    num_hosts: int = 1


@dataclass(frozen=True)
class Experiment:
    """The benchmarks of a paper's experiment with their parameters: what a plan needs of it.

    `ranks_per_host` is where nobody says and there are no GPUs; 0 leaves it to the harness.
    """

    chosen: Mapping[str, Mapping[str, Sequence[Value]]]
    ranks_per_host: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.chosen)


@dataclass(frozen=True)
class Paper:
    id: str
    title: str
    cites: str
    hardware: str
    experiment: Callable[[Size], Experiment]
    findings: Sequence[Finding]

    @property
    def label(self) -> str:
        """Of the runs that repeat it."""
        return f"reproduce {self.id}"


@dataclass(frozen=True)
class Compared:
    """A row of the answer."""

    finding: Finding
    answer: Answer

    def to_json(self) -> dict[str, Any]:
        return {
            "where": self.finding.where,
            "what": self.finding.says,
            "published": self.finding.published,
            "measured": self.answer.measured or None,
            "verdict": self.answer.verdict.value,
            "why": self.answer.why or None,
        }


def compare(paper: Paper, run: Run) -> list[Compared]:
    """Every finding of the paper against the rows of a run; nothing is measured here."""
    stored = Stored(run)
    return [Compared(each, _answer(each, stored)) for each in paper.findings]


def _answer(finding: Finding, stored: Stored) -> Answer:
    """Its texts quote stored rows, so that they are made safe to write."""
    try:
        found = finding.judge(stored)
    except NotMeasured as reason:
        found = Answer(Verdict.NOT_MEASURED, reason.measured, str(reason), reason.is_lacking)
    measured, why = (text_of(text, MOST_TEXT) for text in (found.measured, found.why))
    return replace(found, measured=measured, why=why)


def exit_code(compared: Iterable[Compared]) -> int:
    """0 where all that the experiment was to measure could be compared, whether it agrees or not."""
    return int(any(each.answer.is_lacking for each in compared))


def judged(
    holds: bool | None, measured: str, unsure: str = "the repetitions differ too much to tell"
) -> Answer:
    """A finding that holds, does not, or that the noise leaves open."""
    if holds is None:
        return Answer(Verdict.NOT_MEASURED, measured, unsure)
    return Answer(Verdict.AGREES if holds else Verdict.DIFFERS, measured)


def other_hardware(theirs: str, measured: str) -> Answer:
    return Answer(Verdict.NOT_COMPARABLE, measured, f"other hardware: {theirs}")


def not_comparable(measured: str, why: str) -> Answer:
    return Answer(Verdict.NOT_COMPARABLE, measured, why)
