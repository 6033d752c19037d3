"""What the kernel keeps, and the words for it.

Names of the arrays, the same in every function: J jobs, N nodes, A the nodes that jobs got, Y the lanes, Q
their blocks of jobs, B what is known of each block, R running jobs by estimated end, H the heap of events to
come, U users, L limits, V their values, S since when these hold, C their counters, X changes of nodes, K
candidates, G jobs held at the gate, D its doors, P what queues count for, E what QOS do, W weights, T totals,
n the scalars.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hakaru.sim._compiling import compiler, float64, from_dtype, int32, int64
from hakaru.sim._records import CHANGES, JOB, LIMITS, NODE, POINTS

# What happens at one moment happens in this order. Submissions come before terminations, as in pyss.
OVER, SUBMIT, END, CHANGE, EPOCH = 0, 1, 2, 3, 4

NO_BACKFILL, IN_ORDER, SHORTEST = 0, 1, 2
STATIC, LAST_TWO = 0, 1
FIXED_KEYS, MULTIFACTOR = 0, 1
EVERYBODY, USER, ACCOUNT, QUEUE = 0, 1, 2, 3
RUNNING_JOBS, RUNNING_PES, QUEUED_JOBS = 0, 1, 2
UNSEEN, GATED, QUEUED, RUNNING, RELEASED, DONE = range(6)
BLOCK = 64
JOB_BITS = 28  # a running job is kept as its estimated end and, below that, its number
JOB_MASK = 2**JOB_BITS - 1
POINT = 2.0**20  # priorities are compared as integers of this fineness
YIELDING = 2.0**30  # points that a job of a low queue stands back where others may stop it

ENTRY = np.dtype(
    [("estimate", np.int64), ("job", np.int32), ("pes", np.int32), ("user", np.int64)], align=True
)

LANE = np.dtype(
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
        ),  # entry x: the x-th in the heap of lanes with which a pass has yet to go on
        ("was_held", np.int32),  # whether a limit held it after the last pass
    ],
    align=True,
)

GATED_JOB = np.dtype([("door", np.int32), ("next", np.int32)], align=True)

DOOR = np.dtype(
    [
        ("first", np.int32),  # who waits at it, in order of submission; -1: nobody
        ("last", np.int32),
        ("slot", np.int32),  # as of lanes
        ("active", np.int32),
    ],
    align=True,
)

BOUNDS = np.dtype(
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

EVENT = np.dtype([("key", np.int64), ("seq", np.int64), ("job", np.int64)], align=True)

PERSON = np.dtype(
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

CANDIDATE = np.dtype([("key", np.int64), ("job", np.int64)], align=True)

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
AGE, MAX_AGE, SIZE, FAIR_SHARE, HALF_LIFE, PERIOD = range(6)

_TYPES = {
    name: from_dtype(dtype)[::1]
    for name, dtype in {
        "J": JOB,
        "N": NODE,
        "X": CHANGES,
        "Y": LANE,
        "B": BOUNDS,
        "H": EVENT,
        "U": PERSON,
        "L": LIMITS,
        "P": POINTS,
        "K": CANDIDATE,
        "G": GATED_JOB,
        "D": DOOR,
    }.items()
} | {
    "A": int32[::1],
    "Q": from_dtype(ENTRY)[:, ::1],
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

compiled = compiler(_TYPES)


def inlined(function: Any) -> Any:
    return compiled(function, inlined=True)
