"""The header row of `sacct -P`: which fields there are, in which order, and what stands between them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

# `sacct --helpformat` of 22.05, and what other versions have
_NAMES = """
    Account AdminComment AllocCPUS AllocGRES AllocNodes AllocTRES AssocID AveCPU AveCPUFreq
    AveDiskRead AveDiskWrite AvePages AveRSS AveVMSize BlockID Cluster Comment Constraints
    ConsumedEnergy ConsumedEnergyRaw Container CPUTime CPUTimeRAW DBIndex DerivedExitCode Elapsed
    ElapsedRaw Eligible End ExitCode Extra FailedNode Flags GID Group JobID JobIDRaw JobName Layout
    Licenses MaxDiskRead MaxDiskReadNode MaxDiskReadTask MaxDiskWrite MaxDiskWriteNode
    MaxDiskWriteTask MaxPages MaxPagesNode MaxPagesTask MaxRSS MaxRSSNode MaxRSSTask MaxVMSize
    MaxVMSizeNode MaxVMSizeTask McsLabel MinCPU MinCPUNode MinCPUTask NCPUS NNodes NodeList NTasks
    Partition Planned PlannedCPU PlannedCPURAW Priority QOS QOSRAW QOSREQ Reason ReqCPUFreq
    ReqCPUFreqGov ReqCPUFreqMax ReqCPUFreqMin ReqCPUS ReqGRES ReqMem ReqNodes ReqTRES Reservation
    ReservationId Reserved Restarts ResvCPU ResvCPURAW SLUID Start State StdErr StdIn StdOut Submit
    SubmitLine Suspended SystemComment SystemCPU Timelimit TimelimitRaw TotalCPU TRESUsageInAve
    TRESUsageInMax TRESUsageInMaxNode TRESUsageInMaxTask TRESUsageInMin TRESUsageInMinNode
    TRESUsageInMinTask TRESUsageInTot TRESUsageOutAve TRESUsageOutMax TRESUsageOutMaxNode
    TRESUsageOutMaxTask TRESUsageOutMin TRESUsageOutMinNode TRESUsageOutMinTask TRESUsageOutTot UID
    User UserCPU WCKey WCKeyID WorkDir
"""
FIELDS = frozenset(_NAMES.lower().split())
FREE_TEXT = {
    *("jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "wckey"),
    *("container", "extra", "stdin", "stdout", "stderr"),
}


# What Slurm's commands, ssh and munge write to the terminal, which `2>&1` puts among the records.
_TOOLS = "sacct|sacctmgr|salloc|sbatch|scontrol|sinfo|squeue|srun|slurm[a-z_]*|ssh[a-z_]*|munged?"
MESSAGE = (
    rf"^(({_TOOLS})(\[[0-9]+\])?(:| error:) "
    r"|([\w./-]+(\[[0-9]+\])?: (line [0-9]+: )?)?(?i:error|warning|fatal): "
    r"|\[[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+\] "
    r"|(\w+: )?Connection (to [^ ]+ closed|closed by|reset by|timed out)"
    r"|Host key verification failed|[\w.@-]+: Permission denied)"
)
MOST_MESSAGES = 50
# what sites pass to --delimiter
DELIMITERS = ("|", ",", ";", "\t", "\x1f", "\x1e", "^", "~", "#", "@", "!", ":", "&", "%")
ID = r"[0-9]+([_+.][\w\[\],:%.+-]*)?"  # 7_[1-3:2%5] has what may be a delimiter elsewhere
LOOKED_AT = 100
WIDTH = r"%-?[0-9]+$"  # sacct -o takes JobName%30 and JobName%-30


@dataclass(frozen=True)
class Layout:
    """The fields in order, what stands between them and after the last, and the header's line (0: none)."""

    names: tuple[str, ...]
    delimiter: str
    trailing: bool
    line: int = 1

    @property
    def width(self) -> int:
        """Cells that a line is split into."""
        return len(self.names) + self.trailing

    @property
    def free(self) -> list[int]:
        return [i for i, name in enumerate(self.names, 1) if name.lower() in FREE_TEXT]

    @property
    def header(self) -> str:
        return self.delimiter.join(self.names) + self.delimiter * self.trailing

    def position(self, *names: str) -> int | None:
        """Where the first of these fields stands that is there at all, from 1."""
        lower = [name.lower() for name in self.names]
        return next((lower.index(name) + 1 for name in names if name in lower), None)


def parse(head: str) -> Layout | None:
    """The layout of the first line that is not a message of a command."""
    for number, text in enumerate(head.split("\n")[:MOST_MESSAGES], 1):
        if text.strip() and not re.match(MESSAGE, text):
            found = _parse_line(text.rstrip("\r"))
            return found and replace(found, line=number)
    return None


def without_header(head: str, fields: str) -> Layout | None:
    """The layout of text whose fields are given as to sacct -o; the delimiter is what most lines fit."""
    names = tuple(re.sub(WIDTH, "", name.strip()) for name in fields.split(","))
    rows = [row.rstrip("\r") for row in head.split("\n") if row.strip()][:LOOKED_AT]
    layouts = [Layout(names, each, end, line=0) for each in DELIMITERS for end in (False, True)]
    fits = {layout: sum(_fits(layout, row) for row in rows) for layout in layouts}
    best = max(layouts, key=lambda layout: fits[layout])
    return best if fits[best] else None


def num_fields(head: str) -> tuple[int, str] | None:
    """How many fields most lines with a job's id have, and what stands between them."""
    rows = [row.rstrip("\r") for row in head.split("\n") if row.strip()][:LOOKED_AT]
    found = Counter(
        (len(cells) - (cells[-1] == ""), delimiter)
        for delimiter in DELIMITERS
        for row in rows
        if len(cells := row.split(delimiter)) > 1 and any(re.fullmatch(ID, cell) for cell in cells)
    )
    return found.most_common(1)[0][0] if found else None


def _fits(layout: Layout, row: str) -> bool:
    cells = row.split(layout.delimiter)
    at = layout.position("jobid", "jobidraw") or 1
    ends = not layout.trailing or cells[-1] == ""
    return len(cells) == layout.width and ends and bool(re.fullmatch(ID, cells[at - 1]))


def _parse_line(first: str) -> Layout | None:
    """The fields and the delimiter, which is whatever leaves only known fields."""
    starts = [name for name in FIELDS if first.lower().startswith(name)]
    for name in sorted(starts, key=len, reverse=True):
        for length in range(1, 9):
            names = first.split(delimiter := first[len(name) :][:length] or "|")
            if all(n.lower() in FIELDS for n in names if n) and all(names[:-1]):
                return _without_trailing(names, delimiter)
    # a field that a later Slurm has
    unknown = re.match(r"[A-Za-z]+([^A-Za-z0-9 ]+)[A-Za-z]", first)
    if starts and unknown:
        return _without_trailing(first.split(unknown[1]), unknown[1])
    return None


def _without_trailing(names: list[str], delimiter: str) -> Layout:
    """`sacct -p` ends each line with the delimiter, `sacct -P` does not."""
    trailing = names[-1] == ""
    return Layout(tuple(names[:-1] if trailing else names), delimiter, trailing)
