"""The linear algebra library that the program uses, and whether it is the right one.

Reference BLAS is about twelve times slower than OpenBLAS. An OpenBLAS that is older than the processor falls
back to kernels without vectors: 0.3.21 takes `Prescott` on Emerald Rapids and loses a factor of four.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

KERNEL_VARIABLE = "OPENBLAS_CORETYPE"
# makes OpenBLAS print `Core: …` when it is loaded
VERBOSE = {"OPENBLAS_VERBOSE": "2"}
# kernels of OpenBLAS without AVX
_OLD = re.compile(
    "prescott|core2|penryn|dunnington|nehalem|atom|generic|katmai|coppermine|northwood|banias|athlon"
    "|opteron|opteron_sse3|barcelona|bobcat|nano",
    re.IGNORECASE,
)
_AVX512 = {"avx512f", "avx512dq", "avx512bw", "avx512vl"}
_AVX2 = {"avx2", "fma"}
# the first that fits a library's name is its kind
_KINDS = {
    "openblas": "OpenBLAS",
    "mkl": "MKL",
    "blis": "BLIS",
    "atlas": "ATLAS",
    "cublas": "cuBLAS",
    "rocblas": "rocBLAS",
    "nvpl": "NVPL",
    "armpl": "Arm PL",
}
_LIBRARY = re.compile(r"^\s*(?P<name>\S+) => (?P<path>/\S+)", re.MULTILINE)


UNKNOWN = "unknown"


@dataclass(frozen=True)
class Blas:
    """`kernel` is what OpenBLAS took in the ranks, `kernel_set` what this search made it take."""

    path: str | None
    kind: str
    kernel: str | None = None
    kernel_set: str | None = None
    warning: str | None = None


def find_blas(program: str) -> Blas:
    """The library of a program, through its symbolic links (Debian's alternatives)."""
    candidates = {name: path for name, path in _linked(program) if _looks_like_blas(name)}
    for path in candidates.values():
        real = str(Path(path).resolve())
        if kind := next((kind for mark, kind in _KINDS.items() if mark in real.lower()), None):
            return Blas(real, kind)
    for name, path in candidates.items():
        if name.startswith("libblas."):
            real = str(Path(path).resolve())
            return Blas(real, "reference BLAS", warning=_REFERENCE.format(path=real))
    return Blas(
        None, UNKNOWN, warning=f"no BLAS library is linked to {program}; it may be built in"
    )


def kernels_in(text: str) -> tuple[str, ...]:
    """The kernels that OpenBLAS named on the standard error of the ranks, each once."""
    return tuple(sorted(set(re.findall(r"^\W*(?:\S*:)?Core: (\w{1,40})$", text, re.MULTILINE))))


def better_kernel(kernels: Collection[str], flags: Collection[str]) -> str | None:
    """The kernel to ask for, where the one taken uses less than the processor has."""
    if not any(_OLD.fullmatch(kernel) for kernel in kernels):
        return None
    if set(flags) >= _AVX512:
        return "SkylakeX"
    return "Haswell" if set(flags) >= _AVX2 else None


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    try:
        text = cpuinfo.read_text()
    except OSError:
        return frozenset()
    found = re.search(r"^flags\s*:\s*(.+)$", text, re.MULTILINE)
    return frozenset(found[1].split()) if found else frozenset()


_REFERENCE = (
    "{path} is the reference BLAS, about 12 times slower than OpenBLAS."
    " On Debian: apt-get install libopenblas0-pthread"
)


def _looks_like_blas(name: str) -> bool:
    return "blas" in name or any(mark in name for mark in _KINDS)


def _linked(program: str) -> list[tuple[str, str]]:
    try:
        shown = subprocess.run(
            ["ldd", program],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [(found["name"], found["path"]) for found in _LIBRARY.finditer(shown.stdout)]
