"""Shortest job first, by estimate."""

from hakaru.sim.policies._base import policy

SJF = policy(
    "sjf",
    title="Shortest estimate (the request, unless told otherwise) first, without backfilling",
    cites="Krueger, Lai and Dixit-Radiya 1994",
    order=lambda workload, estimates: estimates,
)
SJF_EASY = policy(
    "sjf-easy",
    title="Shortest estimate (the request, unless told otherwise) first, with EASY backfilling",
    cites="Srinivasan et al. 2002",
    order=lambda workload, estimates: estimates,
    backfill="easy",
)
