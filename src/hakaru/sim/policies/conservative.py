"""Conservative backfilling: every job has a reservation, and nobody's is moved back."""

from hakaru.sim.policies._base import policy

CONSERVATIVE = policy(
    "conservative",
    title="Conservative backfilling",
    cites="Mu'alem and Feitelson 2001",
    backfill="conservative",
)
