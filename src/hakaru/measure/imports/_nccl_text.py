"""The text that nccl-tests and rccl-tests print, of all versions.

Tables are read by the names in their heading: collectives and versions differ in the columns that they
have. Old versions have `error`, the largest deviation, in the place of `#wrong`, and leave the cell of an
operation empty where there is none. Seen in NVIDIA/nccl-tests, src/util.cu (2.17 and later), src/common.cu
(before), and in logs of microsoft/superbenchmark, tests/data/nccl_*.log.
"""

from __future__ import annotations

import math
import re
from datetime import datetime

from hakaru.measure.hpl._lines import LABEL
from hakaru.measure.imports._base import check_size, clip, local_time, number, whole
from hakaru.measure.imports._crashes import crash
from hakaru.measure.imports._nccl_tables import IN_PLACE, OUT_OF_PLACE, Half, Row, Sizes, Table
from hakaru.measure.imports.hpl import LOOKS as OF_HPL

PARAMETERS = re.compile(r"^#\s*nThreads?:?\s+(\d{1,6})\s")
SIZES = re.compile(r"\bminBytes (\d{1,18}) maxBytes (\d{1,18}) step: (\d{1,18})\((factor|bytes)\)")
REDUCED = re.compile(r"^#\s*Reducing maxBytes to (\d{1,18}) due to memory limitation")
HEADING = re.compile(r"^#\s+size\s+count\s.*\balgbw\s+busbw\b")
RANK = re.compile(
    r"^#\s+Rank\s+(?P<rank>\d{1,9})\s+(?:Group\s+(?P<group>-?\d+)\s+)?Pid\s+\d+\s+on\s+(?P<host>\S+)\s+device"
    r"\s+\d+\s+\[[^\]]*\]\s*(?P<model>.*)"
)
CUT_LIST = re.compile(r"^#.*\.\.\.$")  # nccl-tests lists 2,048 characters of a process and no more
VERSION = re.compile(r"^#\s*nccl-tests version (\S+)(?:.*nccl-library=(\d+))?")
STARTING = re.compile(r"^#\s*Collective test starting:\s*(\S+)")
CONCLUDED = re.compile(r"^#\s*Collective test concluded\b")
PROGRAM = re.compile(r"\b([a-z]+(?:_[a-z]+)*_perf)(?:_mpi)?\b")
OUT_OF_BOUNDS = re.compile(r"^#\s*Out of bounds values\s*:\s*(\S+)\s*(\S*)")
AVERAGE = re.compile(r"^#\s*Avg bus bandwidth\s*:\s*(\S+)\s*(OK|FAILED)?")
ERROR = re.compile(r"^#\s*(?:error: |(?=Bitwise mismatches\b(?!.*\bOK\b)))(.+)")
DATA = re.compile(r"^\s*\d+\s+\d+\s+[A-Za-z]")
UNCOUNTED = "N/A"
TIMES = ("time", "cputime")
MOST_LINE = 4000  # characters; a row has some 200


class Reader:
    """Goes through the lines once; a new heading begins a new table."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.left_out: list[str] = []
        self._table = Table()
        self._columns: list[str] = []
        self._has_begun = False
        self._num_rows = 0

    def read(self, text: str) -> list[Table]:
        for at, line in enumerate(text.splitlines(), start=1):
            self._line(line, at)
        self._finish()
        return self.tables

    def _line(self, line: str, at: int) -> None:
        crashed = crash(line)
        self._table.error = self._table.error or crashed
        line = LABEL.sub("", line[:MOST_LINE])
        if line.startswith("#"):
            self._comment(line)
        elif not crashed:
            self._plain(line, at)

    def _comment(self, line: str) -> None:
        if found := PARAMETERS.match(line):
            self._start()
            self._table.num_threads = int(found[1])
            self._table.sizes = _sizes(line)
        elif HEADING.match(line):
            self._start()
            self._columns = line.lstrip("# ").split()
        elif found := RANK.match(line):
            self._rank(found)
        elif not self._ends(line):
            self._names(line)

    def _rank(self, found: re.Match[str]) -> None:
        if self._table.is_complete:
            self._start()
        self._table.ranks[found["group"] or ""] += 1
        self._table.rank_ids.add(int(found["rank"]))
        self._table.is_list_cut |= bool(CUT_LIST.match(found.string))
        _append(self._table.hosts, found["host"])
        _append(self._table.models, found["model"])

    def _plain(self, line: str, at: int) -> None:
        """A row, or what is printed outside of tables."""
        is_inside = bool(self._columns) and not self._table.is_complete
        if DATA.match(line):
            self._data(line, at)
        elif not is_inside:  # inside a table a program's name is in a debug line
            self._outside(line)

    def _outside(self, line: str) -> None:
        """A command line before a table, or another program, whose crash is not that of the table before."""
        if found := PROGRAM.search(line):
            self._next_after_heading()
            self._table.name = clip(found[1])
        elif OF_HPL.search(line):
            self._next_after_heading()

    def _ends(self, line: str) -> bool:
        table = self._table
        if found := OUT_OF_BOUNDS.match(line):
            # never fewer than one where it does not say OK
            count = whole(found[1])
            table.count_out_of_bounds(1 if count is None else max(count, int(found[2] != "OK")))
        elif found := AVERAGE.match(line):
            table.average_busbw = number(found[1])
            table.is_average_ok = table.is_average_ok and found[2] != "FAILED"
        elif found := ERROR.match(line):
            table.error = table.error or clip(found[1])
        return bool(found)

    def _names(self, line: str) -> None:
        if found := VERSION.match(line):
            self._start()
            named = {"nccl-tests": found[1], "nccl": found[2]}
            self._table.versions = {name: clip(it) for name, it in named.items() if it}
        elif found := STARTING.match(line):
            self._start()
            self._table.name, self._table.is_concluded = clip(found[1]), False
        elif CONCLUDED.match(line):
            self._table.is_concluded = True
        elif (found := REDUCED.match(line)) and self._table.sizes:
            self._table.sizes = self._table.sizes._replace(most=int(found[1]))
        elif CUT_LIST.match(line):
            self._table.is_list_cut = True

    def _data(self, line: str, at: int) -> None:
        if not self._columns:
            return
        row = _row(line.split(), self._columns)
        if self._table.is_complete:
            if row is not None:  # else it is of another program
                self._table.error = self._table.error or f"line {at:,}: a row after the summary"
            return
        if row is None:
            problem = f"line {at:,}: the row does not fit its heading"
            self.left_out.append(problem)
            self._table.error = self._table.error or problem
            return
        self._table.is_cpu_time = "cputime" in self._columns
        if "timestamp" in self._columns:
            self._stamp(local_time(" ".join(line.split()[-2:])))
        self._num_rows += 1
        check_size(self._num_rows, "rows")
        self._table.rows.append(row)

    def _stamp(self, moment: datetime | None) -> None:
        self._table.started_at = self._table.started_at or moment
        self._table.ended_at = moment or self._table.ended_at

    def _start(self) -> None:
        """A line that only a run prints: it must come to its end, even if nothing follows."""
        self._next_after_heading()
        self._has_begun = True

    def _next_after_heading(self) -> None:
        if self._columns:
            self._finish()

    def _finish(self) -> None:
        if self._has_begun or (self._table.name and self._table.error):
            self.tables.append(self._table)
            check_size(len(self.tables), "tables")
        self._table, self._columns, self._has_begun = Table(), [], False


def _sizes(line: str) -> Sizes | None:
    found = SIZES.search(line)
    if found is None:
        return None
    return Sizes(int(found[1]), int(found[2]), int(found[3]), found[4] == "factor")


def _row(cells: list[str], columns: list[str]) -> Row | None:
    """Cells by their columns: those before the first time from the left, the others from the right."""
    first = next((at for at, name in enumerate(columns) if name in TIMES), len(columns))
    measured = [part for name in columns[first:] for part in _parts(name)]
    num_given = len(cells) - len(measured)
    # an old all-to-all has a column for the operation and nothing in it
    has_gap = columns[3:first] == ["redop"] and number("".join(cells[3:4])) is not None
    num_bytes = whole(cells[0])
    if num_bytes is None or not measured or num_given != first - has_gap:
        return None
    given, values = cells[:num_given], cells[num_given:]
    redop = next((cell for cell in given[3:] if number(cell) is None), "")
    root = next((int(cell) for cell in given[3:] if re.fullmatch(r"-?\d{1,9}", cell)), -1)
    return Row(num_bytes, clip(given[2]), clip(redop), root, _halves(values, measured))


def _parts(name: str) -> tuple[str, ...]:
    return ("date", "clock") if name == "timestamp" else (name,)


def _halves(values: list[str], columns: list[str]) -> dict[str, Half]:
    starts = [at for at, name in enumerate(columns) if name in TIMES]
    ends = [*starts[1:], len(columns)]
    halves = (
        _half(dict(zip(columns[start:end], values[start:end], strict=True)))
        for start, end in zip(starts, ends, strict=True)
    )
    return dict(zip((OUT_OF_PLACE, IN_PLACE), halves, strict=False))


def _half(cells: dict[str, str]) -> Half:
    wrong = cells.get("#wrong", cells.get("error", UNCOUNTED))
    count = None if wrong == UNCOUNTED else number(wrong)
    is_readable = count is not None or wrong == UNCOUNTED
    return Half(
        time_us=number(cells.get("time", cells.get("cputime"))),
        algbw=number(cells.get("algbw")),
        busbw=number(cells.get("busbw")),
        is_checked=count is not None,
        num_wrong=(count if "#wrong" in cells else None) if is_readable else math.inf,
    )


def _append(names: list[str], name: str) -> None:
    if clip(name) not in names:
        names.append(clip(name))
