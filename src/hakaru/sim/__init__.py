"""Replay a job log under another rule: machines, policies, limits, and the kernels that play them."""

from __future__ import annotations

from hakaru.sim.limits import Limit
from hakaru.sim.machine import Change, Group, Machine, Outage, Placement
from hakaru.sim.metrics import measure, measure_by, why_waited
from hakaru.sim.policies import POLICIES, Policy, Weights
from hakaru.sim.run import Options, simulate
from hakaru.sim.schedule import REASONS, Schedule
from hakaru.sim.workload import COLUMNS, ORDER, Workload, estimates_of

__all__ = [
    "COLUMNS",
    "ORDER",
    "POLICIES",
    "REASONS",
    "Change",
    "Group",
    "Limit",
    "Machine",
    "Options",
    "Outage",
    "Placement",
    "Policy",
    "Schedule",
    "Weights",
    "Workload",
    "estimates_of",
    "measure",
    "measure_by",
    "simulate",
    "why_waited",
]
