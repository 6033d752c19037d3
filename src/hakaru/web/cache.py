"""Answers kept until the lake changes: bounded in bytes, the least recently used leave first.

Whoever asks what another is already asking waits for that answer instead of asking again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")
ENTRY_BYTES = 2_000  # what an entry costs beside its table


class Cache(Generic[T]):
    def __init__(self, max_bytes: int, size_of: Callable[[T], int]) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._size_of = size_of
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._under_way: dict[Hashable, Future[T]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
            others = self._under_way.get(key)
            mine: Future[T] = self._under_way.setdefault(key, Future())
        return others.result() if others is not None else self._make(key, make, mine)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.num_bytes = 0

    def _make(self, key: Hashable, make: Callable[[], T], future: Future[T]) -> T:
        try:
            value = make()
        except BaseException as error:  # those who wait for it hear the same
            self._end(key)
            future.set_exception(error)
            raise
        self._keep(key, value)
        self._end(key)
        future.set_result(value)
        return value

    def _end(self, key: Hashable) -> None:
        with self._lock:
            self._under_way.pop(key, None)

    def _keep(self, key: Hashable, value: T) -> None:
        size = self._size_of(value) + ENTRY_BYTES
        with self._lock:
            if size <= self.max_bytes // 4 and key not in self._entries:
                self._entries[key] = (value, size)
                self.num_bytes += size
            while self.num_bytes > self.max_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self.num_bytes -= freed
