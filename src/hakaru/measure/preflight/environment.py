"""Environment variables that configure NCCL, gloo and OpenMP: an allow-list, since others may be secrets."""

from __future__ import annotations

from hakaru.measure.node.machine import Machine, Unread
from hakaru.measure.preflight.facts import Node, fact

VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "GLOO_SOCKET_IFNAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NCCL_IB_DISABLE",
    "NCCL_IB_HCA",
    "NCCL_NCHANNELS_PER_NET_PEER",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_NTHREADS",
    "OMP_NUM_THREADS",
)
NCCL_CONF = "/etc/nccl.conf"


@fact("environment")
def environment(machine: Machine) -> dict[str, str]:
    """Those that are set; NCCL also reads /etc/nccl.conf, which the environment overrides."""
    found = {name: machine.environ[name] for name in VARIABLES if machine.environ.get(name)}
    if machine.exists(NCCL_CONF):
        for line in machine.text(NCCL_CONF).splitlines():
            name, _, value = line.partition("=")
            if name.strip() in VARIABLES and value.strip():
                found.setdefault(name.strip(), value.strip())
    return found


def setting(node: Node, name: str) -> str | None:
    value = node["environment"].get(name)
    return str(value) if value else None


def whole_setting(node: Node, name: str, default: int) -> int:
    """A variable that holds a number; anything else in it is an error, not the default."""
    value = setting(node, name)
    if value is None:
        return default
    if not value.isdecimal() or int(value) < 1:
        raise Unread(f"{name} is {value[:40]!r}: expected a whole number of at least 1")
    return int(value)
