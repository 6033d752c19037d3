"""Verdicts on measurements: which of several counts, and its exit code.

Everything fails closed: only a measurement that was made, is valid and passed its check is ever *good*.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    GOOD = "good"
    SLOW = "slow"
    FAILED = "failed"
    CONTAMINATED = "contaminated"
    NOT_MEASURED = "not measured"


# 1 is an error of the command itself and 2 a wrong option, as for every verb
EXIT_CODES = {
    Verdict.GOOD: 0,
    Verdict.SLOW: 10,
    Verdict.FAILED: 11,
    Verdict.CONTAMINATED: 12,
    Verdict.NOT_MEASURED: 13,
}
MEANINGS = {
    Verdict.GOOD: "measured, valid, correct, and not slower than what it was compared with, if anything",
    Verdict.SLOW: "measured, valid and correct, but slower than what it is compared with",
    Verdict.FAILED: "a process died, a result is wrong, or the nodes do not match",
    Verdict.CONTAMINATED: "something else used the machine, so the numbers do not count",
    Verdict.NOT_MEASURED: "no number that counts: a tool, a device, a result or a baseline is missing, "
    "or the repetitions differ too much to tell",
}
# the worst first: what a person must act on soonest
ORDER = (
    Verdict.FAILED,
    Verdict.SLOW,
    Verdict.CONTAMINATED,
    Verdict.NOT_MEASURED,
    Verdict.GOOD,
)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of several together; of none at all, that nothing was measured."""
    return min(verdicts, key=ORDER.index, default=Verdict.NOT_MEASURED)
