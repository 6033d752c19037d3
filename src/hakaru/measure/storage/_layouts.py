"""Layouts in turn: the epochs of each, cold and warm, and which is fastest as far as that is sure."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakaru.errors import HakaruError
from hakaru.measure._base import Part, Value
from hakaru.measure.context import Context
from hakaru.measure.storage._compare import answer
from hakaru.measure.storage._consumer import Nothing
from hakaru.measure.storage._counters import OF_STORAGE
from hakaru.measure.storage._epoch import Epoch, run_epoch
from hakaru.measure.storage._folder import TEMPORARY, data_folder
from hakaru.measure.storage._group import Group
from hakaru.measure.storage._loader import Loader, Plan
from hakaru.measure.storage._store import (
    NULL,
    Store,
    check_layout,
    existing_store,
    holds_dataset,
    open_store,
)
from hakaru.measure.verdict import Verdict

COLD, WARM = "cold", "warm"
STATES = (COLD, WARM)
MOST_ROUNDS, LEAST_ROUNDS = 12, 2
SEEN = {
    "cached": "the bytes came from memory all the same",
    "partly cached": "some of the bytes came from memory all the same",
    "unknown": "nobody can tell where the bytes came from",
}
WHERE_NULL_IS = (
    "layout=null reads nothing, so that it is no layout to compare; what the loader does without storage "
    "says: hakaru bench run data-size --param layout=null"
)


@dataclass(frozen=True)
class Settings:
    layouts: tuple[str, ...]
    workers: int = 2
    prefetch: int = 2
    mib: int = 16
    path: str = TEMPORARY
    decode: str = "raw"
    image: int = 64
    batch: int = 16


@dataclass
class _Entry:
    """One layout: its data set and loader, and the epochs in each state."""

    store: Store
    loader: Loader
    eviction: str = ""  # what was wrong with one of them
    was_cached: bool = False  # although it was evicted
    epochs: dict[str, list[Epoch]] = field(default_factory=lambda: {state: [] for state in STATES})


class Comparison:
    """Layouts that take turns, so that drift meets all of them alike."""

    def __init__(self, context: Context, settings: Settings) -> None:
        for name in settings.layouts:
            if check_layout(name) == NULL:
                raise HakaruError(WHERE_NULL_IS)
        self.settings, self.group = settings, Group.of(context.ranks)
        self.pin = context.torch_device != "cpu"

    def run(self, budget_s: float) -> list[Part]:
        begin = time.monotonic()
        with ExitStack() as stack:
            folder = stack.enter_context(data_folder(self.group, self.settings.path))
            entries = self._open(stack, folder)
            for entry in entries.values():  # libraries are loaded and files opened
                run_epoch(self.group, entry.loader, entry.store, Nothing(), 0)
            self._take_turns(entries, begin, budget_s)
            for entry in entries.values():
                self.group.together(entry.store.check)
        return self._parts(entries)

    def _open(self, stack: ExitStack, folder: Path) -> dict[str, _Entry]:
        if holds_dataset(self.group, folder):
            store = stack.enter_context(existing_store(self.group, folder))
            return {store.layout: self._entry(stack, store)}
        keep = self.settings.path != TEMPORARY
        names, mib = dict.fromkeys(self.settings.layouts), self.settings.mib
        return {
            name: self._entry(
                stack, stack.enter_context(open_store(self.group, folder, name, mib, keep))
            )
            for name in names
        }

    def _entry(self, stack: ExitStack, store: Store) -> _Entry:
        given = self.settings
        plan = Plan(
            layout=store.layout,
            image=given.image,
            batch=given.batch,
            workers=given.workers,
            prefetch=given.prefetch,
            decode=given.decode,
            share=self.group.share_of_data,
        )
        loader = Loader(store.source, plan, pin=self.pin)
        stack.callback(loader.close)
        self.group.together(loader.start)
        return _Entry(store, loader)

    def _take_turns(self, entries: Mapping[str, _Entry], begin: float, budget_s: float) -> None:
        """Forwards and backwards in turn, as long as one more round fits the time."""
        longest = 0.0
        for number in range(MOST_ROUNDS):
            began = time.monotonic()
            passed, longest = self.group.ranks.maximum(began - begin, longest)
            if number >= LEAST_ROUNDS and passed + longest > budget_s:
                return
            order = list(entries.values())
            for entry in order if number % 2 == 0 else order[::-1]:
                self._turn(entry, 2 * number + 1)
            longest = max(longest, time.monotonic() - began)

    def _turn(self, entry: _Entry, number: int) -> None:
        eviction = entry.store.evict(self.group)
        if eviction is not None and not eviction.worked:
            entry.eviction = eviction.problem
            entry.was_cached |= eviction.worked is False
        for at, state in enumerate(STATES):
            found = run_epoch(self.group, entry.loader, entry.store, Nothing(), number + at)
            entry.epochs[state].append(found)

    def _parts(self, entries: Mapping[str, _Entry]) -> list[Part]:
        parts = []
        for state in STATES:
            rates = {
                name: [each.rate for each in entry.epochs[state]]
                for name, entry in entries.items()
                if not _problem(entry, state)
            }
            words = answer(rates, state)
            parts += [_part(self.settings, entry, state, words) for entry in entries.values()]
        return parts


def _part(settings: Settings, entry: _Entry, state: str, words: str) -> Part:
    epochs = entry.epochs[state]
    shares = [each.from_device for each in epochs]
    samples: dict[str, Sequence[float]] = {
        "rate": [each.rate for each in epochs],
        "bandwidth": [each.mb_per_s for each in epochs],
    }
    if known := [each for each in shares if each is not None]:
        samples["from_device"] = known
    mib: Value = max(1, round(entry.store.total_bytes / (1 << 20)))
    parameters: dict[str, Value] = {"layout": entry.store.layout, "state": state, "mib": mib}
    facts = _facts(settings, entry, state, words)
    if reason := _problem(entry, state):
        return Part(samples, parameters, facts=facts, verdict=Verdict.NOT_MEASURED, reason=reason)
    return Part(samples, parameters, facts=facts)


def _problem(entry: _Entry, state: str) -> str:
    """Why cold epochs are no measurement of storage; empty where they are one."""
    label = _least(entry.epochs[state]).label
    if state != COLD or (label in OF_STORAGE and not entry.was_cached):
        return ""
    below = entry.store.below
    why = entry.eviction or SEEN.get(label, "")
    if label == "unknown" and below is not None and below.explain():
        why = below.explain()
    return f"the epoch was not surely cold: {why}, so that this is not the speed of storage"


def _least(epochs: Sequence[Epoch]) -> Epoch:
    """The one whose bytes came least from the device; one that nobody knows of counts as such."""
    return min(epochs, key=lambda each: -1.0 if each.from_device is None else each.from_device)


def _facts(settings: Settings, entry: _Entry, state: str, words: str) -> dict[str, Any]:
    """Bytes are the last epoch's; the label is of that one whose bytes came least from the device."""
    below, epochs = entry.store.below, entry.epochs[state]
    last = epochs[-1]
    return {
        "label": _least(epochs).label,
        "read_bytes": last.read_bytes,
        "delivered_bytes": last.delivered_bytes,
        "device_counter_bytes": last.device_bytes,
        "path": settings.path,
        "filesystem": below.type if below is not None else None,
        "unknown": below.explain() if below is not None else "",
        "cold_problem": entry.eviction,
        "num_files": len(entry.store.files),
        "verdict": words,
    }
