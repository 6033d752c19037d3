"""Preflight: the causes that stopped MN-1's large runs, checked on every node before a run starts.

`gather` runs on each node and `judge` on the controller; a new check is one decorated function.
"""

from hakaru.measure.preflight import (  # noqa: I001 the order of the checks in every table
    limits as limits,
    processes as processes,
    cpu as cpu,
    clock as clock,
    pcie as pcie,
    gpu as gpu,
    gpu_health as gpu_health,
    gpu_limits as gpu_limits,
    memory as memory,
    network as network,
    names as names,
    ports as ports,
    versions as versions,
    hardware as hardware,
)
from hakaru.measure.preflight.answers import read_answer, stamp, unanswered
from hakaru.measure.preflight.check import CHECKS, Ask, Check, Finding, fleet_check, node_check
from hakaru.measure.preflight.facts import FACTS, Node, fact, gather
from hakaru.measure.preflight.judge import ALL_NODES, Preflight, Row, judge, verdict_of
from hakaru.measure.node.machine import Absent, Machine, Unread
from hakaru.measure.preflight.pcie import has_gpus

__all__ = [
    "ALL_NODES",
    "CHECKS",
    "FACTS",
    "Absent",
    "Ask",
    "Check",
    "Finding",
    "Machine",
    "Node",
    "Preflight",
    "Row",
    "Unread",
    "fact",
    "fleet_check",
    "gather",
    "has_gpus",
    "judge",
    "node_check",
    "read_answer",
    "stamp",
    "unanswered",
    "verdict_of",
]
