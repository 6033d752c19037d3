"""Integrals over time that end with the last run: what a node does after it is not the log's."""

from __future__ import annotations

from hakaru.sim._compiling import compiler, float64
from hakaru.sim._records import TOTALS

# The first four are integrals; here they are kept as of the last end.
NUM_INTEGRALS, UNTIL_END = 4, len(TOTALS)
NUM_TOTALS = UNTIL_END + NUM_INTEGRALS

_compiled = compiler({"T": float64[::1]})


@_compiled
def keep(T):
    """Somebody runs no longer: what follows counts only if somebody else runs then."""
    for x in range(NUM_INTEGRALS):
        T[UNTIL_END + x] = T[x]


@_compiled
def go_back(T):
    """To the last end."""
    for x in range(NUM_INTEGRALS):
        T[x] = T[UNTIL_END + x]
