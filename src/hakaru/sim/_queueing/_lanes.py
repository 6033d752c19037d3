"""The queue: lanes of blocks of jobs in order, linked; each block knows bounds of what its jobs need."""

from __future__ import annotations

from hakaru.sim._queueing._state import (
    BLOCK,
    ESTIMATES,
    LAST_TWO,
    NUM_LANES,
    NUM_PASSES,
    NUM_QUEUED,
    NUM_SPARE,
    NUM_TURNS,
    QUEUED,
    compiled,
    inlined,
)
from hakaru.sim._records import NEVER


@inlined
def is_before(J, a, b):
    return J[a].key < J[b].key or (J[a].key == J[b].key and a < b)


@inlined
def _block_of(J, Q, B, Y, j):
    """The block of its lane into which job j belongs; -1 where the lane is empty."""
    b = Y[J[j].lane].tail
    while b != -1 and B[b].prev != -1:
        before = B[b].prev
        if is_before(J, Q[before, B[before].end - 1].job, j):
            break
        b = before
    return b


@inlined
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


@inlined
def _note(Q, B, b, i):
    """Widen a block's bounds by the job in entry i."""
    B[b].pes = min(B[b].pes, Q[b, i].pes)
    B[b].estimate = min(B[b].estimate, Q[b, i].estimate)
    if B[b].user == -2:
        B[b].user = Q[b, i].user
    elif B[b].user != Q[b, i].user:
        B[b].user = -1


@compiled
def recount(Q, B, b):
    B[b].pes, B[b].estimate, B[b].user, B[b].stale = NEVER, NEVER, -2, 0
    for i in range(B[b].first, B[b].end):
        _note(Q, B, b, i)


@inlined
def _move_entry(Q, a, x, b, y):
    Q[b, y].estimate, Q[b, y].user = Q[a, x].estimate, Q[a, x].user
    Q[b, y].job, Q[b, y].pes = Q[a, x].job, Q[a, x].pes


@compiled
def _make_space(J, Q, B, Y, n, b, j):
    """Room at the end of the block into which job j belongs: its own, a new last one, or one half of it."""
    if B[b].end < BLOCK:
        return b
    first = B[b].first
    if B[b].next == -1 and is_before(J, Q[b, BLOCK - 1].job, j):
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
    recount(Q, B, b)
    recount(Q, B, new)
    return new if is_before(J, Q[b, half - 1].job, j) else b


@inlined
def _enqueue(J, Q, B, Y, n, j):
    b, lane = _block_of(J, Q, B, Y, j), J[j].lane
    b = _new_block(B, Y, n, lane, -1) if b == -1 else _make_space(J, Q, B, Y, n, b, j)
    i = B[b].end
    while i > B[b].first and is_before(J, j, Q[b, i - 1].job):
        _move_entry(Q, b, i - 1, b, i)
        i -= 1
    Q[b, i].estimate, Q[b, i].user = J[j].estimate, J[j].user
    if n[ESTIMATES] == LAST_TWO:  # a bound from below
        Q[b, i].estimate = min(J[j].estimate, J[j].request)
    Q[b, i].job, Q[b, i].pes = j, J[j].pes
    B[b].end += 1
    _note(Q, B, b, i)
    n[NUM_QUEUED] += 1


@inlined
def admit(J, Q, B, Y, n, j):
    """Job j waits in the queue from now on."""
    J[j].stage, J[j].seq = QUEUED, n[NUM_PASSES]
    _enqueue(J, Q, B, Y, n, j)


@inlined
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


@inlined
def first_of(B, b):
    """The place of a block's first job; a place is a block and an entry in one number, -1 behind the last."""
    return b * BLOCK + B[b].first if b != -1 else -1


@inlined
def next_place(B, at):
    """The place behind `at`; it stays right when the job at `at` leaves."""
    b = at // BLOCK
    return at + 1 if at % BLOCK + 1 < B[b].end else first_of(B, B[b].next)


@inlined
def dequeue(Q, B, Y, n, at):
    """Take a job out; those before it in its block move up, so that a block's first leaves cheaply."""
    b = at // BLOCK
    for x in range(at % BLOCK, B[b].first, -1):
        _move_entry(Q, b, x - 1, b, x)
    B[b].first += 1
    B[b].stale = 1
    n[NUM_QUEUED] -= 1
    if B[b].first == B[b].end:
        _drop_block(B, Y, n, b)


@inlined
def _is_lane_before(Y, a, b):
    return Y[a].key < Y[b].key or (Y[a].key == Y[b].key and Y[a].job < Y[b].job)


@inlined
def sink(Y, n, x):
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
