"""Where a job fits in a pool of processors: stretches of the profile with room, told by their bounds."""

from __future__ import annotations

from hakaru.sim._conservative._profile import (
    find,
    first_raised,
    first_with,
    first_without,
    free_in,
    run_before,
    time_of,
)
from hakaru.sim._conservative._state import (
    CLEAR,
    LENGTH,
    NEVER,
    NEXT_KNOWN,
    NUM_KNOWN,
    PES,
    RAISED_FROM,
    compiled,
    inlined,
)


@compiled
def earliest(B, Q, n, pes, length):
    """The first slice from which so much is free for so long."""
    at = first_with(B, Q, n, 0, pes)
    while at != -1:
        end = first_without(B, Q, n, at, pes)
        if end == -1 or time_of(B, Q, end) - time_of(B, Q, at) >= length:
            break
        at = first_with(B, Q, n, end, pes)
    return at


# ---- what is known from those who looked before in this pass


@inlined
def forget_all(M):
    M[PES, :] = NEVER


@inlined
def unclear(M, time):
    """From a time on there may be room again."""
    for x in range(NUM_KNOWN):
        M[CLEAR, x] = min(M[CLEAR, x], time)


@inlined
def _clear_until(M, n, pes, length):
    """Before which time nothing raised has room for a job, by what is known of those that need no more."""
    clear = n[RAISED_FROM]
    for x in range(NUM_KNOWN):
        if M[PES, x] <= pes and M[LENGTH, x] <= length:
            clear = max(clear, M[CLEAR, x])
    return clear


@inlined
def _learn(M, n, pes, length, time):
    """In place of what says less, else of what has been known for long."""
    entry = -1
    for x in range(NUM_KNOWN):
        if M[PES, x] >= pes and M[LENGTH, x] >= length and M[CLEAR, x] <= time:
            entry = x
    if entry == -1:
        entry = n[NEXT_KNOWN]
        n[NEXT_KNOWN] = (entry + 1) % NUM_KNOWN
    M[PES, entry], M[LENGTH, entry], M[CLEAR, entry] = pes, length, time


# ---- where one who has a place could have a better one


@compiled
def _next_to(B, Q, n, pes, own, looked):
    """The first slice of a stretch that one's own place follows without a break; -1: not raised since."""
    at = find(B, Q, n, own - 1)
    if free_in(B, Q, at) < pes:
        return -1
    first = run_before(B, Q, at, pes)
    raised = first_raised(B, Q, n, first, pes, looked)
    return first if raised != -1 and time_of(B, Q, raised) < own else -1


@compiled
def earlier(B, Q, M, n, pes, length, own, looked):
    """As `earliest`, for a job with a place from the time `own` on that last looked in a certain pass.

    There was nothing better then, so that only a stretch with a slice raised since can be: it must lie
    before its own place, from which on it has room anyway. -1: none.
    """
    clear = _clear_until(M, n, pes, length)
    if clear >= own:
        return _next_to(B, Q, n, pes, own, looked)
    at = find(B, Q, n, clear)
    while at != -1:
        at = first_raised(B, Q, n, at, pes, looked)
        clear = time_of(B, Q, at) if at != -1 else NEVER
        if clear >= own:
            break
        first, at = run_before(B, Q, at, pes), first_without(B, Q, n, at, pes)
        since = time_of(B, Q, first)
        if at == -1 or time_of(B, Q, at) >= min(own, since + length):
            _learn(M, n, pes, length, since)
            return first
    _learn(M, n, pes, length, clear)
    return -1
