"""The sweep of data sizes: what it takes, in which order, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from hakaru.measure._base import AUTO, Part
from hakaru.measure.context import Context
from hakaru.measure.storage._consumer import (
    NONE,
    Consumer,
    Nothing,
    find_consumer,
    image_of,
    null_batch,
)
from hakaru.measure.storage._epoch import run_epoch
from hakaru.measure.storage._folder import TEMPORARY, data_folder
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._limits import memory_of
from hakaru.measure.storage._loader import Loader, Plan
from hakaru.measure.storage._memory import MIB
from hakaru.measure.storage._outcome import Memory, Point, Result, Settings, parts_of
from hakaru.measure.storage._sizes import LEAST_EPOCHS, Schedule, Speed, parse_sizes, schedule
from hakaru.measure.storage._store import Store, check_layout, is_made, open_store
from hakaru.measure.storage._trace import trace

LEAST_LIMIT_MIB = 16
TRIAL_STEPS, MOST_TRIAL_MIB = 3, 256
FOR_TRACE_S = 3.0  # of the budget: the profiler takes a moment to start


class Sweep:
    """One model on one layout over the sizes; every rank runs it."""

    def __init__(self, context: Context, settings: Settings) -> None:
        check_layout(settings.layout)
        self.settings, self.device = settings, context.torch_device
        self.group = Group.of(context.ranks)
        self.image = image_of(settings.model, settings.image)

    def run(self, budget_s: float) -> list[Part]:
        begin = time.monotonic()
        with ExitStack() as stack:
            limit = memory_of(self.group, self.settings, self.device)
            memory = stack.enter_context(limit)
            folder = stack.enter_context(data_folder(self.group, self.settings.path))
            consumer = find_consumer(self.settings.model, self.settings.image, self.device)
            stack.callback(consumer.close)
            smallest = parse_sizes(self.settings.sizes, memory.whole_mib)[0]
            speed = self._speed(folder, memory, consumer, smallest)
            spare_s = 0.0 if self.settings.model == NONE else FOR_TRACE_S
            left_s = budget_s - self._since(begin) - spare_s
            memory, plan = self._fitting(memory, speed, left_s, folder)
            result = self._measure(folder, memory, consumer, plan, speed, begin + budget_s)
        return parts_of(self.settings, plan, result, memory, self.image)

    def _fitting(
        self, memory: Memory, speed: Speed, left_s: float, folder: Path
    ) -> tuple[Memory, Schedule]:
        """What the time allows. A memory that nobody named is halved before the largest size is left out."""
        may_halve = self.settings.memory == AUTO and memory.room is not None
        smaller = memory
        while True:
            plan, largest = self._plan(smaller, speed, left_s, folder)
            if plan.sizes[-1] == largest:
                return smaller, plan
            if not may_halve or smaller.mib <= LEAST_LIMIT_MIB:
                return memory, self._plan(memory, speed, left_s, folder)[0]
            smaller = smaller.halved()

    def _plan(
        self, memory: Memory, speed: Speed, left_s: float, folder: Path
    ) -> tuple[Schedule, int]:
        """With the largest of the wanted sizes; those that are there already need not be written."""
        sizes = parse_sizes(self.settings.sizes, memory.whole_mib)
        made = [mib for mib in sizes if self._is_made(folder, mib)]
        expected = replace(speed, memory_mib=memory.mib)
        return schedule(sizes, expected, left_s, made), sizes[-1]

    def _is_made(self, folder: Path, mib: int) -> bool:
        return is_made(self.group, folder, self.settings.layout, mib)

    def _speed(self, folder: Path, memory: Memory, consumer: Consumer, smallest: int) -> Speed:
        """How fast data sets are written, training computes, and the loader reads alone.

        The smallest data set stays, as it is the first to be measured, unless it is too large for a trial.
        """
        trial = min(smallest, MOST_TRIAL_MIB)
        with self._loading(folder, memory, trial, keep=trial == smallest) as (loader, store):
            store.evict(self.group)
            cold = run_epoch(self.group, loader, store, Nothing(), 0)
        mib = cold.delivered_bytes / MIB
        cold_s = cold.seconds / mib
        # how fast one that was there has been written, nobody knows: about as fast as it is read
        write_s = cold_s if store.write_s is None else store.write_s / mib
        steps = cold.num_samples / (self.settings.batch * self.group.ranks.size)
        return Speed(self._step_s(consumer) * steps / mib, cold_s, memory.mib, write_s)

    def _step_s(self, consumer: Consumer) -> float:
        """Of training on batches that are there."""
        batch = null_batch(self.image, self.settings.batch)
        consumer.step(batch)
        begin = time.monotonic()
        for _ in range(TRIAL_STEPS):
            consumer.step(batch)
        return self._since(begin) / TRIAL_STEPS

    @contextmanager
    def _loading(
        self, folder: Path, memory: Memory, mib: int, keep: bool
    ) -> Iterator[tuple[Loader, Store]]:
        given = self.settings
        plan = Plan(
            layout=given.layout,
            image=self.image,
            batch=given.batch,
            workers=given.workers,
            prefetch=given.prefetch,
            share=self.group.share_of_data,
            most_bytes_s=given.most_bytes_s,
        )
        group = memory.room.group if memory.room is not None else None
        with ExitStack() as stack:
            store = stack.enter_context(open_store(self.group, folder, given.layout, mib, keep))
            loader = Loader(store.source, plan, group, pin=self.device != "cpu")
            stack.callback(loader.close)
            self.group.together(loader.start)
            self._settle(memory)
            yield loader, store

    def _settle(self, memory: Memory, have_read: bool = False) -> None:
        """Put the limit into force."""
        room, workers = memory.room, self.settings.workers
        self.group.together(lambda: room.settle(workers, have_read) if room is not None else None)

    def _measure(
        self,
        folder: Path,
        memory: Memory,
        consumer: Consumer,
        plan: Schedule,
        speed: Speed,
        until: float,
    ) -> Result:
        result = Result()
        keep = self.settings.path != TEMPORARY
        for mib in plan.sizes:
            if result.points and self._is_late(until, self._least_s(folder, mib, result, speed)):
                break
            with self._loading(folder, memory, mib, keep) as (loader, store):
                point = self._cold(loader, store, consumer, mib)
                self._settle(memory, have_read=True)
                is_last = mib == plan.sizes[-1] and self.settings.model != NONE
                spare_s = point.cold.seconds + FOR_TRACE_S if is_last else 0.0  # for what finishes
                self._steady(point, loader, store, consumer, plan.num_epochs, until - spare_s)
                result.points.append(point)
                if mib == plan.sizes[-1]:
                    self._finish(result, loader, store, consumer, until)
                self.group.together(store.check)
        return result

    def _least_s(self, folder: Path, mib: int, result: Result, speed: Speed) -> float:
        """The least that one more size takes."""
        writing_s = 0.0 if self._is_made(folder, mib) else speed.write_s_per_mib * mib
        return writing_s + 2 * result.points[-1].cold.seconds

    def _cold(self, loader: Loader, store: Store, consumer: Consumer, mib: int) -> Point:
        eviction = store.evict(self.group)
        cold = run_epoch(self.group, loader, store, consumer, 0)
        kind = store.below.type if store.below is not None else None
        problem = eviction.problem if eviction is not None else ""
        return Point(mib, store.total_bytes, kind, cold, problem)

    def _steady(
        self,
        point: Point,
        loader: Loader,
        store: Store,
        consumer: Consumer,
        num_epochs: int,
        until: float,
    ) -> None:
        last = point.cold
        for number in range(1, num_epochs + 1):
            if number > LEAST_EPOCHS and self._is_late(until, last.seconds):
                return
            last = run_epoch(self.group, loader, store, consumer, number)
            point.steady.append(last)

    def _finish(
        self, result: Result, loader: Loader, store: Store, consumer: Consumer, until: float
    ) -> None:
        """On the largest size: what the loader alone delivers, and a timeline of some steps."""
        if self.settings.model == NONE:
            return
        number = len(result.points[-1].steady) + 1
        result.timeline = self.group.together(lambda: trace(loader, consumer, self.device, number))
        if not self._is_late(until, result.points[-1].cold.seconds):
            store.evict(self.group)
            result.loader_only = run_epoch(self.group, loader, store, Nothing(), number + 1)

    def _since(self, begin: float) -> float:
        (passed,) = self.group.ranks.maximum(time.monotonic() - begin)
        return passed

    def _is_late(self, until: float, needed_s: float) -> bool:
        """Whether so many seconds more would be too many; all ranks decide alike."""
        (over,) = self.group.ranks.maximum(time.monotonic() + needed_s - until)
        return over > 0
