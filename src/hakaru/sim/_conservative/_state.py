"""What the kernel of conservative backfilling keeps, and the words for it.

Names of the arrays, the same in every function: J jobs, N nodes, A the nodes that jobs hold, X changes of
nodes, B blocks of the profile, Q their slices, F what each slice has free on each node, E unused rows of F,
K scratch for the nodes, M what is known of where there is no room, P the jobs' places in the profile and in
the line of those who wait, H the heap of events to come, T totals, n the scalars.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hakaru.sim._compiling import compiler, float64, from_dtype, int32, int64
from hakaru.sim._records import CHANGES, JOB, NODE

# What happens at one moment happens in this order: a place that comes is taken before anything else moves.
OVER, START, SUBMIT, END, CHANGE = 0, 1, 2, 3, 4

UNSEEN, WAITING, PLANNED, RUNNING, DONE = range(5)

RULES = ("packing", "whole_nodes", "locality", "batched", "depth")
PACKING, WHOLE_NODES, LOCALITY, BATCHED, DEPTH = range(5)
# The profile's blocks, unused slots for blocks, unused rows of F.
NUM_BLOCKS, NUM_SLOTS, NUM_ROWS = range(5, 8)
# The line: its ends and its first without a place.
FIRST, LAST, UNPLANNED, NUM_PLANNED = range(8, 12)
HEAP, SEQ, NUM_ARRIVED, NUM_CHANGED, REBUILD = range(12, 17)
# The pass in which everybody looks for a better place; what was raised lies between these moments; and
# what this pass itself raised, which those who looked before will see in the next.
PASS, RAISED_FROM, RAISED_UNTIL, MOVED_FROM, MOVED_UNTIL = range(17, 22)
# Nobody whose place is at this moment or before it can gain; NEVER: nobody at all, UNKNOWN: to be found;
# whether somebody has moved since it was.
NO_GAIN, HAS_MOVED = 22, 28
UNKNOWN = -1
NUM_FREE, NUM_OPEN, CLOSED_BUSY, SCATTERED, NEXT_KNOWN = range(23, 28)
NUM_SCALARS = 29

# Rows of B, an entry a block in order of time: where its slices lie in Q, how many they are, when the first
# begins, what is to be added to all their free PEs; bounds of these with that; the pass up to which all were
# raised at least, the last in which any was; and the stack of unused slots.
SLOT, SIZE, SINCE, ADDED, LEAST, MOST, FLOOR, LAST_RAISED, UNUSED, NUM_B = range(10)
# Rows of Q[slot], an entry a slice: when it begins, PEs free in it (on nodes: the most on any), when it was
# last raised, how many places begin or end with it, the first job whose place begins, its row in F.
WHEN, FREE, RAISED, BOUNDS, STARTER, ROW, NUM_Q = range(7)
BITS = 6
BLOCK = 2**BITS
HALF = BLOCK // 2
MASK = BLOCK - 1
# Rows of K: what a job needs of each node, since when that has been free, the least free while it would run,
# what it holds itself, the nodes picked, and how many fit under each switch.
NEED, THEN, EXTRA, OWN, PICK, NUM_FIT, NUM_K = range(7)
# Rows of M: in this pass, what needs as many PEs for as long (of a model, -1: any) fits into nothing that was
# raised before a time, or on nodes cannot begin before it, unless its own place follows without a break.
PES, LENGTH, MODEL, CLEAR, NUM_M = range(5)
NUM_KNOWN = 16

PLACE = np.dtype(
    [
        ("start", np.int64),  # when it begins; -1: none
        ("until", np.int64),
        ("next", np.int32),  # in the line of those who wait
        ("prev", np.int32),
        ("sibling", np.int32),  # the next job that begins then
        ("elder", np.int32),  # and the one before
    ],
    align=True,
)
EVENT = np.dtype([("key", np.int64), ("seq", np.int64), ("job", np.int64)], align=True)

_RECORDS = {"J": JOB, "N": NODE, "X": CHANGES, "P": PLACE, "H": EVENT}
_TYPES = {name: from_dtype(dtype)[::1] for name, dtype in _RECORDS.items()} | {
    "A": int32[::1],
    "B": int64[:, ::1],
    "E": int32[::1],
    "F": int32[:, ::1],
    "K": int64[:, ::1],
    "M": int64[:, ::1],
    "Q": int64[:, :, ::1],
    "T": float64[::1],
    "n": int64[::1],
}

compiled = compiler(_TYPES)


def inlined(function: Any) -> Any:
    return compiled(function, inlined=True)
