"""Conservative backfilling: every job has a reservation, and nobody's is moved back."""

from hakaru.sim.policies._base import policy

CONSERVATIVE = policy(
    "conservative",
    title="Conservative backfilling",
    cites="Mu'alem and Feitelson 2001",
    backfill="conservative",
)
CONSERVATIVE_DEPTH = policy(
    "conservative-depth",
    title="Conservative backfilling where the first hundred that wait have a reservation",
    cites="Mu'alem and Feitelson 2001; Slurm, bf_max_job_test",
    backfill="conservative",
    depth=100,
)
