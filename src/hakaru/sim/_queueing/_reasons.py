"""Why a job waits."""

from __future__ import annotations

from hakaru.sim._queueing._limits import is_held
from hakaru.sim._queueing._nodes import takes
from hakaru.sim._queueing._state import (
    BACKFILL,
    LOCALITY,
    NO_BACKFILL,
    NUM_FREE,
    NUM_LANES,
    NUM_PASSES,
    NUM_SEEN,
    compiled,
    inlined,
)
from hakaru.sim._records import BEHIND, FRAGMENTED, LIMIT, PREEMPTED, REQUIRED, RESERVED, RESOURCES


@inlined
def _left(N, x, is_live):
    """What node x has free for jobs: now, or as the last pass left it."""
    if is_live:
        return N[x].free if N[x].open else 0
    return N[x].seen


@compiled
def free_for(J, N, n, j, is_live):
    """What is free of the model that job j asks for."""
    if J[j].model < 0:
        return n[NUM_FREE] if is_live else n[NUM_SEEN]
    free = 0
    for x in range(len(N)):
        free += _left(N, x, is_live) if N[x].model == J[j].model else 0
    return free


@compiled
def _why_not(J, N, n, j, is_live):
    """What stands in the way of a job that no limit holds, though enough is free of all models."""
    if free_for(J, N, n, j, is_live) < J[j].num_nodes * J[j].pes:
        return RESOURCES
    near = n[LOCALITY] == REQUIRED and J[j].num_nodes > 1
    for x in range(len(N)):
        N[x].num_fit = 0
    for x in range(len(N)):
        w = N[x].switch if near else 0
        if J[j].model < 0 or N[x].model == J[j].model:
            need = max(J[j].pes, takes(J, N, j, x))
            N[w].num_fit += _left(N, x, is_live) >= need
        if N[w].num_fit >= J[j].num_nodes:
            return BEHIND if n[BACKFILL] == NO_BACKFILL else RESERVED
    return FRAGMENTED


@inlined
def why(J, N, n, j, is_live):
    """What stands in the way of a job that no limit holds; most often there is too little."""
    free = n[NUM_FREE] if is_live else n[NUM_SEEN]
    return RESOURCES if free < J[j].num_nodes * J[j].pes else _why_not(J, N, n, j, is_live)


@inlined
def explain(J, N, Y, n, j, came):
    """Why job j waited, before which so many passes were; who was stopped keeps that as the reason."""
    if J[j].reason < PREEMPTED and came < n[NUM_PASSES]:
        J[j].reason = LIMIT if Y[J[j].lane].was_held else why(J, N, n, j, False)


@compiled
def explain_all(J, N, Q, B, Y, n):
    """Why those wait who never begin."""
    for x in range(n[NUM_LANES]):
        b = Y[Y[x].active].first
        while b != -1:
            for i in range(B[b].first, B[b].end):
                explain(J, N, Y, n, Q[b, i].job, J[Q[b, i].job].seq)
            b = B[b].next


@inlined
def remember(J, N, Q, B, Y, L, V, C, n):
    """Keep what a pass left, by which those who begin in the next are told why they waited."""
    n[NUM_PASSES] += 1
    n[NUM_SEEN] = n[NUM_FREE]
    for x in range(len(N)):
        N[x].seen = _left(N, x, True)
    for x in range(n[NUM_LANES] if len(L) > 0 else 0):
        lane = Y[x].active
        b = Y[lane].first
        Y[lane].was_held = is_held(J, L, V, C, n, Q[b, B[b].first].job, False)
