"""Priorities that move: points for age, size, fair share, queue and QOS, and the order that they give."""

from __future__ import annotations

import math

import numpy as np

from hakaru.sim._queueing._lanes import is_before, sink
from hakaru.sim._queueing._state import (
    AGE,
    BLOCK,
    FAIR_SHARE,
    HALF_LIFE,
    LAST_PRIORITY,
    MAX_AGE,
    MULTIFACTOR,
    NUM_OPEN,
    NUM_PEOPLE,
    NUM_TURNS,
    ORDER,
    PERIOD,
    POINT,
    PREEMPT,
    SIZE,
    YIELDING,
    compiled,
    inlined,
)


@inlined
def _key(J, U, P, E, W, n, j):
    """The smaller goes first: as given, or Slurm's multifactor with ages and fair shares as last counted."""
    if n[ORDER] != MULTIFACTOR:
        return J[j].key
    age = max(0, n[LAST_PRIORITY] - J[j].submit)
    points = W[AGE] * min(1.0, age / W[MAX_AGE])
    points += W[SIZE] * J[j].total / max(1, n[NUM_OPEN])
    if J[j].user >= 0:
        points += U[J[j].user].points
    if J[j].queue >= 0:
        points += P[J[j].queue].points
        if n[PREEMPT] and P[J[j].queue].low:
            points -= YIELDING
    if J[j].qos >= 0:
        points += E[J[j].qos]
    # The nearest: what is equal but for the last bits must stay equal.
    return -np.int64(math.floor(points * POINT + 0.5))


@compiled
def _ranks_before(J, U, P, E, W, n, a, b):
    first, second = _key(J, U, P, E, W, n, a), _key(J, U, P, E, W, n, b)
    return first < second or (first == second and a < b)


@inlined
def goes_before(J, U, P, E, W, n, a, b):
    """Whether job a goes before job b, of any lanes."""
    if n[ORDER] != MULTIFACTOR:
        return is_before(J, a, b)
    return _ranks_before(J, U, P, E, W, n, a, b)


@inlined
def come_to(J, Q, Y, U, P, E, W, n, lane, at):
    """A pass is in a lane at a place."""
    j = Q[at // BLOCK, at % BLOCK].job
    Y[lane].at, Y[lane].job, Y[lane].key = at, j, _key(J, U, P, E, W, n, j)


@inlined
def go_on(J, Q, Y, U, P, E, W, n, at):
    """The first lane goes on at a place; -1: it is done with."""
    if at != -1:
        come_to(J, Q, Y, U, P, E, W, n, Y[0].turn, at)
    else:
        n[NUM_TURNS] -= 1
        Y[Y[0].turn].at = -1
        Y[0].turn = Y[n[NUM_TURNS]].turn
    if n[NUM_TURNS] > 1:
        sink(Y, n, 0)


@inlined
def use(U, W, n, u, more, now):
    """Person u uses so many PEs more from now on; what they used is counted, and decays as it goes."""
    if n[ORDER] != MULTIFACTOR:
        return
    rate = math.log(2.0) / W[HALF_LIFE]
    gone = -math.expm1(-rate * (now - U[u].since))  # the share of what was used that is forgotten
    U[u].usage += U[u].pes * gone / rate - U[u].usage * gone
    U[u].since = now
    U[u].pes += more


@compiled
def count_usage(U, W, n, now):
    """Count what each person has used until now, and set the points of their fair share."""
    total = 0.0
    for u in range(len(U)):
        if U[u].usage > 0.0 or U[u].pes > 0:
            use(U, W, n, u, 0, now)
            total += U[u].usage
    for u in range(len(U)):
        if U[u].usage > 0.0:
            share = U[u].usage / total * n[NUM_PEOPLE]
            U[u].points = W[FAIR_SHARE] * 2.0**-share
    n[LAST_PRIORITY] = now


@inlined
def _is_sorted(K, a):
    """Whether the candidate in entry a is not before the one in front of it."""
    key, before = K[a].key, K[a - 1].key
    return before < key or (before == key and K[a - 1].job < K[a].job)


@inlined
def _run_of(K, i, end):
    """The end of the run of sorted candidates that begins in entry i."""
    i += 1
    while i < end and _is_sorted(K, i):
        i += 1
    return i


@inlined
def _merge(K, a, b, end, to):
    """Entries a to before b and b to before `end`, each sorted, into one from entry `to` on."""
    middle = b
    while a < middle or b < end:
        left = b == end or (a < middle and K[a].key < K[b].key)
        if a < middle and b < end and K[a].key == K[b].key:
            left = K[a].job < K[b].job
        source = a if left else b
        K[to].key, K[to].job = K[source].key, K[source].job
        to, a, b = to + 1, a + left, b + 1 - left


@compiled
def sort(K, num):
    """By key, equals by job: where in K the sorted begin. It has room for twice as many; runs are merged."""
    source, target = 0, num
    while num > 0 and _run_of(K, source, source + num) < source + num:
        at = 0
        while at < num:
            middle = _run_of(K, source + at, source + num)
            end = _run_of(K, middle, source + num) if middle < source + num else middle
            _merge(K, source + at, middle, end, target + at)
            at = end - source
        source, target = target, source
    return source


@inlined
def is_due(W, n, now):
    """Whether priorities are to be counted anew."""
    return n[ORDER] == MULTIFACTOR and now - n[LAST_PRIORITY] >= W[PERIOD]
