"""Events to come, as a heap by (time, rank, sequence), and the line of those who wait."""

from __future__ import annotations

from hakaru.sim._conservative._state import FIRST, HEAP, LAST, compiled, inlined


@inlined
def _is_earlier(H, a, key, seq):
    return H[a].key < key or (H[a].key == key and H[a].seq < seq)


@compiled
def push(H, n, time, rank, seq, j):
    i, key = n[HEAP], time * 8 + rank
    while i > 0 and not _is_earlier(H, (i - 1) // 2, key, seq):
        parent = (i - 1) // 2
        H[i].key, H[i].seq, H[i].job = H[parent].key, H[parent].seq, H[parent].job
        i = parent
    H[i].key, H[i].seq, H[i].job = key, seq, j
    n[HEAP] += 1


@compiled
def pop(H, n):
    """Take the first event out; its job."""
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


@compiled
def line_up(P, n, j):
    """Into the line, in order of submission."""
    after = n[LAST]
    while after != -1 and after > j:
        after = P[after].prev
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


@compiled
def step_out(P, n, j):
    before, after = P[j].prev, P[j].next
    if before == -1:
        n[FIRST] = after
    else:
        P[before].next = after
    if after == -1:
        n[LAST] = before
    else:
        P[after].prev = before
