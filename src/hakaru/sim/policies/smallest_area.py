"""Smallest area first: what a job asks for, PEs times time."""

from hakaru.sim.policies._base import policy

SMALLEST_AREA = policy(
    "smallest-area",
    title="Smallest request (PEs × time) first, with EASY backfilling",
    cites="Carastan-Santos et al. 2019",
    order=lambda workload: workload.request * workload.pes,
    backfill="easy",
)
