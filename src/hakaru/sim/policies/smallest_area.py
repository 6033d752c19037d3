"""Smallest area first: PEs times the time that a job is thought to run."""

from hakaru.sim.policies._base import policy

SMALLEST_AREA = policy(
    "smallest-area",
    title="Smallest area (PEs × estimated time) first, with EASY backfilling",
    cites="Carastan-Santos et al. 2019",
    order=lambda workload, estimates: estimates * workload.pes,
    backfill="easy",
)
