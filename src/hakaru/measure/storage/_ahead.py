"""A thread that receives batches while the network computes, as torch's own does for page-locked memory.

Taking a batch over from a worker costs a millisecond or two, which a fast network would wait for each time.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

DEPTH = 2  # batches that are there before they are asked for
POLL_S = 0.05
LEAVE_S = 5.0


def ahead(items: Iterable[T], depth: int = DEPTH) -> Iterator[T]:
    """The same items in the same order; an error of theirs is raised where it belongs in the order."""
    ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(depth)
    is_over = threading.Event()

    def put(entry: tuple[T | None, BaseException | None]) -> bool:
        while not is_over.is_set():
            try:
                ready.put(entry, timeout=POLL_S)
                return True
            except queue.Full:
                continue
        return False

    def receive() -> None:
        try:
            for item in items:
                if not put((item, None)):
                    return
            put((None, None))
        except BaseException as error:
            put((None, error))

    thread = threading.Thread(target=receive, name="hakaru-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            held, item = [item], None
            yield held.pop()  # kept here, it would be freed while the next one is waited for
    finally:
        is_over.set()
        thread.join(LEAVE_S)  # it may wait for a worker that is stuck
