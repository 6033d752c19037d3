"""Stopping jobs of low queues for others, where that lets somebody begin."""

from __future__ import annotations

from hakaru.sim._queueing._lanes import dequeue
from hakaru.sim._queueing._nodes import choose, node_of, takes
from hakaru.sim._queueing._priorities import sort
from hakaru.sim._queueing._reasons import explain
from hakaru.sim._queueing._running import put_back, start
from hakaru.sim._queueing._state import JOB_MASK, NUM_RUNNING, compiled
from hakaru.sim._records import PREEMPTED


@compiled
def _lift(J, N, A, v, sign):
    """Give a victim's PEs back in `then`, or take them again."""
    for y in range(J[v].num_nodes):
        node = node_of(J, N, A, v, y)
        N[node].then += sign * takes(J, N, v, node)


@compiled
def _low_running(J, R, P, K, n):
    """Put into K the running jobs of low queues, the latest first: where they begin, and end."""
    num = 0
    for x in range(n[NUM_RUNNING]):
        r = R[x] & JOB_MASK
        if J[r].queue >= 0 and P[J[r].queue].low:
            K[num].key, K[num].job = -J[r].seq, r
            num += 1
    first = sort(K, num)
    return first, first + num


@compiled
def find_victims(J, N, A, R, P, K, n, j):
    """Put into K whom to stop so that job j fits: the latest, and none who may as well go on; how many."""
    if J[j].queue < 0 or P[J[j].queue].low:
        return 0
    for x in range(len(N)):
        N[x].then = N[x].free
    first, last = _low_running(J, R, P, K, n)
    end, fits = first, False
    while end < last and not fits:
        _lift(J, N, A, K[end].job, 1)
        end += 1
        fits = choose(J, N, n, j, True, False)
    num = 0
    for x in range(end - 1 if fits else first - 1, first - 1, -1):
        _lift(J, N, A, K[x].job, -1)
        if not choose(J, N, n, j, True, False):
            _lift(J, N, A, K[x].job, 1)
            num += 1
            K[x].key = 1
    at = 0
    for x in range(first, end if fits else first):
        if K[x].key == 1:
            K[at].job = K[x].job
            at += 1
    return num


@compiled
def replace(J, N, A, Q, B, Y, R, H, U, L, C, W, K, T, n, num, now):
    """Stop the victims in K for the first in the queue, which begins in their place."""
    lane = Y[0].turn
    j = Y[lane].job
    explain(J, N, Y, n, j, J[j].seq)
    dequeue(Q, B, Y, n, Y[lane].at)
    for x in range(num):
        put_back(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, K[x].job, now, PREEMPTED)
    choose(J, N, n, j, False, False)
    start(J, N, A, R, H, U, L, C, W, n, j, now)
