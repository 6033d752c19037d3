"""Whether storage keeps up is said of what came from storage, and only where training does not wait."""

from __future__ import annotations

import pytest

from hakaru.measure.storage._supply import Supply, supply_words, waits_above

DEVICE, CACHED = frozenset({"from the device"}), frozenset({"cached"})


def told(*sizes: tuple[float, float, frozenset[str]], memory: float = 96) -> str:
    return supply_words([Supply(*each) for each in sizes], memory)


def test_storage_keeps_up_where_training_does_not_wait() -> None:
    words = told((48, 0.001, CACHED), (192, 0.012, DEVICE))
    assert words == "Storage keeps up with training, which waits 1.2 % of the time above memory."
    assert "keeps up" in told((48, 0.0, CACHED), (192, 0.0, frozenset({"over the network"})))


@pytest.mark.parametrize("label", ["cached", "partly cached", "unknown"])
def test_memory_that_keeps_up_is_no_storage(label: str) -> None:
    assert told((48, 0.0, CACHED), (192, 0.0, frozenset({"from the device", label}))) == ""


def test_storage_that_is_slow_above_memory_is_blamed() -> None:
    words = told((48, 0.0, CACHED), (128, 0.4, DEVICE), (192, 0.6, DEVICE))
    assert words == (
        "Above memory training waits for data 40.0 % to 60.0 % of the time: storage is too slow there."
    )
    words = told((48, 0.0, CACHED), (192, 0.6, frozenset({"unknown"})))
    assert words == "Above memory training waits for data 60.0 % of the time."


def test_storage_that_is_slow_at_every_size_is_told() -> None:
    words = told((48, 0.94, DEVICE), (192, 0.95, DEVICE))
    assert words.startswith("Training waits for data 94.0 % to 95.0 % of the time at every size")
    assert "storage is too slow at any size" in words


def test_a_loader_that_is_slow_on_cached_data_is_blamed_itself() -> None:
    words = told((48, 0.5, CACHED), (192, 0.5, DEVICE))
    assert "the loader is too slow" in words
    assert "storage" not in words


def test_below_memory_nothing_is_said_of_storage() -> None:
    assert told((24, 0.0, CACHED), (48, 0.01, CACHED)) == ""
    assert told((24, 0.0, DEVICE), (48, 0.3, DEVICE)) == ""


def test_waiting_counts_above_memory_only() -> None:
    below, above = Supply(32, 0.5, frozenset()), Supply(128, 0.01, frozenset())
    assert not waits_above([below, above], 64)
    assert waits_above([below, above], 16)
