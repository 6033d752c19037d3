"""A stand-in for xhpl: reads HPL.dat by HPL's rules and prints what HPL prints, with rates from a formula.

`FAKE_XHPL` makes it misbehave; `FAKE_XHPL_S` is how long a launch takes. Of the ranks of Slurm only the first
prints, and too few ranks are refused as by HPL.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

LISTS = {
    "n": 5,
    "nb": 7,
    "pfact": 14,
    "nbmin": 16,
    "ndiv": 18,
    "rfact": 20,
    "bcast": 22,
    "depth": 24,
}
LOOPS = ("n", "nb", "depth", "bcast", "rfact", "pfact", "nbmin", "ndiv")


def read_dat(text: str) -> list[dict[str, int]]:
    """The runs that a HPL.dat describes, in HPL's order; lines count from 1, as in its manual."""
    lines = ["", *text.splitlines()]
    first = [line.split()[0] if line.split() else "" for line in lines]

    def listed(at: int, number: int) -> list[int]:
        return [int(word) for word in lines[at].split()[:number]]

    values = {name: listed(at + 1, int(first[at])) for name, at in LISTS.items()}
    grids = list(zip(listed(11, int(first[10])), listed(12, int(first[10])), strict=True))
    return [
        {"p": p, "q": q, "pmap": int(first[9]), "swap": int(first[26])}
        | dict(zip(LOOPS, row, strict=True))
        for p, q in grids
        for row in itertools.product(*(values[name] for name in LOOPS))
    ]


def gflops(run: dict[str, int]) -> float:
    """Blocks of 128 and no look-ahead are best, and a larger matrix is faster."""
    rate = 50.0 * run["p"] * run["q"] * run["n"] / (run["n"] + 500)
    rate *= 1 - 0.1 * abs(run["nb"] - 128) / 128
    return rate * (1.0 if run["depth"] == 0 else 0.9) * (0.98 if run["pfact"] == 1 else 1.0)


def variant(run: dict[str, int]) -> str:
    return (
        f"W{'RC'[run['pmap']]}{run['depth']}{run['bcast']}{'LCR'[run['rfact']]}{run['ndiv']}"
        f"{'LCR'[run['pfact']]}{run['nbmin']}"
    )


def result(
    run: dict[str, int], rate: float, residual: str = "0.0034465", word: str = "PASSED"
) -> str:
    work = (2.0 / 3.0 * run["n"] + 1.5) * run["n"] ** 2 / 1e9
    sizes = f"{run['n']:12d} {run['nb']:5d} {run['p']:5d} {run['q']:5d}"
    check = f"||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= {residual:>16} ...... {word}"
    return f"{variant(run)}{sizes} {work / rate:18.2f}    {rate:19.4e}\n{'-' * 80}\n{check}"


def page(results: list[str], num_failed: int = 0) -> str:
    head = "=" * 80
    return "\n".join([
        head, "HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018", head,
        "SWAP   : Mix (threshold = 64)", "L1     : transposed form", "U      : transposed form",
        "EQUIL  : yes", "ALIGN  : 8 double precision words", head,
        "T/V                N    NB     P     Q               Time                 Gflops", "-" * 80,
        *results, head, "",
        f"Finished {len(results):6d} tests with the following results:",
        f"         {len(results) - num_failed:6d} tests completed and passed residual checks,",
        f"         {num_failed:6d} tests completed and failed residual checks,",
        f"         {0:6d} tests skipped because of illegal input values.", "-" * 80, "",
        "End of Tests.", head, "",
    ])  # fmt: skip


def has_ranks(runs: list[dict[str, int]]) -> bool:
    """Whether there are as many ranks as every grid needs, as far as whoever started this says."""
    given = os.environ.get("FAKE_RANKS") or os.environ.get("SLURM_NTASKS")
    return given is None or all(run["p"] * run["q"] <= int(given) for run in runs)


def main() -> int:
    mode = os.environ.get("FAKE_XHPL", "")
    runs = read_dat(Path("HPL.dat").read_text())
    if int(os.environ.get("SLURM_PROCID", "0")):
        return 0
    if not has_ranks(runs):
        print("HPL ERROR from process # 0, on line 440 of function HPL_pdinfo:")
        print(">>> Need at least 6 processes for these tests <<<")
        return 1
    time.sleep(float(os.environ.get("FAKE_XHPL_S", "0.01")))
    if mode == "hang":
        time.sleep(600)
    if mode == "crash":
        print("rank 1: I am out of luck", file=sys.stderr)
        return 3
    if mode == "other":
        runs = [run | {"nb": 7} for run in runs]
    shown = [result(run, gflops(run)) for run in runs]
    if mode == "wrong":
        shown[-1] = result(runs[-1], gflops(runs[-1]), "123456.7", "FAILED")
    text = page(shown, num_failed=1 if mode == "wrong" else 0)
    print(text[: len(text) // 2] if mode == "half" else text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
