"""Some steps of training under torch's profiler, with the loader's own times beside it."""

from __future__ import annotations

import time
from itertools import islice

from hakaru.measure.storage._ahead import DEPTH
from hakaru.measure.storage._consumer import Consumer
from hakaru.measure.storage._loader import Loader
from hakaru.measure.storage._timeline import Timeline, make_timeline, profiling

NUM_STEPS, NUM_WARM_UP = 12, 3
Spans = list[tuple[float, float]]


def trace(
    loader: Loader, consumer: Consumer, device: str, number: int, num_steps: int = NUM_STEPS
) -> Timeline | None:
    """Of the epoch of this number; None where it is too short, or the trace has no compute.

    The first steps, in which the profiler starts and the pipeline fills, are before the window, and the
    window ends with the epoch at the latest.
    """
    num_batches = len(loader.order(number))
    num_warm_up = min(NUM_WARM_UP, num_batches // 2)
    batches = iter(loader.epoch(number))
    loading: Spans = []
    waiting: Spans = []
    with profiling(device) as profiled:
        for _ in range(min(num_warm_up + num_steps, num_batches)):
            with profiled.step():
                asked = time.monotonic()
                batch = next(batches)
                waiting.append((asked, time.monotonic()))
                consumer.step(batch)
                loading.append((batch.begin, batch.end))
    not_taken = loader.plan.workers * loader.plan.prefetch + DEPTH  # loaded meanwhile
    loading += [(batch.begin, batch.end) for batch in islice(batches, not_taken)]
    return make_timeline(loading, waiting, profiled, device != "cpu", num_warm_up)
