"""Where a job fits in a pool of processors: stretches of the profile with room, told by their bounds."""

from __future__ import annotations

from hakaru.sim._conservative._known import clear_until, learn
from hakaru.sim._conservative._profile import (
    find,
    first_raised,
    first_with,
    first_without,
    free_in,
    run_before,
    time_of,
)
from hakaru.sim._conservative._state import RAISED_FROM, compiled
from hakaru.sim._records import NEVER


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
    clear = max(n[RAISED_FROM], clear_until(M, pes, length, -1))
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
            learn(M, n, pes, length, -1, since)
            return first
    learn(M, n, pes, length, -1, clear)
    return -1
