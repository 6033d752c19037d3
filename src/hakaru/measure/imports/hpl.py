"""HPL: HPL.out, the output of any xhpl, and hpcc's hpccoutf.txt, as rates with the residual's verdict.

A rate for each result with its settings, and the best of each number of ranks, which is what our own search
reports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice

from hakaru.errors import HakaruError
from hakaru.measure.hpl._lines import ANY_LABEL, supports_rate
from hakaru.measure.hpl.output import MOST_PROBLEMS, parse_output
from hakaru.measure.hpl.result import Output, Problem, ProblemKind, Result, Status
from hakaru.measure.imports._base import (
    UNKNOWN_RANKS,
    Collected,
    Content,
    Found,
    Importer,
    Key,
    ResultFile,
    as_reported,
    clip,
    noted,
    own_key,
    where,
)
from hakaru.measure.imports._crashes import crash
from hakaru.measure.verdict import Verdict

TITLE = "HPL"
# not the names of folders and modules
LOOKS = re.compile(
    r"(?<![\w/.-])(?:HPLinpack|HPL-NVIDIA)(?![\w/.-])|HPC Challenge Benchmark|HPL ERROR"
    rf"|^(?:{ANY_LABEL})?[ \t]{{0,20}}W[RC]\d\w*\s+\d+\s+\d+\s",
    re.MULTILINE,
)
# since HPL 2.1, in the writer's local time: HPL_pdgesv() start time Thu Feb 26 12:00:00 2026
CLOCK = re.compile(r"HPL_pdgesv\(\) (start|end) time\s+\w{3} (\w{3}\s+\d+ [\d:]{8} \d{4})")
MOST_SHOWN = 3
INCOMPLETE = "the output is not complete: HPL did not come to its end"
TOO_SHORT = "the time is printed as 0.00 s, which does not support the rate: measure a larger N"


def recognises(content: Content) -> bool:
    return bool(LOOKS.search(content.looks))


def read(file: ResultFile, content: Content) -> Found:
    text = content.text
    output = parse_output(text)
    if not output.results and not LOOKS.search(text):
        raise HakaruError(f"{where(file.path)} holds no output of HPL: leave --format out")
    collected = Collected(TITLE)
    for result in output.results:
        key = _key(file.host, result.ranks, _settings(result))
        collected.add(key, result.gflops, *_judged(result))
    for ranks, result in _best(output).items():
        best = f"the best that passed: N {result.n:,}, NB {result.nb}, {result.p} × {result.q}"
        reason = f"{as_reported(TITLE)}; {best}"
        collected.add(_key(file.host, ranks, {"ranks": ranks}), result.gflops, reason=reason)
    left_out = _add_problems(collected, output, _crashes(text), file.host)
    place = {"imported_from": file.name, "versions": {"hpl": clip(output.program)}}
    return Found(collected.measurements(*_times(text, file.modified_at), place), noted(left_out))


IMPORTER = Importer(
    id="hpl",
    title=TITLE,
    looks="HPL.out, the output of xhpl, or hpccoutf.txt: text with HPLinpack and lines such as WR11C2R4",
    recognises=recognises,
    read=read,
    is_printed=True,
)


def _judged(result: Result) -> tuple[Verdict, str]:
    if result.passed:
        return (Verdict.GOOD, "") if supports_rate(result) else (Verdict.NOT_MEASURED, TOO_SHORT)
    if result.status is Status.FAILED:
        return Verdict.FAILED, f"the result is wrong: HPL's residual is {result.residual}"
    if result.status is Status.INCONSISTENT:
        return Verdict.FAILED, "the rate does not follow from the size and the time"
    return Verdict.NOT_MEASURED, "HPL did not check the residual"


def _best(output: Output) -> dict[int, Result]:
    """Of each number of ranks, the fastest result that is good."""
    good = (each for each in output.results if each.passed and supports_rate(each))
    passed = sorted(good, key=lambda each: each.gflops)
    return {each.ranks: each for each in passed}


def _settings(result: Result) -> dict[str, int | str]:
    numbers = {name: getattr(result, name) for name in ("n", "nb", "p", "q")}
    return numbers | {"variant": clip(result.variant)}


def _key(host: str, ranks: int, parameters: Mapping[str, int | str]) -> Key:
    return own_key("hpl", "rate", host, f"{ranks} ranks", parameters)


def _crashes(text: str) -> list[Problem]:
    """The first lines by which a launcher, MPI or the shell says that a rank was lost."""
    every = enumerate(text.splitlines(), start=1)
    found = (Problem(ProblemKind.ERROR, at, shown) for at, line in every if (shown := crash(line)))
    return list(islice(found, MOST_PROBLEMS))


def _add_problems(
    collected: Collected, output: Output, crashes: list[Problem], host: str
) -> list[str]:
    """A row of its own for what went wrong beside the results; what is no result of HPL is left out."""
    other = [each for each in output.problems if each.kind is ProblemKind.PRECISION]
    # to HPL's reader a launcher's words on memory are a problem too
    known = {(each.line, ProblemKind.MEMORY) for each in crashes}
    of_hpl = [each for each in output.problems if each.kind is not ProblemKind.PRECISION]
    bad = crashes + [each for each in of_hpl if (each.line, each.kind) not in known]
    key = own_key("hpl", "rate", host, UNKNOWN_RANKS, {})
    if bad or not output.is_complete:
        first = "; ".join(f"line {each.line:,}: {clip(each.text)}" for each in bad[:MOST_SHOWN])
        more = f" and {len(bad) - MOST_SHOWN:,} more" if len(bad) > MOST_SHOWN else ""
        collected.add(key, None, Verdict.FAILED, f"{first}{more}" or INCOMPLETE)
    if output.num_skipped:
        reason = f"HPL skipped {output.num_skipped:,} tests because of their settings"
        collected.add(key, None, Verdict.NOT_MEASURED, reason)
    return [f"line {each.line:,}: {clip(each.text)}" for each in other]


def _times(text: str, modified_at: datetime) -> tuple[datetime, datetime]:
    found = [(word, _clock(clock)) for word, clock in CLOCK.findall(text)]
    starts = [moment for word, moment in found if word == "start" and moment]
    ends = [moment for word, moment in found if word == "end" and moment]
    if not starts:
        return modified_at, modified_at
    return min(starts), max([min(starts), *ends])


def _clock(text: str) -> datetime | None:
    try:
        return datetime.strptime(" ".join(text.split()), "%b %d %H:%M:%S %Y").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
