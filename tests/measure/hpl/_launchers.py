"""Stand-ins for mpirun and for Slurm's commands: they note how they are called and start one process."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

NOTE = 'echo "$(basename $0) $*" >> "$FAKE_CALLS"\n'
# the words after the options are the program; `-x NAME` and its like have a value
MPIRUN = """
case "$1" in --version) echo "mpirun (Open MPI) 4.1.4"; exit 0 ;; esac
while [ $# -gt 1 ]; do [ "$1" = -np ] && FAKE_RANKS="$2"; shift; done
export FAKE_RANKS
exec "$1"
"""
SALLOC = """
[ -n "$FAKE_REFUSAL" ] && echo "salloc: error: $FAKE_REFUSAL" >&2 && exit 1
echo "salloc: Pending job allocation 42" >&2
sleep "${FAKE_QUEUE_S:-0}"
echo "salloc: Granted job allocation 42" >&2
"""
SRUN = """
for word in "$@"; do case "$word" in --ntasks=*) SLURM_NTASKS="${word#*=}" ;; esac; last="$word"; done
export SLURM_NTASKS
exec "$last"
"""
SQUEUE = 'echo "${FAKE_SHARE:-NO}"\n'
SCRIPTS = {
    "mpirun": MPIRUN,
    "salloc": SALLOC,
    "srun": SRUN,
    "scancel": "",
    "squeue": SQUEUE,
}


@dataclass(frozen=True)
class Tools:
    """A folder for $PATH, and the file that notes the calls."""

    folder: Path
    calls_file: Path

    @classmethod
    def make(cls, folder: Path) -> Tools:
        folder.mkdir()
        for name, text in SCRIPTS.items():
            path = folder / name
            path.write_text(f"#!/bin/sh\n{NOTE}{text}")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return cls(folder, folder / "calls.txt")

    def calls(self, name: str) -> list[list[str]]:
        """The words of each call of a tool, in order."""
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return [line.split()[1:] for line in lines if line.split()[0] == name]
