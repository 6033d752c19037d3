"""Beginning a job: the first of the queue, or one behind it that is in nobody's way."""

from __future__ import annotations

from hakaru.sim._queueing._events import estimate_of
from hakaru.sim._queueing._nodes import choose, find_shadow, largest, takes
from hakaru.sim._queueing._running import start
from hakaru.sim._queueing._state import (
    HEAD,
    MAX_EXTRA,
    NUM_FREE,
    SHADOW,
    SHADOW_KNOWN,
    compiled,
    inlined,
)


@inlined
def set_head(n, j):
    n[HEAD] = j
    n[SHADOW_KNOWN] = 0


@inlined
def try_first(J, N, A, R, H, U, L, C, W, n, j, now):
    """Begin a job that nothing stands before."""
    if n[NUM_FREE] < J[j].num_nodes * J[j].pes or not choose(J, N, n, j, False, False):
        return False
    start(J, N, A, R, H, U, L, C, W, n, j, now)
    return True


@compiled
def try_behind(J, N, A, R, H, U, L, C, W, n, j, now):
    """Begin a job behind the head if that cannot delay the head; limits were looked at."""
    if n[NUM_FREE] < J[j].num_nodes * J[j].pes:
        return False
    if not n[SHADOW_KNOWN]:
        find_shadow(J, N, A, R, n)
    outlasts = now + estimate_of(J, U, n, j) > n[SHADOW]
    if outlasts and J[j].pes > n[MAX_EXTRA]:
        return False
    if not choose(J, N, n, j, False, outlasts):
        return False
    if outlasts:
        for y in range(J[j].num_nodes):
            N[N[y].pick].extra -= takes(J, N, j, N[y].pick)
    start(J, N, A, R, H, U, L, C, W, n, j, now)
    n[MAX_EXTRA] = largest(N, True)
    return True
