"""A log of three jobs in the form of AAIC."""

from __future__ import annotations

HEADER = (
    "id, user, group, queue, nodes, gpus, walltime_req, termcode, "
    "time_submit, time_start, time_end, waittime, walltime"
)
ROWS = [
    "0, 0, 0, 0, 1, 1, 7200, 0, 1514764800, 1514764810, 1514768410, 10, 3600",
    "1, 0, 0, 0, 1, 4, 7200, 0, 1514764900, 1514764910, 1514772110, 10, 7200",
    "2, 1, 0, 1, 1, 1, 3600, 1, 1514765000, 1514765010, 1514765310, 10, 300",
]
