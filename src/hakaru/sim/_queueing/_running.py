"""Starting and ending jobs, and what that changes for everybody."""

from __future__ import annotations

from hakaru.sim._queueing._events import estimate_of, expect, forget_events, push, unexpect
from hakaru.sim._queueing._lanes import admit
from hakaru.sim._queueing._limits import count
from hakaru.sim._queueing._nodes import node_of, takes
from hakaru.sim._queueing._priorities import use
from hakaru.sim._queueing._state import (
    CLOSED_BUSY,
    DIRTY,
    DONE,
    END,
    GATE_DIRTY,
    NUM_FREE,
    OVER,
    RELEASED,
    RUNNING,
    SEQ,
    compiled,
    inlined,
)
from hakaru.sim._records import LOST
from hakaru.sim._totals import keep


@inlined
def start(J, N, A, R, H, U, L, C, W, n, j, now):
    """Begin job j on the picked nodes."""
    for y in range(J[j].num_nodes):
        x = N[y].pick
        N[x].free -= takes(J, N, j, x)
        n[NUM_FREE] -= takes(J, N, j, x)
        if len(N) > 1:
            A[J[j].offset + y] = x
    n[SEQ] += 1
    J[j].start, J[j].seq, J[j].stage = now, n[SEQ], RUNNING
    estimate = estimate_of(J, U, n, j)
    expect(J, R, n, j, now + estimate)
    push(H, n, now + J[j].run, END, n[SEQ], j)
    if estimate < J[j].run:
        push(H, n, now + estimate, OVER, n[SEQ], j)
    if len(L) > 0:
        count(J, L, C, j, 1, False)
        count(J, L, C, j, -1, True)
        n[GATE_DIRTY] = 1
    if J[j].user >= 0:
        use(U, W, n, J[j].user, J[j].total, now)


@inlined
def release(J, N, A, R, n, j):
    """Its PEs are free again; those of a closed node are out of the machine."""
    unexpect(J, R, n, j)
    for y in range(J[j].num_nodes):
        x = node_of(J, N, A, j, y)
        N[x].free += takes(J, N, j, x)
        if N[x].open:
            n[NUM_FREE] += takes(J, N, j, x)
        else:
            n[CLOSED_BUSY] -= takes(J, N, j, x)
    J[j].stage = RELEASED


@inlined
def _leave(J, U, L, C, W, n, j, now):
    """It counts no longer."""
    if len(L) > 0:
        count(J, L, C, j, -1, False)
    if J[j].user >= 0:
        use(U, W, n, J[j].user, -J[j].total, now)


@inlined
def finish(J, N, A, R, U, L, C, W, n, j, now):
    if J[j].stage == RUNNING:
        release(J, N, A, R, n, j)
    _leave(J, U, L, C, W, n, j, now)
    J[j].stage, J[j].end = DONE, now
    u = J[j].user
    if u >= 0:
        U[u].before = U[u].last
        U[u].last = J[j].run
    n[DIRTY] = 1


@compiled
def put_back(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, j, now, reason):
    """Stop a running job and queue it again; what it has done is lost."""
    forget_events(H, n, j)
    release(J, N, A, R, n, j)
    _leave(J, U, L, C, W, n, j, now)
    keep(T)
    T[LOST] += (now - J[j].start) * J[j].total
    J[j].num_restarts += 1
    J[j].reason = reason
    J[j].start = -1
    if len(L) > 0:
        count(J, L, C, j, 1, True)
    admit(J, Q, B, Y, n, j)
    n[DIRTY] = 1
