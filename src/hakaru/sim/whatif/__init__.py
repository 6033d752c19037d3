"""What if: a baseline and variants of it, replayed, with who gains, who loses and how sure that is.

`read(toml_text)` gives a `Scenario`; `run(scenario, workload, cluster, …)` plays it and gives an `Outcome`.
"""

from __future__ import annotations

from hakaru.sim.whatif._check import ScenarioError
from hakaru.sim.whatif.outcome import Change, GroupChange, Outcome, Variant
from hakaru.sim.whatif.run import run
from hakaru.sim.whatif.scenario import Plan, Scenario, example, read

__all__ = [
    "Change",
    "GroupChange",
    "Outcome",
    "Plan",
    "Scenario",
    "ScenarioError",
    "Variant",
    "example",
    "read",
    "run",
]
