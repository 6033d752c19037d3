"""One line of HPL's output at a time: which kind it is, and what its numbers mean."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from hakaru.errors import HakaruError
from hakaru.measure.hpl.dat import FACTORISATIONS, RANGES, THRESHOLD, Config
from hakaru.measure.hpl.result import ProblemKind, Result, Status, flops

# what launchers put before a line: `mpirun --tag-output` [1,0]<stdout>: or, since Open MPI 5,
# [prterun-n1-411@1,0]<stdout>:, `mpiexec -l` of MPICH and Intel MPI [0], and `srun --label` 0: with blanks
# before it where there are more than ten tasks, and with P0 before those in a heterogeneous job
ANY_LABEL = (
    r"[ \t]{0,20}(?:\[(?:[^\s\[\]@]{1,200}@)?\d{1,9},\d{1,9}\]<std(?:out|err)>:|\[\d{1,9}\](?=[ \t])"
    r"|(?:P\d{1,9}[ \t]{1,20})?\d{1,9}:(?=\s|$))"
)
LABEL = re.compile(rf"^{ANY_LABEL}\s*")
NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eEdD][-+]?\d+)?|\.\d+|nan|inf)"
RESULT = re.compile(
    rf"(?P<variant>W[RC]?\d\w*)\s+(?P<n>\d+)\s+(?P<nb>\d+)\s+(?P<p>\d+)\s+(?P<q>\d+)"
    rf"\s+(?P<seconds>{NUMBER})\s+(?P<gflops>{NUMBER})(?:\s.*)?",
    re.IGNORECASE,
)
LIKE_A_RESULT = re.compile(r"W[RC]?\d\w*\s+\d")
MIXED = re.compile(r"HPL[-_ ]?(?:AI|MXP)\b.*\bW[RC]\d", re.IGNORECASE)
VARIANT = re.compile(r"W(?P<pmap>[RC])(?P<depth>\d+)(?P<bcast>\d)(?P<rfact>[LCR])(?P<ndiv>\d+)"
                      r"(?P<pfact>[LCR])(?P<nbmin>\d+)")  # fmt: skip
RESIDUAL = re.compile(rf"\|\|Ax-b\|\|_oo\s*/.*=\s*(?P<value>{NUMBER})[ .]*(?P<word>[A-Z]+)?", re.I)
SHARED = re.compile(r"(?P<name>SWAP|L1|U|EQUIL|ALIGN)\s*:\s*(?P<value>.+)")
FINISHED = re.compile(r"Finished\s+(?P<number>\d+)\s+tests with the following results")
COUNTED = re.compile(r"(?P<number>\d+)\s+tests (?P<what>completed and passed|completed and failed"
                      r"|completed without checking|skipped because)")  # fmt: skip
COMPLAINT = re.compile(r"HPL (?P<level>ERROR|WARNING)\b")
KEY = re.compile(
    r"(?P<name>DGEMM_N|StarDGEMM_Gflops|SingleDGEMM_Gflops|CommWorldProcs)=(?P<value>\S+)"
)
MEMORY = re.compile(r"memory allocation failed|failed to allocate|out of memory|\[allocate\]", re.I)
INPUT = re.compile(
    r"HPL_pdinfo|illegal input|Need at least|less than|greater than|cannot open", re.I
)
HEADS = {
    "This is the DARPA/DOE HPC Challenge": "hpcc",
    "HPL-NVIDIA": "xhpl (NVIDIA)",
    "HPLinpack": "xhpl",
}
MOST_ROUNDED_S = 0.005  # what is printed as 0.00
MOST_GFLOPS = 1e7  # of a rank: far more than a whole node of GPUs reaches
SWAPS = {"binary": 0, "spread": 1, "long": 1, "mix": 2}


def problem_kind(text: str) -> ProblemKind:
    if MEMORY.search(text):
        return ProblemKind.MEMORY
    return ProblemKind.INPUT if INPUT.search(text) else ProblemKind.ERROR


def new_result(line: int, found: re.Match[str], shared: dict[str, int]) -> Result | None:
    seconds, gflops = number(found["seconds"]), number(found["gflops"])
    sizes = {name: int(found[name][:12]) for name in ("n", "nb", "p", "q")}
    legal = all(RANGES[name][0] <= value <= RANGES[name][1] for name, value in sizes.items())
    if seconds is None or gflops is None or seconds < 0 or gflops <= 0 or not legal:
        return None
    variant = found["variant"][:32].upper()
    config = _config(variant, sizes, shared)
    n, nb, p, q = sizes.values()
    result = Result(line, variant, n, nb, p, q, seconds, gflops, config=config)
    return result if _is_consistent(result) else replace(result, status=Status.INCONSISTENT)


def _is_consistent(result: Result) -> bool:
    """Whether the rate follows from size and time, which is printed to a hundredth of a second.

    A time of 0.00 leaves any rate open; what no processor reaches is refused even then.
    """
    work = flops(result.n) / 1e9
    least = work / (result.seconds + 0.006)
    most = work / (result.seconds - 0.006) if result.seconds > 0.006 else math.inf
    return least * 0.98 <= result.gflops <= min(most * 1.02, MOST_GFLOPS * result.ranks)


def supports_rate(result: Result) -> bool:
    """Whether the time proves the rate: one of 0.00 none above that of half a hundredth."""
    most = flops(result.n) / 1e9 / MOST_ROUNDED_S
    return result.seconds > MOST_ROUNDED_S or result.gflops <= most * 1.02


def checked(result: Result, found: re.Match[str]) -> Result:
    """The result with its residual; of several (HPL 1.x prints three) the worst counts."""
    value, word = number(found["value"]), (found["word"] or "").upper()
    if result.status is Status.INCONSISTENT or word not in ("PASSED", "FAILED"):
        return replace(result, status=Status.INCONSISTENT)
    small = value is not None and 0 <= value < THRESHOLD
    good = small and word == "PASSED" and result.status is not Status.FAILED
    worst = max((each for each in (result.residual, value) if each is not None), default=None)
    return replace(result, residual=worst, status=Status.PASSED if good else Status.FAILED)


def _config(variant: str, sizes: dict[str, int], shared: dict[str, int]) -> Config | None:
    found = VARIANT.fullmatch(variant)
    if not found:
        return None
    numbers = {name: int(found[name][:6]) for name in ("depth", "bcast", "ndiv", "nbmin")}
    letters = {name: FACTORISATIONS.index(found[name]) for name in ("rfact", "pfact")}
    values = {"pmap": "RC".index(found["pmap"])} | numbers | letters | shared
    try:
        return Config(**sizes, **values)
    except HakaruError:  # a setting that only this program knows
        return None


def shared_setting(name: str, value: str) -> dict[str, int]:
    """A line such as `SWAP   : Mix (threshold = 64)` as settings; one that is not known says nothing."""
    low = value.lower()
    digits = re.search(r"\d{1,6}", value)
    if name == "SWAP":
        kinds = [code for word, code in SWAPS.items() if low.startswith(word)]
        threshold = {"swap_threshold": int(digits[0])} if digits else {}
        return {"swap": kinds[0]} | threshold if kinds else {}
    if name == "EQUIL":
        return {"equilibration": int(low.startswith("yes"))}
    if name == "ALIGN":
        return {"alignment": int(digits[0])} if digits else {}
    return {name.lower(): int(low.startswith("no"))}


def number(text: str) -> float | None:
    try:
        value = float(text.replace("d", "e").replace("D", "e"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
