"""The kernel of every policy that keeps a queue: strict order, EASY and its kin, on nodes or a flat pool.

A flat pool of processors is one node. Everything here is arrays of records and small compiled functions. The
order of events is total: (time, rank, sequence) with the ranks of `_state`; docs/simulation.md explains it.

The queue lies in lanes: jobs that every limit counts together are in one, so that it is held or free as a
whole, and a pass need not look at whom a limit holds. Under moving priorities jobs of a lane have the same
points for all but age, so that their order never changes. Otherwise there is one lane.
"""

from hakaru.sim._queueing._play import run

__all__ = ["run"]
