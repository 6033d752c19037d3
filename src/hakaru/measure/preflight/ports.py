"""Ports: the master's must be free, and all-to-all needs enough for its connections."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hakaru.measure.node.machine import Absent, Machine, Unread
from hakaru.measure.preflight.check import (
    ONE_NODE,
    Ask,
    Finding,
    failed,
    fleet_check,
    node_check,
    passed,
    warned,
)
from hakaru.measure.preflight.environment import setting, whole_setting
from hakaru.measure.preflight.facts import Node, amount, fact
from hakaru.measure.preflight.limits import CHANNELS

TORCH_PORT = 29500
LISTENING = "0A"
LINE = re.compile(r"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F:]+ ([0-9A-F]{2}) ", re.MULTILINE)
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
WIDE = "1024 65535"


@fact("listening-ports")
def listening_ports(machine: Machine) -> list[int]:
    """TCP ports that something listens on; IPv6 may be switched off."""
    text = machine.text("/proc/net/tcp")
    if not machine.missing("/proc/net/tcp6"):
        text = f"{text}\n{machine.text('/proc/net/tcp6')}"
    return sorted({int(port, 16) for port, state in LINE.findall(text) if state == LISTENING})


@fact("local-ports")
def local_ports(machine: Machine) -> list[int]:
    first, last = machine.text(RANGE).split()
    return [int(first), int(last)]


@fleet_check(
    "master-port",
    title="Port of the master",
    why="If an earlier run still holds the port, no rank gets past the rendezvous.",
)
def master_port(nodes: Sequence[Node], ask: Ask) -> Finding:
    master = nodes[0]  # launchers put rank 0 on the first node
    port = ask.port or _port_of(master)
    found = f"port {port} on {master.name}"
    if port not in [int(amount(each)) for each in master["listening-ports"]]:
        return passed(f"{found} is free", "free")
    fix = f"ss -ltnp 'sport = :{port}'  # then end that process, or choose another port"
    return failed(f"{found} is in use", "free", fix)


@node_check(
    "local-ports",
    title="Number of ports for connections",
    why="All-to-all on 64 nodes of 16 GPUs needed more than Linux's usual 28,000 ports (ROCm/rccl pull 577).",
)
def enough_ports(node: Node, ask: Ask) -> Finding:
    if ask.alone:
        raise Absent(ONE_NODE)
    first, last = (amount(each) for each in node["local-ports"])
    have, ranks = int(last - first + 1), ask.local_ranks
    channels = whole_setting(node, "NCCL_NCHANNELS_PER_NET_PEER", CHANNELS)
    # rccl pull 577: (N - 1) * G peers elsewhere, of G ranks here, with 2 ports for each channel; NVIDIA's
    # is near it without PXN (NVIDIA/nccl issue 1882). Rings and trees need a few a channel.
    most = (ask.num_ranks - ranks) * ranks * channels * 2
    found, wanted = f"{have:,}", f"{most:,} for all-to-all"
    if have >= most:
        return passed(found, wanted)
    fix = f"sysctl -w net.ipv4.ip_local_port_range='{WIDE}'"
    return failed(found, wanted, fix) if ask.all_to_all else warned(found, wanted, fix)


def _port_of(node: Node) -> int:
    value = setting(node, "MASTER_PORT")
    if value is not None and not value.isdecimal():
        raise Unread(f"MASTER_PORT: expected a number, found {value[:40]!r}")
    return int(value or TORCH_PORT)
