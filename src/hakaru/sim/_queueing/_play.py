"""What happens, in order of time, from the first submission to the last end."""

from __future__ import annotations

from typing import Any

import numpy as np

from hakaru.sim._queueing._beginning import set_head, try_behind, try_first
from hakaru.sim._queueing._events import expect, remove_event, unexpect
from hakaru.sim._queueing._gate import open_gate, wait_outside
from hakaru.sim._queueing._lanes import admit
from hakaru.sim._queueing._limits import count, is_held
from hakaru.sim._queueing._nodes import is_on
from hakaru.sim._queueing._pass import go_through
from hakaru.sim._queueing._priorities import count_usage, goes_before, is_due
from hakaru.sim._queueing._reasons import explain_all, free_for, why
from hakaru.sim._queueing._running import finish, put_back, release
from hakaru.sim._queueing._state import (
    BACKFILL,
    BATCHED,
    BLOCK,
    BOUNDS,
    CANDIDATE,
    CHANGE,
    CLOSED_BUSY,
    DIRTY,
    DOOR,
    ENTRY,
    EPOCH,
    EPOCH_NOW,
    EVENT,
    GATE_DIRTY,
    GATED,
    GATED_JOB,
    HEAD,
    HEAP,
    JOB_BITS,
    JOB_MASK,
    LANE,
    MULTIFACTOR,
    NO_BACKFILL,
    NUM_ARRIVED,
    NUM_CHANGED,
    NUM_DOORS,
    NUM_FREE,
    NUM_OPEN,
    NUM_PEOPLE,
    NUM_QUEUED,
    NUM_RUNNING,
    NUM_SCALARS,
    NUM_SPARE,
    OVER,
    PERSON,
    PREEMPT,
    RULES,
    RUNNING,
    SUBMIT,
    compiled,
    inlined,
)
from hakaru.sim._records import (
    BUSY,
    CAPACITY,
    DOWN,
    EVENTS,
    FRAGMENT,
    GATE,
    IDLE_WAITING,
    LIMIT,
    NEVER,
    NODE_LOST,
    TOTALS,
    UP,
    WEIGHTS,
)
from hakaru.sim._totals import NUM_TOTALS, go_back, keep


@inlined
def _needs_pass(J, L, V, C, n):
    """Whether more than a job that came must be looked at: who began behind the head may have used up its
    limit."""
    if n[DIRTY] or n[BATCHED] or n[PREEMPT]:
        return True
    return len(L) > 0 and n[HEAD] >= 0 and is_held(J, L, V, C, n, n[HEAD], False)


@inlined
def _begin_now(J, N, A, R, H, U, L, V, C, P, E, W, n, j, now):
    """Where since the last pass nothing but this job came, only it need be tried; the reservation stands."""
    head = n[HEAD]
    is_first = head >= 0 and goes_before(J, U, P, E, W, n, j, head)
    if is_first or _needs_pass(J, L, V, C, n) or is_due(W, n, now):
        n[DIRTY] = 1
        return False
    if len(L) > 0 and is_held(J, L, V, C, n, j, False):
        J[j].reason = LIMIT
        return False
    if head == -1 and try_first(J, N, A, R, H, U, L, C, W, n, j, now):
        return True
    may_pass = head >= 0 and n[BACKFILL] != NO_BACKFILL
    if may_pass and try_behind(J, N, A, R, H, U, L, C, W, n, j, now):
        return True
    if head == -1:
        set_head(n, j)
    J[j].reason = why(J, N, n, j, True)
    return False


@inlined
def _arrive(J, N, A, Q, B, Y, R, H, U, L, V, C, G, D, P, E, W, n, j, now):
    """A job is submitted: held at the gate, begun at once, or queued."""
    if len(L) > 0:
        if is_held(J, L, V, C, n, j, True):
            J[j].stage, J[j].reason = GATED, GATE
            wait_outside(G, D, n, j)
            if _needs_pass(J, L, V, C, n):
                n[DIRTY] = 1
            return
        count(J, L, C, j, 1, True)
    if not _begin_now(J, N, A, R, H, U, L, V, C, P, E, W, n, j, now):
        admit(J, Q, B, Y, n, j)


@compiled
def _change(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, node, kind, now):
    """A node opens, takes no new jobs, or is lost with what runs on it."""
    if kind == DOWN:
        for x in range(n[NUM_RUNNING] - 1, -1, -1):
            if is_on(J, N, A, R[x] & JOB_MASK, node):
                j = R[x] & JOB_MASK
                put_back(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, j, now, NODE_LOST)
    opens = 1 if kind == UP else 0
    if N[node].open != opens:
        sign = 1 if opens else -1
        N[node].open = opens
        n[NUM_OPEN] += sign * N[node].size
        n[NUM_FREE] += sign * N[node].free
        n[CLOSED_BUSY] -= sign * (N[node].size - N[node].free)
    n[DIRTY] = 1


@inlined
def _over(J, R, n, j):
    """A job outlives its estimate: it is now expected to take what it asked for."""
    if J[j].stage == RUNNING:
        unexpect(J, R, n, j)
        expect(J, R, n, j, J[j].start + J[j].request)
        n[DIRTY] = 1


@inlined
def _add_time(J, N, T, n, passed):
    T[CAPACITY] += passed * (n[NUM_OPEN] + n[CLOSED_BUSY])
    T[BUSY] += passed * (n[NUM_OPEN] - n[NUM_FREE] + n[CLOSED_BUSY])
    if n[NUM_QUEUED] > 0:
        T[IDLE_WAITING] += passed * n[NUM_FREE]
    if n[HEAD] >= 0:
        need = J[n[HEAD]].num_nodes * J[n[HEAD]].pes
        free = free_for(J, N, n, n[HEAD], True) if n[NUM_FREE] >= need else 0
        if free >= need:
            T[FRAGMENT] += passed * free


@inlined
def _next_event(J, H, X, S, n):
    """The key of what comes next; NEVER where all is over, or what waits can never begin."""
    at = J[n[NUM_ARRIVED]].submit * 8 + SUBMIT if n[NUM_ARRIVED] < len(J) else NEVER
    if n[HEAP] > 0:
        at = min(at, H[0].key)
    if at == NEVER and n[NUM_QUEUED] + n[NUM_DOORS] == 0:
        return NEVER
    if n[NUM_CHANGED] < len(X):
        at = min(at, X[n[NUM_CHANGED]].time * 8 + CHANGE)
    if n[EPOCH_NOW] + 1 < len(S):
        at = min(at, S[n[EPOCH_NOW] + 1] * 8 + EPOCH)
    return at


@inlined
def _happen(J, N, A, X, Q, B, Y, R, H, U, L, V, C, G, D, P, E, W, T, n, rank, now):
    """Let the next event of a rank happen."""
    if rank == SUBMIT:
        _arrive(J, N, A, Q, B, Y, R, H, U, L, V, C, G, D, P, E, W, n, n[NUM_ARRIVED], now)
        n[NUM_ARRIVED] += 1
    elif rank == CHANGE:
        x = n[NUM_CHANGED]
        _change(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, X[x].node, X[x].kind, now)
        n[NUM_CHANGED] += 1
    elif rank == EPOCH:
        n[EPOCH_NOW] += 1
        n[DIRTY] = n[GATE_DIRTY] = 1
    else:
        j = H[0].job
        remove_event(H, n, 0)
        if rank == OVER:
            _over(J, R, n, j)
        else:
            finish(J, N, A, R, U, L, C, W, n, j, now)
            keep(T)


@compiled
def play(J, N, A, X, Q, B, Y, R, H, U, L, S, V, C, G, D, P, E, W, K, T, n):
    """From the first submission to the last end. X: changes of nodes; S: since when each row of V holds."""
    now = J[0].submit if len(J) else 0
    at = _next_event(J, H, X, S, n)
    while at < NEVER:
        rank = at & 7
        _add_time(J, N, T, n, max(0, (at >> 3) - now))
        now = max(now, at >> 3)  # a node may change before the first submission
        T[EVENTS] += 1
        while rank != OVER and n[NUM_RUNNING] > 0 and R[0] >> JOB_BITS <= now:
            release(J, N, A, R, n, R[0] & JOB_MASK)
            n[DIRTY] = 1
        _happen(J, N, A, X, Q, B, Y, R, H, U, L, V, C, G, D, P, E, W, T, n, rank, now)
        at = _next_event(J, H, X, S, n)
        if rank == OVER or (n[BATCHED] and at >> 3 <= now):
            continue
        if n[NUM_DOORS] > 0 and n[GATE_DIRTY]:
            open_gate(J, Q, B, Y, L, V, C, G, D, n)
        if is_due(W, n, now):
            count_usage(U, W, n, now)
            n[DIRTY] = 1
        if n[NUM_QUEUED] == 0:
            n[HEAD], n[DIRTY] = -1, 0
        while n[DIRTY]:
            go_through(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, K, T, n, now)
            if n[NUM_DOORS] > 0 and n[GATE_DIRTY]:  # who began is queued no longer
                open_gate(J, Q, B, Y, L, V, C, G, D, n)
        at = _next_event(J, H, X, S, n)
    explain_all(J, N, Q, B, Y, n)
    go_back(T)


def run(
    jobs: Any,
    nodes: Any,
    changes: Any,
    rules: dict[str, int],
    limits: tuple[Any, Any, Any, int, Any],
    queues: Any,
    qos: Any,
    weights: dict[str, float],
    num_users: int,
) -> tuple[Any, Any]:
    """Play the log; fills the jobs' start, end, reason and restarts. Gives the nodes they got, and totals."""
    num, num_running = len(jobs), int(min(len(jobs), nodes["size"].sum())) + 1
    rows, since, values, num_counters, doors = limits
    # Columns of so wide a record are slow to read: only where they say anything.
    num_lanes = int(jobs["lane"].max(initial=0)) + 1 if len(rows) or rules["order"] else 1
    num_doors = int(doors.max(initial=-1)) + 1
    # A block is made when half of one was filled; jobs that are put back fill blocks again.
    lost = changes["node"][changes["kind"] == DOWN]
    num_filled = num + int(nodes["size"][lost].sum())
    num_blocks = num_filled // (BLOCK // 2) + num_lanes
    num_blocks = num if rules["preempt"] or num_blocks > num else num_blocks
    n = np.zeros(NUM_SCALARS, np.int64)
    n[: len(RULES)] = [rules[name] for name in RULES]
    n[HEAD] = -1
    n[NUM_SPARE] = num_blocks
    n[NUM_OPEN] = n[NUM_FREE] = nodes["size"][nodes["open"] == 1].sum()
    if rules["order"] == MULTIFACTOR:
        n[NUM_PEOPLE] = np.count_nonzero(np.bincount(jobs["user"][jobs["user"] >= 0]))
    bounds = np.empty(num_blocks, BOUNDS)
    bounds["spare"] = np.arange(num_blocks)
    lanes = np.zeros(num_lanes, LANE)
    lanes["first"] = lanes["tail"] = -1
    gated = np.empty(len(doors), GATED_JOB)
    gated["door"] = doors
    outside = np.zeros(num_doors, DOOR)
    outside["first"] = -1
    people = np.zeros(num_users, PERSON)
    people["last"] = people["before"] = -1
    nodes["free"] = nodes["size"]
    num_places = int(jobs["num_nodes"].sum()) if len(nodes) > 1 else 0
    jobs["whole"] = rules["whole_nodes"] * (jobs["num_nodes"] > 1)
    got = np.full(num_places, -1, np.int32)
    totals = np.zeros(NUM_TOTALS)
    people["points"] = weights["fair_share"]
    play(
        jobs,
        nodes,
        got,
        changes,
        np.empty((num_blocks, BLOCK), ENTRY),
        bounds,
        lanes,
        np.empty(num_running, np.int64),
        # Not by the machine's size: jobs of no length that begin in one second all end after it.
        np.empty(2 * num + 2, EVENT),
        people,
        rows,
        since,
        values,
        np.zeros(num_counters, np.int64),
        gated,
        outside,
        queues,
        qos,
        np.array([weights[name] for name in WEIGHTS], np.float64),
        np.empty(2 * num_running if rules["preempt"] else 0, CANDIDATE),
        totals,
        n,
    )
    return got, totals[: len(TOTALS)]
