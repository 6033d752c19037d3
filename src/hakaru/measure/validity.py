"""What else the machine did while something was measured, and whether the numbers still count.

Read from /proc, /sys and the cgroup, before and after: processor time of others, steal, pressure, and
throttling by a quota or by heat; and the clocks. Where a file is missing the entry is null, and a check that
needs it says so.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from hakaru.measure.devices import SYS_CPU
from hakaru.measure.node.cgroups import cpu_stat, throttled_s
from hakaru.measure.node.machine import HERE

PROC = Path("/proc")
# the most that other processes, the hypervisor or both may take of the cores
MOST_TAKEN = 0.10
MOST_MEMORY_PRESSURE = 0.05
LEAST_S = 0.05  # /proc counts in steps of 10 ms, so that less than this may be rounding
LEAST_OFF_S = 0.005  # the time of a process is counted to the nanosecond
LEAST_THROTTLED = 0.01  # of the time
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Reading:
    """Counters at one moment, in seconds; null where this kernel does not have them."""

    wall_s: float
    own_s: float
    busy_s: float | None
    steal_s: float | None
    throttled_s: float | None
    thermal_s: float | None
    pressure_cpu_s: float | None
    pressure_io_s: float | None
    pressure_memory_s: float | None

    def since(self, earlier: Reading) -> Reading:
        """What passed between two moments."""
        return self._with(earlier, -1.0)

    def plus(self, other: Reading) -> Reading:
        return self._with(other, 1.0)

    def _with(self, other: Reading, sign: float) -> Reading:
        pairs = {f.name: (getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        known = {
            name: None if None in pair else pair[0] + sign * pair[1] for name, pair in pairs.items()
        }
        return Reading(**known)  # type: ignore[arg-type]

    def to_json(self) -> dict[str, float | None]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: None if v is None else round(v, 4) for name, v in values.items()}


def read_now(cores: Sequence[int] = ()) -> Reading:
    """The counters now, of these cores or of all; pressure is the whole machine's, and is read with all.

    Readings of single cores surround every repetition, so they must be quick.
    """
    now_s = time.perf_counter()
    busy, steal = _cpu_times(cores, now_s)
    return Reading(
        wall_s=now_s,
        own_s=time.process_time(),
        busy_s=busy,
        steal_s=steal,
        throttled_s=_throttled_s(),
        thermal_s=_thermal_s(cores),
        pressure_cpu_s=None if cores else _pressure("cpu"),
        pressure_io_s=None if cores else _pressure("io"),
        pressure_memory_s=None if cores else _pressure("memory"),
    )


def problems(machine: Reading, num_cores: int, own_s: float | None = None) -> list[str]:
    """Why the numbers of this span do not count: other programs used the machine.

    `own_s` is the processor time of all processes of the measurement on this machine.
    """
    wall = max(machine.wall_s, 1e-9)
    found = []
    if machine.busy_s is None:
        found.append("other processes' use of the machine cannot be read from /proc/stat")
    elif share := _share_of_others(machine, num_cores, own_s):
        found.append(f"other processes used {share:.0%} of the machine's cores")
    if machine.steal_s is not None and machine.steal_s > max(
        MOST_TAKEN * wall * num_cores, LEAST_S
    ):
        found.append(
            f"the hypervisor took {machine.steal_s / (wall * num_cores):.0%} of the cores' time"
        )
    if (
        machine.pressure_memory_s is not None
        and machine.pressure_memory_s > MOST_MEMORY_PRESSURE * wall
    ):
        found.append(
            f"processes waited for memory {machine.pressure_memory_s / wall:.0%} of the time"
        )
    return found


def shared_cores(span: Reading, num_cores: int) -> str | None:
    """Why a device of several cores did not have them to itself; None where it did.

    `span` is of these cores alone, on which all of this process' threads run. On a large machine a load of
    others that doubles every time here is a small share of all cores.
    """
    share = _share_of_others(span, num_cores)
    return f"other processes used {share:.0%} of its cores" if share else None


def _share_of_others(span: Reading, num_cores: int, own_s: float | None = None) -> float | None:
    """What other processes took of the cores' time; None where that is unknown or too little to matter."""
    if span.busy_s is None:
        return None
    foreign_s = span.busy_s - (span.own_s if own_s is None else own_s)
    share = foreign_s / (max(span.wall_s, 1e-9) * num_cores)
    return share if share > MOST_TAKEN and foreign_s > LEAST_S else None


def off_cpu(span: Reading) -> str | None:
    """Why a computing process did not have its core all the time; None where it did or a quota stopped it."""
    if stopped(span):  # the kernel counts throttled time too roughly to subtract it
        return None
    off_s = span.wall_s - span.own_s
    if off_s > max(MOST_TAKEN * span.wall_s, LEAST_OFF_S):
        return f"its core was taken from it {off_s / span.wall_s:.0%} of the time"
    return None


def taken(span: Reading, num_cores: int) -> float | None:
    """The share of a device's time that others had its cores; None where it is unknown or a quota stopped it.

    `span` is of these cores alone, on which all of this process' threads run.
    """
    if stopped(span) or (num_cores > 1 and span.busy_s is None):
        return None
    had_s = span.wall_s if num_cores == 1 else span.busy_s or 0.0
    return round(max(0.0, had_s - span.own_s) / (max(span.wall_s, 1e-9) * num_cores), 4)


def stopped(span: Reading, num_cores: int = 1) -> str | None:
    """What a CPU quota took of the cores' time, in words; the kernel adds up what it took of each."""
    share = (span.throttled_s or 0.0) / (max(span.wall_s, 1e-9) * num_cores)
    return f"a CPU quota stopped it {share:.0%} of the time" if share > LEAST_THROTTLED else None


def heated(span: Reading) -> str | None:
    """What heat took, in words."""
    if span.thermal_s and span.thermal_s > LEAST_THROTTLED * span.wall_s:
        return f"heat slowed its cores for {span.thermal_s:.1f} s"
    return None


def core_clock_mhz(
    cores: Sequence[int], proc: Path = PROC, sys_cpu: Path = SYS_CPU
) -> float | None:
    """The mean clock of these cores now: the governor's, else /proc/cpuinfo's; null without both."""
    files = [sys_cpu / f"cpu{core}/cpufreq/scaling_cur_freq" for core in cores]
    known = [khz / 1e3 for path in files if (khz := _count(path)) is not None]
    if not known:
        known = [mhz for core, mhz in _cpuinfo_clocks(proc).items() if core in cores]
    return round(sum(known) / len(known), 1) if known else None


def machine_id() -> str:
    """The same for all processes on one machine, also where their host names and namespaces differ."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return os.uname().nodename


def family_s() -> float:
    """Processor time of this process and of all its children, those that have ended included."""
    times = os.times()
    ended_s = times.children_user + times.children_system
    return time.process_time() + ended_s + sum(map(_live_s, _children(os.getpid())))


def _live_s(pid: int) -> float:
    """Of a running child, with its own children; 0 where it has just ended."""
    try:
        words = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # utime, stime, and those of its children that have ended
    return sum(map(int, words[11:15])) / TICKS + sum(map(_live_s, _children(pid)))


def _children(pid: int) -> list[int]:
    found = []
    for path in (PROC / str(pid) / "task").glob("*/children"):
        try:
            found += [int(word) for word in path.read_text().split()]
        except OSError:  # the thread, or the process, has just ended
            continue
    return found


def _cpu_times(cores: Sequence[int], now_s: float) -> tuple[float | None, float | None]:
    """Time of programs, and steal; interrupts belong to neither.

    Programs had what the cores were not idle. Their own columns (user, nice, system) are sampled at ticks,
    and a quota's period beats with the tick: half a core was seen to read as three quarters.
    """
    try:
        rows = [line.split() for line in (PROC / "stat").read_text().splitlines()]
        every = {row[0]: [int(word) / TICKS for word in row[1:9]] for row in rows if _is_core(row)}
        chosen = [every[f"cpu{core}"] for core in cores] if cores else list(every.values())
        # idle, iowait, irq, softirq, steal
        not_programs = sum(sum(times[3:8]) for times in chosen)
        steal = sum(times[7] for times in chosen)
    except (OSError, ValueError, IndexError, KeyError):
        return None, None
    return (now_s * len(chosen) - not_programs, steal) if chosen else (None, None)


def _is_core(row: Sequence[str]) -> bool:
    return bool(row) and row[0].startswith("cpu") and row[0] != "cpu"


def _pressure(what: str) -> float | None:
    try:
        text = (PROC / "pressure" / what).read_text()
        return int(text.splitlines()[0].rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None


def _throttled_s() -> float | None:
    """How long a quota has stopped this process' group so far; None where that is not counted."""
    path = _own_cpu_stat()
    return None if path is None else HERE.known(lambda machine: throttled_s(machine.text(path)))


@cache
def _own_cpu_stat() -> str | None:
    return HERE.known(cpu_stat)


def _thermal_s(cores: Sequence[int], sys_cpu: Path = SYS_CPU) -> float | None:
    """How long heat has slowed these cores so far, all together; kernels before 5.5 do not count it."""
    names = [f"cpu{core}" for core in cores] or ["cpu[0-9]*"]
    files = [
        path
        for name in names
        for path in sys_cpu.glob(f"{name}/thermal_throttle/core_throttle_total_time_ms")
    ]
    known = [ms / 1e3 for path in files if (ms := _count(path)) is not None]
    return sum(known) if known else None


def _count(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _cpuinfo_clocks(proc: Path) -> dict[int, float]:
    """`cpu MHz` by core; Arm's file has none."""
    try:
        text = (proc / "cpuinfo").read_text()
    except OSError:
        return {}
    pattern = r"^processor\s*:\s*(\d+)$(?:\n.+)*?\ncpu MHz\s*:\s*(\d+(?:\.\d+)?)$"
    return {int(core): float(mhz) for core, mhz in re.findall(pattern, text, re.MULTILINE)}
