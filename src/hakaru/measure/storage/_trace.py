"""Some steps of training under torch's profiler, with the loader's own times beside it."""

from __future__ import annotations

import time
from itertools import chain, count, islice

from hakaru.measure.storage._ahead import DEPTH
from hakaru.measure.storage._consumer import Consumer
from hakaru.measure.storage._loader import Loader
from hakaru.measure.storage._timeline import Timeline, make_timeline, profiling

NUM_STEPS, NUM_WARM_UP = 12, 2


def trace(
    loader: Loader, consumer: Consumer, device: str, number: int, num_steps: int = NUM_STEPS
) -> Timeline | None:
    """From the epoch of this number on; None where the trace has no compute."""
    batches = chain.from_iterable(loader.epoch(each) for each in count(number))
    loading: list[tuple[float, float]] = []
    waiting: list[tuple[float, float]] = []
    for batch in islice(batches, NUM_WARM_UP):
        loading.append((batch.begin, batch.end))
        consumer.step(batch)
    with profiling(device) as profiled:
        for _ in range(num_steps):
            with profiled.step():
                asked = time.monotonic()
                batch = next(batches)
                waiting.append((asked, time.monotonic()))
                consumer.step(batch)
                loading.append((batch.begin, batch.end))
    not_taken = loader.plan.workers * loader.plan.prefetch + DEPTH  # loaded meanwhile
    loading += [(batch.begin, batch.end) for batch in islice(batches, not_taken)]
    return make_timeline(loading, waiting, profiled, is_on_card=device != "cpu")
