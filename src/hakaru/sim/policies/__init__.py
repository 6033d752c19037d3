"""Scheduling policies: one small file each, registered once."""

from __future__ import annotations

import importlib
import pkgutil

from hakaru.sim.policies._base import POLICIES, Policy, Weights, policy

for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["POLICIES", "Policy", "Weights", "policy"]
