"""What HPL prints, read: HPL.out, the standard output of any xhpl, and hpcc's hpccoutf.txt.

Variants differ in columns and prefixes, and that is taken as it comes; what a result means is not. Only a run
whose residual was computed, is small and is called PASSED has passed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hakaru.measure.hpl import _lines as lines
from hakaru.measure.hpl.result import Dgemm, Output, Problem, ProblemKind, Result, Status
from hakaru.safety.text import one_line

MOST_TEXT = 300
MOST_PROBLEMS = 100  # of one kind, so that none hides another
MOST_LINE = 4096


def parse_output(text: str) -> Output:
    """Read the text of a run, or of several that hpcc appended to one file."""
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        reader.read(number, lines.LABEL.sub("", line[:MOST_LINE]).strip())
    return reader.finish()


@dataclass
class _Reader:
    """A line at a time; a residual belongs to the result line above it."""

    results: list[Result] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    num_problems: Counter[ProblemKind] = field(default_factory=Counter)
    shared: dict[str, int] = field(default_factory=dict)
    keys: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] | None = None  # HPL's own, once it prints them; PTRANS has some too
    num_skipped: int = 0
    program: str = "unknown"
    open: bool = False  # a result of which a residual may follow
    first_of_section: int = 0
    is_running: bool = False
    has_ended: bool = False
    last_line: int = 0
    complaint: Problem | None = None  # a line `>>> … <<<` of it may follow

    def read(self, number: int, line: str) -> None:
        if not line:
            return
        self.last_line = number
        for step in (self._complaint, self._result, self._residual, self._count, self._setting):
            if step(number, line):
                return

    def finish(self) -> Output:
        truncated = self.is_running or not self.has_ended
        if truncated:
            self._problem(ProblemKind.TRUNCATED, self.last_line, "no 'End of Tests.' at the end")
        return Output(
            tuple(self.results),
            tuple(self.problems),
            is_complete=not truncated,
            num_skipped=self.num_skipped,
            dgemm=self._dgemm(),
            program=self.program,
        )

    def _complaint(self, number: int, line: str) -> bool:
        if self.complaint and line.startswith(">>>"):
            self._complete(self.complaint, line)
            return True
        found = lines.COMPLAINT.match(line)
        if found or lines.MEMORY.search(line):
            self.open = False
            problem = self._problem(lines.problem_kind(line), number, line)
            self.complaint = problem if found else None
            return True
        return False

    def _complete(self, first: Problem, line: str) -> None:
        if self.problems and self.problems[-1] is first:
            self.problems.pop()
            self.num_problems[first.kind] -= 1
        self.complaint = None
        text = f"{first.text} {line}"
        self._problem(lines.problem_kind(text), first.line, text)

    def _result(self, number: int, line: str) -> bool:
        if lines.MIXED.match(line):
            self.open = False
            self._problem(
                ProblemKind.PRECISION, number, "mixed precision; this is not an HPL result"
            )
            return True
        if not lines.LIKE_A_RESULT.match(line):
            return False
        self.open = False
        found = lines.RESULT.fullmatch(line)
        result = lines.new_result(number, found, self.shared) if found else None
        if result is None:
            self._problem(ProblemKind.FORMAT, number, f"cannot be read as a result: {line}")
        else:
            self.results.append(result)
            self.open = self.is_running = True
        return True

    def _residual(self, number: int, line: str) -> bool:
        found = lines.RESIDUAL.match(line)
        if not found:
            return False
        if self.open:
            self.results[-1] = lines.checked(self.results[-1], found)
        return True

    def _count(self, number: int, line: str) -> bool:
        if found := lines.FINISHED.match(line):
            self.counts = {"finished": int(found["number"][:9])}
        elif (found := lines.COUNTED.match(line)) and self.counts is not None:
            self.counts[found["what"].split()[-1]] = int(found["number"][:9])
        elif line.startswith("End of Tests"):
            self._end_section(number)
        else:
            return False
        self.open = False
        return True

    def _end_section(self, number: int) -> None:
        section = self.results[self.first_of_section :]
        counts = self.counts or {}
        self.num_skipped += counts.get("because", 0)
        if wrong := _miscounted(counts, section):
            self._problem(ProblemKind.COUNT, number, wrong)
        self.is_running, self.has_ended = False, True
        self.first_of_section = len(self.results)
        self.counts = None

    def _setting(self, number: int, line: str) -> bool:
        if name := next(
            (name for mark, name in lines.HEADS.items() if line.startswith(mark)), None
        ):
            self.is_running = True
            self.program = self.program if self.program in ("hpcc", "xhpl (NVIDIA)") else name
        elif found := lines.SHARED.match(line):
            self.shared |= lines.shared_setting(found["name"], found["value"])
        elif (key := lines.KEY.match(line)) and (value := lines.number(key["value"])) is not None:
            self.keys[key["name"]] = value
        else:
            return False
        return True

    def _problem(self, kind: ProblemKind, line: int, text: str) -> Problem:
        problem = Problem(kind, line, one_line(text)[:MOST_TEXT])
        if self.num_problems[kind] < MOST_PROBLEMS:
            self.num_problems[kind] += 1
            self.problems.append(problem)
        return problem

    def _dgemm(self) -> Dgemm | None:
        star = self.keys.get("StarDGEMM_Gflops")
        if star is None or star <= 0:  # hpcc writes 0 or -1 for what it could not measure
            return None
        n, num = self.keys.get("DGEMM_N"), self.keys.get("CommWorldProcs")
        return Dgemm(
            int(n) if n and n > 0 else None,
            star,
            int(num) if num and num > 0 else None,
        )


def _miscounted(counts: dict[str, int], section: list[Result]) -> str:
    """What HPL's own numbers of tests contradict: each other, or the results that stand above them.

    With a threshold of 0 nothing is checked, and HPL prints one number for all.
    """
    kinds = ("checking",) if "checking" in counts else ("passed", "failed")
    if not counts.keys() >= {"finished", "because", *kinds}:
        return "HPL's lines with the numbers of finished, passed, failed and skipped tests are not whole"
    added = sum(counts[kind] for kind in ("because", *kinds))
    if counts["finished"] != added:
        return f"HPL finished {counts['finished']} tests; its counts add up to {added}"
    statuses = [each.status for each in section]
    seen = {
        "checking": len(section),
        "passed": statuses.count(Status.PASSED),
        "failed": statuses.count(Status.FAILED),
    }
    if all(counts[kind] == seen[kind] for kind in kinds):
        return ""
    if kinds == ("checking",):
        return f"HPL counted {counts['checking']} tests; the text has {len(section)}"
    return (
        f"HPL counted {counts['passed']} passed and {counts['failed']} failed; "
        f"the text has {seen['passed']} and {seen['failed']}"
    )
