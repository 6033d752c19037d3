"""Some steps of training under torch's profiler, with the loader's own times beside it."""

from __future__ import annotations

import time

from hakaru.measure.storage._consumer import Consumer
from hakaru.measure.storage._loader import Loader
from hakaru.measure.storage._timeline import Timeline, make_timeline, profiling

NUM_STEPS, NUM_WARM_UP = 12, 2


def trace(
    loader: Loader, consumer: Consumer, device: str, number: int, num_steps: int = NUM_STEPS
) -> Timeline | None:
    """A part of an epoch; None where it is too short to tell anything."""
    batches = loader.epoch(number)
    loading: list[tuple[float, float]] = []
    waiting: list[tuple[float, float]] = []
    for batch in [next(batches, None) for _ in range(NUM_WARM_UP)]:
        if batch is not None:
            loading.append((batch.begin, batch.end))
            consumer.step(batch)
    with profiling(device) as profiled:
        for _ in range(num_steps):
            with profiled.step():
                asked = time.monotonic()
                batch = next(batches, None)
                waiting.append((asked, time.monotonic()))
                if batch is None:
                    break
                consumer.step(batch)
                loading.append((batch.begin, batch.end))
    for _ in range(
        loader.plan.workers * loader.plan.prefetch
    ):  # loaded meanwhile, and not taken yet
        if (batch := next(batches, None)) is None:
            break
        loading.append((batch.begin, batch.end))
    return make_timeline(loading, waiting, profiled, is_on_card=device != "cpu")
