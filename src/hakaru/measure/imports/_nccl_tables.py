"""The tables of nccl-tests, whether they were printed as text or written as JSON."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

OUT_OF_PLACE, IN_PLACE = "out-of-place", "in-place"
ENDS_EARLY = "the output ends before its summary: the run was killed or did not finish"
# nccl-tests' programs whose benchmark has another name here; the others keep theirs
COLLECTIVES = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "broadcast": "broadcast",
    "alltoall": "all-to-all",
}
# of these nccl-tests checks the values in place too; of all-to-all and others it prints N/A
CHECKED_IN_PLACE = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
)
OTHERS = ("alltoallv", "sendrecv", "hypercube", "scatter", "gather", "reduce")
DTYPES = {
    "half": "fp16",
    "float": "fp32",
    "double": "fp64",
    "bfloat16": "bf16",
    "f8e4m3": "fp8-e4m3",
    "f8e5m2": "fp8-e5m2",
}
RATIO_ERROR = 0.02  # bandwidths are printed with two digits after the point
LEAST_GBYTES_S = 5.0
# by how much a bandwidth may differ from size ÷ time: programs count the bytes of a rank itself or do not,
# and the bus of an all-reduce moves up to twice the size
MOST_FACTOR = 2.1
ROUNDED_GBYTES_S = 0.01
# busbw ÷ algbw by the number of ranks n is this times (n − 1)/n; of other collectives it does not depend on n
BUS_FACTORS = {
    "all-reduce": 2,
    "all-gather": 1,
    "reduce-scatter": 1,
    "all-to-all": 1,
    "gather": 1,
    "scatter": 1,
}
AVERAGE_ERROR = 0.01
# old versions print the times of one thread, and average those of all
AVERAGE_ERROR_OF_THREADS = 0.5


@dataclass(frozen=True)
class Half:
    """One of the two measurements of a row.

    `num_wrong` is None where the values were not counted, and infinite where the count cannot be read.
    """

    time_us: float | None
    algbw: float | None
    busbw: float | None
    is_checked: bool
    num_wrong: float | None = None
    iterations_us: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Row:
    """A size of message: what was sent, and how it went out of place and in place."""

    num_bytes: int
    dtype: str
    redop: str
    root: int
    halves: dict[str, Half]


class Sizes(NamedTuple):
    """The sizes that a heading announces; each is a row, also where two are rounded to the same."""

    least: int
    most: int
    step: int
    is_factor: bool

    @property
    def num_sizes(self) -> int | None:
        """None where nccl-tests would never come to an end."""
        if self.least > self.most or self.step < 1:
            return None
        if not self.is_factor:
            return (self.most - self.least) // self.step + 1
        if self.least < 1 or self.step < 2:
            return None
        found, size = 0, self.least
        while size <= self.most:
            found, size = found + 1, size * self.step
        return found

    def up_to(self, largest: int) -> Sizes:
        """Those up to the largest row, whose size may be rounded down a little."""
        following = largest * self.step if self.is_factor else largest + self.step
        return self._replace(most=min(self.most, following - 1))


@dataclass
class Table:
    """One run of one program, as far as it came.

    `ranks` counts those of each group, that of rank 0 first: NCCL_TESTS_SPLIT makes a communicator of each.
    `rank_ids` are the numbers that are listed, of which each stands for `rank_step` ranks.
    """

    name: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    ranks: Counter[str] = field(default_factory=Counter)
    rank_ids: set[int] = field(default_factory=set)
    rank_step: int = 1
    is_list_cut: bool = False
    is_cpu_time: bool = False
    rows: list[Row] = field(default_factory=list)
    num_out_of_bounds: int | None = None
    average_busbw: float | None = None
    is_average_ok: bool = True  # of every summary, should there be several
    sizes: Sizes | None = None
    is_reduced: bool = False  # the largest sizes are missing, supposedly for lack of memory
    num_threads: int = 1
    is_concluded: bool = True  # False from "Collective test starting" to "concluded"
    error: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    def count_out_of_bounds(self, count: int) -> None:
        """Of several summaries the worst counts."""
        self.num_out_of_bounds = max(self.num_out_of_bounds or 0, count)

    @property
    def num_ranks(self) -> int:
        """Those of one group, which alone talk with one another; the printed bandwidths follow from them."""
        return next(iter(self.ranks.values()), 0)

    @property
    def is_complete(self) -> bool:
        return self.num_out_of_bounds is not None and self.average_busbw is not None


def contradiction(table: Table, num_bytes: int, half: Half) -> str:
    """Which bandwidth does not follow from the size and the time; the processor's time is another one."""
    if table.is_cpu_time or not half.time_us or half.time_us < 0:
        return ""
    follows = num_bytes / half.time_us / 1e3
    least_busbw = follows / MOST_FACTOR / 2 if table.num_ranks > 1 else 0.0
    limits = [
        ("algbw", half.algbw, follows / MOST_FACTOR, follows * MOST_FACTOR),
        ("busbw", half.busbw, least_busbw, follows * MOST_FACTOR * 2),
    ]
    return next(
        (
            f"{name} is {value:g} GB/s, but the size divided by the time is {follows:g} GB/s"
            for name, value, least, most in limits
            if value is not None
            and not least - ROUNDED_GBYTES_S <= value <= most + ROUNDED_GBYTES_S
        ),
        "",
    )


def gap(table: Table, benchmark: str) -> str:
    """What shows that the table is not whole: its end, its ranks, its number of rows, or its average."""
    if not (table.is_complete and table.is_concluded):
        return ENDS_EARLY
    return (
        _missing_rank(table)
        or _missing_rows(table)
        or _wrong_average(table)
        or _wrong_ranks(table, benchmark)
    )


def _missing_rank(table: Table) -> str:
    """The first gap in the list of ranks; what is lost at its end shows in the bandwidths alone."""
    if not table.rank_ids or table.is_list_cut:
        return ""
    every = range(0, max(table.rank_ids), table.rank_step)
    missing = next((rank for rank in every if rank not in table.rank_ids), None)
    return "" if missing is None else f"rank {missing:,} is missing from the list of ranks"


def _missing_rows(table: Table) -> str:
    """Each type, operation and root has all sizes, or all of them in each cycle of -N."""
    num_sizes = table.sizes.num_sizes if table.sizes else None
    if num_sizes is None:
        return ""
    counts = Counter((row.dtype, row.redop, row.root) for row in table.rows)
    wrong = next((count for count in counts.values() if count % num_sizes), None)
    if wrong is None:
        return ""
    return f"rows are missing: {wrong:,} found for the {num_sizes:,} sizes of the heading"


def _wrong_average(table: Table) -> str:
    """nccl-tests averages all bandwidths that it prints, out of place and in place."""
    printed = [half.busbw for row in table.rows for half in row.halves.values()]
    found = [busbw for busbw in printed if busbw is not None]
    if table.average_busbw is None or not found or len(found) < len(printed):
        return ""
    mean = sum(found) / len(found)
    share = AVERAGE_ERROR if table.num_threads == 1 else AVERAGE_ERROR_OF_THREADS
    if abs(table.average_busbw - mean) <= max(share * abs(mean), ROUNDED_GBYTES_S):
        return ""
    return (
        f"rows are missing or changed: the stated average is {table.average_busbw:g} GB/s,"
        f" and that of the rows is {mean:g} GB/s"
    )


def _wrong_ranks(table: Table, benchmark: str) -> str:
    """Whether the bandwidths follow from another number of ranks than the list has.

    NCCL_TESTS_SPLIT makes groups that may differ in size, so theirs are not known.
    """
    n, times = table.num_ranks, BUS_FACTORS.get(benchmark)
    if not times or not n or table.is_list_cut or len(table.ranks) > 1:
        return ""
    pairs = [
        (half.algbw, half.busbw)
        for row in table.rows
        for half in row.halves.values()
        if half.algbw is not None and half.algbw >= LEAST_GBYTES_S and half.busbw is not None
    ]
    factors = [times * (num - 1) / num for num in _possible_ranks(table)]
    # old versions of these subtract a rank's own bytes from both bandwidths
    factors += [1.0] if benchmark in ("all-gather", "reduce-scatter") else []
    if any(all(_follows(*pair, factor) for pair in pairs) for factor in factors):
        return ""
    return f"busbw does not follow from algbw and {n:,} ranks: are ranks missing from the list?"


def _possible_ranks(table: Table) -> list[int]:
    """Those listed; where the list has no column of groups, they may be in groups of equal size."""
    n = table.num_ranks
    is_grouped = set(table.ranks) != {""}
    return [n, *(num for num in range(2, n // 2 + 1) if n % num == 0 and not is_grouped)]


def _follows(algbw: float, busbw: float, factor: float) -> bool:
    return abs(busbw - algbw * factor) <= _rounded(algbw) * factor + _rounded(busbw)


def _rounded(value: float) -> float:
    """Half of the last digit: two after the point, and one from 1,000 on."""
    return 0.0051 if value < 1000 else value * 5.1e-5


def benchmark_of(table: Table, path: Path) -> str:
    """The collective's id: by the program's name, the file's name, or the ratio of the bandwidths.

    Versions before 2.17 do not print the program's name.
    """
    program = re.sub(r"_perf.*", "", table.name.rpartition("/")[2])
    if program:
        return COLLECTIVES.get(program, program.replace("_", "-"))
    return _by_file_name(path) or _by_ratio(table)


def _by_file_name(path: Path) -> str:
    squeezed = re.sub(r"[^a-z]", "", path.stem.lower())
    # the longest first, so that `reduce` does not claim an all-reduce
    names = sorted([*COLLECTIVES, *OTHERS], key=len, reverse=True)
    found = next((name for name in names if name.replace("_", "") in squeezed), "")
    return COLLECTIVES.get(found, found)


def _by_ratio(table: Table) -> str:
    """Of the collectives with an operation and no root, only all-reduce has the ratio 2(n − 1)/n."""
    n = table.num_ranks
    halves = [
        half
        for row in table.rows
        for half in row.halves.values()
        if row.redop not in ("", "none") and row.root < 0
    ]
    ratios = [
        (half.busbw or 0) / half.algbw
        for half in halves
        if half.algbw is not None and half.algbw > LEAST_GBYTES_S
    ]
    close = [abs(ratio * n / (2 * n - 2) - 1) < RATIO_ERROR for ratio in ratios if n > 1]
    return "all-reduce" if close and all(close) else ""
