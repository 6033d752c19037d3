"""Network interfaces: which ones NCCL and gloo may use, and whether a configured one exists and is up."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hakaru.measure.node.machine import Absent, Machine, Unread
from hakaru.measure.preflight.check import (
    ONE_NODE,
    Ask,
    Finding,
    failed,
    node_check,
    passed,
    warned,
)
from hakaru.measure.preflight.environment import setting
from hakaru.measure.preflight.facts import Node, fact
from hakaru.measure.preflight.gpu import cards

FOLDER = "/sys/class/net"
IFF_UP, LOOPBACK_TYPE = 0x1, "772"
NAME = re.compile(r"[A-Za-z0-9._:@-]{1,15}")
# bridges and pairs of containers and virtual machines, which lead to no other node
INSIDE = re.compile(r"(docker|veth|virbr|br-|cni|flannel|cali|podman|lxc|lxd|kube|tunl|dummy|ifb)")


@fact("interfaces")
def interfaces(machine: Machine) -> list[dict[str, Any]]:
    addresses = _addresses(machine)
    names = [name for name in machine.names(FOLDER) if NAME.fullmatch(name)]
    return [_interface(machine, name, addresses) for name in names if name != "bonding_masters"]


@node_check(
    "nccl-interface",
    title="Interface for NCCL",
    why="NCCL uses any interface that is up, and hangs on one that does not reach the other nodes; "
    "MN-1 had to describe its topology in variables.",
)
def nccl_interface(node: Node, ask: Ask) -> Finding:
    value = setting(node, "NCCL_SOCKET_IFNAME")
    if value is None:
        with suppress(Unread):  # GPUs that cannot be read still need NCCL or RCCL
            cards(node, ask)
    return _choice(node, ask, "NCCL_SOCKET_IFNAME", value, exact=False)


@node_check(
    "gloo-interface",
    title="Interface for gloo",
    why="gloo uses the interface of the host name's address: on a wrong one the ranks never connect.",
)
def gloo_interface(node: Node, ask: Ask) -> Finding:
    return _choice(node, ask, "GLOO_SOCKET_IFNAME", setting(node, "GLOO_SOCKET_IFNAME"), exact=True)


def chosen(value: str, names: Sequence[str], exact: bool) -> list[str]:
    """The interfaces that a variable selects.

    NCCL's is a list of prefixes; `=` before it makes them whole names and `^` excludes them.
    """
    excluded = not exact and value.startswith("^")
    rest = value.removeprefix("^") if excluded else value
    exact = exact or rest.startswith("=")
    words = [word.strip() for word in rest.removeprefix("=").split(",") if word.strip()]
    named = [
        name
        for name in names
        if any(name == word if exact else name.startswith(word) for word in words)
    ]
    return [name for name in names if name not in named] if excluded else named


def own_address(node: Node) -> str | None:
    """An address by which other nodes can reach this one."""
    for each in filter(_reaches_others, node.get("interfaces", [])):
        for address in each["addresses"] or []:
            if not str(address).startswith("fe80:"):
                return str(address)
    return None


def addresses_of(node: Node) -> list[str]:
    """All of a node, on whichever interface; not measured where they are not known."""
    listed = [each["addresses"] for each in node["interfaces"]]
    if any(each is None for each in listed):
        raise Unread("the addresses of this node are not known: `ip -j addr` (iproute2) failed")
    return [str(address) for each in listed for address in each]


def _choice(node: Node, ask: Ask, variable: str, value: str | None, exact: bool) -> Finding:
    known = {str(each["name"]): each for each in node["interfaces"]}
    candidates = [name for name, each in known.items() if _reaches_others(each)]
    fix = f"export {variable}={shlex.quote(candidates[0]) if candidates else 'NAME'}"
    wanted = "an interface that is up and reaches the other nodes"
    if value is None:
        return _unset(ask, candidates, variable, wanted, fix)
    picked = chosen(value, list(known), exact)
    if value.startswith("^") and not exact:  # NCCL leaves out loopback and docker by itself
        picked = [name for name in picked if name in candidates]
    if not picked:
        return failed(
            f"{variable}={value} matches no interface; found {', '.join(known)}", wanted, fix
        )
    down = [name for name in picked if known[name]["up"] is not True]
    if down:
        return failed(f"{variable}={value}: {', '.join(down)} is down", wanted, fix)
    inside = [name for name in picked if name not in candidates]
    if inside and not ask.alone:
        return failed(f"{variable}={value}: {', '.join(inside)} reaches no other node", wanted, fix)
    return passed(f"{variable}={value}: {', '.join(picked)}", wanted)


def _unset(ask: Ask, candidates: Sequence[str], variable: str, wanted: str, fix: str) -> Finding:
    if ask.alone:
        raise Absent(ONE_NODE)
    if not candidates:
        return failed("no interface is up except loopback and bridges", wanted, "ip -br link")
    if len(candidates) > 1:
        found = f"{variable} is not set, and several interfaces are up: {', '.join(candidates)}"
        return warned(found, f"{variable} set to one of them", fix)
    return passed(f"{candidates[0]} is the only interface that is up", wanted)


def _reaches_others(interface: Any) -> bool:
    """Up, neither loopback nor an internal bridge, and with an address where addresses are known."""
    addresses = interface["addresses"]
    if interface["up"] is not True or interface["loopback"] or INSIDE.match(str(interface["name"])):
        return False
    return addresses is None or any(not str(each).startswith("fe80:") for each in addresses)


def _interface(
    machine: Machine, name: str, addresses: dict[str, list[str]] | None
) -> dict[str, Any]:
    flags = int(machine.text(f"{FOLDER}/{name}/flags"), 16)
    state = machine.text(f"{FOLDER}/{name}/operstate")
    return {
        "name": name,
        "up": bool(flags & IFF_UP) and state in ("up", "unknown"),
        "loopback": machine.text(f"{FOLDER}/{name}/type") == LOOPBACK_TYPE,
        "addresses": None if addresses is None else addresses.get(name, []),
    }


def _addresses(machine: Machine) -> dict[str, list[str]] | None:
    """By interface; None where `ip` cannot be run."""
    try:
        links = json.loads(machine.output("ip", "-j", "addr"))
        return {
            str(link.get("ifname")): [str(each["local"]) for each in link.get("addr_info", [])]
            for link in links
        }
    except (Unread, ValueError, AttributeError, LookupError, TypeError):
        return None
