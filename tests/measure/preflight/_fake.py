"""A healthy node of 8 GPUs as files and commands, and ways to make it ill."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakaru.measure.preflight import Finding, Machine, Preflight, gather, stamp
from hakaru.measure.preflight.gpu import FIELDS

BUSES = [f"0000:{bus:02x}:00.0" for bus in (0x07, 0x0B, 0x48, 0x4C, 0x88, 0x8B, 0xC8, 0xCB)]
CARD = "0000:41:00.0"  # the InfiniBand card
NOW_S = 1_700_000_000.0
UNLIMITED = "unlimited"

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max stack size            {stack:<20} unlimited            bytes
Max processes             513000               513000               processes
Max open files            {soft:<20} {hard:<20} files
Max locked memory         {memlock:<20} {memlock:<20} bytes
"""
MEMORY = "MemTotal: 263000000 kB\nMemAvailable: 250000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
TCP = "  sl  local_address rem_address   st\n   0: 00000000:{port:04X} 00000000:0000 {state} 0:0\n"
CHRONY = """\
Reference ID    : 0A000001
System time     : 0.000012 seconds slow of NTP time
Leap status     : Normal
"""


def limits(
    soft: object = 65536, hard: object = 65536, stack: object = 8 << 20, memlock: object = UNLIMITED
) -> str:
    return LIMITS.format(soft=str(soft), hard=str(hard), stack=str(stack), memlock=str(memlock))


def gpu(index: int) -> dict[str, str]:
    values = {
        "index": str(index),
        "uuid": f"GPU-{index}",
        "name": "NVIDIA A100-SXM4-80GB",
        "pci.bus_id": f"0000{BUSES[index].upper()}",
        "driver_version": "550.90.07",
        "memory.total": "81920",
        "persistence_mode": "Enabled",
        "ecc.mode.current": "Enabled",
        "ecc.errors.uncorrected.volatile.total": "0",
        "retired_pages.pending": "[N/A]",  # of cards before Ampere
        "mig.mode.current": "Disabled",
        "pcie.link.width.current": "16",
        "pcie.link.width.max": "16",
        "pcie.link.gen.current": "1",  # idle
        "pcie.link.gen.max": "4",
        "clocks_event_reasons.active": "0x0000000000000001",
        "clocks_throttle_reasons.active": "0x0000000000000001",
        "clocks.applications.graphics": "1275",
        "clocks.default_applications.graphics": "1275",
        "clocks.applications.memory": "1593",
        "clocks.default_applications.memory": "1593",
        "clocks.max.sm": "1410",
        "power.limit": "400.00",
        "enforced.power.limit": "400.00",
        "power.default_limit": "400.00",
    }
    assert set(values) == set(FIELDS)
    return values


def address(name: str) -> str:
    """Each node has its own: 10.0.0.2 is gpu02."""
    return f"10.0.0.{int(name.removeprefix('gpu'))}"


def interface(name: str, up: bool = True, kind: str = "1") -> dict[str, str]:
    base = f"sys/class/net/{name}"
    return {
        f"{base}/flags": "0x1003" if up else "0x1002",
        f"{base}/operstate": "up" if up else "down",
        f"{base}/type": kind,
    }


def pci(
    bus: str, kind: str, vendor: str, width: int = 16, speed: str = "16.0 GT/s PCIe", most: int = 16
) -> dict[str, str]:
    base = f"sys/bus/pci/devices/{bus}"
    return {
        f"{base}/class": f"0x{kind}00",
        f"{base}/vendor": f"0x{vendor}",
        f"{base}/device": "0x20b0",
        f"{base}/current_link_width": str(width),
        f"{base}/max_link_width": str(most),
        f"{base}/current_link_speed": speed,
        f"{base}/max_link_speed": "16.0 GT/s PCIe",
    }


def healthy_files(name: str) -> dict[str, str]:
    files = {
        "proc/sys/kernel/hostname": name,
        "proc/sys/kernel/osrelease": "5.15.0-105-generic",
        "proc/sys/kernel/pid_max": "4194304",
        "proc/sys/kernel/threads-max": "2000000",
        "proc/sys/kernel/numa_balancing": "0",
        "proc/sys/fs/file-nr": "9000\t0\t9223372036854775807",
        "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999",
        "proc/self/limits": limits(),
        "proc/self/status": "CapEff:\t0000000000000000\n",
        "proc/self/cgroup": "0::/system.slice/job.scope\n",
        "proc/loadavg": "0.10 0.10 0.10 1/1500 4242",
        "proc/meminfo": MEMORY,
        "proc/cpuinfo": "processor : 0\nmodel name : AMD EPYC 7742\n\n" * 64,
        "proc/net/tcp": TCP.format(port=22, state="0A"),
        "sys/fs/cgroup/cgroup.controllers": "memory pids",
        "sys/fs/cgroup/system.slice/job.scope/pids.max": "max",
        "sys/fs/cgroup/system.slice/job.scope/memory.max": "max",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "performance",
        "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
        "sys/class/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)",
        "sys/module/nvidia/version": "550.90.07",
        "usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5": "",
    }
    for bus in BUSES:
        files |= pci(bus, "0302", "10de", speed="2.5 GT/s PCIe")
    return (
        files
        | pci(CARD, "0207", "15b3")
        | interface("lo", kind="772")
        | interface("ib0", kind="32")
    )


@dataclass
class Fake:
    """One node; change what you like, then `facts`."""

    name: str = "gpu01"
    peers: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    gpus: list[dict[str, str]] = field(default_factory=lambda: [gpu(index) for index in range(8)])
    remapped: dict[int, tuple[str, str]] = field(default_factory=dict)  # pending, failure
    apps: str = ""
    shm_kib: int = 128 << 20
    known: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    broken: dict[str, Callable[[], Any]] = field(default_factory=dict)
    unknown_fields: tuple[str, ...] = ()
    now_s: float = NOW_S

    def __post_init__(self) -> None:
        self.files = healthy_files(self.name) | self.files

    def facts(self, root: Path) -> dict[str, Any]:
        """The facts of this node as a launcher hands them over."""
        base = root / self.name
        for path, text in self.files.items():
            file = base / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        found = gather(Machine(base, self.environ, self.run, lambda: self.now_s, self.peers))
        return stamp(found, NOW_S - 0.5, NOW_S + 0.5)

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        if command[0] in self.broken:
            self.broken[command[0]]()
        answers: dict[str, Callable[[Sequence[str]], Any]] = {
            "nvidia-smi": self._nvidia_smi,
            "df": lambda _: (
                f"Filesystem 1024-blocks Used Available\ntmpfs {self.shm_kib} 0 {self.shm_kib} 0% /dev/shm\n"
            ),
            "ip": lambda _: json.dumps(
                [
                    {"ifname": name, "addr_info": [{"local": own}]}
                    for name, own in (("ib0", address(self.name)), ("eth1", "10.1.0.7"))
                ]
            ),
            "getent": self._getent,
            "chronyc": lambda _: CHRONY,
            "mpirun": lambda _: "mpirun (Open MPI) 4.1.4\n",
        }
        answer = answers.get(command[0])
        if answer is None:
            raise FileNotFoundError(command[0])
        out = answer(command)
        return subprocess.CompletedProcess(
            list(command), *(out if isinstance(out, tuple) else (0, out, ""))
        )

    def _nvidia_smi(self, command: Sequence[str]) -> Any:
        if "compute-apps" in command[1]:
            return self.apps
        if "remapped-rows" in command[1]:
            rows = [(card["pci.bus_id"], *self.remapped.get(int(card["index"]), ("0", "0")))
                    for card in self.gpus]  # fmt: skip
            return "".join(", ".join(row) + "\n" for row in rows)
        fields = command[1].partition("=")[2].split(",")
        refused = [name for name in fields if name in self.unknown_fields]
        if refused:
            return 2, f'Field "{refused[0]}" is not a valid field to query.\n', ""
        return "".join(", ".join(card[name] for name in fields) + "\n" for card in self.gpus)

    def _getent(self, command: Sequence[str]) -> Any:
        name = command[2]
        found = self.known[name] if name in self.known else address(name)
        return (2, "", "") if found == "" else f"{found}  STREAM {name}\n{found}  DGRAM\n"


def fleet(root: Path, *nodes: Fake) -> list[dict[str, Any]]:
    """The nodes, each of which knows the names of all."""
    names = tuple(node.name for node in nodes)
    for node in nodes:
        node.peers = node.peers or names
    return [node.facts(root) for node in nodes]


def finding(preflight: Preflight, id: str, node: str) -> Finding:
    return next(
        row.finding
        for row in preflight.rows
        if row.check.id == id and row.node in (node, "all nodes")
    )
