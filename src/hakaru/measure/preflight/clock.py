"""Clocks: how far each node's is from the controller's and from the other nodes', and what keeps it right.

The controller stamps when it asked a node and when the answer was there: the node's clock must lie between.
A slow launch or the wait in a queue makes this window wider than what is tolerated; then the time service of
the node must vouch for its clock, and a clock that cannot be judged is not measured, never a pass.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Any

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
from hakaru.measure.preflight.compare import MOST_NAMES, several
from hakaru.measure.preflight.facts import Node, amount, fact
from hakaru.registry import listed

TOLERANCE_S = 1.0
START_SPREAD_S = 180.0  # tasks of one job start within the job's time limit
STEP = "sudo chronyc makestep  # or: sudo systemctl restart systemd-timesyncd"


@fact("wall-clock")
def wall_clock(machine: Machine) -> float:
    return machine.now()


@fact("clock-sync")
def clock_sync(machine: Machine) -> dict[str, Any]:
    """What chrony says, else systemd."""
    # where chrony is not installed, or is not the service that runs here, systemd knows
    text = machine.known(lambda on: on.output("chronyc", "-n", "tracking")) or ""
    leap = re.search(r"^Leap status\s*:\s*(.+)$", text, re.MULTILINE)
    if leap:
        right = leap.group(1).strip() != "Not synchronised" and _offset(text) <= TOLERANCE_S
        return {"by": "chrony", "synchronised": right}
    output = machine.output("timedatectl", "show", "-p", "NTPSynchronized", "--value").strip()
    if output not in ("yes", "no"):
        raise Unread(f"timedatectl: expected yes or no for NTPSynchronized, found {output[:40]!r}")
    return {"by": "timedatectl", "synchronised": output == "yes"}


@node_check(
    "clock-skew",
    title="Clock against the controller's",
    why="Logs of several nodes are merged by time, and credentials of Slurm and others expire by it.",
)
def clock_skew(node: Node, ask: Ask) -> Finding:
    if ask.alone:
        raise Absent(ONE_NODE)
    asked, answered, wall = _times(node)
    wanted = f"within {TOLERANCE_S:g} s"
    if asked - wall > TOLERANCE_S:
        return failed(f"at least {asked - wall:,.1f} s behind", wanted, STEP)
    if wall - answered > TOLERANCE_S:
        return failed(f"at least {wall - answered:,.1f} s ahead", wanted, STEP)
    most = max(wall - asked, answered - wall)
    if most <= TOLERANCE_S:
        return passed(f"at most {most:.1f} s off, the time the launch took", wanted)
    took = f"the answer took {answered - asked:,.1f} s, which is too long to judge the clock by"
    try:
        sync = node["clock-sync"]
    except Unread as error:
        raise Unread(f"{took}, and {error}") from None
    if sync["synchronised"] is True:
        return passed(f"synchronised by {sync['by']}", wanted)
    raise Unread(f"{took}, and {sync['by']} says that it is not synchronised")


@fleet_check(
    "same-clock",
    title="Clocks of the nodes against one another",
    why="A job that waited in the queue says little about a node's clock; its other nodes do.",
)
def same_clock(nodes: Sequence[Node], ask: Ask) -> Finding:
    several(nodes, ask)
    times = {node.name: _times(node) for node in nodes}
    # how long after it was asked each node read its clock: launches differ by no more than the longest
    delays = {name: wall - asked for name, (asked, _, wall) in times.items()}
    longest = max(answered - asked for asked, answered, _ in times.values())
    allowed = TOLERANCE_S + min(START_SPREAD_S, longest)
    spread = max(delays.values()) - min(delays.values())
    wanted = f"within {allowed:,.0f} s, different start times included"
    if spread <= allowed:
        return passed(f"at most {spread:,.1f} s apart", wanted)
    middle = median(delays.values())
    odd = [name for name, delay in delays.items() if abs(delay - middle) > allowed / 2]
    found = f"{spread:,.1f} s apart; furthest from the middle: {listed(odd, MOST_NAMES)}"
    return failed(found, wanted, f"{STEP}  # on the nodes whose clock is wrong")


@node_check(
    "clock-sync",
    title="Time service",
    why="A clock without a time service drifts by seconds a week.",
    essential=False,
    by_hand="chronyc -n tracking  # or timedatectl; where both are missing, install chrony",
)
def time_service(node: Node, ask: Ask) -> Finding:
    sync = node["clock-sync"]
    if sync["synchronised"] is True:
        return passed(f"synchronised ({sync['by']})", "synchronised")
    fix = "sudo systemctl enable --now chronyd  # or: sudo timedatectl set-ntp true"
    return warned(f"not synchronised ({sync['by']})", "synchronised", fix)


def _times(node: Node) -> tuple[float, float, float]:
    """When the controller asked, when it had the answer, and the node's clock in between."""
    if not node.controller:
        raise Unread("the answer carries no time of the controller")
    asked, answered = (amount(node.controller[name]) for name in ("asked_s", "answered_s"))
    return asked, answered, amount(node["wall-clock"])


def _offset(tracking: str) -> float:
    """Seconds between the system's clock and NTP's: chrony corrects a large one slowly."""
    found = re.search(r"^System time\s*:\s*([0-9]+(?:\.[0-9]+)?) seconds", tracking, re.MULTILINE)
    if not found:
        raise Unread("chronyc tracking: found no offset of the system's time")
    return float(found.group(1))
