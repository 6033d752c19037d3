"""Who has which place: giving one, moving up, beginning, and doing all anew."""

from __future__ import annotations

from hakaru.sim._conservative._flat import earlier, earliest
from hakaru.sim._conservative._known import forget_all, unclear
from hakaru.sim._conservative._line import push, step_out
from hakaru.sim._conservative._nodes import earlier_on_nodes, earliest_on_nodes, takes
from hakaru.sim._conservative._profile import (
    add,
    bind,
    find,
    first_raised,
    recount,
    remove,
    run_before,
    split,
    time_of,
    unbind,
)
from hakaru.sim._conservative._state import (
    BATCHED,
    BITS,
    BOUNDS,
    DEPTH,
    END,
    FIRST,
    FREE,
    HAS_MOVED,
    MASK,
    MOVED_FROM,
    MOVED_UNTIL,
    NO_GAIN,
    NUM_FREE,
    NUM_PLANNED,
    OVER,
    PASS,
    PICK,
    PLANNED,
    RAISED,
    RAISED_FROM,
    RAISED_UNTIL,
    REBUILD,
    ROW,
    RUNNING,
    SEQ,
    SIZE,
    SLOT,
    STARTER,
    UNKNOWN,
    UNPLANNED,
    WAITING,
    compiled,
    inlined,
)
from hakaru.sim._records import BEHIND, NEVER, RESERVED


@inlined
def stamp(n, j):
    """What job j raises in this pass is told by the pass and by the job: those before it have looked."""
    return (n[PASS] << 32) + j + 1


@compiled
def _add_on_nodes(J, N, A, B, Q, F, n, j, since, until, sign, raised):
    """As `add`, on the nodes that job j holds."""
    a, b = find(B, Q, n, since), find(B, Q, n, until)
    for k in range(a >> BITS, (b >> BITS) + 1):
        slot = B[SLOT, k]
        first = a & MASK if k == a >> BITS else 0
        end = b & MASK if k == b >> BITS else B[SIZE, k]
        for i in range(first, end):
            row, most = Q[slot, ROW, i], 0
            for y in range(J[j].offset, J[j].offset + J[j].num_nodes):
                F[row, A[y]] += sign * takes(J, N, j, A[y])
            for x in range(F.shape[1]):
                most = max(most, F[row, x])
            Q[slot, FREE, i] = most
            if sign > 0:
                Q[slot, RAISED, i] = raised
        recount(B, Q, k)


@compiled
def give(J, N, A, B, Q, F, n, j, since, until, raised):
    """Free what job j holds from one slice's time to before another's."""
    if since >= until:
        return
    if len(N) == 1:
        add(B, Q, n, since, until, J[j].pes, raised)
    else:
        _add_on_nodes(J, N, A, B, Q, F, n, j, since, until, 1, raised)


@compiled
def take(J, N, A, B, Q, F, n, j, since, until):
    if since >= until:
        return
    if len(N) == 1:
        add(B, Q, n, since, until, -J[j].pes, 0)
    else:
        _add_on_nodes(J, N, A, B, Q, F, n, j, since, until, -1, 0)


# ---- those who begin with a slice


@compiled
def _promise(B, Q, P, n, j):
    """Job j is one of those who begin with the slice of its place."""
    at = bind(B, Q, n, P[j].start, 1)
    first = Q[B[SLOT, at >> BITS], STARTER, at & MASK]
    P[j].elder, P[j].sibling = -1, first
    if first != -1:
        P[first].elder = j
    Q[B[SLOT, at >> BITS], STARTER, at & MASK] = j


@compiled
def _forget(B, Q, P, n, j):
    """Job j no longer begins then."""
    elder, sibling = P[j].elder, P[j].sibling
    if sibling != -1:
        P[sibling].elder = elder
    if elder != -1:
        P[elder].sibling = sibling
    else:
        at = find(B, Q, n, P[j].start)
        Q[B[SLOT, at >> BITS], STARTER, at & MASK] = sibling


@compiled
def _begin(J, N, A, P, H, n, j, now):
    """Job j, whose place begins now, runs."""
    step_out(P, n, j)
    for y in range(J[j].num_nodes):
        x = A[J[j].offset + y] if len(N) > 1 else 0
        N[x].free -= takes(J, N, j, x)
        n[NUM_FREE] -= takes(J, N, j, x)
    n[NUM_PLANNED] -= 1
    n[SEQ] += 1
    J[j].start, J[j].seq, J[j].stage = now, n[SEQ], RUNNING
    push(H, n, now + J[j].run, END, n[SEQ], j)
    if J[j].estimate < J[j].run:
        push(H, n, P[j].until, OVER, n[SEQ], j)


@compiled
def _settle(J, N, A, B, Q, P, H, n, j, t, now):
    """Job j's place begins at a time, and job j with it where that is now."""
    J[j].start = P[j].start = t
    P[j].until = t + J[j].estimate
    bind(B, Q, n, P[j].until, 1)
    if t == now:
        _begin(J, N, A, P, H, n, j, now)
    else:
        _promise(B, Q, P, n, j)
        J[j].reason = max(J[j].reason, RESERVED)


@compiled
def _hold(J, N, A, B, Q, F, E, K, P, H, n, j, t, now):
    """Give job j the place that begins at a time, on the picked nodes."""
    for y in range(J[j].num_nodes if len(N) > 1 else 0):
        A[J[j].offset + y] = K[PICK, y]
    split(B, Q, F, E, n, t + J[j].estimate)
    take(J, N, A, B, Q, F, n, j, t, t + J[j].estimate)
    _settle(J, N, A, B, Q, P, H, n, j, t, now)


@compiled
def fill(J, N, A, B, Q, F, E, K, P, H, n, now):
    """Places for those in the line who have none, as far as the depth goes."""
    while n[UNPLANNED] != -1 and n[NUM_PLANNED] < n[DEPTH]:
        j = n[UNPLANNED]
        n[UNPLANNED] = P[j].next
        n[NUM_PLANNED] += 1
        J[j].stage, P[j].start = PLANNED, -1
        if len(N) > 1:
            at = earliest_on_nodes(J, N, A, B, Q, F, K, n, j)
        else:
            at = earliest(B, Q, n, J[j].pes, J[j].estimate) if N[0].open else -1
        if at != -1:
            _hold(J, N, A, B, Q, F, E, K, P, H, n, j, time_of(B, Q, at), now)


@compiled
def start_all(J, N, A, B, Q, F, E, K, P, H, n, now):
    """The next slice's time has come, and those whose places begin with it begin, in order of submission."""
    remove(B, Q, E, n, 0)
    j, first = Q[B[SLOT, 0], STARTER, 0], -1
    Q[B[SLOT, 0], STARTER, 0] = -1
    while j != -1:  # the latest come first, mostly
        follower, x, before = P[j].sibling, first, -1
        while x != -1 and x < j:
            x, before = P[x].sibling, x
        P[j].sibling = x
        if before == -1:
            first = j
        else:
            P[before].sibling = j
        j = follower
    while first != -1:
        Q[B[SLOT, 0], BOUNDS, 0] -= 1
        _begin(J, N, A, P, H, n, first, now)
        first = P[first].sibling
    if not n[BATCHED]:
        fill(J, N, A, B, Q, F, E, K, P, H, n, now)


# ---- those who wait find another place


@compiled
def rebuild(J, N, A, B, Q, F, E, K, P, H, n, now):
    """Everybody who waits is taken out and put in again in order, since what was promised cannot be kept."""
    j = n[FIRST]
    while j != -1:
        if J[j].stage == PLANNED and P[j].start != -1:
            _forget(B, Q, P, n, j)
            give(J, N, A, B, Q, F, n, j, P[j].start, P[j].until, 0)
            unbind(B, Q, E, n, P[j].start)
            unbind(B, Q, E, n, P[j].until)
        J[j].stage, J[j].start, J[j].reason = WAITING, -1, max(J[j].reason, BEHIND)
        j = P[j].next
    n[UNPLANNED], n[NUM_PLANNED], n[REBUILD] = n[FIRST], 0, 0
    n[RAISED_FROM], n[RAISED_UNTIL] = NEVER, -1
    fill(J, N, A, B, Q, F, E, K, P, H, n, now)


@compiled
def raise_between(n, since, until):
    """There may be room for somebody between these times."""
    n[RAISED_FROM], n[RAISED_UNTIL] = min(n[RAISED_FROM], since), max(n[RAISED_UNTIL], until)


@compiled
def _find_gain(B, Q, N, n, looked):
    """From when on anybody behind could gain: something is free without a break up to what was raised."""
    n[HAS_MOVED] = 0
    at = first_raised(B, Q, n, find(B, Q, n, n[RAISED_FROM]), 1, looked)
    if at == -1:
        n[NO_GAIN] = NEVER
        return
    n[RAISED_FROM] = max(n[RAISED_FROM], time_of(B, Q, at))
    # On nodes what was raised may also lie behind one's own place.
    n[NO_GAIN] = time_of(B, Q, run_before(B, Q, at, 1)) if len(N) == 1 else 0


@compiled
def _move(J, N, A, B, Q, F, E, K, M, P, H, n, j, now):
    """To an earlier place, if what was raised since job j last looked makes one."""
    looked, old, until = stamp(n, j) - (1 << 32), P[j].start, P[j].until
    if len(N) > 1:
        at = earlier_on_nodes(J, N, A, B, Q, F, K, M, n, j, old, looked)
    else:
        at = earlier(B, Q, M, n, J[j].pes, J[j].estimate, old, looked)
    if at == -1:
        n[NO_GAIN] = UNKNOWN if n[HAS_MOVED] else n[NO_GAIN]
        return
    n[HAS_MOVED] = 1
    t = time_of(B, Q, at)
    _forget(B, Q, P, n, j)
    since = old
    if len(N) > 1:
        give(J, N, A, B, Q, F, n, j, old, until, stamp(n, j))
        _hold(J, N, A, B, Q, F, E, K, P, H, n, j, t, now)
    else:  # only what the two places do not share changes
        since = max(old, t + J[j].estimate)
        split(B, Q, F, E, n, t + J[j].estimate)
        take(J, N, A, B, Q, F, n, j, t, min(old, t + J[j].estimate))
        give(J, N, A, B, Q, F, n, j, since, until, stamp(n, j))
        _settle(J, N, A, B, Q, P, H, n, j, t, now)
    unbind(B, Q, E, n, old)
    unbind(B, Q, E, n, until)
    raise_between(n, since, until)
    unclear(M, since, len(N) == 1)
    n[MOVED_FROM], n[MOVED_UNTIL] = min(n[MOVED_FROM], since), max(n[MOVED_UNTIL], until)


@compiled
def compress(J, N, A, B, Q, F, E, K, M, P, H, n, now):
    """Everybody whose place lies ahead, in order, to an earlier one where there is one."""
    n[MOVED_FROM], n[MOVED_UNTIL], n[NO_GAIN] = NEVER, -1, UNKNOWN
    j = n[FIRST] if n[RAISED_UNTIL] > now else n[UNPLANNED]
    n[PASS] += 1
    forget_all(M)
    while j != n[UNPLANNED] and n[NO_GAIN] < NEVER:
        follower = P[j].next
        if n[NO_GAIN] == UNKNOWN:
            _find_gain(B, Q, N, n, stamp(n, j) - (1 << 32))
        if P[j].start > n[NO_GAIN]:
            _move(J, N, A, B, Q, F, E, K, M, P, H, n, j, now)
        j = follower
    n[RAISED_FROM], n[RAISED_UNTIL] = n[MOVED_FROM], n[MOVED_UNTIL]
    fill(J, N, A, B, Q, F, E, K, P, H, n, now)
