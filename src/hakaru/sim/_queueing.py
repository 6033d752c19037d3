"""The kernel of every policy that keeps a queue: strict order, EASY and its kin, on nodes or a flat pool.

A flat pool of processors is one node. Everything here is arrays of records and small compiled functions; it
lies in one module because numba's cache does not notice a callee that changed in another file. The order of
events is total: (time, rank, sequence) with the ranks below; docs/simulation.md explains it.

The queue lies in lanes: jobs that every limit counts together are in one, so that it is held or free as a
whole, and a pass need not look at whom a limit holds. Under moving priorities jobs of a lane have the same
points for all but age, so that their order never changes. Otherwise there is one lane.

Names of the arrays, the same in every function: J jobs, N nodes, A the nodes that jobs got, Y the lanes, Q
their blocks of jobs, B what is known of each block, R running jobs by estimated end, H the heap of events to
come, U users, L limits, V their values, C their counters, K candidates, G jobs held at the gate, D its doors,
P what queues count for, E what QOS do, W weights, T totals, n the scalars.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from hakaru.errors import MissingExtraError

try:
    from numba import float64, from_dtype, int32, int64, njit
except ImportError:
    raise MissingExtraError("numba", "sim") from None

# What happens at one moment happens in this order. Submissions come before terminations, as in pyss.
OVER, SUBMIT, END, CHANGE, EPOCH = 0, 1, 2, 3, 4
NEVER = np.int64(2**60)

NO_BACKFILL, IN_ORDER, SHORTEST = 0, 1, 2
BEST_FIT, SPREAD = 0, 1
ANYWHERE, PREFERRED, REQUIRED = 0, 1, 2
STATIC, LAST_TWO = 0, 1
FIXED_KEYS, MULTIFACTOR = 0, 1
EVERYBODY, USER, ACCOUNT, QUEUE = 0, 1, 2, 3
RUNNING_JOBS, RUNNING_PES, QUEUED_JOBS = 0, 1, 2
UP, DRAIN, DOWN = 0, 1, 2

# Why a job waited: what stood in its way after the last pass before it began.
NO_WAIT, BEHIND, RESOURCES, FRAGMENTED, RESERVED, LIMIT, GATE, PREEMPTED, NODE_LOST = range(9)
UNSEEN, GATED, QUEUED, RUNNING, RELEASED, DONE = range(6)

BLOCK = 64
JOB_BITS = 28  # a running job is kept as its estimated end and, below that, its number
JOB_MASK = 2**JOB_BITS - 1
POINT = 2.0**20  # priorities are compared as integers of this fineness
YIELDING = 2.0**30  # points that a job of a low queue stands back where others may stop it

JOB = np.dtype(
    [
        ("submit", np.int64),
        ("run", np.int64),
        ("request", np.int64),
        ("estimate", np.int64),
        ("key", np.int64),  # the smaller goes first; equals by place
        ("expected", np.int64),  # a running job's estimated end
        ("start", np.int64),
        ("end", np.int64),
        (
            "seq",
            np.int64,
        ),  # of its present run; of one that waits: how many passes there were before it
        ("offset", np.int64),  # where its nodes begin in A
        ("num_nodes", np.int32),
        ("pes", np.int32),  # on each node
        ("total", np.int32),  # all it asked for: what limits and fair shares count
        ("model", np.int32),  # -1: any
        ("user", np.int32),  # -1: unknown
        ("account", np.int32),
        ("queue", np.int32),
        ("lane", np.int32),
        ("qos", np.int16),  # of those that have points, -1: none
        ("num_restarts", np.int16),
        ("whole", np.int8),  # whether it takes nodes whole
        ("stage", np.int8),
        ("reason", np.int8),
    ],
    align=True,
)
NODE = np.dtype(
    [
        ("size", np.int64),
        ("free", np.int64),
        ("extra", np.int64),  # free at the shadow time beyond what the head takes
        ("then", np.int64),  # scratch: free at a later time
        ("pick", np.int64),  # scratch: the x-th node chosen stands in entry x
        ("num_fit", np.int64),  # scratch: entry w counts the nodes of switch w
        ("seen", np.int64),  # what the last pass left free
        ("model", np.int32),
        ("switch", np.int32),
        ("open", np.int64),  # whether it may begin jobs
    ],
    align=True,
)
CHANGES = np.dtype([("time", np.int64), ("node", np.int32), ("kind", np.int32)], align=True)
LIMITS = np.dtype(
    [
        ("scope", np.int32),
        ("what", np.int32),
        ("queue", np.int32),  # only jobs of this queue, -1: all
        ("only", np.int32),  # only this user, account or queue, -1: each
        ("base", np.int64),  # where its counters begin in C
    ],
    align=True,
)
POINTS = np.dtype([("points", np.float64), ("low", np.int64)], align=True)
_ENTRY = np.dtype(
    [("estimate", np.int64), ("job", np.int32), ("pes", np.int32), ("user", np.int64)], align=True
)
_LANE = np.dtype(
    [
        ("at", np.int64),  # how far a pass has come in it: a place
        ("key", np.int64),  # and who is there
        ("job", np.int32),
        ("first", np.int32),  # block, -1 where nobody waits in it
        ("tail", np.int32),
        ("slot", np.int32),  # where it stands among the lanes in which somebody waits
        ("active", np.int32),  # entry x: the x-th of these
        (
            "turn",
            np.int32,
        ),  # entry x: the x-th of the heap of lanes that a pass has yet to go on with
        ("was_held", np.int32),  # whether a limit held it after the last pass
    ],
    align=True,
)
_GATED = np.dtype([("door", np.int32), ("next", np.int32)], align=True)
_DOOR = np.dtype(
    [
        ("first", np.int32),  # who waits at it, in order of submission; -1: nobody
        ("last", np.int32),
        ("slot", np.int32),  # as of lanes
        ("active", np.int32),
    ],
    align=True,
)
_BOUNDS = np.dtype(
    [
        ("lane", np.int32),
        ("first", np.int32),  # its jobs are the entries from here
        ("end", np.int32),  # up to here
        ("stale", np.int32),  # whether jobs left since the bounds were taken
        ("next", np.int32),
        ("prev", np.int32),
        ("user", np.int32),  # whose all its jobs are, -1: of several
        ("pes", np.int64),  # bounds from below
        ("estimate", np.int64),
        ("spare", np.int64),  # the stack of unused blocks
    ],
    align=True,
)
_EVENT = np.dtype([("key", np.int64), ("seq", np.int64), ("job", np.int64)], align=True)
_PERSON = np.dtype(
    [
        ("last", np.int64),  # run time of the last job that ended
        ("before", np.int64),  # and of the one before it
        ("usage", np.float64),  # in PE seconds, decayed, as of `since`
        ("points", np.float64),  # for their fair share, as it was last counted
        ("pes", np.int64),  # in use
        ("since", np.int64),
    ],
    align=True,
)
_CANDIDATE = np.dtype([("key", np.int64), ("job", np.int64)], align=True)

# Integrals over time in PE seconds, and counters.
TOTALS = ("capacity_s", "busy_s", "idle_while_waiting_s", "fragmented_s", "lost_s", "num_events")
CAPACITY, BUSY, IDLE_WAITING, FRAGMENT, LOST, EVENTS = range(6)
NUM_INTEGRALS, UNTIL_END = 4, 6  # the first four, and where they are kept as of the last end

# Entries of n: the rules, then what changes.
RULES = (
    "backfill",
    "estimates",
    "order",
    "packing",
    "whole_nodes",
    "locality",
    "batched",
    "preempt",
)
BACKFILL, ESTIMATES, ORDER, PACKING, WHOLE_NODES, LOCALITY, BATCHED, PREEMPT = range(8)
NUM_RUNNING, HEAP, NUM_LANES, NUM_TURNS, NUM_SPARE, NUM_QUEUED, SEQ, HEAD = range(8, 16)
SHADOW, SHADOW_KNOWN, DIRTY, NUM_DOORS, EPOCH_NOW, NUM_FREE, NUM_OPEN = range(16, 23)
GATE_DIRTY, MAX_EXTRA, LAST_PRIORITY, CLOSED_BUSY = range(23, 27)
NUM_ARRIVED, NUM_CHANGED, NUM_PASSES, NUM_SEEN, NUM_PEOPLE, NUM_SCALARS = range(27, 33)

# Entries of W: Slurm's multifactor.
WEIGHTS = ("age", "max_age_s", "size", "fair_share", "half_life_s", "period_s")
AGE, MAX_AGE, SIZE, FAIR_SHARE, HALF_LIFE, PERIOD = range(6)


_TYPES = {
    name: from_dtype(dtype)[::1]
    for name, dtype in {
        "J": JOB,
        "N": NODE,
        "X": CHANGES,
        "Y": _LANE,
        "B": _BOUNDS,
        "H": _EVENT,
        "U": _PERSON,
        "L": LIMITS,
        "P": POINTS,
        "K": _CANDIDATE,
        "G": _GATED,
        "D": _DOOR,
    }.items()
} | {
    "A": int32[::1],
    "Q": from_dtype(_ENTRY)[:, ::1],
    "V": int64[:, ::1],
    "C": int64[::1],
    "S": int64[::1],
    "R": int64[::1],
    "n": int64[::1],
    "E": float64[::1],
    "W": float64[::1],
    "T": float64[::1],
    "total": float64,
}


def _compiled(function: Any, inlined: bool = False) -> Any:
    """Compile for the types that the parameters' names stand for; a name not listed is an int64.

    One signature a function keeps the first compilation short; only the outermost is called from Python.
    Nothing is allocated in here, so nothing need be counted: numba's runtime would lock the bus twice an
    array and call, which took three fifths of the time.
    """
    types = tuple(_TYPES.get(name, int64) for name in inspect.signature(function).parameters)
    options = {"no_cpython_wrapper": function.__name__ != "_play", "no_cfunc_wrapper": True}
    options["_nrt"] = False
    return njit(types, cache=True, nogil=True, error_model="numpy", forceinline=inlined, **options)(
        function
    )


def _inlined(function: Any) -> Any:
    """As _compiled, for what every event passes through: a call hands over seven words an array."""
    return _compiled(function, inlined=True)


# ---- the queue: lanes of blocks of jobs in order, linked; each block knows bounds of what its jobs need


@_inlined
def _is_before(J, a, b):
    return J[a].key < J[b].key or (J[a].key == J[b].key and a < b)


@_inlined
def _block_of(J, Q, B, Y, j):
    """The block of its lane into which job j belongs; -1 where the lane is empty."""
    b = Y[J[j].lane].tail
    while b != -1 and B[b].prev != -1:
        before = B[b].prev
        if _is_before(J, Q[before, B[before].end - 1].job, j):
            break
        b = before
    return b


@_inlined
def _new_block(B, Y, n, lane, after):
    """An empty block of a lane behind `after` (-1: the lane's first)."""
    n[NUM_SPARE] -= 1
    b = B[n[NUM_SPARE]].spare
    follower = -1 if after == -1 else B[after].next
    B[b].lane, B[b].prev, B[b].next = lane, after, follower
    if after == -1:
        Y[lane].first, Y[lane].slot = b, n[NUM_LANES]
        Y[n[NUM_LANES]].active = lane
        n[NUM_LANES] += 1
    else:
        B[after].next = b
    if follower == -1:
        Y[lane].tail = b
    else:
        B[follower].prev = b
    B[b].first = B[b].end = B[b].stale = 0
    B[b].pes, B[b].estimate, B[b].user = NEVER, NEVER, -2
    return b


@_inlined
def _note(Q, B, b, i):
    """Widen a block's bounds by the job in entry i."""
    B[b].pes = min(B[b].pes, Q[b, i].pes)
    B[b].estimate = min(B[b].estimate, Q[b, i].estimate)
    if B[b].user == -2:
        B[b].user = Q[b, i].user
    elif B[b].user != Q[b, i].user:
        B[b].user = -1


@_compiled
def _recount(Q, B, b):
    B[b].pes, B[b].estimate, B[b].user, B[b].stale = NEVER, NEVER, -2, 0
    for i in range(B[b].first, B[b].end):
        _note(Q, B, b, i)


@_inlined
def _move_entry(Q, a, x, b, y):
    Q[b, y].estimate, Q[b, y].user = Q[a, x].estimate, Q[a, x].user
    Q[b, y].job, Q[b, y].pes = Q[a, x].job, Q[a, x].pes


@_compiled
def _make_space(J, Q, B, Y, n, b, j):
    """Room at the end of the block into which job j belongs: its own, a new last one, or one half of it."""
    if B[b].end < BLOCK:
        return b
    first = B[b].first
    if B[b].next == -1 and _is_before(J, Q[b, BLOCK - 1].job, j):
        return _new_block(B, Y, n, J[j].lane, b)
    if first > 0:
        for i in range(first, BLOCK):
            _move_entry(Q, b, i, b, i - first)
        B[b].first, B[b].end = 0, BLOCK - first
        return b
    half = BLOCK // 2
    new = _new_block(B, Y, n, J[j].lane, b)
    for i in range(half, BLOCK):
        _move_entry(Q, b, i, new, i - half)
    B[new].end, B[b].end = BLOCK - half, half
    _recount(Q, B, b)
    _recount(Q, B, new)
    return new if _is_before(J, Q[b, half - 1].job, j) else b


@_inlined
def _enqueue(J, Q, B, Y, n, j):
    b, lane = _block_of(J, Q, B, Y, j), J[j].lane
    b = _new_block(B, Y, n, lane, -1) if b == -1 else _make_space(J, Q, B, Y, n, b, j)
    i = B[b].end
    while i > B[b].first and _is_before(J, j, Q[b, i - 1].job):
        _move_entry(Q, b, i - 1, b, i)
        i -= 1
    Q[b, i].estimate, Q[b, i].user = J[j].estimate, J[j].user
    if n[ESTIMATES] == LAST_TWO:  # a bound from below
        Q[b, i].estimate = min(J[j].estimate, J[j].request)
    Q[b, i].job, Q[b, i].pes = j, J[j].pes
    B[b].end += 1
    _note(Q, B, b, i)
    n[NUM_QUEUED] += 1


@_inlined
def _admit(J, Q, B, Y, n, j):
    """Job j waits in the queue from now on."""
    J[j].stage, J[j].seq = QUEUED, n[NUM_PASSES]
    _enqueue(J, Q, B, Y, n, j)


@_inlined
def _drop_block(B, Y, n, b):
    before, after, lane = B[b].prev, B[b].next, B[b].lane
    if before == -1:
        Y[lane].first = after
    else:
        B[before].next = after
    if after == -1:
        Y[lane].tail = before
    else:
        B[after].prev = before
    B[n[NUM_SPARE]].spare = b
    n[NUM_SPARE] += 1
    if Y[lane].first == -1:
        n[NUM_LANES] -= 1
        last = Y[n[NUM_LANES]].active
        Y[Y[lane].slot].active, Y[last].slot = last, Y[lane].slot


@_inlined
def _first_of(B, b):
    """The place of a block's first job; a place is a block and an entry in one number, -1 behind the last."""
    return b * BLOCK + B[b].first if b != -1 else -1


@_inlined
def _follower(B, at):
    """The place behind `at`; it stays right when the job at `at` leaves."""
    b = at // BLOCK
    return at + 1 if at % BLOCK + 1 < B[b].end else _first_of(B, B[b].next)


@_inlined
def _dequeue(Q, B, Y, n, at):
    """Take a job out; those before it in its block move up, so that a block's first leaves cheaply."""
    b = at // BLOCK
    for x in range(at % BLOCK, B[b].first, -1):
        _move_entry(Q, b, x - 1, b, x)
    B[b].first += 1
    B[b].stale = 1
    n[NUM_QUEUED] -= 1
    if B[b].first == B[b].end:
        _drop_block(B, Y, n, b)


# ---- lanes with which a pass has yet to go on: a heap by who comes next in each


@_inlined
def _is_lane_before(Y, a, b):
    return Y[a].key < Y[b].key or (Y[a].key == Y[b].key and Y[a].job < Y[b].job)


@_inlined
def _sink(Y, n, x):
    """Put the lane in entry x where it belongs below."""
    lane = Y[x].turn
    while 2 * x + 1 < n[NUM_TURNS]:
        child = 2 * x + 1
        if child + 1 < n[NUM_TURNS] and _is_lane_before(Y, Y[child + 1].turn, Y[child].turn):
            child += 1
        if _is_lane_before(Y, lane, Y[child].turn):
            break
        Y[x].turn = Y[child].turn
        x = child
    Y[x].turn = lane


# ---- events to come: a heap by (time, rank, sequence)


@_inlined
def _is_earlier(H, a, key, seq):
    return H[a].key < key or (H[a].key == key and H[a].seq < seq)


@_inlined
def _put_event(H, n, i, key, seq, j):
    """Put an event into entry i, or where it must rise or sink to from there."""
    while i > 0 and not _is_earlier(H, (i - 1) // 2, key, seq):
        parent = (i - 1) // 2
        H[i].key, H[i].seq, H[i].job = H[parent].key, H[parent].seq, H[parent].job
        i = parent
    while True:
        child = 2 * i + 1
        if child >= n[HEAP]:
            break
        if child + 1 < n[HEAP] and _is_earlier(H, child + 1, H[child].key, H[child].seq):
            child += 1
        if not _is_earlier(H, child, key, seq):
            break
        H[i].key, H[i].seq, H[i].job = H[child].key, H[child].seq, H[child].job
        i = child
    H[i].key, H[i].seq, H[i].job = key, seq, j


@_inlined
def _push(H, n, time, rank, seq, j):
    _put_event(H, n, n[HEAP], time * 8 + rank, seq, j)
    n[HEAP] += 1


@_inlined
def _remove_event(H, n, i):
    n[HEAP] -= 1
    last = n[HEAP]
    if i < last:
        _put_event(H, n, i, H[last].key, H[last].seq, H[last].job)


@_compiled
def _forget_events(H, n, j):
    """A run that was cut short neither ends nor outlives its estimate."""
    i = 0
    while i < n[HEAP]:
        if H[i].job == j:
            _remove_event(H, n, i)
            i = 0
        else:
            i += 1


# ---- running jobs by estimated end


@_inlined
def _place_of(R, n, packed):
    low, high = 0, n[NUM_RUNNING]
    while low < high:
        middle = (low + high) // 2
        if R[middle] < packed:
            low = middle + 1
        else:
            high = middle
    return low


@_inlined
def _expect(J, R, n, j, until):
    packed = (until << JOB_BITS) | j
    at = _place_of(R, n, packed)
    for i in range(n[NUM_RUNNING], at, -1):
        R[i] = R[i - 1]
    R[at] = packed
    J[j].expected = until
    n[NUM_RUNNING] += 1


@_inlined
def _unexpect(J, R, n, j):
    at = _place_of(R, n, (J[j].expected << JOB_BITS) | j)
    n[NUM_RUNNING] -= 1
    for i in range(at, n[NUM_RUNNING]):
        R[i] = R[i + 1]


# ---- estimates, limits, priorities


@_inlined
def _estimate(J, U, n, j):
    """The static one, or half the sum of the run times of the user's last two jobs that ended."""
    u = J[j].user
    if n[ESTIMATES] == LAST_TWO and u >= 0 and U[u].before >= 0:
        return min(J[j].request, (U[u].last + U[u].before) // 2)
    return J[j].estimate


@_inlined
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


@_inlined
def _amount(J, L, row, j):
    return J[j].total if L[row].what == RUNNING_PES else 1


@_compiled
def _is_held(J, L, V, C, n, j, at_gate):
    """Whether a limit keeps the job from running (or, at the gate, from being queued)."""
    for row in range(len(L)):
        value = V[n[EPOCH_NOW], row]
        if value < 0 or (L[row].what == QUEUED_JOBS) != at_gate:
            continue
        at = _counter(J, L, row, j)
        if at >= 0 and C[at] + _amount(J, L, row, j) > value:
            return True
    return False


@_compiled
def _count(J, L, C, j, sign, at_gate):
    for row in range(len(L)):
        if (L[row].what == QUEUED_JOBS) == at_gate:
            at = _counter(J, L, row, j)
            if at >= 0:
                C[at] += sign * _amount(J, L, row, j)


@_inlined
def _key(J, U, P, E, W, n, j):
    """The smaller goes first: as given, or Slurm's multifactor with ages and fair shares as last counted."""
    if n[ORDER] != MULTIFACTOR:
        return J[j].key
    age = max(0, n[LAST_PRIORITY] - J[j].submit)
    points = W[AGE] * min(1.0, age / W[MAX_AGE])
    points += W[SIZE] * J[j].total / max(1, n[NUM_OPEN])
    if J[j].user >= 0:
        points += U[J[j].user].points
    if J[j].queue >= 0:
        points += P[J[j].queue].points
        if n[PREEMPT] and P[J[j].queue].low:
            points -= YIELDING
    if J[j].qos >= 0:
        points += E[J[j].qos]
    # The nearest: what is equal but for the last bits must stay equal.
    return -np.int64(math.floor(points * POINT + 0.5))


@_compiled
def _ranks_before(J, U, P, E, W, n, a, b):
    first, second = _key(J, U, P, E, W, n, a), _key(J, U, P, E, W, n, b)
    return first < second or (first == second and a < b)


@_inlined
def _goes_before(J, U, P, E, W, n, a, b):
    """Whether job a goes before job b, of any lanes."""
    if n[ORDER] != MULTIFACTOR:
        return _is_before(J, a, b)
    return _ranks_before(J, U, P, E, W, n, a, b)


@_inlined
def _come_to(J, Q, Y, U, P, E, W, n, lane, at):
    """A pass is in a lane at a place."""
    j = Q[at // BLOCK, at % BLOCK].job
    Y[lane].at, Y[lane].job, Y[lane].key = at, j, _key(J, U, P, E, W, n, j)


@_inlined
def _go_on(J, Q, Y, U, P, E, W, n, at):
    """The first lane goes on at a place; -1: it is done with."""
    if at != -1:
        _come_to(J, Q, Y, U, P, E, W, n, Y[0].turn, at)
    else:
        n[NUM_TURNS] -= 1
        Y[Y[0].turn].at = -1
        Y[0].turn = Y[n[NUM_TURNS]].turn
    if n[NUM_TURNS] > 1:
        _sink(Y, n, 0)


@_inlined
def _use(U, W, n, u, more, now):
    """Person u uses so many PEs more from now on; what they used is counted, and decays as it goes."""
    if n[ORDER] != MULTIFACTOR:
        return
    rate = math.log(2.0) / W[HALF_LIFE]
    gone = -math.expm1(-rate * (now - U[u].since))  # the share of what was used that is forgotten
    U[u].usage += U[u].pes * gone / rate - U[u].usage * gone
    U[u].since = now
    U[u].pes += more


@_compiled
def _count_usage(U, W, n, now):
    """Count what each person has used until now, and set the points of their fair share."""
    total = 0.0
    for u in range(len(U)):
        if U[u].usage > 0.0 or U[u].pes > 0:
            _use(U, W, n, u, 0, now)
            total += U[u].usage
    for u in range(len(U)):
        if U[u].usage > 0.0:
            share = U[u].usage / total * n[NUM_PEOPLE]
            U[u].points = W[FAIR_SHARE] * 2.0**-share
    n[LAST_PRIORITY] = now


@_inlined
def _is_sorted(K, a):
    """Whether the candidate in entry a is not before the one in front of it."""
    key, before = K[a].key, K[a - 1].key
    return before < key or (before == key and K[a - 1].job < K[a].job)


@_inlined
def _run_of(K, i, end):
    """The end of the run of sorted candidates that begins in entry i."""
    i += 1
    while i < end and _is_sorted(K, i):
        i += 1
    return i


@_inlined
def _merge(K, a, b, end, to):
    """Entries a to before b and b to before `end`, each sorted, into one from entry `to` on."""
    middle = b
    while a < middle or b < end:
        left = b == end or (a < middle and K[a].key < K[b].key)
        if a < middle and b < end and K[a].key == K[b].key:
            left = K[a].job < K[b].job
        source = a if left else b
        K[to].key, K[to].job = K[source].key, K[source].job
        to, a, b = to + 1, a + left, b + 1 - left


@_compiled
def _sort(K, num):
    """By key, equals by job: where in K the sorted begin. It has room for twice as many; runs are merged."""
    source, target = 0, num
    while num > 0 and _run_of(K, source, source + num) < source + num:
        at = 0
        while at < num:
            middle = _run_of(K, source + at, source + num)
            end = _run_of(K, middle, source + num) if middle < source + num else middle
            _merge(K, source + at, middle, end, target + at)
            at = end - source
        source, target = target, source
    return source


# ---- nodes


@_inlined
def _takes(J, N, j, x):
    """What job j takes of node x."""
    return N[x].size if J[j].whole else J[j].pes


@_inlined
def _fits(N, has, model, pes, whole, x, use_extra):
    """Whether node x, of which `has` is free, can take `pes` of a job."""
    if not N[x].open or has < pes or (model >= 0 and N[x].model != model):
        return False
    need = N[x].size if whole else pes
    return has >= need and not (use_extra and N[x].extra < need)


@_inlined
def _is_choice(J, N, j, x, has, use_extra, switch):
    """Whether job j fits on node x under a switch (-1: any)."""
    if switch >= 0 and N[x].switch != switch:
        return False
    return _fits(N, has, J[j].model, J[j].pes, J[j].whole, x, use_extra)


@_compiled
def _choose_from(J, N, n, j, use_then, use_extra, switch, have):
    """Add to `pick`, from one switch (-1: any), the tightest or emptiest nodes; how many there are."""
    level = -1  # what the nodes taken last have free
    while have < J[j].num_nodes:
        following = -1
        for x in range(len(N)):
            has = N[x].then if use_then else N[x].free
            if n[PACKING] == BEST_FIT:
                is_nearer = has > level and (following == -1 or has < following)
            else:
                is_nearer = has > following and (level == -1 or has < level)
            if is_nearer and _is_choice(J, N, j, x, has, use_extra, switch):
                following = has
        if following == -1:
            break
        level = following
        for x in range(len(N)):
            has = N[x].then if use_then else N[x].free
            if have == J[j].num_nodes or has != level:
                continue
            if _is_choice(J, N, j, x, has, use_extra, switch):
                N[have].pick = x
                have += 1
    return have


@_compiled
def _choose_near(J, N, n, j, use_then, use_extra):
    """Under one switch, the one with the fewest nodes to spare; else, where allowed, under few."""
    wanted, num_fit = J[j].num_nodes, 0
    for x in range(len(N)):
        N[x].num_fit = 0
    for x in range(len(N)):
        has = N[x].then if use_then else N[x].free
        if _fits(N, has, J[j].model, J[j].pes, J[j].whole, x, use_extra):
            N[N[x].switch].num_fit += 1
            num_fit += 1
    best = -1
    for w in range(len(N)):
        if N[w].num_fit >= wanted and (best == -1 or N[w].num_fit < N[best].num_fit):
            best = w
    if best >= 0:
        return _choose_from(J, N, n, j, use_then, use_extra, best, 0) == wanted
    if n[LOCALITY] == REQUIRED or num_fit < wanted:
        return False
    have = 0
    while have < wanted:
        w = 0
        for x in range(len(N)):
            w = x if N[x].num_fit > N[w].num_fit else w
        have = _choose_from(J, N, n, j, use_then, use_extra, w, have)
        N[w].num_fit = -1
    return True


@_compiled
def _choose(J, N, n, j, use_then, use_extra):
    """Put into `pick` the nodes on which job j fits; whether there are enough."""
    pes, model, wanted = J[j].pes, J[j].model, J[j].num_nodes
    if wanted > len(N):
        return False
    if wanted > 1 and n[LOCALITY] != ANYWHERE:
        return _choose_near(J, N, n, j, use_then, use_extra)
    if wanted > 1:
        return _choose_from(J, N, n, j, use_then, use_extra, -1, 0) == wanted
    best, best_free = -1, 0
    for x in range(len(N)):
        has = N[x].then if use_then else N[x].free
        if not _fits(N, has, model, pes, False, x, use_extra):
            continue
        better = has < best_free if n[PACKING] == BEST_FIT else has > best_free
        if best == -1 or better:
            best, best_free = x, has
    N[0].pick = best
    return best >= 0


@_inlined
def _node_of(J, N, A, j, x):
    """The x-th node of a job that runs; a flat pool keeps no list."""
    return 0 if len(N) == 1 else A[J[j].offset + x]


@_inlined
def _is_on(J, N, A, j, node):
    for x in range(J[j].num_nodes):
        if _node_of(J, N, A, j, x) == node:
            return True
    return False


@_inlined
def _largest(N, use_extra):
    """The most that one open node has free (and to spare for jobs that outlast the shadow time)."""
    most = 0
    for x in range(len(N)):
        if N[x].open:
            has = min(N[x].free, N[x].extra) if use_extra else N[x].free
            most = max(most, has)
    return most


@_inlined
def _release_then(J, N, A, n, r, j, whole):
    """Give a running job's PEs back in `then`; how many more nodes fit job j by that."""
    more = 0
    for y in range(J[r].num_nodes):
        x = _node_of(J, N, A, r, y)
        more -= _fits(N, N[x].then, J[j].model, J[j].pes, whole, x, False)
        N[x].then += _takes(J, N, r, x)
        more += _fits(N, N[x].then, J[j].model, J[j].pes, whole, x, False)
    return more


@_compiled
def _find_shadow(J, N, A, R, n):
    """When the head can begin by the estimates, and what is free then beyond it."""
    j = n[HEAD]
    num = 0
    whole = J[j].whole
    for x in range(len(N)):
        N[x].then = N[x].free
        num += _fits(N, N[x].then, J[j].model, J[j].pes, whole, x, False)
    n[SHADOW] = NEVER
    x = 0
    while x < n[NUM_RUNNING]:
        until = R[x] >> JOB_BITS
        while x < n[NUM_RUNNING] and R[x] >> JOB_BITS == until:
            num += _release_then(J, N, A, n, R[x] & JOB_MASK, j, whole)
            x += 1
        if num >= J[j].num_nodes and _choose(J, N, n, j, True, False):
            n[SHADOW] = until
            for y in range(J[j].num_nodes):
                N[N[y].pick].then -= _takes(J, N, j, N[y].pick)
            break
    for x in range(len(N)):
        N[x].extra = N[x].then
    n[SHADOW_KNOWN] = 1
    n[MAX_EXTRA] = _largest(N, True)


# ---- starting and ending


@_inlined
def _start(J, N, A, R, H, U, L, C, W, n, j, now):
    """Begin job j on the picked nodes."""
    for y in range(J[j].num_nodes):
        x = N[y].pick
        N[x].free -= _takes(J, N, j, x)
        n[NUM_FREE] -= _takes(J, N, j, x)
        if len(N) > 1:
            A[J[j].offset + y] = x
    n[SEQ] += 1
    J[j].start, J[j].seq, J[j].stage = now, n[SEQ], RUNNING
    estimate = _estimate(J, U, n, j)
    _expect(J, R, n, j, now + estimate)
    _push(H, n, now + J[j].run, END, n[SEQ], j)
    if estimate < J[j].run:
        _push(H, n, now + estimate, OVER, n[SEQ], j)
    if len(L) > 0:
        _count(J, L, C, j, 1, False)
        _count(J, L, C, j, -1, True)
        n[GATE_DIRTY] = 1
    if J[j].user >= 0:
        _use(U, W, n, J[j].user, J[j].total, now)


@_inlined
def _release(J, N, A, R, n, j):
    """Its PEs are free again; those of a closed node are out of the machine."""
    _unexpect(J, R, n, j)
    for y in range(J[j].num_nodes):
        x = _node_of(J, N, A, j, y)
        N[x].free += _takes(J, N, j, x)
        if N[x].open:
            n[NUM_FREE] += _takes(J, N, j, x)
        else:
            n[CLOSED_BUSY] -= _takes(J, N, j, x)
    J[j].stage = RELEASED


@_inlined
def _leave(J, U, L, C, W, n, j, now):
    """It counts no longer."""
    if len(L) > 0:
        _count(J, L, C, j, -1, False)
    if J[j].user >= 0:
        _use(U, W, n, J[j].user, -J[j].total, now)


@_inlined
def _end(J, N, A, R, U, L, C, W, n, j, now):
    if J[j].stage == RUNNING:
        _release(J, N, A, R, n, j)
    _leave(J, U, L, C, W, n, j, now)
    J[j].stage, J[j].end = DONE, now
    u = J[j].user
    if u >= 0:
        U[u].before = U[u].last
        U[u].last = J[j].run
    n[DIRTY] = 1


@_inlined
def _keep_integrals(T):
    """Somebody runs no longer: what follows counts only if somebody else runs then."""
    for x in range(NUM_INTEGRALS):
        T[UNTIL_END + x] = T[x]


@_compiled
def _put_back(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, j, now, reason):
    """Stop a running job and queue it again; what it has done is lost."""
    _forget_events(H, n, j)
    _release(J, N, A, R, n, j)
    _leave(J, U, L, C, W, n, j, now)
    _keep_integrals(T)
    T[LOST] += (now - J[j].start) * J[j].total
    J[j].num_restarts += 1
    J[j].reason = reason
    J[j].start = -1
    if len(L) > 0:
        _count(J, L, C, j, 1, True)
    _admit(J, Q, B, Y, n, j)
    n[DIRTY] = 1


# ---- why a job waits


@_inlined
def _left(N, x, is_live):
    """What node x has free for jobs: now, or as the last pass left it."""
    if is_live:
        return N[x].free if N[x].open else 0
    return N[x].seen


@_compiled
def _free_for(J, N, n, j, is_live):
    """What is free of the model that job j asks for."""
    if J[j].model < 0:
        return n[NUM_FREE] if is_live else n[NUM_SEEN]
    free = 0
    for x in range(len(N)):
        free += _left(N, x, is_live) if N[x].model == J[j].model else 0
    return free


@_compiled
def _why_not(J, N, n, j, is_live):
    """What stands in the way of a job that no limit holds, though enough is free of all models."""
    if _free_for(J, N, n, j, is_live) < J[j].num_nodes * J[j].pes:
        return RESOURCES
    near = n[LOCALITY] == REQUIRED and J[j].num_nodes > 1
    for x in range(len(N)):
        N[x].num_fit = 0
    for x in range(len(N)):
        w = N[x].switch if near else 0
        if J[j].model < 0 or N[x].model == J[j].model:
            need = max(J[j].pes, _takes(J, N, j, x))
            N[w].num_fit += _left(N, x, is_live) >= need
        if N[w].num_fit >= J[j].num_nodes:
            return BEHIND if n[BACKFILL] == NO_BACKFILL else RESERVED
    return FRAGMENTED


@_inlined
def _why(J, N, n, j, is_live):
    """What stands in the way of a job that no limit holds; most often there is too little."""
    free = n[NUM_FREE] if is_live else n[NUM_SEEN]
    return RESOURCES if free < J[j].num_nodes * J[j].pes else _why_not(J, N, n, j, is_live)


@_inlined
def _explain(J, N, Y, n, j, came):
    """Why job j waited, before which so many passes were; who was stopped keeps that as the reason."""
    if J[j].reason < PREEMPTED and came < n[NUM_PASSES]:
        J[j].reason = LIMIT if Y[J[j].lane].was_held else _why(J, N, n, j, False)


@_compiled
def _explain_all(J, N, Q, B, Y, n):
    """Why those wait who never begin."""
    for x in range(n[NUM_LANES]):
        b = Y[Y[x].active].first
        while b != -1:
            for i in range(B[b].first, B[b].end):
                _explain(J, N, Y, n, Q[b, i].job, J[Q[b, i].job].seq)
            b = B[b].next


@_inlined
def _remember(J, N, Q, B, Y, L, V, C, n):
    """Keep what a pass left, by which those who begin in the next are told why they waited."""
    n[NUM_PASSES] += 1
    n[NUM_SEEN] = n[NUM_FREE]
    for x in range(len(N)):
        N[x].seen = _left(N, x, True)
    for x in range(n[NUM_LANES] if len(L) > 0 else 0):
        lane = Y[x].active
        b = Y[lane].first
        Y[lane].was_held = _is_held(J, L, V, C, n, Q[b, B[b].first].job, False)


# ---- beginning what may begin


@_inlined
def _set_head(n, j):
    n[HEAD] = j
    n[SHADOW_KNOWN] = 0


@_inlined
def _try_first(J, N, A, R, H, U, L, C, W, n, j, now):
    """Begin a job that nothing stands before."""
    if n[NUM_FREE] < J[j].num_nodes * J[j].pes or not _choose(J, N, n, j, False, False):
        return False
    _start(J, N, A, R, H, U, L, C, W, n, j, now)
    return True


@_compiled
def _try_behind(J, N, A, R, H, U, L, C, W, n, j, now):
    """Begin a job behind the head if that cannot delay the head; limits were looked at."""
    if n[NUM_FREE] < J[j].num_nodes * J[j].pes:
        return False
    if not n[SHADOW_KNOWN]:
        _find_shadow(J, N, A, R, n)
    outlasts = now + _estimate(J, U, n, j) > n[SHADOW]
    if outlasts and J[j].pes > n[MAX_EXTRA]:
        return False
    if not _choose(J, N, n, j, False, outlasts):
        return False
    if outlasts:
        for y in range(J[j].num_nodes):
            N[N[y].pick].extra -= _takes(J, N, j, N[y].pick)
    _start(J, N, A, R, H, U, L, C, W, n, j, now)
    n[MAX_EXTRA] = _largest(N, True)
    return True


# ---- the gate: doors, at each of which wait those whom the limits on queued jobs count together


@_compiled
def _wait_outside(G, D, n, j):
    door = G[j].door
    G[j].next = -1
    if D[door].first == -1:
        D[door].first, D[door].slot = j, n[NUM_DOORS]
        D[n[NUM_DOORS]].active = door
        n[NUM_DOORS] += 1
    else:
        G[D[door].last].next = j
    D[door].last = j


@_compiled
def _step_in(G, D, n, door):
    """The first at a door leaves it."""
    D[door].first = G[D[door].first].next
    if D[door].first == -1:
        n[NUM_DOORS] -= 1
        last = D[n[NUM_DOORS]].active
        D[D[door].slot].active, D[last].slot = last, D[door].slot


# ---- what happens


@_inlined
def _is_due(W, n, now):
    """Whether priorities are to be counted anew."""
    return n[ORDER] == MULTIFACTOR and now - n[LAST_PRIORITY] >= W[PERIOD]


@_inlined
def _begin_now(J, N, A, R, H, U, L, V, C, P, E, W, n, j, now):
    """Where since the last pass nothing but this job came, only it need be tried; the reservation stands."""
    head = n[HEAD]
    is_other = head >= 0 and _goes_before(J, U, P, E, W, n, j, head)
    if len(L) > 0 and head >= 0:  # who began behind the head may have used up its limit
        is_other = is_other or _is_held(J, L, V, C, n, head, False)
    if is_other or n[DIRTY] or n[BATCHED] or n[PREEMPT] or _is_due(W, n, now):
        n[DIRTY] = 1
        return False
    if len(L) > 0 and _is_held(J, L, V, C, n, j, False):
        J[j].reason = LIMIT
        return False
    if head == -1 and _try_first(J, N, A, R, H, U, L, C, W, n, j, now):
        return True
    may_pass = head >= 0 and n[BACKFILL] != NO_BACKFILL
    if may_pass and _try_behind(J, N, A, R, H, U, L, C, W, n, j, now):
        return True
    if head == -1:
        _set_head(n, j)
    J[j].reason = _why(J, N, n, j, True)
    return False


@_inlined
def _arrive(J, N, A, Q, B, Y, R, H, U, L, V, C, G, D, P, E, W, n, j, now):
    """A job is submitted: held at the gate, begun at once, or queued."""
    if len(L) > 0:
        if _is_held(J, L, V, C, n, j, True):
            J[j].stage, J[j].reason = GATED, GATE
            _wait_outside(G, D, n, j)
            return
        _count(J, L, C, j, 1, True)
    if not _begin_now(J, N, A, R, H, U, L, V, C, P, E, W, n, j, now):
        _admit(J, Q, B, Y, n, j)


@_compiled
def _first_allowed(J, L, V, C, D, n):
    """The door whose first came first, of those that no limit keeps shut; -1 where all are."""
    best = -1
    for x in range(n[NUM_DOORS]):
        j = D[D[x].active].first
        if best >= 0 and D[best].first < j:
            continue
        if not _is_held(J, L, V, C, n, j, True):
            best = D[x].active
    return best


@_compiled
def _open_gate(J, Q, B, Y, L, V, C, G, D, n):
    """Let in, in order, those whom the limits on queued jobs no longer hold."""
    n[GATE_DIRTY] = 0
    door = _first_allowed(J, L, V, C, D, n)
    while door >= 0:
        j = D[door].first
        _step_in(G, D, n, door)
        _count(J, L, C, j, 1, True)
        _admit(J, Q, B, Y, n, j)
        n[DIRTY] = 1
        door = _first_allowed(J, L, V, C, D, n)


@_compiled
def _change(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, node, kind, now):
    """A node opens, takes no new jobs, or is lost with what runs on it."""
    if kind == DOWN:
        for x in range(n[NUM_RUNNING] - 1, -1, -1):
            if _is_on(J, N, A, R[x] & JOB_MASK, node):
                j = R[x] & JOB_MASK
                _put_back(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, j, now, NODE_LOST)
    opens = 1 if kind == UP else 0
    if N[node].open != opens:
        sign = 1 if opens else -1
        N[node].open = opens
        n[NUM_OPEN] += sign * N[node].size
        n[NUM_FREE] += sign * N[node].free
        n[CLOSED_BUSY] -= sign * (N[node].size - N[node].free)
    n[DIRTY] = 1


@_inlined
def _over(J, R, n, j):
    """A job outlives its estimate: it is now expected to take what it asked for."""
    if J[j].stage == RUNNING:
        _unexpect(J, R, n, j)
        _expect(J, R, n, j, J[j].start + J[j].request)
        n[DIRTY] = 1


# ---- one pass over the queue


@_inlined
def _least_estimate(U, n, u, estimate):
    """A bound from below of what a job of person u is taken to need (the estimate itself, if it stays)."""
    if n[ESTIMATES] == STATIC or u < 0 or U[u].before < 0:
        return estimate
    return min(estimate, (U[u].last + U[u].before) // 2)


@_inlined
def _least_of_block(B, U, n, b):
    is_known = n[ESTIMATES] == STATIC or B[b].user >= 0
    return _least_estimate(U, n, B[b].user, B[b].estimate) if is_known else 0


@_inlined
def _is_too_long(n, estimate, pes, now):
    """Whether it would outlast the shadow time and there is nothing to spare for it."""
    return n[SHADOW_KNOWN] == 1 and now + estimate > n[SHADOW] and pes > n[MAX_EXTRA]


@_inlined
def _is_hopeless(Q, B, U, n, b, most, now):
    """Whether no job of a block can begin behind the head."""
    if B[b].stale:
        _recount(Q, B, b)
    return B[b].pes > most or _is_too_long(n, _least_of_block(B, U, n, b), B[b].pes, now)


@_compiled
def _next_hopeful(Q, B, U, n, at, most, now):
    """The first place from one on whose job may begin behind the head; -1 where there is none."""
    while at != -1:
        b, i = at // BLOCK, at % BLOCK
        if i == B[b].first and _is_hopeless(Q, B, U, n, b, most, now):
            at = _first_of(B, B[b].next)
            continue
        least = _least_estimate(U, n, Q[b, i].user, Q[b, i].estimate)
        if Q[b, i].pes <= most and not _is_too_long(n, least, Q[b, i].pes, now):
            break
        at = _follower(B, at)
    return at


@_inlined
def _is_lane_held(J, Y, L, V, C, n, lane):
    return len(L) > 0 and _is_held(J, L, V, C, n, Y[lane].job, False)


@_inlined
def _open_lanes(J, Q, B, Y, U, L, V, C, P, E, W, n):
    """A pass begins: all lanes that no limit holds, each with its first job."""
    n[NUM_TURNS] = 0
    for x in range(n[NUM_LANES]):
        lane = Y[x].active
        _come_to(J, Q, Y, U, P, E, W, n, lane, _first_of(B, Y[lane].first))
        if not _is_lane_held(J, Y, L, V, C, n, lane):
            Y[n[NUM_TURNS]].turn = lane
            n[NUM_TURNS] += 1
    for x in range(n[NUM_TURNS] // 2 - 1, -1, -1):
        _sink(Y, n, x)


@_compiled
def _backfill(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, n, now):
    """Behind the head, in the queue's order."""
    most = _largest(N, False)
    while n[NUM_TURNS] > 0 and most > 0:
        lane = Y[0].turn
        if _is_lane_held(J, Y, L, V, C, n, lane):
            _go_on(J, Q, Y, U, P, E, W, n, -1)
            continue
        at = _next_hopeful(Q, B, U, n, Y[lane].at, most, now)
        if at != Y[lane].at:
            _go_on(J, Q, Y, U, P, E, W, n, at)
            if at == -1 or Y[0].turn != lane:
                continue
        j, follower = Y[lane].job, _follower(B, at)
        came = J[j].seq
        if _try_behind(J, N, A, R, H, U, L, C, W, n, j, now):
            _explain(J, N, Y, n, j, came)
            _dequeue(Q, B, Y, n, at)
            most = _largest(N, False)
        _go_on(J, Q, Y, U, P, E, W, n, follower)


@_inlined
def _is_past(J, U, P, E, W, n, lane, j, last):
    """Whether job j of a lane, as long as the one that was tried last, goes before that or is it."""
    if J[last].lane == lane:
        return not _is_before(J, last, j)
    return not _goes_before(J, U, P, E, W, n, last, j)


@_compiled
def _shortest_of(J, Q, B, Y, U, P, E, W, n, lane, last, best_at, most, now):
    """Who in a lane has the shortest estimate, if shorter than the best so far: the place, or `best_at`."""
    best, shortest, below, at = -1, NEVER, NEVER, Y[lane].at
    past = _estimate(J, U, n, last) if last >= 0 else -1
    if best_at >= 0:
        best = Q[best_at // BLOCK, best_at % BLOCK].job
        shortest = _estimate(J, U, n, best)
        below = shortest + 1  # one as short may go before the best of another lane
    while at != -1:
        b, i, here = at // BLOCK, at % BLOCK, at
        if i == B[b].first and (
            _least_of_block(B, U, n, b) >= below or _is_hopeless(Q, B, U, n, b, most, now)
        ):
            at = _first_of(B, B[b].next)
            continue
        at = _follower(B, at)
        j, pes = Q[b, i].job, Q[b, i].pes
        least = _least_estimate(U, n, Q[b, i].user, Q[b, i].estimate)
        if least >= below or pes > most or _is_too_long(n, least, pes, now):
            continue
        estimate = _estimate(J, U, n, j) if n[ESTIMATES] == LAST_TWO else least
        if estimate >= below or estimate < past or J[j].num_nodes * pes > n[NUM_FREE]:
            continue
        if estimate == past and _is_past(J, U, P, E, W, n, lane, j, last):
            continue
        if estimate < shortest or _goes_before(J, U, P, E, W, n, j, best):
            best_at, shortest = here, estimate
        below = shortest  # who follows in the lane goes after this one
    return best_at


@_compiled
def _backfill_shortest(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, n, now):
    """Behind the head, by estimate; equals in the queue's order."""
    most, last = _largest(N, False), -1
    while most > 0:
        at = -1
        for x in range(n[NUM_TURNS]):
            lane = Y[x].turn
            if Y[lane].at != -1 and not _is_lane_held(J, Y, L, V, C, n, lane):
                at = _shortest_of(J, Q, B, Y, U, P, E, W, n, lane, last, at, most, now)
        if at == -1:
            break
        last = Q[at // BLOCK, at % BLOCK].job
        came = J[last].seq
        if _try_behind(J, N, A, R, H, U, L, C, W, n, last, now):
            _explain(J, N, Y, n, last, came)
            lane = J[last].lane
            if at == Y[lane].at:
                Y[lane].at = _follower(B, at)
            elif at // BLOCK == Y[lane].at // BLOCK:
                # Those before a job in its block move up when it leaves.
                Y[lane].at += 1
            _dequeue(Q, B, Y, n, at)
            most = _largest(N, False)


@_compiled
def _lift(J, N, A, v, sign):
    """Give a victim's PEs back in `then`, or take them again."""
    for y in range(J[v].num_nodes):
        node = _node_of(J, N, A, v, y)
        N[node].then += sign * _takes(J, N, v, node)


@_compiled
def _low_running(J, R, P, K, n):
    """Put into K the running jobs of low queues, the latest first: where they begin, and end."""
    num = 0
    for x in range(n[NUM_RUNNING]):
        r = R[x] & JOB_MASK
        if J[r].queue >= 0 and P[J[r].queue].low:
            K[num].key, K[num].job = -J[r].seq, r
            num += 1
    first = _sort(K, num)
    return first, first + num


@_compiled
def _find_victims(J, N, A, R, P, K, n, j):
    """Put into K whom to stop so that job j fits: the latest, and none who may as well go on; how many."""
    if J[j].queue < 0 or P[J[j].queue].low:
        return 0
    for x in range(len(N)):
        N[x].then = N[x].free
    first, last = _low_running(J, R, P, K, n)
    end, fits = first, False
    while end < last and not fits:
        _lift(J, N, A, K[end].job, 1)
        end += 1
        fits = _choose(J, N, n, j, True, False)
    num = 0
    for x in range(end - 1 if fits else first - 1, first - 1, -1):
        _lift(J, N, A, K[x].job, -1)
        if not _choose(J, N, n, j, True, False):
            _lift(J, N, A, K[x].job, 1)
            num += 1
            K[x].key = 1
    at = 0
    for x in range(first, end if fits else first):
        if K[x].key == 1:
            K[at].job = K[x].job
            at += 1
    return num


@_compiled
def _replace(J, N, A, Q, B, Y, R, H, U, L, C, W, K, T, n, num, now):
    """Stop the victims in K for the first in the queue, which begins in their place."""
    lane = Y[0].turn
    j = Y[lane].job
    _explain(J, N, Y, n, j, J[j].seq)
    _dequeue(Q, B, Y, n, Y[lane].at)
    for x in range(num):
        _put_back(J, N, A, Q, B, Y, R, H, U, L, C, W, T, n, K[x].job, now, PREEMPTED)
    _choose(J, N, n, j, False, False)
    _start(J, N, A, R, H, U, L, C, W, n, j, now)


@_compiled
def _pass(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, K, T, n, now):
    """Begin what may begin now."""
    n[HEAD] = -1
    _open_lanes(J, Q, B, Y, U, L, V, C, P, E, W, n)
    while n[NUM_TURNS] > 0 and n[HEAD] == -1:
        lane = Y[0].turn
        j, at = Y[lane].job, Y[lane].at
        if _is_lane_held(J, Y, L, V, C, n, lane):
            _go_on(J, Q, Y, U, P, E, W, n, -1)
            continue
        follower, came = _follower(B, at), J[j].seq
        if _try_first(J, N, A, R, H, U, L, C, W, n, j, now):
            _explain(J, N, Y, n, j, came)
            _dequeue(Q, B, Y, n, at)
            _go_on(J, Q, Y, U, P, E, W, n, follower)
            continue
        num = _find_victims(J, N, A, R, P, K, n, j) if n[PREEMPT] else 0
        if num > 0:
            _replace(J, N, A, Q, B, Y, R, H, U, L, C, W, K, T, n, num, now)
            _open_lanes(J, Q, B, Y, U, L, V, C, P, E, W, n)
        else:
            _set_head(n, j)
            _go_on(J, Q, Y, U, P, E, W, n, follower)
    if n[HEAD] >= 0 and n[BACKFILL] == IN_ORDER:
        _backfill(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, n, now)
    elif n[HEAD] >= 0 and n[BACKFILL] == SHORTEST:
        _backfill_shortest(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, n, now)
    n[DIRTY] = 0
    _remember(J, N, Q, B, Y, L, V, C, n)


# ---- the whole


@_inlined
def _add_time(J, N, T, n, passed):
    T[CAPACITY] += passed * (n[NUM_OPEN] + n[CLOSED_BUSY])
    T[BUSY] += passed * (n[NUM_OPEN] - n[NUM_FREE] + n[CLOSED_BUSY])
    if n[NUM_QUEUED] > 0:
        T[IDLE_WAITING] += passed * n[NUM_FREE]
    if n[HEAD] >= 0:
        need = J[n[HEAD]].num_nodes * J[n[HEAD]].pes
        free = _free_for(J, N, n, n[HEAD], True) if n[NUM_FREE] >= need else 0
        if free >= need:
            T[FRAGMENT] += passed * free


@_inlined
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


@_inlined
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
        _remove_event(H, n, 0)
        if rank == OVER:
            _over(J, R, n, j)
        else:
            _end(J, N, A, R, U, L, C, W, n, j, now)
            _keep_integrals(T)


@_compiled
def _play(J, N, A, X, Q, B, Y, R, H, U, L, S, V, C, G, D, P, E, W, K, T, n):
    """From the first submission to the last end. X: changes of nodes; S: since when each row of V holds."""
    now = J[0].submit if len(J) else 0
    at = _next_event(J, H, X, S, n)
    while at < NEVER:
        rank = at & 7
        _add_time(J, N, T, n, max(0, (at >> 3) - now))
        now = max(now, at >> 3)  # a node may change before the first submission
        T[EVENTS] += 1
        while rank != OVER and n[NUM_RUNNING] > 0 and R[0] >> JOB_BITS <= now:
            _release(J, N, A, R, n, R[0] & JOB_MASK)
            n[DIRTY] = 1
        _happen(J, N, A, X, Q, B, Y, R, H, U, L, V, C, G, D, P, E, W, T, n, rank, now)
        at = _next_event(J, H, X, S, n)
        if rank == OVER or (n[BATCHED] and at >> 3 <= now):
            continue
        if n[NUM_DOORS] > 0 and n[GATE_DIRTY]:
            _open_gate(J, Q, B, Y, L, V, C, G, D, n)
        if _is_due(W, n, now):
            _count_usage(U, W, n, now)
            n[DIRTY] = 1
        if n[NUM_QUEUED] == 0:
            n[HEAD], n[DIRTY] = -1, 0
        while n[DIRTY]:
            _pass(J, N, A, Q, B, Y, R, H, U, L, V, C, P, E, W, K, T, n, now)
            if n[NUM_DOORS] > 0 and n[GATE_DIRTY]:  # who began is queued no longer
                _open_gate(J, Q, B, Y, L, V, C, G, D, n)
        at = _next_event(J, H, X, S, n)
    _explain_all(J, N, Q, B, Y, n)
    for x in range(NUM_INTEGRALS):
        T[x] = T[UNTIL_END + x]


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
    bounds = np.empty(num_blocks, _BOUNDS)
    bounds["spare"] = np.arange(num_blocks)
    lanes = np.zeros(num_lanes, _LANE)
    lanes["first"] = lanes["tail"] = -1
    gated = np.empty(len(doors), _GATED)
    gated["door"] = doors
    outside = np.zeros(num_doors, _DOOR)
    outside["first"] = -1
    people = np.zeros(num_users, _PERSON)
    people["last"] = people["before"] = -1
    nodes["free"] = nodes["size"]
    num_places = int(jobs["num_nodes"].sum()) if len(nodes) > 1 else 0
    jobs["whole"] = rules["whole_nodes"] * (jobs["num_nodes"] > 1)
    got = np.full(num_places, -1, np.int32)
    totals = np.zeros(UNTIL_END + NUM_INTEGRALS)
    people["points"] = weights["fair_share"]
    _play(
        jobs,
        nodes,
        got,
        changes,
        np.empty((num_blocks, BLOCK), _ENTRY),
        bounds,
        lanes,
        np.empty(num_running, np.int64),
        # Not by the machine's size: jobs of no length that begin in one second all end after it.
        np.empty(2 * num + 2, _EVENT),
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
        np.empty(2 * num_running if rules["preempt"] else 0, _CANDIDATE),
        totals,
        n,
    )
    return got, totals[: len(TOTALS)]
