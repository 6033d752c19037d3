"""The kernel of conservative backfilling: a profile of the future in which every job has its place.

On submission a job gets the earliest place that the profile has for its estimate. When a job ends, the tail
of its estimate is given back, and then everybody whose place lies ahead moves, in order of submission, to
the earliest one that is better than theirs. Jobs beyond `depth` wait without a place until there is room.

It lies in one module because numba's cache does not notice a callee that changed in another file. Names of
the arrays, the same in every function: J jobs, N nodes, A the nodes that jobs hold, X changes of nodes,
S slices of the profile, F what each slice has free on each node, P the jobs' places in the profile and in
the line of those who wait, H the heap of events to come, T totals, n the scalars.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from hakaru.errors import MissingExtraError
from hakaru.sim._queueing import CHANGES, DOWN, JOB, NODE, TOTALS, UP

try:
    from numba import float64, from_dtype, int32, int64, njit
except ImportError:
    raise MissingExtraError("numba", "sim") from None

# What happens at one moment happens in this order: a place that comes is taken before anything else moves.
OVER, START, SUBMIT, END, CHANGE = 0, 1, 2, 3, 4
NEVER = np.int64(2**60)

BEST_FIT = 0
ANYWHERE, REQUIRED = 0, 2
CAPACITY, BUSY, IDLE_WAITING, FRAGMENT, LOST, EVENTS = range(6)
BEHIND, RESERVED, NODE_LOST = 1, 4, 8
UNSEEN, WAITING, PLANNED, RUNNING, DONE = range(5)

RULES = ("packing", "whole_nodes", "locality", "batched", "depth")
PACKING, WHOLE_NODES, LOCALITY, BATCHED, DEPTH = range(5)
# The present slice, slices ever made, unused ones; the line: its ends and its first without a place.
NOW, NUM_SLICES, SPARE, FIRST, LAST, UNPLANNED = range(5, 11)
NUM_PLANNED, HEAP, SEQ, NUM_ARRIVED, NUM_CHANGED, REBUILD = range(11, 17)
# Between these moments the profile has gained since everybody last looked; and by this pass alone.
FROM, UNTIL, MOVED_FROM, MOVED_UNTIL = range(17, 21)
NUM_FREE, NUM_OPEN, CLOSED_BUSY, IS_FRAGMENTED = range(21, 25)
# For jobs of at least 1, 2, 4 … PEs a node: the slice before which there is no room for them.
SKIPS, NUM_SKIPS = 25, 32
NUM_SCALARS = SKIPS + NUM_SKIPS

_SLICE = np.dtype(
    [
        ("time", np.int64),  # when it begins
        ("next", np.int32),
        ("prev", np.int32),
        ("num_bounds", np.int32),  # of places that begin or end here
        ("starter", np.int32),  # the first of the jobs whose places begin here
    ],
    align=True,
)
_PLACE = np.dtype(
    [
        ("first", np.int32),  # the slice with which it begins; -1: none
        ("end", np.int32),  # the slice before which it ends
        ("sibling", np.int32),  # the next job that begins there
        ("next", np.int32),  # in the line of those who wait
        ("prev", np.int32),
    ],
    align=True,
)
_EVENT = np.dtype([("key", np.int64), ("seq", np.int64), ("job", np.int64)], align=True)

_TYPES = {
    name: from_dtype(dtype)[::1]
    for name, dtype in {
        "J": JOB,
        "N": NODE,
        "X": CHANGES,
        "S": _SLICE,
        "P": _PLACE,
        "H": _EVENT,
    }.items()
} | {"A": int32[::1], "F": int32[:, ::1], "T": float64[::1], "n": int64[::1]}


def _compiled(function: Any) -> Any:
    """Compile for the types that the parameters' names stand for; a name not listed is an int64.

    Nothing is allocated in here, so nothing need be counted: numba's runtime locks the bus twice an array.
    """
    types = tuple(_TYPES.get(name, int64) for name in inspect.signature(function).parameters)
    options = {"no_cpython_wrapper": function.__name__ != "_play", "no_cfunc_wrapper": True}
    options["_nrt"] = False
    return njit(types, cache=True, nogil=True, error_model="numpy", **options)(function)


# ---- events to come: a heap by (time, rank, sequence)


@_compiled
def _is_earlier(H, a, key, seq):
    return H[a].key < key or (H[a].key == key and H[a].seq < seq)


@_compiled
def _push(H, n, time, rank, seq, j):
    i, key = n[HEAP], time * 8 + rank
    while i > 0 and not _is_earlier(H, (i - 1) // 2, key, seq):
        parent = (i - 1) // 2
        H[i].key, H[i].seq, H[i].job = H[parent].key, H[parent].seq, H[parent].job
        i = parent
    H[i].key, H[i].seq, H[i].job = key, seq, j
    n[HEAP] += 1


@_compiled
def _pop(H, n):
    """Take the first event out; its job, or -1 where that run was cut short."""
    j, i = H[0].job, 0
    n[HEAP] -= 1
    last = n[HEAP]
    key, seq = H[last].key, H[last].seq
    while 2 * i + 1 < last:
        child = 2 * i + 1
        if child + 1 < last and _is_earlier(H, child + 1, H[child].key, H[child].seq):
            child += 1
        if not _is_earlier(H, child, key, seq):
            break
        H[i].key, H[i].seq, H[i].job = H[child].key, H[child].seq, H[child].job
        i = child
    H[i].key, H[i].seq, H[i].job = key, seq, H[last].job
    return j


# ---- the line of those who wait, in order of submission


@_compiled
def _line_up(P, n, j, after):
    """Behind job `after` (-1: in front)."""
    follower = n[FIRST] if after == -1 else P[after].next
    P[j].prev, P[j].next = after, follower
    if after == -1:
        n[FIRST] = j
    else:
        P[after].next = j
    if follower == -1:
        n[LAST] = j
    else:
        P[follower].prev = j


@_compiled
def _step_out(P, n, j):
    before, after = P[j].prev, P[j].next
    if before == -1:
        n[FIRST] = after
    else:
        P[before].next = after
    if after == -1:
        n[LAST] = before
    else:
        P[after].prev = before


# ---- the profile: linked slices of time; the present one is the first


@_compiled
def _split(S, F, n, s, time):
    """The slice that begins at a time which slice s contains."""
    if S[s].time == time:
        return s
    new = n[SPARE]
    if new == -1:
        new = n[NUM_SLICES]
        n[NUM_SLICES] += 1
    else:
        n[SPARE] = S[new].next
    follower = S[s].next
    S[new].time, S[new].prev, S[new].next = time, s, follower
    S[new].num_bounds, S[new].starter = 0, -1
    S[s].next = new
    if follower != -1:
        S[follower].prev = new
    for x in range(F.shape[1]):
        F[new, x] = F[s, x]
    return new


@_compiled
def _unbind(S, n, s):
    """One place less begins or ends with slice s; where none does, it is as the one before it."""
    S[s].num_bounds -= 1
    if S[s].num_bounds > 0 or s == n[NOW]:
        return
    before, after = S[s].prev, S[s].next
    S[before].next = after
    if after != -1:
        S[after].prev = before
    for c in range(SKIPS, SKIPS + NUM_SKIPS):
        n[c] = before if n[c] == s else n[c]
    S[s].next = n[SPARE]
    n[SPARE] = s


@_compiled
def _advance(S, n):
    """The next slice is now the present one."""
    old = n[NOW]
    n[NOW] = S[old].next
    S[n[NOW]].prev = -1
    for c in range(SKIPS, SKIPS + NUM_SKIPS):
        n[c] = n[NOW] if n[c] == old else n[c]
    S[old].next = n[SPARE]
    n[SPARE] = old


@_compiled
def _takes(J, N, j, x):
    """What job j takes of node x."""
    return N[x].size if J[j].whole else J[j].pes


@_compiled
def _add(J, N, A, S, F, j, first, end, sign):
    """Give a job's PEs back to the slices from `first` to before `end`, or take them."""
    s = first
    while s != end:
        if len(N) == 1:
            F[s, 0] += sign * J[j].pes
        else:
            for y in range(J[j].offset, J[j].offset + J[j].num_nodes):
                F[s, A[y]] += sign * _takes(J, N, j, A[y])
        s = S[s].next


# ---- where a job cannot fit


@_compiled
def _is_full(N, F, s, pes):
    """Whether no node has so much free in slice s."""
    most = 0
    for x in range(len(N)):
        most = max(most, F[s, x])
    return most < pes


@_compiled
def _skip(J, N, S, F, n, j, s, before):
    """The first slice from s on with room for a part of job j at least, or one behind a time; or -1."""
    c, pes = 0, 1
    while 2 * pes <= J[j].pes:
        c, pes = c + 1, 2 * pes
    known = n[SKIPS + c]
    while S[known].next != -1 and S[known].time < before and _is_full(N, F, known, pes):
        known = S[known].next
    n[SKIPS + c] = known
    if S[known].time > S[s].time:
        s = known
    while s != -1 and S[s].time < before and _is_full(N, F, s, J[j].pes):
        s = S[s].next
    return s


@_compiled
def _unskip(S, n, time, s):
    """From a time on, which lies behind slice s, there may be room again."""
    for c in range(SKIPS, SKIPS + NUM_SKIPS):
        n[c] = s if S[n[c]].time >= time else n[c]


# ---- where a job fits: `then` says since when a node has had room without a break


@_compiled
def _is_room(N, x, t):
    return N[x].open and N[x].then <= t


@_compiled
def _look_ahead(J, N, S, F, n, j, s, until):
    """Go on from slice s until a time; nodes without room for job j have it next behind that slice."""
    whole = J[j].whole
    pes, model = J[j].pes, J[j].model
    while s != -1 and S[s].time < until:
        follower = S[s].next
        end = S[follower].time if follower != -1 else NEVER
        for x in range(len(N)):
            has = F[s, x]
            if has < pes or (whole and has < N[x].size) or (model >= 0 and N[x].model != model):
                N[x].then = end
        s = follower
    return s


@_compiled
def _measure(J, N, S, F, j, s):
    """Put into `extra` the least that each node has free while job j would run from slice s on."""
    until = S[s].time + J[j].estimate
    for x in range(len(N)):
        N[x].extra = F[s, x]
    s = S[s].next
    while s != -1 and S[s].time < until:
        for x in range(len(N)):
            N[x].extra = min(N[x].extra, F[s, x])
        s = S[s].next


@_compiled
def _is_picked(N, have, x):
    for y in range(have):
        if N[y].pick == x:
            return True
    return False


@_compiled
def _pick_from(J, N, n, j, t, switch, have):
    """Add to `pick`, from one switch (-1: any), the tightest or emptiest nodes; how many there are."""
    while have < J[j].num_nodes:
        best = -1
        for x in range(len(N)):
            if (switch >= 0 and N[x].switch != switch) or not _is_room(N, x, t):
                continue
            if best >= 0 and n[PACKING] == BEST_FIT and N[x].extra >= N[best].extra:
                continue
            if best >= 0 and n[PACKING] != BEST_FIT and N[x].extra <= N[best].extra:
                continue
            if not _is_picked(N, have, x):
                best = x
        if best == -1:
            break
        N[have].pick = best
        have += 1
    return have


@_compiled
def _pick_near(J, N, n, j, t):
    """Under one switch, the one with the fewest nodes to spare; else, where allowed, under few."""
    wanted, best = J[j].num_nodes, -1
    for x in range(len(N)):
        N[x].num_fit = 0
    for x in range(len(N)):
        N[N[x].switch].num_fit += _is_room(N, x, t)
    for w in range(len(N)):
        if N[w].num_fit >= wanted and (best == -1 or N[w].num_fit < N[best].num_fit):
            best = w
    if best >= 0:
        return _pick_from(J, N, n, j, t, best, 0) == wanted
    if n[LOCALITY] == REQUIRED:
        return False
    have = 0
    while have < wanted:
        w = 0
        for x in range(len(N)):
            w = x if N[x].num_fit > N[w].num_fit else w
        have = _pick_from(J, N, n, j, t, w, have)
        N[w].num_fit = -1
    return True


@_compiled
def _pick(J, N, S, F, n, j, s):
    """Put into `pick` nodes on which job j fits from slice s on; whether there are enough."""
    num, t = 0, S[s].time
    for x in range(len(N)):
        num += _is_room(N, x, t)
    if num < J[j].num_nodes:
        return False
    if len(N) == 1:
        N[0].pick = 0
        return True
    _measure(J, N, S, F, j, s)
    if J[j].num_nodes > 1 and n[LOCALITY] != ANYWHERE:
        return _pick_near(J, N, n, j, t)
    return _pick_from(J, N, n, j, t, -1, 0) == J[j].num_nodes


@_compiled
def _search(J, N, S, F, n, j, s, before, own):
    """The first slice from s on, and before a time, from which job j fits; -1 where there is none.

    From the time `own` on it has room, for it holds a place there.
    """
    s = _skip(J, N, S, F, n, j, s, before)
    if s == -1:
        return -1
    ahead = s
    for x in range(len(N)):
        N[x].then = S[s].time
    while s != -1 and S[s].time < before:
        until = min(own, S[s].time + J[j].estimate)
        ahead = _look_ahead(J, N, S, F, n, j, ahead, until)
        if _pick(J, N, S, F, n, j, s):
            return s
        s = S[s].next
    return -1


# ---- places, and those who take them


@_compiled
def _begin(J, N, A, P, H, n, j, now):
    """Job j, whose place begins with the present slice, runs."""
    _step_out(P, n, j)
    for y in range(J[j].num_nodes):
        x = A[J[j].offset + y] if len(N) > 1 else 0
        N[x].free -= _takes(J, N, j, x)
        n[NUM_FREE] -= _takes(J, N, j, x)
    n[NUM_PLANNED] -= 1
    n[SEQ] += 1
    J[j].start, J[j].seq, J[j].stage = now, n[SEQ], RUNNING
    J[j].expected = now + J[j].estimate
    P[j].first = -1
    _push(H, n, now + J[j].run, END, n[SEQ], j)
    if J[j].estimate < J[j].run:
        _push(H, n, J[j].expected, OVER, n[SEQ], j)


@_compiled
def _settle(J, N, A, S, P, H, n, j, s, end, now):
    """Job j's place is from slice s to before slice `end`; it begins where that is now."""
    J[j].start = S[s].time
    P[j].first, P[j].end = s, end
    S[end].num_bounds += 1
    if s == n[NOW]:
        _begin(J, N, A, P, H, n, j, now)
    else:
        S[s].num_bounds += 1
        P[j].sibling, S[s].starter = S[s].starter, j
        J[j].reason = max(J[j].reason, RESERVED)


@_compiled
def _hold(J, N, A, S, F, P, H, n, j, s, now):
    """Give job j the place on the picked nodes that begins with slice s."""
    for y in range(J[j].num_nodes):
        if len(N) > 1:
            A[J[j].offset + y] = N[y].pick
    until, end = S[s].time + J[j].estimate, s
    while S[end].next != -1 and S[S[end].next].time <= until:
        end = S[end].next
    end = _split(S, F, n, end, until)
    _add(J, N, A, S, F, j, s, end, -1)
    _settle(J, N, A, S, P, H, n, j, s, end, now)


@_compiled
def _shift(J, N, A, S, F, P, H, n, j, s, now):
    """In a flat pool, to a place that begins with slice s: only what the two do not share changes."""
    first, last = P[j].first, P[j].end
    until, end = S[s].time + J[j].estimate, last
    if until < S[first].time:
        _add(J, N, A, S, F, j, first, last, 1)
        _hold(J, N, A, S, F, P, H, n, j, s, now)
        return
    while S[end].time > until:
        end = S[end].prev
    end = _split(S, F, n, end, until)
    _add(J, N, A, S, F, j, s, first, -1)
    _add(J, N, A, S, F, j, end, last, 1)
    _settle(J, N, A, S, P, H, n, j, s, end, now)


@_compiled
def _forget(S, P, j):
    """Job j no longer begins with its first slice."""
    s = P[j].first
    if S[s].starter == j:
        S[s].starter = P[j].sibling
        return
    x = S[s].starter
    while P[x].sibling != j:
        x = P[x].sibling
    P[x].sibling = P[j].sibling


@_compiled
def _fill(J, N, A, S, F, P, H, n, now):
    """Places for those in the line who have none, as far as the depth goes."""
    while n[UNPLANNED] != -1 and n[NUM_PLANNED] < n[DEPTH]:
        j = n[UNPLANNED]
        n[UNPLANNED] = P[j].next
        n[NUM_PLANNED] += 1
        J[j].stage, P[j].first = PLANNED, -1
        s = _search(J, N, S, F, n, j, n[NOW], NEVER, NEVER)
        if s != -1:
            _hold(J, N, A, S, F, P, H, n, j, s, now)


@_compiled
def _rebuild(J, N, A, S, F, P, H, n, now):
    """Everybody who waits is taken out and put in again in order, since what was promised cannot be kept."""
    j = n[FIRST]
    while j != -1:
        if J[j].stage == PLANNED and P[j].first != -1:
            _forget(S, P, j)
            _add(J, N, A, S, F, j, P[j].first, P[j].end, 1)
            _unskip(S, n, now, n[NOW])
            _unbind(S, n, P[j].first)
            _unbind(S, n, P[j].end)
        J[j].stage, J[j].start, J[j].reason = WAITING, -1, max(J[j].reason, BEHIND)
        j = P[j].next
    n[UNPLANNED], n[NUM_PLANNED], n[REBUILD] = n[FIRST], 0, 0
    n[FROM], n[UNTIL] = NEVER, -1
    _fill(J, N, A, S, F, P, H, n, now)


@_compiled
def _move(J, N, A, S, F, P, H, n, j, now):
    """To an earlier place, if since the last look some time was gained that job j could use."""
    old, first, end = J[j].start, P[j].first, P[j].end
    s, since = n[NOW], n[FROM] - J[j].estimate
    while s != -1 and S[s].time <= since:
        s = S[s].next
    if s == -1 or S[s].time >= min(old, n[UNTIL]):
        return
    s = _skip(J, N, S, F, n, j, s, min(old, n[UNTIL]))
    if s == -1 or S[s].time >= min(old, n[UNTIL]):
        return
    own = NEVER
    if len(N) == 1:
        own = old
    else:
        _add(J, N, A, S, F, j, first, end, 1)
    s = _search(J, N, S, F, n, j, s, min(old, n[UNTIL]), own)
    if s == -1:
        if len(N) > 1:
            _add(J, N, A, S, F, j, first, end, -1)
        return
    _forget(S, P, j)
    if len(N) == 1:
        _shift(J, N, A, S, F, P, H, n, j, s, now)
    else:
        _hold(J, N, A, S, F, P, H, n, j, s, now)
    _unskip(S, n, old, S[first].prev)
    _unbind(S, n, first)
    _unbind(S, n, end)
    n[MOVED_FROM] = min(n[MOVED_FROM], old)
    n[MOVED_UNTIL] = max(n[MOVED_UNTIL], old + J[j].estimate)
    n[FROM], n[UNTIL] = min(n[FROM], old), max(n[UNTIL], old + J[j].estimate)


@_compiled
def _compress(J, N, A, S, F, P, H, n, now):
    """Everybody whose place lies ahead, in order, to an earlier one where there is one."""
    n[MOVED_FROM], n[MOVED_UNTIL] = NEVER, -1
    j = n[FIRST] if n[UNTIL] > now else -1
    while j != -1 and J[j].stage == PLANNED:
        follower = P[j].next
        if P[j].first != -1:
            _move(J, N, A, S, F, P, H, n, j, now)
        j = follower
    n[FROM], n[UNTIL] = n[MOVED_FROM], n[MOVED_UNTIL]
    _fill(J, N, A, S, F, P, H, n, now)


# ---- what happens


@_compiled
def _give_back(J, N, A, S, F, P, n, j, now):
    """A job runs no longer: its PEs, and what the profile still holds for it."""
    _add(J, N, A, S, F, j, n[NOW], P[j].end, 1)
    _unskip(S, n, now, n[NOW])
    _unbind(S, n, P[j].end)
    if J[j].expected > now:
        n[FROM], n[UNTIL] = min(n[FROM], now), max(n[UNTIL], J[j].expected)
    for y in range(J[j].num_nodes):
        x = A[J[j].offset + y] if len(N) > 1 else 0
        N[x].free += _takes(J, N, j, x)
        if N[x].open:
            n[NUM_FREE] += _takes(J, N, j, x)
        else:
            n[CLOSED_BUSY] -= _takes(J, N, j, x)


@_compiled
def _start_all(J, N, A, S, F, P, H, n, now):
    """The next slice's time has come, and those whose places begin with it begin, in order of submission."""
    _advance(S, n)
    s = n[NOW]
    while S[s].starter != -1:
        j = x = S[s].starter
        while x != -1:
            j, x = min(j, x), P[x].sibling
        _forget(S, P, j)
        S[s].num_bounds -= 1
        _begin(J, N, A, P, H, n, j, now)
    if not n[BATCHED]:
        _fill(J, N, A, S, F, P, H, n, now)


@_compiled
def _over(J, N, A, S, F, P, n, j, now):
    """A job outlives its estimate: it now holds its nodes for all that it asked for."""
    follower = S[n[NOW]].next
    if follower != -1 and S[follower].time <= now:
        _advance(S, n)
    old, until = P[j].end, J[j].start + J[j].request
    J[j].expected, s = until, n[NOW]
    while S[s].next != -1 and S[S[s].next].time <= until:
        s = S[s].next
    P[j].end = _split(S, F, n, s, until)
    S[P[j].end].num_bounds += 1
    _add(J, N, A, S, F, j, old, P[j].end, -1)
    _unbind(S, n, old)
    n[REBUILD] = 1


@_compiled
def _arrive(J, P, n, j):
    J[j].estimate = max(1, J[j].estimate)
    J[j].stage, J[j].reason = WAITING, BEHIND
    _line_up(P, n, j, n[LAST])
    if n[UNPLANNED] == -1:
        n[UNPLANNED] = j


@_compiled
def _put_back(J, N, A, S, F, P, T, n, j, now):
    """A job that was lost with its node waits again; what it has done is lost too."""
    _give_back(J, N, A, S, F, P, n, j, now)
    T[LOST] += (now - J[j].start) * J[j].total
    J[j].num_restarts += 1
    J[j].stage, J[j].reason, J[j].seq, J[j].start, P[j].first = WAITING, NODE_LOST, -1, -1, -1
    after = n[LAST]
    while after != -1 and after > j:
        after = P[after].prev
    _line_up(P, n, j, after)


@_compiled
def _change(J, N, A, S, F, P, H, T, n, node, kind, now):
    """A node opens, takes no new jobs, or is lost with what runs on it."""
    for i in range(n[HEAP] if kind == DOWN else 0):
        j = H[i].job
        if H[i].key & 7 != END or J[j].seq != H[i].seq:
            continue
        for y in range(J[j].num_nodes):
            if (A[J[j].offset + y] if len(N) > 1 else 0) == node:
                _put_back(J, N, A, S, F, P, T, n, j, now)
                break
    opens = 1 if kind == UP else 0
    if N[node].open != opens:
        sign = 1 if opens else -1
        N[node].open = opens
        n[NUM_OPEN] += sign * N[node].size
        n[NUM_FREE] += sign * N[node].free
        n[CLOSED_BUSY] -= sign * (N[node].size - N[node].free)
    n[REBUILD] = 1


@_compiled
def _look_for_holes(J, N, n):
    """Whether the first in the line waits although as much as it needs is free, but scattered."""
    j = n[FIRST]
    n[IS_FRAGMENTED] = 0
    if j == -1 or len(N) == 1 or n[NUM_FREE] < J[j].num_nodes * J[j].pes:
        return
    num = 0
    for x in range(len(N)):
        fits_model = J[j].model < 0 or N[x].model == J[j].model
        need = max(_takes(J, N, j, x), J[j].pes)
        num += N[x].open and fits_model and N[x].free >= need
    n[IS_FRAGMENTED] = num < J[j].num_nodes


# ---- the whole


@_compiled
def _add_time(T, n, passed):
    T[CAPACITY] += passed * (n[NUM_OPEN] + n[CLOSED_BUSY])
    T[BUSY] += passed * (n[NUM_OPEN] - n[NUM_FREE] + n[CLOSED_BUSY])
    if n[FIRST] != -1:
        T[IDLE_WAITING] += passed * n[NUM_FREE]
    if n[IS_FRAGMENTED]:
        T[FRAGMENT] += passed * n[NUM_FREE]


@_compiled
def _next_event(J, X, S, H, n):
    """The key of what comes next; NEVER where all is over, or what waits can never begin."""
    at = J[n[NUM_ARRIVED]].submit * 8 + SUBMIT if n[NUM_ARRIVED] < len(J) else NEVER
    if n[HEAP] > 0:
        at = min(at, H[0].key)
    follower = S[n[NOW]].next
    if follower != -1:
        at = min(at, S[follower].time * 8 + START)
    if n[NUM_CHANGED] < len(X) and (at < NEVER or n[FIRST] != -1):
        at = min(at, X[n[NUM_CHANGED]].time * 8 + CHANGE)
    return at


@_compiled
def _happen(J, N, A, X, S, F, P, H, T, n, rank, now):
    if rank == START:
        _start_all(J, N, A, S, F, P, H, n, now)
    elif rank == SUBMIT:
        _arrive(J, P, n, n[NUM_ARRIVED])
        n[NUM_ARRIVED] += 1
    elif rank == CHANGE:
        x = n[NUM_CHANGED]
        _change(J, N, A, S, F, P, H, T, n, X[x].node, X[x].kind, now)
        n[NUM_CHANGED] += 1
    else:
        is_current = H[0].seq == J[H[0].job].seq
        j = _pop(H, n)
        if is_current and rank == OVER:
            _over(J, N, A, S, F, P, n, j, now)
        elif is_current:
            _give_back(J, N, A, S, F, P, n, j, now)
            J[j].stage, J[j].end = DONE, now
            return True
    return False


@_compiled
def _play(J, N, A, X, S, F, P, H, T, n):
    """From the first submission to the last end."""
    now, has_ended = J[0].submit if len(J) else 0, False
    S[0].time = now
    at = _next_event(J, X, S, H, n)
    while at < NEVER:
        rank = at & 7
        _add_time(T, n, max(0, (at >> 3) - now))
        now = max(now, at >> 3)  # a node may change before the first submission
        S[n[NOW]].time = now
        T[EVENTS] += rank != START
        has_ended |= _happen(J, N, A, X, S, F, P, H, T, n, rank, now)
        at = _next_event(J, X, S, H, n)
        # Nobody is placed anew while others who have outlived their estimates are yet to be seen.
        if at >> 3 <= now and (n[BATCHED] or (rank == OVER and at & 7 == OVER)):
            continue
        if n[REBUILD]:
            _rebuild(J, N, A, S, F, P, H, n, now)
        elif has_ended:
            _compress(J, N, A, S, F, P, H, n, now)
        else:
            _fill(J, N, A, S, F, P, H, n, now)
        has_ended = False
        _look_for_holes(J, N, n)
        at = _next_event(J, X, S, H, n)


def run(jobs: Any, nodes: Any, changes: Any, rules: dict[str, int]) -> tuple[Any, Any]:
    """Play the log; fills the jobs' start, end, reason and restarts. Gives the nodes they got, and totals."""
    num, num_pes = len(jobs), int(nodes["size"].sum())
    n = np.zeros(NUM_SCALARS, np.int64)
    n[: len(RULES)] = [rules[name] for name in RULES]
    n[[SPARE, FIRST, LAST, UNPLANNED, UNTIL]] = -1
    n[FROM], n[NUM_SLICES] = NEVER, 1
    n[NUM_OPEN] = n[NUM_FREE] = nodes["size"][nodes["open"] == 1].sum()
    nodes["free"] = nodes["size"]
    num_slices = 2 * (min(num, rules["depth"]) + min(num, num_pes)) + 4
    slices = np.empty(num_slices, _SLICE)
    slices[0] = (0, -1, -1, 0, -1)
    free = np.empty((num_slices, len(nodes)), np.int32)
    free[0] = nodes["size"]
    jobs["whole"] = rules["whole_nodes"] * (jobs["num_nodes"] > 1)
    got = np.full(int(jobs["num_nodes"].sum()) if len(nodes) > 1 else 0, -1, np.int32)
    totals = np.zeros(len(TOTALS))
    # Places that come are taken before those who leave them are seen; those lost with a node linger.
    num_lost = int(nodes["size"][changes["node"]].sum())
    events = np.empty(4 * min(num, num_pes) + 2 * num_lost + 4, _EVENT)
    _play(
        jobs, nodes, got, changes, slices, free, np.empty(num, _PLACE), events, totals, n
    )  # fmt: skip
    jobs["start"][jobs["stage"] != DONE] = -1
    return got, totals
