"""Events to come, as a heap by (time, rank, sequence), and running jobs by their estimated ends."""

from __future__ import annotations

from hakaru.sim._queueing._state import (
    ESTIMATES,
    HEAP,
    JOB_BITS,
    LAST_TWO,
    NUM_RUNNING,
    compiled,
    inlined,
)


@inlined
def _is_earlier(H, a, key, seq):
    return H[a].key < key or (H[a].key == key and H[a].seq < seq)


@inlined
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


@inlined
def push(H, n, time, rank, seq, j):
    _put_event(H, n, n[HEAP], time * 8 + rank, seq, j)
    n[HEAP] += 1


@inlined
def remove_event(H, n, i):
    n[HEAP] -= 1
    last = n[HEAP]
    if i < last:
        _put_event(H, n, i, H[last].key, H[last].seq, H[last].job)


@compiled
def forget_events(H, n, j):
    """A run that was cut short neither ends nor outlives its estimate."""
    i = 0
    while i < n[HEAP]:
        if H[i].job == j:
            remove_event(H, n, i)
            i = 0
        else:
            i += 1


@inlined
def _place_of(R, n, packed):
    low, high = 0, n[NUM_RUNNING]
    while low < high:
        middle = (low + high) // 2
        if R[middle] < packed:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def expect(J, R, n, j, until):
    packed = (until << JOB_BITS) | j
    at = _place_of(R, n, packed)
    for i in range(n[NUM_RUNNING], at, -1):
        R[i] = R[i - 1]
    R[at] = packed
    J[j].expected = until
    n[NUM_RUNNING] += 1


@inlined
def unexpect(J, R, n, j):
    at = _place_of(R, n, (J[j].expected << JOB_BITS) | j)
    n[NUM_RUNNING] -= 1
    for i in range(at, n[NUM_RUNNING]):
        R[i] = R[i + 1]


@inlined
def estimate_of(J, U, n, j):
    """The static one, or half the sum of the run times of the user's last two jobs that ended."""
    u = J[j].user
    if n[ESTIMATES] == LAST_TWO and u >= 0 and U[u].before >= 0:
        return min(J[j].request, (U[u].last + U[u].before) // 2)
    return J[j].estimate
