"""Which LINPACK program runs: Debian's hpcc or any xhpl."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hakaru.errors import HakaruError

INSTALL = "apt-get install hpcc openmpi-bin libopenblas0-pthread"
VARIABLE = "HAKARU_XHPL"  # the path of the program to use


@dataclass(frozen=True)
class Program:
    """`hpcc` runs its whole suite around HPL and measures DGEMM; `xhpl` is HPL alone."""

    kind: Literal["hpcc", "xhpl"]
    path: str

    @property
    def input_name(self) -> str:
        return "hpccinf.txt" if self.kind == "hpcc" else "HPL.dat"

    @property
    def output_names(self) -> tuple[str, ...]:
        """Where results may be, the likeliest first; `stdout.txt` is what the launch keeps."""
        return ("hpccoutf.txt",) if self.kind == "hpcc" else ("stdout.txt", "HPL.out")


def find_program(path: str | Path | None = None) -> Program:
    """The program at the path or of $HAKARU_XHPL, else xhpl or hpcc of $PATH; raises with what is wrong."""
    if path is not None:
        return _program(path, f"{path}")
    if named := os.environ.get(VARIABLE):
        return _program(named, f"{VARIABLE}={named}")
    if found := shutil.which("xhpl") or shutil.which("hpcc"):
        return _program(found, found)
    raise HakaruError(f"neither xhpl nor hpcc is installed. On Debian: {INSTALL}")


def missing_tools(program: Program | None = None, launcher: str = "mpirun") -> str | None:
    """What is not installed, and the command that installs it; None where all is there."""
    problems = []
    try:
        program or find_program()
    except HakaruError as error:
        problems.append(str(error))
    if launcher and shutil.which(launcher) is None:
        install = f". On Debian: {INSTALL}" if launcher == "mpirun" else ""
        problems.append(f"{launcher} is not installed{install}")
    return "\n".join(problems) or None


def num_cores() -> int:
    return len(os.sched_getaffinity(0))


def _program(path: str | Path, shown: str) -> Program:
    found = shutil.which(path)
    if found is None:
        raise HakaruError(
            f"{shown}: not a program that can be run; give the path of an xhpl or of hpcc"
        )
    kind: Literal["hpcc", "xhpl"] = "hpcc" if "hpcc" in Path(found).name.lower() else "xhpl"
    return Program(kind, str(Path(found).absolute()))
