"""What a simulation gives: when each job began and ended, on which nodes, and why it waited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hakaru.sim._records import TOTALS

if TYPE_CHECKING:
    import pyarrow as pa

    from hakaru.sim.machine import Machine
    from hakaru.sim.workload import Workload

# In the order of the kernels' codes.
REASONS = (
    "none", "behind others", "resources", "fragmentation", "reservation", "limit", "queue limit",
    "preempted", "node lost",
)  # fmt: skip


@dataclass(frozen=True)
class Schedule:
    """One entry a job of `workload`, which holds those that were simulated; -1: it never began.

    `node[offset[j] : offset[j] + num_nodes[j]]` are job j's nodes; a flat pool has none. `totals` are the
    kernels': PE seconds of the machine, busy, idle while jobs waited, lost to fragmentation and restarts.
    """

    workload: Workload
    machine: Machine
    policy: str
    start: Any
    end: Any
    reason: Any
    num_restarts: Any
    num_nodes: Any
    offset: Any
    node: Any
    totals: Mapping[str, float]

    @classmethod
    def of(
        cls, workload: Workload, machine: Machine, policy: str, jobs: Any, node: Any, totals: Any
    ) -> Schedule:
        names = ("start", "end", "reason", "num_restarts", "num_nodes", "offset")
        arrays = {name: np.ascontiguousarray(jobs[name]) for name in names}
        # The kernels count from the first submission; a job that never began has -1.
        first = int(workload.submit[0]) if len(workload) else 0
        for times in (arrays["start"], arrays["end"]):
            np.add(times, first, out=times, where=times >= 0)
        sums = dict(zip(TOTALS, totals.tolist(), strict=True))
        return cls(workload, machine, policy, **arrays, node=node, totals=sums)

    @property
    def wait(self) -> Any:
        """Seconds from submission to start; meaningless where a job never began."""
        return self.start - self.workload.submit

    @property
    def why(self) -> Any:
        """The code of what held a job last; none if it began on submission."""
        return np.where((self.start >= 0) & (self.wait == 0), 0, self.reason)

    def nodes_of(self, job: int) -> list[int]:
        """On which it ran last; none on a flat pool."""
        if self.machine.is_flat or self.start[job] < 0:
            return []
        at = self.offset[job]
        # The kernels keep no list where there is but one node.
        return [int(node) for node in self.node[at : at + self.num_nodes[job]]] or [0]

    def table(self) -> pa.Table:
        """The jobs as if they had run so: their times anew, and `why_waited`."""
        import pyarrow as pa

        began = self.start >= 0
        stamps = pa.timestamp("us", "UTC")
        new = {
            "started_at": pa.array(self.start * 1_000_000, pa.int64(), mask=~began).cast(stamps),
            "ended_at": pa.array(self.end * 1_000_000, pa.int64(), mask=~began).cast(stamps),
            "wait_s": pa.array(self.wait.astype(float), mask=~began),
            "run_s": pa.array((self.end - self.start).astype(float), mask=~began),
            "why_waited": pa.DictionaryArray.from_arrays(
                pa.array(self.why, pa.int8()),
                pa.array(REASONS),
            ).cast(pa.string()),
        }
        table = self.workload.table
        for name, values in new.items():
            if name in table.column_names:
                table = table.set_column(table.column_names.index(name), name, values)
            else:
                table = table.append_column(name, values)
        return table
