"""HPL.dat and hpccinf.txt: the settings of a run, the default ones, and batches of them in one file.

The meaning and range of each line are those of HPL's `www/tuning.html` and of its reader `HPL_pdinfo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from math import isqrt
from typing import Any

from hakaru.errors import HakaruError, list_problems

THRESHOLD = 16.0  # of the scaled residual, as distributed; nobody's result counts with another
MOST_VALUES = 20  # HPL_MAX_PARAM
# hpcc skips the lines of HPL in a buffer of 82 characters: a longer one would count as two
MOST_LINE = 80
FACTORISATIONS = "LCR"
MOST_N = 2**31 - 1  # the largest machines solve systems of 25 million
RANGES = {
    "n": (1, MOST_N),
    "nb": (1, 65_536),
    "p": (1, MOST_N),
    "q": (1, MOST_N),
    "pmap": (0, 1),
    "pfact": (0, 2),
    "nbmin": (1, 4096),
    "ndiv": (2, 64),
    "rfact": (0, 2),
    "bcast": (0, 5),
    "depth": (0, 9),
    "swap": (0, 2),
    "swap_threshold": (0, 65_536),
    "l1": (0, 1),
    "u": (0, 1),
    "equilibration": (0, 1),
    "alignment": (1, 4096),
}


@dataclass(frozen=True, slots=True, order=True)
class Config:
    """The settings of one run; a number means what it means in HPL.dat.

    Those that have a default here are what `hpcc` distributes.
    """

    n: int
    nb: int
    p: int
    q: int
    pmap: int = 0  # how ranks fill the grid: 0 row by row, 1 column by column
    pfact: int = 2  # 0 left, 1 Crout, 2 right
    nbmin: int = 4
    ndiv: int = 2
    rfact: int = 1
    bcast: int = 1  # 0 1-ring, 1 1-ring modified, 2 and 3 2-ring, 4 and 5 long
    depth: int = 1
    swap: int = 2  # 0 binary exchange, 1 long, 2 mix
    swap_threshold: int = 64
    l1: int = 0
    u: int = 0
    equilibration: int = 1
    alignment: int = 8

    def __post_init__(self) -> None:
        wrong = [
            f"{name} is {value!r}; expected a whole number from {low:,} to {high:,}"
            for name, (low, high) in RANGES.items()
            if not (type(value := getattr(self, name)) is int and low <= value <= high)
        ]
        if wrong:
            raise HakaruError(list_problems("the HPL configuration", wrong))

    @property
    def ranks(self) -> int:
        return self.p * self.q

    @property
    def grid(self) -> tuple[int, int]:
        return (self.p, self.q)

    @property
    def variant(self) -> str:
        """As HPL encodes it in the column T/V, such as WR11C2R4."""
        rfact, pfact = FACTORISATIONS[self.rfact], FACTORISATIONS[self.pfact]
        return f"W{'RC'[self.pmap]}{self.depth}{self.bcast}{rfact}{self.ndiv}{pfact}{self.nbmin}"

    def require_ranks(self, ranks: int) -> Config:
        """Itself, where its grid takes all the ranks and no more."""
        if self.ranks != ranks:
            raise HakaruError(
                f"a grid of {self.p} × {self.q} takes {self.ranks} ranks, but there are {ranks};"
                f" grids that fit: {', '.join(f'{p} × {q}' for p, q in grids(ranks)[:4])}"
            )
        return self

    def to_json(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


# hpcc 1.5.0's `_hpccinf.txt` (N 1000, NB 80, 2 × 2, WR11C2R4, mix 64). HPL 2.3's own HPL.dat (N 29 to 35,
# NB 1 to 4) only checks that the program works: whoever is compared with it always wins.
DEFAULT = Config(n=1000, nb=80, p=2, q=2)

# the settings that a file can list, in the order of HPL's loops: the first changes slowest
LISTED = ("grid", "n", "nb", "depth", "bcast", "rfact", "pfact", "nbmin", "ndiv")
# the settings that a file has once
SHARED = ("pmap", "swap", "swap_threshold", "l1", "u", "equilibration", "alignment")
SETTINGS = tuple(name for name in (*LISTED, *SHARED) if name != "n")  # what a search can change


def default_for(ranks: int, n: int = DEFAULT.n) -> Config:
    """The default, changed only where it must be: the grid takes all the ranks."""
    p, q = squarest(ranks)
    return replace(DEFAULT, n=n, p=p, q=q)


def grids(ranks: int) -> list[tuple[int, int]]:
    """Every P × Q of so many ranks, the squarest first and the flat one (P ≤ Q) before the tall one."""
    if type(ranks) is not int or not 1 <= ranks <= MOST_N:
        raise HakaruError(f"{ranks!r} is not a number of ranks; expected a whole number above 0")
    small = [p for p in range(isqrt(ranks), 0, -1) if ranks % p == 0]
    pairs = [pair for p in small for pair in ((p, ranks // p), (ranks // p, p))]
    return list(dict.fromkeys(pairs))


def squarest(ranks: int) -> tuple[int, int]:
    return grids(ranks)[0]


@dataclass(frozen=True)
class Batch:
    """Configurations that one file describes: all combinations of the listed values.

    A value that is listed twice is measured twice.
    """

    shared: Config
    listed: dict[str, tuple[Any, ...]]

    @classmethod
    def of(cls, configs: Sequence[Config]) -> Batch:
        """The smallest batch that has them all; often it has more."""
        if not configs:
            raise HakaruError("a batch of no configuration; give at least one")
        first = configs[0]
        for other in configs[1:]:
            if differing := [n for n in SHARED if getattr(other, n) != getattr(first, n)]:
                raise HakaruError(
                    f"one HPL.dat cannot have several values of {', '.join(differing)}"
                )
        listed = {
            name: tuple(dict.fromkeys(getattr(each, name) for each in configs)) for name in LISTED
        }
        return cls(first, listed)

    def repeated(self, sizes: Sequence[int]) -> Batch:
        """The same with these values of N, one after the other."""
        return Batch(self.shared, self.listed | {"n": tuple(sizes)})

    def configs(self) -> list[Config]:
        """All of them, in the order in which HPL runs them."""
        rows = (dict(zip(LISTED, row, strict=True)) for row in product(*self.listed.values()))
        return [
            replace(self.shared, p=row["grid"][0], q=row["grid"][1], **_without_grid(row))
            for row in rows
        ]

    def __len__(self) -> int:
        number = 1
        for values in self.listed.values():
            number *= len(values)
        return number

    @property
    def num_transposed(self) -> int:
        """The elements of the matrices that hpcc transposes: one for every N, NB and grid."""
        pairs = len(self.listed["nb"]) * len(self.listed["grid"])
        sizes: tuple[int, ...] = self.listed["n"]
        return pairs * sum(n * n for n in sizes)

    def text(self, ranks: int) -> str:
        """As a file that both xhpl and hpcc read; raises where it is not legal."""
        for p, q in self.listed["grid"]:
            replace(self.shared, p=p, q=q).require_ranks(ranks)
        for name in (name for name in LISTED if name != "grid"):
            for value in self.listed[name]:
                replace(self.shared, **{name: value})  # raises where the value is out of range
        lines = self._lines()
        long = [line for line in lines if len(line) > MOST_LINE]
        many = [name for name, values in self.listed.items() if len(values) > MOST_VALUES]
        if long or many:
            raise HakaruError(
                f"too many values for one HPL.dat: at most {MOST_VALUES} of each setting, and"
                f" {MOST_LINE} characters a line; make several batches"
            )
        return "\n".join(lines) + "\n"

    def _lines(self) -> list[str]:
        one = self.shared
        grids_ = self.listed["grid"]
        return [
            "HPLinpack benchmark input file",
            "Innovative Computing Laboratory, University of Tennessee",
            "HPL.out output file name (if any)",
            "6 device out (6=stdout,7=stderr,file)",
            *self._counted("n", "Ns"),
            *self._counted("nb", "NBs"),
            f"{one.pmap} PMAP process mapping (0=Row-,1=Column-major)",
            f"{len(grids_)} # of process grids (P x Q)",
            f"{_joined(p for p, _ in grids_)} Ps",
            f"{_joined(q for _, q in grids_)} Qs",
            f"{THRESHOLD} threshold",
            *self._counted("pfact", "PFACTs"),
            *self._counted("nbmin", "NBMINs"),
            *self._counted("ndiv", "NDIVs"),
            *self._counted("rfact", "RFACTs"),
            *self._counted("bcast", "BCASTs"),
            *self._counted("depth", "DEPTHs"),
            f"{one.swap} SWAP (0=bin-exch,1=long,2=mix)",
            f"{one.swap_threshold} swapping threshold",
            f"{one.l1} L1 in (0=transposed,1=no-transposed) form",
            f"{one.u} U  in (0=transposed,1=no-transposed) form",
            f"{one.equilibration} Equilibration (0=no,1=yes)",
            f"{one.alignment} memory alignment in double (> 0)",
            "##### what follows is for hpcc alone: no further sizes of PTRANS #####",
            *("0 PTRANS: number of sizes", "0", "0 PTRANS: number of blocks", "0"),
        ]

    def _counted(self, name: str, label: str) -> tuple[str, str]:
        values = self.listed[name]
        return f"{len(values)} # of {label}", f"{_joined(values)} {label}"


def _joined(values: Any) -> str:
    # HPL_pdinfo steps over exactly one space between values
    return " ".join(str(value) for value in values)


def _without_grid(row: dict[str, Any]) -> dict[str, int]:
    return {name: value for name, value in row.items() if name != "grid"}
