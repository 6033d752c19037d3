"""What happens, in order of time, from the first submission to the last end."""

from __future__ import annotations

from typing import Any

import numpy as np

from hakaru.sim._conservative._line import line_up, pop
from hakaru.sim._conservative._nodes import takes
from hakaru.sim._conservative._places import (
    compress,
    fill,
    give,
    raise_between,
    rebuild,
    start_all,
    take,
)
from hakaru.sim._conservative._profile import bind, follower, remove, split, time_of, unbind
from hakaru.sim._conservative._state import (
    ADDED,
    BATCHED,
    BLOCK,
    CHANGE,
    CLOSED_BUSY,
    DONE,
    END,
    EVENT,
    FIRST,
    FREE,
    HALF,
    HEAP,
    LAST,
    LEAST,
    MOST,
    NUM_ARRIVED,
    NUM_B,
    NUM_BLOCKS,
    NUM_CHANGED,
    NUM_FREE,
    NUM_K,
    NUM_KNOWN,
    NUM_M,
    NUM_OPEN,
    NUM_Q,
    NUM_ROWS,
    NUM_SCALARS,
    NUM_SLOTS,
    OVER,
    PASS,
    PLACE,
    RAISED_FROM,
    RAISED_UNTIL,
    REBUILD,
    RULES,
    SCATTERED,
    SINCE,
    SIZE,
    SLOT,
    START,
    STARTER,
    SUBMIT,
    UNPLANNED,
    UNUSED,
    WAITING,
    WHEN,
    compiled,
)
from hakaru.sim._records import (
    BEHIND,
    BUSY,
    CAPACITY,
    DOWN,
    EVENTS,
    FRAGMENT,
    IDLE_WAITING,
    LOST,
    NEVER,
    NODE_LOST,
    TOTALS,
    UP,
)
from hakaru.sim._totals import NUM_TOTALS, go_back, keep


@compiled
def _give_back(J, N, A, B, Q, F, E, P, n, j, now):
    """A job runs no longer: its PEs, and what the profile still holds for it."""
    give(J, N, A, B, Q, F, n, j, now, P[j].until, (n[PASS] + 1) << 32)
    if P[j].until > now:
        raise_between(n, now, P[j].until)
    unbind(B, Q, E, n, P[j].until)
    for y in range(J[j].num_nodes):
        x = A[J[j].offset + y] if len(N) > 1 else 0
        N[x].free += takes(J, N, j, x)
        if N[x].open:
            n[NUM_FREE] += takes(J, N, j, x)
        else:
            n[CLOSED_BUSY] -= takes(J, N, j, x)


@compiled
def _over(J, N, A, B, Q, F, E, P, n, j, now):
    """A job outlives its estimate: it now holds its nodes for all that it asked for."""
    at = follower(B, n, 0)
    if at != -1 and time_of(B, Q, at) <= now:
        remove(B, Q, E, n, 0)
    until = J[j].start + J[j].request
    split(B, Q, F, E, n, until)
    bind(B, Q, n, until, 1)
    take(J, N, A, B, Q, F, n, j, P[j].until, until)
    unbind(B, Q, E, n, P[j].until)
    P[j].until = until
    n[REBUILD] = 1


@compiled
def _arrive(J, P, n, j):
    J[j].estimate = max(1, J[j].estimate)
    J[j].stage, J[j].reason, P[j].start = WAITING, BEHIND, -1
    line_up(P, n, j)
    if n[UNPLANNED] == -1:
        n[UNPLANNED] = j


@compiled
def _put_back(J, N, A, B, Q, F, E, P, T, n, j, now):
    """A job that was lost with its node waits again; what it has done is lost too."""
    _give_back(J, N, A, B, Q, F, E, P, n, j, now)
    keep(T)
    T[LOST] += (now - J[j].start) * J[j].total
    J[j].num_restarts += 1
    J[j].stage, J[j].reason, J[j].seq, J[j].start, P[j].start = WAITING, NODE_LOST, -1, -1, -1
    line_up(P, n, j)


@compiled
def _change(J, N, A, B, Q, F, E, P, H, T, n, node, kind, now):
    """A node opens, takes no new jobs, or is lost with what runs on it."""
    for i in range(n[HEAP] if kind == DOWN else 0):
        j = H[i].job
        if H[i].key & 7 != END or J[j].seq != H[i].seq:
            continue
        for y in range(J[j].num_nodes):
            if (A[J[j].offset + y] if len(N) > 1 else 0) == node:
                _put_back(J, N, A, B, Q, F, E, P, T, n, j, now)
                break
    opens = 1 if kind == UP else 0
    if N[node].open != opens:
        sign = 1 if opens else -1
        N[node].open = opens
        n[NUM_OPEN] += sign * N[node].size
        n[NUM_FREE] += sign * N[node].free
        n[CLOSED_BUSY] -= sign * (N[node].size - N[node].free)
    n[REBUILD] = 1


@compiled
def _scattered(J, N, n):
    """PEs that the first in the line could use, if it waits although they are enough: they are scattered."""
    j = n[FIRST]
    if j == -1 or len(N) == 1 or n[NUM_FREE] < J[j].num_nodes * J[j].pes:
        return 0
    free = num = 0
    for x in range(len(N)):
        if N[x].open and (J[j].model < 0 or N[x].model == J[j].model):
            free += N[x].free
            num += N[x].free >= max(takes(J, N, j, x), J[j].pes)
    is_enough = free >= J[j].num_nodes * J[j].pes
    return free if is_enough and num < J[j].num_nodes else 0


@compiled
def _add_time(T, n, passed):
    T[CAPACITY] += passed * (n[NUM_OPEN] + n[CLOSED_BUSY])
    T[BUSY] += passed * (n[NUM_OPEN] - n[NUM_FREE] + n[CLOSED_BUSY])
    if n[FIRST] != -1:
        T[IDLE_WAITING] += passed * n[NUM_FREE]
    T[FRAGMENT] += passed * n[SCATTERED]


@compiled
def _next_event(J, X, B, Q, H, n):
    """The key of what comes next; NEVER where all is over, or what waits can never begin."""
    at = J[n[NUM_ARRIVED]].submit * 8 + SUBMIT if n[NUM_ARRIVED] < len(J) else NEVER
    if n[HEAP] > 0:
        at = min(at, H[0].key)
    following = follower(B, n, 0)
    if following != -1:
        at = min(at, time_of(B, Q, following) * 8 + START)
    if n[NUM_CHANGED] < len(X) and (at < NEVER or n[FIRST] != -1):
        at = min(at, X[n[NUM_CHANGED]].time * 8 + CHANGE)
    return at


@compiled
def _happen(J, N, A, X, B, Q, F, E, K, P, H, T, n, rank, now):
    """Let the next event of a rank happen; whether it was an end."""
    if rank == START:
        start_all(J, N, A, B, Q, F, E, K, P, H, n, now)
    elif rank == SUBMIT:
        _arrive(J, P, n, n[NUM_ARRIVED])
        n[NUM_ARRIVED] += 1
    elif rank == CHANGE:
        x = n[NUM_CHANGED]
        _change(J, N, A, B, Q, F, E, P, H, T, n, X[x].node, X[x].kind, now)
        n[NUM_CHANGED] += 1
    else:
        is_current = H[0].seq == J[H[0].job].seq
        j = pop(H, n)
        if is_current and rank == OVER:
            _over(J, N, A, B, Q, F, E, P, n, j, now)
        elif is_current:
            _give_back(J, N, A, B, Q, F, E, P, n, j, now)
            J[j].stage, J[j].end = DONE, now
            keep(T)
            return True
    return False


@compiled
def play(J, N, A, X, B, Q, F, E, K, M, P, H, T, n):
    """From the first submission to the last end."""
    now, has_ended = J[0].submit if len(J) else 0, False
    at = _next_event(J, X, B, Q, H, n)
    while at < NEVER:
        rank = at & 7
        _add_time(T, n, max(0, (at >> 3) - now))
        now = max(now, at >> 3)  # a node may change before the first submission
        if rank != START:
            B[SINCE, 0] = Q[B[SLOT, 0], WHEN, 0] = now
        T[EVENTS] += rank != START
        has_ended |= _happen(J, N, A, X, B, Q, F, E, K, P, H, T, n, rank, now)
        at = _next_event(J, X, B, Q, H, n)
        # Nobody is placed anew while others who have outlived their estimates are yet to be seen.
        if at >> 3 <= now and (n[BATCHED] or (rank == OVER and at & 7 == OVER)):
            continue
        if n[REBUILD]:
            rebuild(J, N, A, B, Q, F, E, K, P, H, n, now)
        elif has_ended:
            compress(J, N, A, B, Q, F, E, K, M, P, H, n, now)
        else:
            fill(J, N, A, B, Q, F, E, K, P, H, n, now)
        has_ended = False
        n[SCATTERED] = _scattered(J, N, n)
        at = _next_event(J, X, B, Q, H, n)
    go_back(T)


def run(jobs: Any, nodes: Any, changes: Any, rules: dict[str, int]) -> tuple[Any, Any]:
    """Play the log; fills the jobs' start, end, reason and restarts. Gives the nodes they got, and totals."""
    num, num_pes, is_flat = len(jobs), int(nodes["size"].sum()), len(nodes) == 1
    num_slices = 2 * (min(num, rules["depth"]) + min(num, num_pes)) + 4
    n = np.zeros(NUM_SCALARS, np.int64)
    n[: len(RULES)] = [rules[name] for name in RULES]
    n[[FIRST, LAST, UNPLANNED, RAISED_UNTIL]] = -1
    n[RAISED_FROM] = NEVER
    n[NUM_OPEN] = n[NUM_FREE] = nodes["size"][nodes["open"] == 1].sum()
    nodes["free"] = nodes["size"]
    jobs["whole"] = rules["whole_nodes"] * (jobs["num_nodes"] > 1)
    got = np.full(0 if is_flat else int(jobs["num_nodes"].sum()), -1, np.int32)
    totals = np.zeros(NUM_TOTALS)
    # Places that come are taken before those who leave them are seen; those lost with a node linger.
    num_lost = int(nodes["size"][changes["node"]].sum())
    events = np.empty(4 * min(num, num_pes) + 2 * num_lost + 4, EVENT)
    play(
        jobs, nodes, got, changes, *_profile(nodes["size"], num_slices, n),
        np.zeros((NUM_K, len(nodes)), np.int64), np.full((NUM_M, NUM_KNOWN), NEVER),
        np.empty(num, PLACE), events, totals, n,
    )  # fmt: skip
    jobs["start"][jobs["stage"] != DONE] = -1
    return got, totals[: len(TOTALS)]


def _profile(sizes: Any, num_slices: int, n: Any) -> tuple[Any, Any, Any, Any]:
    """Blocks, slices and what is free on nodes: one slice, in which everything is."""
    num_blocks = num_slices // (HALF // 2) + 4  # two neighbours are more than half full together
    blocks = np.zeros((NUM_B, num_blocks), np.int64)
    blocks[UNUSED] = np.arange(num_blocks)[::-1]
    n[NUM_BLOCKS], n[NUM_SLOTS] = 1, num_blocks - 1
    slices = np.empty((num_blocks, NUM_Q, BLOCK), np.int64)
    slices[0, :, 0] = 0
    slices[0, STARTER, 0] = -1
    slices[0, FREE, 0] = sizes.max()
    blocks[[SLOT, SIZE, ADDED], 0] = 0, 1, 0
    blocks[[LEAST, MOST], 0] = sizes.max()
    if len(sizes) == 1:
        return blocks, slices, np.empty((0, 1), np.int32), np.empty(0, np.int32)
    free = np.empty((num_slices, len(sizes)), np.int32)
    free[0] = sizes
    n[NUM_ROWS] = num_slices - 1
    return blocks, slices, free, np.arange(num_slices, dtype=np.int32)[::-1].copy()
