"""What a sweep of data sizes measured, and what its parts say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure._base import AUTO, Part, Value
from hakaru.measure.storage._consumer import NONE, sizes_of
from hakaru.measure.storage._epoch import Epoch
from hakaru.measure.storage._fit import SizeFit, fit_sizes, without_waiting
from hakaru.measure.storage._folder import TEMPORARY
from hakaru.measure.storage._memory import MIB, Room
from hakaru.measure.storage._needed import Needed, needed_by
from hakaru.measure.storage._sizes import Schedule
from hakaru.measure.storage._store import NULL
from hakaru.measure.storage._supply import Supply, supply_words, waits_above
from hakaru.measure.storage._timeline import Timeline

HOW_TO_GET_MORE = (
    "The memory of the loader could not be limited ({why}), so that all sizes fit into it. For larger ones "
    "run this as root where control groups are writable, or take the machine's memory: --param memory=machine"
)


WITHOUT_STORAGE = (
    "The null layout reads nothing: this is what training and the loader do without storage."
)


@dataclass(frozen=True)
class Settings:
    """`memory` is in MiB, auto or machine, as 0 is too. `most_bytes_s` holds the loader back, for tests."""

    model: str = "alexnet"
    layout: str = "packed"
    workers: int = 2
    memory: Value = AUTO
    sizes: str = "1/4+1/2+1+2"
    path: str = TEMPORARY
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
class Result:
    points: list[Point] = field(default_factory=list)
    loader_only: Epoch | None = None
    timeline: Timeline | None = None


@dataclass(frozen=True)
class Memory:
    """What caches the files: a limited group of workers, or the machine."""

    mib: int
    whole_mib: int  # that sizes are shares of
    room: Room | None
    why_not: str = ""

    def halved(self) -> Memory:
        """Half the limit; it comes into force with the next loader."""
        room = self.room and replace(self.room, files_bytes=self.room.files_bytes // 2)
        return replace(self, mib=self.mib // 2, whole_mib=self.whole_mib // 2, room=room)

    @property
    def stored_mib(self) -> int:
        return self.mib if self.room is not None else 0


def parts_of(
    settings: Settings, plan: Schedule, result: Result, memory: Memory, image: int
) -> list[Part]:
    if not result.points:
        raise HakaruError("no size was measured")
    times = {
        point.total_bytes / MIB: [each.seconds for each in point.steady] for point in result.points
    }
    labels = {
        point.total_bytes / MIB: [each.label for each in point.steady] for point in result.points
    }
    fit = fit_sizes(times, memory.mib, labels)
    supplies = _supplies(settings, result)
    if settings.model != NONE and not waits_above(supplies, memory.mib):
        fit = without_waiting(fit)
    sentences = [fit.sentence if settings.layout != NULL else WITHOUT_STORAGE]
    if settings.model != NONE and (supplied := supply_words(supplies, memory.mib)):
        sentences.append(supplied)
    fit = replace(fit, sentence=" ".join(sentences))
    steady = result.points[-1].steady if settings.model != NONE else []
    needed = needed_by(steady, result.loader_only)
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


def _supplies(settings: Settings, result: Result) -> list[Supply]:
    return [
        Supply(
            point.total_bytes / MIB,
            median(each.stall for each in point.steady),
            frozenset("cached" if settings.layout == NULL else each.label for each in point.steady),
        )
        for point in result.points
    ]


def _facts(settings: Settings, point: Point, memory: Memory, image: int) -> dict[str, Any]:
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


def _notes(settings: Settings, plan: Schedule, result: Result, memory: Memory) -> list[str]:
    """What was not measured, and how to measure it."""
    found = [plan.note] if plan.note else []
    measured = {point.mib for point in result.points}
    if late := [mib for mib in plan.sizes if mib not in measured]:
        found.append(Schedule((), 0, tuple(late)).note)
    if memory.why_not:
        found.append(HOW_TO_GET_MORE.format(why=memory.why_not))
    if problems := {point.eviction for point in result.points if point.eviction}:
        found.append(f"Cold epochs may not be cold: {'; '.join(sorted(problems))}.")
    return found
