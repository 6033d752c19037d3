"""Name resolution: a node's own name must lead to itself and not by loopback, the other names elsewhere."""

from __future__ import annotations

import ipaddress
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hakaru.measure.node.machine import Absent, Machine, Unread
from hakaru.measure.preflight.check import ONE_NODE, Ask, Finding, failed, node_check, passed
from hakaru.measure.preflight.facts import HOST_NAME, Node, fact
from hakaru.measure.preflight.network import addresses_of, own_address
from hakaru.registry import listed

NOT_FOUND = 2  # getent's exit code for a name that does not resolve
NUM_LOOKUPS, MOST_NAMES = 16, 5


@fact("own-name")
def own_name(machine: Machine) -> dict[str, Any]:
    name = machine.text("/proc/sys/kernel/hostname")
    return {"name": name, "addresses": _resolve(machine, name)}


@fact("peer-names")
def peer_names(machine: Machine) -> dict[str, list[str]]:
    if not machine.peers:
        raise Unread(
            "the names of the other nodes were not passed to python -m hakaru.measure.preflight"
        )
    with ThreadPoolExecutor(NUM_LOOKUPS) as lookups:
        found = lookups.map(lambda name: _resolve(machine, name), machine.peers)
        return dict(zip(machine.peers, found, strict=True))


@node_check(
    "own-name",
    title="Address of the node's own name",
    why="gloo, MPI and torchrun publish the host name's address: with 127.0.1.1 a peer connects to itself.",
)
def own(node: Node, ask: Ask) -> Finding:
    name, addresses = str(node["own-name"]["name"]), node["own-name"]["addresses"]
    if not HOST_NAME.fullmatch(name):
        raise Unread(f"{name[:60]!r} is not a host name")
    wanted = "an address of this node"
    line = f"in /etc/hosts: {own_address(node) or 'ADDRESS'} {name}"
    if not addresses:
        return failed(f"{name} does not resolve", wanted, line)
    found = f"{name} is {', '.join(str(each) for each in addresses[:3])}"
    if _is_loopback(str(addresses[0])):
        if ask.alone:
            return passed(found)
        fix = f"{line}  # and remove the name from the line of {addresses[0]}"
        return failed(found, "an address that the other nodes can reach", fix)
    here = addresses_of(node)
    foreign = [each for each in map(_bare, addresses) if not (_is_loopback(each) or each in here)]
    if foreign:
        fix = f"{line}  # or correct the record in DNS"
        return failed(f"{found}; not on this node: {listed(foreign, MOST_NAMES)}", wanted, fix)
    return passed(found, wanted)


@node_check(
    "peer-names",
    title="Names of the other nodes",
    why="If one node cannot resolve the master, all the others wait for it.",
)
def peers(node: Node, ask: Ask) -> Finding:
    if ask.alone:
        raise Absent(ONE_NODE)
    known = node["peer-names"]
    others = [name for name in ask.node_names if name != node.name]
    unasked = [name for name in others if name not in known]
    lost = [name for name in others if name in known and not known[name]]
    if lost:
        first = shlex.quote(lost[0])
        fix = f"getent ahosts {first}  # then add it to DNS or to /etc/hosts"
        return failed(f"not resolved: {listed(lost, MOST_NAMES)}", "all names resolve", fix)
    found = {name: known[name] for name in others if name in known}
    # loopback first: it is wrong even where the addresses of this node are not known
    astray = _leading_to(found, _is_loopback) or _leading_to(found, addresses_of(node).__contains__)
    if astray:
        fix = f"getent ahosts {shlex.quote(next(iter(astray)))}  # then correct DNS or /etc/hosts"
        text = listed([f"{name} is {address}" for name, address in astray.items()], MOST_NAMES)
        return failed(f"lead to this node itself: {text}", "addresses of other nodes", fix)
    if unasked:
        raise Unread(f"not looked up: {listed(unasked, MOST_NAMES)}")
    return passed(f"{len(others):,} resolved")


def _resolve(machine: Machine, name: str) -> list[str]:
    """Addresses in the system's order of preference; empty where the name does not resolve."""
    if not HOST_NAME.fullmatch(name):
        raise Unread(f"{name[:60]!r} is not a host name")
    done = machine.finished("getent", "ahosts", name)
    if done.returncode == NOT_FOUND:
        return []
    if done.returncode:
        raise Unread(f"getent ahosts {name} failed with exit code {done.returncode}")
    return list(dict.fromkeys(line.split()[0] for line in done.stdout.splitlines() if line.split()))


def _leading_to(
    found: Mapping[str, Sequence[str]], matches: Callable[[str], bool]
) -> dict[str, str]:
    """The names of which an address matches, with that address."""
    return {name: each for name, addresses in found.items() for each in addresses if matches(each)}


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(_bare(address)).is_loopback


def _bare(address: str) -> str:
    """fe80::1 of fe80::1%eth0."""
    return str(address).partition("%")[0]
