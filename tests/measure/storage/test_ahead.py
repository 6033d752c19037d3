"""The thread ahead of the training loop: the same batches, errors in their place, and an end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from hakaru.measure.storage._ahead import ahead


def names() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "hakaru-ahead"]


def test_items_come_in_their_order_and_the_thread_ends() -> None:
    assert list(ahead(range(100))) == list(range(100))
    assert names() == []


def test_an_error_comes_after_the_items_before_it() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError("here")

    seen = []
    with pytest.raises(ZeroDivisionError, match="here"):
        for item in ahead(failing()):
            seen.append(item)
    assert seen == [1]
    assert names() == []


def test_leaving_early_ends_the_thread_and_takes_little_ahead() -> None:
    taken = []

    def counting() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    items = ahead(counting(), depth=2)
    assert next(items) == 0
    items.close()
    assert names() == []
    assert len(taken) <= 5
