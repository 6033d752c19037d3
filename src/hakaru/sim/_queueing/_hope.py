"""Which blocks hold nobody who could begin now, so that a pass need not look into them."""

from __future__ import annotations

from hakaru.sim._queueing._lanes import first_of, next_place, recount
from hakaru.sim._queueing._state import (
    BLOCK,
    ESTIMATES,
    MAX_EXTRA,
    SHADOW,
    SHADOW_KNOWN,
    STATIC,
    compiled,
    inlined,
)


@inlined
def least_estimate(U, n, u, estimate):
    """A bound from below of what a job of person u is taken to need (the estimate itself, if it stays)."""
    if n[ESTIMATES] == STATIC or u < 0 or U[u].before < 0:
        return estimate
    return min(estimate, (U[u].last + U[u].before) // 2)


@inlined
def least_of_block(B, U, n, b):
    is_known = n[ESTIMATES] == STATIC or B[b].user >= 0
    return least_estimate(U, n, B[b].user, B[b].estimate) if is_known else 0


@inlined
def is_too_long(n, estimate, pes, now):
    """Whether it would outlast the shadow time and there is nothing to spare for it."""
    return n[SHADOW_KNOWN] == 1 and now + estimate > n[SHADOW] and pes > n[MAX_EXTRA]


@inlined
def is_hopeless(Q, B, U, n, b, most, now):
    """Whether no job of a block can begin behind the head."""
    if B[b].stale:
        recount(Q, B, b)
    return B[b].pes > most or is_too_long(n, least_of_block(B, U, n, b), B[b].pes, now)


@compiled
def next_hopeful(Q, B, U, n, at, most, now):
    """The first place from one on whose job may begin behind the head; -1 where there is none."""
    while at != -1:
        b, i = at // BLOCK, at % BLOCK
        if i == B[b].first and is_hopeless(Q, B, U, n, b, most, now):
            at = first_of(B, B[b].next)
            continue
        least = least_estimate(U, n, Q[b, i].user, Q[b, i].estimate)
        if Q[b, i].pes <= most and not is_too_long(n, least, Q[b, i].pes, now):
            break
        at = next_place(B, at)
    return at
