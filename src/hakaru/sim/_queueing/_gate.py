"""The gate: doors, at each of which wait those whom the limits on queued jobs count together."""

from __future__ import annotations

from hakaru.sim._queueing._lanes import admit
from hakaru.sim._queueing._limits import count, is_held
from hakaru.sim._queueing._state import DIRTY, GATE_DIRTY, NUM_DOORS, compiled


@compiled
def wait_outside(G, D, n, j):
    door = G[j].door
    G[j].next = -1
    if D[door].first == -1:
        D[door].first, D[door].slot = j, n[NUM_DOORS]
        D[n[NUM_DOORS]].active = door
        n[NUM_DOORS] += 1
    else:
        G[D[door].last].next = j
    D[door].last = j


@compiled
def _step_in(G, D, n, door):
    """The first at a door leaves it."""
    D[door].first = G[D[door].first].next
    if D[door].first == -1:
        n[NUM_DOORS] -= 1
        last = D[n[NUM_DOORS]].active
        D[D[door].slot].active, D[last].slot = last, D[door].slot


@compiled
def _first_allowed(J, L, V, C, D, n):
    """The door whose first came first, of those that no limit keeps shut; -1 where all are."""
    best = -1
    for x in range(n[NUM_DOORS]):
        j = D[D[x].active].first
        if best >= 0 and D[best].first < j:
            continue
        if not is_held(J, L, V, C, n, j, True):
            best = D[x].active
    return best


@compiled
def open_gate(J, Q, B, Y, L, V, C, G, D, n):
    """Let in, in order, those whom the limits on queued jobs no longer hold."""
    n[GATE_DIRTY] = 0
    door = _first_allowed(J, L, V, C, D, n)
    while door >= 0:
        j = D[door].first
        _step_in(G, D, n, door)
        count(J, L, C, j, 1, True)
        admit(J, Q, B, Y, n, j)
        n[DIRTY] = 1
        door = _first_allowed(J, L, V, C, D, n)
