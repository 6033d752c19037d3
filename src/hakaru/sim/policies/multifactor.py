"""Slurm's multifactor priority with EASY-like backfilling."""

from hakaru.sim.policies._base import Weights, policy

MULTIFACTOR = policy(
    "multifactor",
    title="Slurm's multifactor priority (age, size, fair share, queue, QOS) with EASY backfilling",
    cites="Slurm, Multifactor Priority Plugin",
    backfill="easy",
    weights=Weights(age=1000, fair_share=1000),
)
