"""The control group of a process, and what it leaves of the memory, for cgroup v1 and v2."""

from __future__ import annotations

from pathlib import Path

import pytest

from hakaru.measure.node.cgroups import cpu_stat, quota_period_s, throttled_s
from hakaru.measure.node.machine import Machine
from hakaru.measure.node.memory import available_bytes
from tests.measure.preflight._fake import MEMORY


def node(root: Path, files: dict[str, str]) -> Machine:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return Machine(root)


def _throttled_s(machine: Machine) -> float | None:
    return throttled_s(machine.text(cpu_stat(machine)))


@pytest.mark.parametrize(
    ("groups", "stat", "text"),
    [
        ("0::/job", "job/cpu.stat", "usage_usec 9\nthrottled_usec 2500000"),
        ("4:cpu,cpuacct:/job\n0::/", "cpu/job/cpu.stat", "nr_throttled 3\nthrottled_time 2500000000"),
        ("4:cpu,cpuacct:/job", "cpu,cpuacct/job/cpu.stat", "throttled_time 2500000000"),
        ("4:cpu:/docker/1", "cpu/cpu.stat", "throttled_time 2500000000"),  # inside a container
    ],
)  # fmt: skip
def test_the_time_that_a_quota_took_is_read(
    tmp_path: Path, groups: str, stat: str, text: str
) -> None:
    machine = node(tmp_path, {"proc/self/cgroup": groups, f"sys/fs/cgroup/{stat}": text})
    assert machine.known(_throttled_s) == 2.5


def test_time_that_is_not_counted_is_unknown(tmp_path: Path) -> None:
    assert Machine(tmp_path).known(_throttled_s) is None
    files = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.stat": "usage_usec 9"}
    assert node(tmp_path, files).known(_throttled_s) is None


@pytest.mark.parametrize(
    ("files", "period_s"),
    [
        ({"job/cpu.max": "max 100000", "cpu.max": "max 100000"}, 0.0),
        ({"job/cpu.max": "150000 100000"}, 0.1),
        ({"job/cpu.max": "5000 10000", "cpu.max": "20000 50000"}, 0.05),  # the outer one holds too
        ({"cpu/job/cpu.cfs_quota_us": "-1"}, 0.0),
        ({"cpu/job/cpu.cfs_quota_us": "5000", "cpu/job/cpu.cfs_period_us": "10000"}, 0.01),
    ],
)
def test_the_longest_period_of_a_quota_is_read(
    tmp_path: Path, files: dict[str, str], period_s: float
) -> None:
    version = "4:cpu:/job" if any("cfs" in name for name in files) else "0::/job"
    placed = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    machine = node(tmp_path, {"proc/self/cgroup": version} | placed)
    assert machine.known(quota_period_s) == period_s


def test_the_memory_of_the_own_group_counts_and_not_only_that_of_the_root(tmp_path: Path) -> None:
    assert available_bytes(Machine(tmp_path)) is None
    assert available_bytes(node(tmp_path, {"proc/meminfo": MEMORY})) == 250_000_000 * 1024
    files = {
        "proc/self/cgroup": "0::/job",
        "sys/fs/cgroup/job/memory.max": str(9 << 30),
        "sys/fs/cgroup/job/memory.current": str(5 << 30),
        "sys/fs/cgroup/job/memory.stat": f"inactive_file {1 << 30}",
    }
    assert available_bytes(node(tmp_path, files)) == 5 << 30
