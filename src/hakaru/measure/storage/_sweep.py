"""The sweep of data sizes: what it takes, in which order, and what its parts say."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure._base import AUTO, Part, Value
from hakaru.measure.context import Context
from hakaru.measure.node.memory import available_bytes
from hakaru.measure.storage._consumer import (
    NONE,
    Consumer,
    Nothing,
    find_consumer,
    image_of,
    null_batch,
    sizes_of,
)
from hakaru.measure.storage._epoch import Epoch, run_epoch
from hakaru.measure.storage._fit import SizeFit, fit_sizes
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._loader import Loader, Plan
from hakaru.measure.storage._memory import MIB, Room, files_room
from hakaru.measure.storage._needed import Needed, needed_by
from hakaru.measure.storage._sizes import LEAST_EPOCHS, Schedule, Speed, parse_sizes, schedule
from hakaru.measure.storage._store import NULL, Store, check_layout, data_folder, open_store
from hakaru.measure.storage._timeline import Timeline
from hakaru.measure.storage._trace import trace
from hakaru.measure.truth import Unavailable

MACHINE = "machine"
USUAL_MIB = 64  # of files in memory, where nobody says how many
TRIAL_STEPS = 3
FOR_TRACE_S = 3.0  # of the budget: the profiler takes a moment to start
HOW_TO_GET_MORE = (
    "The memory of the loader could not be limited ({why}), so that all sizes fit into it. For larger ones "
    "run this as root where control groups are writable, or name sizes above the machine's memory: "
    "--param sizes=…GiB"
)


@dataclass(frozen=True)
class Settings:
    """`memory` is in MiB, or auto; 0 is the machine's. `most_bytes_s` holds the loader back, for tests."""

    model: str = "alexnet"
    layout: str = "packed"
    workers: int = 2
    memory: Value = AUTO
    sizes: str = "1/4+1/2+1+2"
    path: str = AUTO
    image: int = 64
    batch: int = 16
    prefetch: int = 2
    most_bytes_s: float | None = None


@dataclass
class Point:
    """One size: a cold epoch and steady ones."""

    mib: int
    total_bytes: int
    filesystem: str | None
    cold: Epoch
    eviction: str  # what is wrong with it
    steady: list[Epoch] = field(default_factory=list)


@dataclass
class _Result:
    points: list[Point] = field(default_factory=list)
    loader_only: Epoch | None = None
    timeline: Timeline | None = None


@dataclass(frozen=True)
class _Memory:
    """What caches the files: a limited group of workers, or the machine."""

    mib: int
    room: Room | None
    why_not: str = ""

    @property
    def stored_mib(self) -> int:
        return self.mib if self.room is not None else 0


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
            sizes = parse_sizes(self.settings.sizes, memory.mib if memory.room else USUAL_MIB)
            speed = self._speed(folder, memory, consumer, sizes[0])
            spare_s = 0.0 if self.settings.model == NONE else FOR_TRACE_S
            left_s = budget_s - self._since(begin) - spare_s
            plan = schedule(sizes, speed, left_s)
            result = self._measure(folder, memory, consumer, plan, speed, begin + budget_s)
        return _parts(self.settings, plan, result, memory, self.image)

    @contextmanager
    def _memory(self) -> Iterator[_Memory]:
        """A limit for the workers where it is asked for, or can be had."""
        wanted = self.settings.memory
        if wanted == 0 or self.settings.layout == NULL:
            yield _Memory(self._machine_mib(), None, "the machine's memory was asked for")
            return
        mib = USUAL_MIB if wanted == AUTO else int(wanted)
        with ExitStack() as stack:
            try:
                if not self.settings.workers:
                    raise Unavailable("a memory limit is for loader workers: use workers=1 or more")
                room = stack.enter_context(files_room(max(1, mib // self.group.num_local)))
            except Unavailable as problem:
                if wanted != AUTO:
                    raise
                room, why = None, str(problem).rstrip(".")
            if room is None:
                yield _Memory(self._machine_mib(), None, why)
            else:
                yield _Memory(mib, room)

    def _machine_mib(self) -> int:
        """Of the host that has least of it."""
        least: int = min(self.group.share(available_bytes() or 0))
        return max(1, least // MIB)

    def _speed(self, folder: Path, memory: _Memory, consumer: Consumer, smallest: int) -> Speed:
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
    def _loading(self, folder: Path, memory: _Memory, mib: int) -> Iterator[tuple[Loader, Store]]:
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
        keep = given.path != AUTO
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
        memory: _Memory,
        consumer: Consumer,
        plan: Schedule,
        speed: Speed,
        until: float,
    ) -> _Result:
        result = _Result()
        for mib in plan.sizes:
            if result.points and self._is_late(until, 2 * result.points[-1].cold.seconds):
                break
            with self._loading(folder, memory, mib) as (loader, store):
                point = self._point(loader, store, consumer, mib, plan.num_epochs, until)
                result.points.append(point)
                if mib == plan.sizes[-1]:
                    self._finish(result, loader, store, consumer, until)
                store.check()
        return result

    def _point(
        self,
        loader: Loader,
        store: Store,
        consumer: Consumer,
        mib: int,
        num_epochs: int,
        until: float,
    ) -> Point:
        eviction = store.evict(self.group)
        cold = run_epoch(self.group, loader, store, consumer, 0)
        kind = store.below.type if store.below is not None else None
        problem = eviction.problem if eviction is not None else ""
        point = Point(mib, store.total_bytes, kind, cold, problem)
        last = cold
        for number in range(1, num_epochs + 1):
            if number > LEAST_EPOCHS and self._is_late(until, last.seconds):
                break
            last = run_epoch(self.group, loader, store, consumer, number)
            point.steady.append(last)
        return point

    def _finish(
        self, result: _Result, loader: Loader, store: Store, consumer: Consumer, until: float
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


def _parts(
    settings: Settings, plan: Schedule, result: _Result, memory: _Memory, image: int
) -> list[Part]:
    if not result.points:
        raise HakaruError("no size was measured")
    times = {
        point.total_bytes / MIB: [each.seconds for each in point.steady] for point in result.points
    }
    fit = fit_sizes(times, memory.mib)
    needed = needed_by(result.points[-1].steady, result.loader_only)
    notes = _notes(settings, plan, result, memory)
    listed = []
    for point in result.points:
        facts = _facts(settings, point, memory, image)
        if point is result.points[-1]:
            facts |= _of_largest(fit, needed, result.timeline, notes)
        parameters: dict[str, Value] = {"mib": point.mib, "memory": memory.stored_mib}
        listed.append(Part(_samples(settings, point), parameters, facts=facts))
    return listed


def _samples(settings: Settings, point: Point) -> dict[str, Sequence[float]]:
    """A value a steady epoch; what only loads has no utilisation."""
    found = {"epoch": [each.seconds for each in point.steady]}
    if settings.model != NONE:
        found["stall"] = [each.stall for each in point.steady]
        found["au"] = [each.utilisation for each in point.steady]
    return dict(found)


def _facts(settings: Settings, point: Point, memory: _Memory, image: int) -> dict[str, Any]:
    epochs = [each.to_json() | {"state": "steady"} for each in point.steady]
    return {
        "memory_mib": memory.mib,
        "is_limited": memory.room is not None,
        "epochs": [point.cold.to_json() | {"state": "cold"}, *epochs],
        "cold_problem": point.eviction,
        "total_bytes": point.total_bytes,
        "network": sizes_of(settings.model, settings.image) if settings.model != NONE else {},
        "image": image,
        "path": settings.path,
        "filesystem": point.filesystem,
    }


def _of_largest(
    fit: SizeFit, needed: Needed | None, timeline: Timeline | None, notes: Sequence[str]
) -> dict[str, Any]:
    words = [fit.sentence, *([needed.sentence] if needed else []), *notes]
    return {
        "fit": fit.to_json(),
        "needed": needed.to_json() if needed else None,
        "timeline": timeline.to_json() if timeline else None,
        "notes": list(notes),
        "verdict": " ".join(words),
    }


def _notes(settings: Settings, plan: Schedule, result: _Result, memory: _Memory) -> list[str]:
    """What was not measured, and how to measure it."""
    found = [plan.note] if plan.note else []
    measured = {point.mib for point in result.points}
    if late := [mib for mib in plan.sizes if mib not in measured]:
        found.append(Schedule((), 0, tuple(late)).note)
    if memory.room is None and settings.memory == AUTO and settings.layout != NULL:
        found.append(HOW_TO_GET_MORE.format(why=memory.why_not))
    if problems := {point.eviction for point in result.points if point.eviction}:
        found.append(f"Cold epochs may not be cold: {'; '.join(sorted(problems))}.")
    return found
