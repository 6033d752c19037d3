"""One pass over the queue: who may begin, in order, and then whoever is in nobody's way."""

from __future__ import annotations

from hakaru.sim._queueing._beginning import set_head, try_behind, try_first
from hakaru.sim._queueing._events import estimate_of
from hakaru.sim._queueing._hope import (
    is_hopeless,
    is_too_long,
    least_estimate,
    least_of_block,
    next_hopeful,
)
from hakaru.sim._queueing._lanes import dequeue, first_of, is_before, next_place, sink
from hakaru.sim._queueing._limits import is_lane_held
from hakaru.sim._queueing._nodes import largest
from hakaru.sim._queueing._preemption import find_victims, replace
from hakaru.sim._queueing._priorities import come_to, go_on, goes_before
from hakaru.sim._queueing._reasons import explain, remember
from hakaru.sim._queueing._state import (
    BACKFILL,
    BLOCK,
    DIRTY,
    ESTIMATES,
    HEAD,
    IN_ORDER,
    LAST_TWO,
    NUM_FREE,
    NUM_LANES,
    NUM_TURNS,
    PREEMPT,
    SHORTEST,
    compiled,
    inlined,
)
from hakaru.sim._records import NEVER


@inlined
def _open_lanes(J, Q, B, Y, U, L, V, C, P, E, W, n):
    """A pass begins: all lanes that no limit holds, each with its first job."""
    n[NUM_TURNS] = 0
    for x in range(n[NUM_LANES]):
        lane = Y[x].active
        come_to(J, Q, Y, U, P, E, W, n, lane, first_of(B, Y[lane].first))
        if not is_lane_held(J, Y, L, V, C, n, lane):
            Y[n[NUM_TURNS]].turn = lane
            n[NUM_TURNS] += 1
    for x in range(n[NUM_TURNS] // 2 - 1, -1, -1):
        sink(Y, n, x)


@compiled
def _backfill(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, n, now):
    """Behind the head, in the queue's order."""
    most = largest(N, False)
    while n[NUM_TURNS] > 0 and most > 0:
        lane = Y[0].turn
        if is_lane_held(J, Y, L, V, C, n, lane):
            go_on(J, Q, Y, U, P, E, W, n, -1)
            continue
        at = next_hopeful(Q, B, U, n, Y[lane].at, most, now)
        if at != Y[lane].at:
            go_on(J, Q, Y, U, P, E, W, n, at)
            if at == -1 or Y[0].turn != lane:
                continue
        j, follower = Y[lane].job, next_place(B, at)
        came = J[j].seq
        if try_behind(J, N, A, R, H, U, L, C, W, n, j, now):
            explain(J, N, Y, n, j, came)
            dequeue(Q, B, Y, n, at)
            most = largest(N, False)
        go_on(J, Q, Y, U, P, E, W, n, follower)


@inlined
def _is_past(J, U, P, E, W, n, lane, j, last):
    """Whether job j of a lane, as long as the one that was tried last, goes before that or is it."""
    if J[last].lane == lane:
        return not is_before(J, last, j)
    return not goes_before(J, U, P, E, W, n, last, j)


@compiled
def _shortest_of(J, Q, B, Y, U, P, E, W, n, lane, last, best_at, most, now):
    """Who in a lane has the shortest estimate, if shorter than the best so far: the place, or `best_at`."""
    best, shortest, below, at = -1, NEVER, NEVER, Y[lane].at
    past = estimate_of(J, U, n, last) if last >= 0 else -1
    if best_at >= 0:
        best = Q[best_at // BLOCK, best_at % BLOCK].job
        shortest = estimate_of(J, U, n, best)
        below = shortest + 1  # one as short may go before the best of another lane
    while at != -1:
        b, i, here = at // BLOCK, at % BLOCK, at
        if i == B[b].first and (
            least_of_block(B, U, n, b) >= below or is_hopeless(Q, B, U, n, b, most, now)
        ):
            at = first_of(B, B[b].next)
            continue
        at = next_place(B, at)
        j, pes = Q[b, i].job, Q[b, i].pes
        least = least_estimate(U, n, Q[b, i].user, Q[b, i].estimate)
        if least >= below or pes > most or is_too_long(n, least, pes, now):
            continue
        estimate = estimate_of(J, U, n, j) if n[ESTIMATES] == LAST_TWO else least
        if estimate >= below or estimate < past or J[j].num_nodes * pes > n[NUM_FREE]:
            continue
        if estimate == past and _is_past(J, U, P, E, W, n, lane, j, last):
            continue
        if estimate < shortest or goes_before(J, U, P, E, W, n, j, best):
            best_at, shortest = here, estimate
        below = shortest  # who follows in the lane goes after this one
    return best_at


@compiled
def _backfill_shortest(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, n, now):
    """Behind the head, by estimate; equals in the queue's order."""
    most, last = largest(N, False), -1
    while most > 0:
        at = -1
        for x in range(n[NUM_TURNS]):
            lane = Y[x].turn
            if Y[lane].at != -1 and not is_lane_held(J, Y, L, V, C, n, lane):
                at = _shortest_of(J, Q, B, Y, U, P, E, W, n, lane, last, at, most, now)
        if at == -1:
            break
        last = Q[at // BLOCK, at % BLOCK].job
        came = J[last].seq
        if try_behind(J, N, A, R, H, U, L, C, W, n, last, now):
            explain(J, N, Y, n, last, came)
            lane = J[last].lane
            if at == Y[lane].at:
                Y[lane].at = next_place(B, at)
            elif at // BLOCK == Y[lane].at // BLOCK:
                # Those before a job in its block move up when it leaves.
                Y[lane].at += 1
            dequeue(Q, B, Y, n, at)
            most = largest(N, False)


@compiled
def go_through(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, K, T, n, now):
    """Begin what may begin now."""
    n[HEAD] = -1
    _open_lanes(J, Q, B, Y, U, L, V, C, P, E, W, n)
    while n[NUM_TURNS] > 0 and n[HEAD] == -1:
        lane = Y[0].turn
        j, at = Y[lane].job, Y[lane].at
        if is_lane_held(J, Y, L, V, C, n, lane):
            go_on(J, Q, Y, U, P, E, W, n, -1)
            continue
        follower, came = next_place(B, at), J[j].seq
        if try_first(J, N, A, R, H, U, L, C, W, n, j, now):
            explain(J, N, Y, n, j, came)
            dequeue(Q, B, Y, n, at)
            go_on(J, Q, Y, U, P, E, W, n, follower)
            continue
        num = find_victims(J, N, A, R, P, K, n, j) if n[PREEMPT] else 0
        if num > 0:
            replace(J, N, A, Q, B, Y, R, H, U, L, C, W, K, T, n, num, now)
            _open_lanes(J, Q, B, Y, U, L, V, C, P, E, W, n)
        else:
            set_head(n, j)
            go_on(J, Q, Y, U, P, E, W, n, follower)
    if n[HEAD] >= 0 and n[BACKFILL] == IN_ORDER:
        _backfill(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, n, now)
    elif n[HEAD] >= 0 and n[BACKFILL] == SHORTEST:
        _backfill_shortest(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, n, now)
    n[DIRTY] = 0
    remember(J, N, Q, B, Y, L, V, C, n)
