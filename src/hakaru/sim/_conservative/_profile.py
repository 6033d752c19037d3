"""The profile: what is free in each slice of time to come, in blocks that know their bounds.

A slice is told by its place: the number of its block and its entry in it, in one word. Places change when
slices come and go; times do not, and the first slice is the present one. What is added to a whole block is
noted with the block, so that neither a long job nor a search touches every slice.
"""

from __future__ import annotations

from hakaru.sim._conservative._state import (
    ADDED,
    BITS,
    BLOCK,
    BOUNDS,
    FLOOR,
    FREE,
    HALF,
    LAST_RAISED,
    LEAST,
    MASK,
    MOST,
    NUM_BLOCKS,
    NUM_Q,
    NUM_ROWS,
    NUM_SLOTS,
    RAISED,
    ROW,
    SINCE,
    SIZE,
    SLOT,
    STARTER,
    UNUSED,
    WHEN,
    compiled,
    inlined,
)
from hakaru.sim._records import NEVER


@inlined
def time_of(B, Q, at):
    return Q[B[SLOT, at >> BITS], WHEN, at & MASK]


@inlined
def free_in(B, Q, at):
    k = at >> BITS
    return Q[B[SLOT, k], FREE, at & MASK] + B[ADDED, k]


@inlined
def row_of(B, Q, at):
    return Q[B[SLOT, at >> BITS], ROW, at & MASK]


@inlined
def follower(B, n, at):
    """The slice behind; -1 behind the last."""
    k = at >> BITS
    if (at & MASK) + 1 < B[SIZE, k]:
        return at + 1
    return (k + 1) << BITS if k + 1 < n[NUM_BLOCKS] else -1


@inlined
def preceding(B, at):
    """The slice in front of one that is not the first."""
    k = (at >> BITS) - 1
    return at - 1 if at & MASK else (k << BITS) + B[SIZE, k] - 1


@compiled
def find(B, Q, n, time):
    """The slice that contains a time; the first where it lies before all. Without branches to mispredict."""
    k, num = 0, n[NUM_BLOCKS]
    while num > 1:
        half = num >> 1
        k += half if B[SINCE, k + half] <= time else 0
        num -= half
    slot, i, num = B[SLOT, k], 0, B[SIZE, k]
    while num > 1:
        half = num >> 1
        i += half if Q[slot, WHEN, i + half] <= time else 0
        num -= half
    return (k << BITS) + i


# ---- slices that come and go


@compiled
def recount(B, Q, k):
    """A block's bounds anew."""
    slot, least, most, raised = B[SLOT, k], NEVER, -NEVER, B[FLOOR, k]
    for i in range(B[SIZE, k]):
        least = min(least, Q[slot, FREE, i])
        most = max(most, Q[slot, FREE, i])
        raised = max(raised, Q[slot, RAISED, i])
    B[LEAST, k], B[MOST, k] = least + B[ADDED, k], most + B[ADDED, k]
    B[LAST_RAISED, k], B[SINCE, k] = raised, Q[slot, WHEN, 0]


@compiled
def _halve(B, Q, n, k):
    """The later half of a full block becomes a block of its own."""
    for row in range(UNUSED):
        for x in range(n[NUM_BLOCKS], k + 1, -1):
            B[row, x] = B[row, x - 1]
    n[NUM_BLOCKS] += 1
    n[NUM_SLOTS] -= 1
    old, new = B[SLOT, k], B[UNUSED, n[NUM_SLOTS]]
    for row in range(NUM_Q):
        for i in range(HALF):
            Q[new, row, i] = Q[old, row, HALF + i]
    B[SLOT, k + 1], B[SIZE, k + 1], B[SIZE, k] = new, HALF, HALF
    B[ADDED, k + 1], B[FLOOR, k + 1] = B[ADDED, k], B[FLOOR, k]
    recount(B, Q, k)
    recount(B, Q, k + 1)


@compiled
def _drop_block(B, n, k):
    B[UNUSED, n[NUM_SLOTS]] = B[SLOT, k]
    n[NUM_SLOTS] += 1
    n[NUM_BLOCKS] -= 1
    for row in range(UNUSED):
        for x in range(k, n[NUM_BLOCKS]):
            B[row, x] = B[row, x + 1]


@compiled
def _join(B, Q, n, k):
    """A block takes over the slices of the next one."""
    a, b, size = B[SLOT, k], B[SLOT, k + 1], B[SIZE, k]
    for i in range(size):
        Q[a, RAISED, i] = max(Q[a, RAISED, i], B[FLOOR, k])
    for row in range(NUM_Q):
        for i in range(B[SIZE, k + 1]):
            Q[a, row, size + i] = Q[b, row, i]
    for i in range(size, size + B[SIZE, k + 1]):
        Q[a, FREE, i] += B[ADDED, k + 1] - B[ADDED, k]
        Q[a, RAISED, i] = max(Q[a, RAISED, i], B[FLOOR, k + 1])
    B[SIZE, k] += B[SIZE, k + 1]
    B[FLOOR, k] = 0
    _drop_block(B, n, k + 1)
    recount(B, Q, k)


@compiled
def split(B, Q, F, E, n, time):
    """The slice that begins at a time; it comes to be where there is none."""
    at = find(B, Q, n, time)
    if time_of(B, Q, at) == time:
        return at
    if B[SIZE, at >> BITS] == BLOCK:
        _halve(B, Q, n, at >> BITS)
        at = find(B, Q, n, time)
    k, new = at >> BITS, (at & MASK) + 1
    slot = B[SLOT, k]
    for row in range(NUM_Q):
        for i in range(B[SIZE, k], new, -1):
            Q[slot, row, i] = Q[slot, row, i - 1]
        Q[slot, row, new] = Q[slot, row, new - 1]
    Q[slot, WHEN, new], Q[slot, BOUNDS, new], Q[slot, STARTER, new] = time, 0, -1
    B[SIZE, k] += 1
    if len(E) > 0:
        n[NUM_ROWS] -= 1
        Q[slot, ROW, new] = E[n[NUM_ROWS]]
        for x in range(F.shape[1]):
            F[Q[slot, ROW, new], x] = F[Q[slot, ROW, new - 1], x]
    return at + 1


@compiled
def remove(B, Q, E, n, at):
    """Take a slice out; blocks that grew small are joined, so that there are few."""
    k, size = at >> BITS, B[SIZE, at >> BITS] - 1
    slot = B[SLOT, k]
    if len(E) > 0:
        E[n[NUM_ROWS]] = Q[slot, ROW, at & MASK]
        n[NUM_ROWS] += 1
    if size == 0:
        _drop_block(B, n, k)
        return
    for row in range(NUM_Q):
        for i in range(at & MASK, size):
            Q[slot, row, i] = Q[slot, row, i + 1]
    B[SIZE, k] = size
    if at & MASK == 0:
        recount(B, Q, k)
    if k + 1 < n[NUM_BLOCKS] and size + B[SIZE, k + 1] <= HALF:
        _join(B, Q, n, k)
    elif k > 0 and size + B[SIZE, k - 1] <= HALF:
        _join(B, Q, n, k - 1)


@compiled
def bind(B, Q, n, time, more):
    """So many more places begin or end with the slice of a time."""
    at = find(B, Q, n, time)
    Q[B[SLOT, at >> BITS], BOUNDS, at & MASK] += more
    return at


@compiled
def unbind(B, Q, E, n, time):
    """One place less begins or ends with a slice; where none does, it is as the one before it."""
    at = bind(B, Q, n, time, -1)
    k, i = at >> BITS, at & MASK
    if at == 0 or Q[B[SLOT, k], BOUNDS, i] > 0:
        return
    raised = max(Q[B[SLOT, k], RAISED, i], B[FLOOR, k])
    last = preceding(B, at)
    before = last >> BITS
    slot, last = B[SLOT, before], last & MASK
    Q[slot, RAISED, last] = max(Q[slot, RAISED, last], raised)
    B[LAST_RAISED, before] = max(B[LAST_RAISED, before], raised)
    remove(B, Q, E, n, at)


# ---- what is free


@compiled
def _add_part(B, Q, k, first, end, more, raised):
    slot = B[SLOT, k]
    for i in range(first, end):
        Q[slot, FREE, i] += more
    if more > 0:
        for i in range(first, end):
            Q[slot, RAISED, i] = raised
    recount(B, Q, k)


@compiled
def add(B, Q, n, since, until, more, raised):
    """So much is free more, or less, from the slice of one time to before that of another, in a pool."""
    a, b = find(B, Q, n, since), find(B, Q, n, until)
    first, last = a >> BITS, b >> BITS
    if first == last:
        _add_part(B, Q, first, a & MASK, b & MASK, more, raised)
        return
    if a & MASK:
        _add_part(B, Q, first, a & MASK, B[SIZE, first], more, raised)
        first += 1
    for k in range(first, last):
        B[ADDED, k] += more
        B[LEAST, k] += more
        B[MOST, k] += more
    if more > 0:
        for k in range(first, last):
            B[FLOOR, k] = B[LAST_RAISED, k] = raised
    if b & MASK:
        _add_part(B, Q, last, 0, b & MASK, more, raised)


# ---- where there is room


@compiled
def first_with(B, Q, n, at, pes):
    """The first slice from one on in which so much is free; -1: none."""
    k, i = at >> BITS, at & MASK
    while k < n[NUM_BLOCKS]:
        if B[MOST, k] >= pes:
            slot, free = B[SLOT, k], pes - B[ADDED, k]
            for x in range(i, B[SIZE, k]):
                if Q[slot, FREE, x] >= free:
                    return (k << BITS) + x
        k, i = k + 1, 0
    return -1


@compiled
def first_without(B, Q, n, at, pes):
    """The first slice from one on in which less is free; -1: none."""
    k, i = at >> BITS, at & MASK
    while k < n[NUM_BLOCKS]:
        if B[LEAST, k] < pes:
            slot, free = B[SLOT, k], pes - B[ADDED, k]
            for x in range(i, B[SIZE, k]):
                if Q[slot, FREE, x] < free:
                    return (k << BITS) + x
        k, i = k + 1, 0
    return -1


@compiled
def first_raised(B, Q, n, at, pes, since):
    """The first slice from one on that was raised since a pass and has so much free; -1: none."""
    k, i = at >> BITS, at & MASK
    while k < n[NUM_BLOCKS]:
        if B[MOST, k] >= pes and B[LAST_RAISED, k] > since:
            slot, free, is_raised = B[SLOT, k], pes - B[ADDED, k], B[FLOOR, k] > since
            for x in range(i, B[SIZE, k]):
                if Q[slot, FREE, x] >= free and (is_raised or Q[slot, RAISED, x] > since):
                    return (k << BITS) + x
        k, i = k + 1, 0
    return -1


@compiled
def run_before(B, Q, at, pes):
    """The first of the slices up to one, without a break, in which so much is free; that one has it."""
    k, i = at >> BITS, at & MASK
    while k >= 0:
        if B[LEAST, k] < pes:
            slot, free = B[SLOT, k], pes - B[ADDED, k]
            for x in range(i, -1, -1):
                if Q[slot, FREE, x] < free:
                    last = x + 1 == B[SIZE, k]
                    return (k + 1) << BITS if last else (k << BITS) + x + 1
        k -= 1
        i = B[SIZE, k] - 1 if k >= 0 else 0
    return 0
