"""The columns of AAIC's CSV, and the words behind its numbers (github.com/aistairc/aaic-workload)."""

COLUMNS = (
    *("id", "user", "group", "queue", "nodes", "gpus", "walltime_req", "termcode"),
    *("time_submit", "time_start", "time_end", "waittime", "walltime"),
)
QUEUES = ("normal", "short", "middle", "long")
STATES = ("completed", "failed", "timeout", "cancelled", "killed")
