"""Advice on limits and weights for a stated objective, with the evidence for it."""

from __future__ import annotations

from hakaru.sim.advise._advice import Advice, Found, advise, split_at
from hakaru.sim.advise.case import METRICS, Constraints, Measured, Objective, metric_of
from hakaru.sim.advise.losses import MOST_LOSS, Loss
from hakaru.sim.advise.search import Effort
from hakaru.sim.advise.slurm_conf import SlurmLines, slurm_lines
from hakaru.sim.advise.space import PARTS, Rule, Space
from hakaru.sim.advise.verdict import Verdict

__all__ = [
    "METRICS",
    "MOST_LOSS",
    "PARTS",
    "Advice",
    "Constraints",
    "Effort",
    "Found",
    "Loss",
    "Measured",
    "Objective",
    "Rule",
    "SlurmLines",
    "Space",
    "Verdict",
    "advise",
    "metric_of",
    "slurm_lines",
    "split_at",
]
