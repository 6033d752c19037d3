"""Jobs of low queues yield to others."""

from hakaru.sim.policies._base import policy

PREEMPTING = policy(
    "preempting",
    title="EASY backfilling where jobs of low queues are stopped and queued again for others",
    cites="Slurm, Preemption",
    backfill="easy",
    preempts=True,
)
