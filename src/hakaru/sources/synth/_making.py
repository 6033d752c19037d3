"""The rows of a synthetic cluster as they are made: jobs first, then the samples of the GPUs they held."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import chain, islice

import pyarrow as pa

from hakaru.sources.synth._arrow import block_table
from hakaru.sources.synth._jobs import BLOCK, Jobs, calendar
from hakaru.sources.synth._samples import Placement, place, samples
from hakaru.sources.synth._schedule import Schedule
from hakaru.sources.synth._spec import Plan


class Making:
    """A run through the blocks, once. Who has which GPU is known from the first block of the window on."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.schedule = Schedule(plan, calendar(plan))
        self.placement: Placement | None = None

    def jobs(self, chunk_rows: int) -> Iterator[pa.Table]:
        """Canonical rows in chunks of about `chunk_rows`, in the order of submission."""
        tables = (block_table(self.plan, jobs, self.placement) for jobs in self._blocks())
        while some := list(islice(tables, max(1, chunk_rows // BLOCK))):
            yield pa.concat_tables(some)

    def samples(self) -> Iterator[pa.Table]:
        """Canonical rows in the order of time; after the jobs, or making them for itself."""
        for _ in self._blocks():
            pass
        if self.placement is not None:
            yield from samples(self.plan, self.placement)

    def _blocks(self) -> Iterator[Jobs]:
        low, high = self.plan.window_s
        while (jobs := self.schedule.next_block()) is not None:
            is_last = not self.schedule.num_left
            if self.placement is None and low < high and (is_last or jobs.ended.max() > low):
                self.placement = place(self.plan, chain([jobs], _rest(self.schedule)))
            yield jobs


def _rest(schedule: Schedule) -> Iterator[Jobs]:
    """The blocks that are still to come, which stay to come."""
    ahead = deepcopy(schedule)
    while (jobs := ahead.next_block()) is not None:
        yield jobs
