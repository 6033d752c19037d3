"""What both kernels take and give: records of jobs, nodes and their changes, and the words for them."""

from __future__ import annotations

import numpy as np

NEVER = np.int64(2**60)
BEST_FIT, SPREAD = 0, 1
ANYWHERE, PREFERRED, REQUIRED = 0, 1, 2
UP, DRAIN, DOWN = 0, 1, 2

# Why a job waited: what stood in its way after the last pass before it began.
NO_WAIT, BEHIND, RESOURCES, FRAGMENTED, RESERVED, LIMIT, GATE, PREEMPTED, NODE_LOST = range(9)

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
        ),  # of its present run; while it waits: how many passes there were before it
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

# Integrals over time in PE seconds, and counters.
TOTALS = ("capacity_s", "busy_s", "idle_while_waiting_s", "fragmented_s", "lost_s", "num_events")
CAPACITY, BUSY, IDLE_WAITING, FRAGMENT, LOST, EVENTS = range(6)

# Entries of W: Slurm's multifactor.
WEIGHTS = ("age", "max_age_s", "size", "fair_share", "half_life_s", "period_s")
