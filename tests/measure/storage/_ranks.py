"""One process as a group of its own, on a processor."""

from __future__ import annotations

from hakaru.measure.context import Alone, Context
from hakaru.measure.devices import Device
from hakaru.measure.storage._group import Group


def alone() -> Context:
    return Context(Device("cpu:0", "processor"), Alone())


def group() -> Group:
    return Group.of(Alone())
