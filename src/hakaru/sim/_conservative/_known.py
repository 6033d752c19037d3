"""What is known in a pass from those who looked before: where there is no room for a shape.

A job that needs as much for as long as another, or more, need not look where that one found nothing.
"""

from __future__ import annotations

from hakaru.sim._conservative._state import (
    CLEAR,
    LENGTH,
    MODEL,
    NEXT_KNOWN,
    NUM_KNOWN,
    PES,
    inlined,
)
from hakaru.sim._records import NEVER


@inlined
def forget_all(M):
    M[PES, :] = NEVER


@inlined
def unclear(M, time, is_flat):
    """From a time on there may be room again; on nodes also for those who begin before it."""
    for x in range(NUM_KNOWN):
        M[CLEAR, x] = min(M[CLEAR, x], time if is_flat else time - M[LENGTH, x] + 1)


@inlined
def clear_until(M, pes, length, model):
    """Before which time there is no room for a job, by what is known of those that need no more."""
    clear = 0
    for x in range(NUM_KNOWN):
        if M[PES, x] <= pes and M[LENGTH, x] <= length and M[MODEL, x] in (-1, model):
            clear = max(clear, M[CLEAR, x])
    return clear


@inlined
def learn(M, n, pes, length, model, time):
    """In place of what says less, else of what has been known for long."""
    entry = -1
    for x in range(NUM_KNOWN):
        says_less = M[PES, x] >= pes and M[LENGTH, x] >= length and M[CLEAR, x] <= time
        if says_less and model in (-1, M[MODEL, x]):
            entry = x
    if entry == -1:
        entry = n[NEXT_KNOWN]
        n[NEXT_KNOWN] = (entry + 1) % NUM_KNOWN
    M[PES, entry], M[LENGTH, entry], M[MODEL, entry], M[CLEAR, entry] = pes, length, model, time
