"""What limits count, and whom they hold."""

from __future__ import annotations

from hakaru.sim._queueing._state import (
    ACCOUNT,
    EPOCH_NOW,
    QUEUE,
    QUEUED_JOBS,
    RUNNING_PES,
    USER,
    compiled,
    inlined,
)


@inlined
def _counter(J, L, row, j):
    """Where the limit in a row counts job j; -1 where it does not apply."""
    if L[row].queue >= 0 and L[row].queue != J[j].queue:
        return -1
    scope, who = L[row].scope, 0
    if scope == USER:
        who = J[j].user
    elif scope == ACCOUNT:
        who = J[j].account
    elif scope == QUEUE:
        who = J[j].queue
    if who < 0 or (L[row].only >= 0 and L[row].only != who):
        return -1
    return L[row].base + who


@inlined
def _amount(J, L, row, j):
    return J[j].total if L[row].what == RUNNING_PES else 1


@compiled
def is_held(J, L, V, C, n, j, at_gate):
    """Whether a limit keeps the job from running (or, at the gate, from being queued)."""
    for row in range(len(L)):
        value = V[n[EPOCH_NOW], row]
        if value < 0 or (L[row].what == QUEUED_JOBS) != at_gate:
            continue
        at = _counter(J, L, row, j)
        if at >= 0 and C[at] + _amount(J, L, row, j) > value:
            return True
    return False


@compiled
def count(J, L, C, j, sign, at_gate):
    for row in range(len(L)):
        if (L[row].what == QUEUED_JOBS) == at_gate:
            at = _counter(J, L, row, j)
            if at >= 0:
                C[at] += sign * _amount(J, L, row, j)


@inlined
def is_lane_held(J, Y, L, V, C, n, lane):
    return len(L) > 0 and is_held(J, L, V, C, n, Y[lane].job, False)
