"""The sweep of data sizes: what it takes, in which order, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from hakaru.measure._base import AUTO, Part
from hakaru.measure.context import Context
from hakaru.measure.node.memory import available_bytes
from hakaru.measure.storage._consumer import (
    NONE,
    Consumer,
    Nothing,
    find_consumer,
    image_of,
    null_batch,
)
from hakaru.measure.storage._epoch import run_epoch
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._loader import Loader, Plan
from hakaru.measure.storage._memory import MIB, Room, files_room
from hakaru.measure.storage._outcome import Memory, Point, Result, Settings, parts_of
from hakaru.measure.storage._sizes import (
    LEAST_EPOCHS,
    Schedule,
    Speed,
    has_shares,
    parse_sizes,
    schedule,
)
from hakaru.measure.storage._store import (
    NULL,
    TEMPORARY,
    Store,
    check_layout,
    data_folder,
    open_store,
)
from hakaru.measure.storage._trace import trace
from hakaru.measure.truth import Unavailable

USUAL_MIB, USUAL_MIB_ON_GPU = 32, 4096  # of files in memory
LEAST_LIMIT_MIB = 16
TRIAL_STEPS = 3
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
            memory = stack.enter_context(self._memory())
            folder = stack.enter_context(data_folder(self.group, self.settings.path))
            consumer = find_consumer(self.settings.model, self.settings.image, self.device)
            stack.callback(consumer.close)
            smallest = parse_sizes(self.settings.sizes, memory.whole_mib)[0]
            speed = self._speed(folder, memory, consumer, smallest)
            spare_s = 0.0 if self.settings.model == NONE else FOR_TRACE_S
            memory, plan = self._fitting(memory, speed, budget_s - self._since(begin) - spare_s)
            result = self._measure(folder, memory, consumer, plan, speed, begin + budget_s)
        return parts_of(self.settings, plan, result, memory, self.image)

    @contextmanager
    def _memory(self) -> Iterator[Memory]:
        """A limit for the workers where it is asked for and can be had on all hosts."""
        wanted = self._wanted_mib()
        if not wanted or self.settings.layout == NULL:
            machine = self._machine_mib()
            yield Memory(machine, wanted or machine, None)
            return
        with ExitStack() as stack:
            room, why = self._room(stack, wanted)
            why = next((each for each in self.group.share(why) if each), "")
            if why:
                yield Memory(self._machine_mib(), wanted, None, why)
            else:
                yield Memory(wanted, wanted, room)

    def _wanted_mib(self) -> int:
        """The limit; 0 is none, as for sizes that are not shares of a memory."""
        given = self.settings.memory
        if given != AUTO:
            return int(given)
        if not has_shares(self.settings.sizes):
            return 0
        return USUAL_MIB if self.device == "cpu" else USUAL_MIB_ON_GPU

    def _room(self, stack: ExitStack, mib: int) -> tuple[Room | None, str]:
        """This rank's part of its host's memory, or why there is none."""
        if not self.settings.workers:
            return None, "it is a limit for loader workers, and workers=0 has none"
        try:
            return stack.enter_context(files_room(max(1, mib // self.group.num_local))), ""
        except Unavailable as problem:
            return None, str(problem).rstrip(".")

    def _fitting(self, memory: Memory, speed: Speed, left_s: float) -> tuple[Memory, Schedule]:
        """What the time allows. A memory that nobody named is halved before the largest size is left out."""
        smaller = memory
        while True:
            sizes = parse_sizes(self.settings.sizes, smaller.whole_mib)
            plan = schedule(sizes, replace(speed, memory_mib=smaller.mib), left_s)
            if plan.sizes[-1] == sizes[-1]:
                return smaller, plan
            if (
                self.settings.memory != AUTO
                or memory.room is None
                or smaller.mib <= LEAST_LIMIT_MIB
            ):
                break
            smaller = smaller.halved()
        sizes = parse_sizes(self.settings.sizes, memory.whole_mib)
        return memory, schedule(sizes, speed, left_s)

    def _machine_mib(self) -> int:
        """Of the host that has least of it."""
        least: int = min(self.group.share(available_bytes() or 0))
        return max(1, least // MIB)

    def _speed(self, folder: Path, memory: Memory, consumer: Consumer, smallest: int) -> Speed:
        """How fast training computes on batches that are there, and how fast the loader reads alone."""
        with self._loading(folder, memory, smallest) as (loader, store):
            store.evict(self.group)
            cold = run_epoch(self.group, loader, store, Nothing(), 0)
        batch = null_batch(self.image, self.settings.batch)
        consumer.step(batch)
        begin = time.monotonic()
        for _ in range(TRIAL_STEPS):
            consumer.step(batch)
        (step_s,) = self.group.ranks.maximum((time.monotonic() - begin) / TRIAL_STEPS)
        mib = cold.delivered_bytes / MIB
        steps = cold.num_samples / (self.settings.batch * self.group.ranks.size)
        return Speed(step_s * steps / mib, cold.seconds / mib, memory.mib)

    @contextmanager
    def _loading(self, folder: Path, memory: Memory, mib: int) -> Iterator[tuple[Loader, Store]]:
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
        keep = given.path != TEMPORARY
        group = memory.room.group if memory.room is not None else None
        with (
            open_store(self.group, folder, given.layout, mib, keep) as store,
            Loader(store.source, plan, group, pin=self.device != "cpu") as loader,
        ):
            if memory.room is not None:
                memory.room.settle(given.workers)
            yield loader, store

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
        for mib in plan.sizes:
            if result.points and self._is_late(until, 2 * result.points[-1].cold.seconds):
                break
            with self._loading(folder, memory, mib) as (loader, store):
                point = self._cold(loader, store, consumer, mib)
                if memory.room is not None:
                    memory.room.settle(self.settings.workers, have_read=True)
                is_last = mib == plan.sizes[-1] and self.settings.model != NONE
                spare_s = point.cold.seconds + FOR_TRACE_S if is_last else 0.0  # for what finishes
                self._steady(point, loader, store, consumer, plan.num_epochs, until - spare_s)
                result.points.append(point)
                if mib == plan.sizes[-1]:
                    self._finish(result, loader, store, consumer, until)
                store.check()
        return result

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
        result.timeline = trace(loader, consumer, self.device, number)
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
