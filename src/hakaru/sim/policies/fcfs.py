"""First come, first served."""

from hakaru.sim.policies._base import policy

FCFS = policy(
    "fcfs",
    title="First come, first served: nobody overtakes",
    cites="Feitelson and Rudolph 1995",
)
