"""Shortest job first, by estimate."""

from hakaru.sim.policies._base import policy

SJF = policy(
    "sjf",
    title="Shortest request first, without backfilling",
    cites="Krueger, Lai and Dixit-Radiya 1994",
    order=lambda workload: workload.request,
)
SJF_EASY = policy(
    "sjf-easy",
    title="Shortest request first, with EASY backfilling",
    cites="Srinivasan et al. 2002",
    order=lambda workload: workload.request,
    backfill="easy",
)
