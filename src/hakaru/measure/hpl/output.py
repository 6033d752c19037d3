"""What HPL prints, read: HPL.out, the standard output of any xhpl, and hpcc's hpccoutf.txt.

Variants differ in columns and prefixes, and that is taken as it comes; what a result means is not. Only a run
whose residual was computed, is small and is called PASSED has passed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hakaru.measure.hpl import _lines as lines
from hakaru.measure.hpl.result import Dgemm, Output, Problem, ProblemKind, Result, Status
from hakaru.safety.text import one_line

MOST_TEXT = 300
MOST_PROBLEMS = 100
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
    complaint: bool = False

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
        found = lines.COMPLAINT.match(line)
        if self.complaint and line.startswith(">>>"):
            self.complaint = False
            last = self.problems.pop()
            text = f"{last.text} {line}"
            self._problem(lines.problem_kind(text), last.line, text)
            return True
        if found or lines.MEMORY.search(line):
            self.complaint = bool(found)
            self.open = False
            self._problem(lines.problem_kind(line), number, line)
            return True
        return False

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
        if lines.FINISHED.match(line):
            self.counts = {}
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
        totals = (counts.get("passed"), counts.get("failed"))
        seen = (
            sum(each.passed for each in section),
            sum(each.status is Status.FAILED for each in section),
        )
        self.num_skipped += counts.get("because", 0)
        if None not in totals and totals != seen:
            self._problem(
                ProblemKind.COUNT, number,
                f"HPL counted {totals[0]} passed and {totals[1]} failed; "
                f"the text has {seen[0]} and {seen[1]}",
            )  # fmt: skip
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

    def _problem(self, kind: ProblemKind, line: int, text: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(kind, line, one_line(text)[:MOST_TEXT]))

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
