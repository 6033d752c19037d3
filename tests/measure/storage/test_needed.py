"""What storage must deliver for faster devices, worked by hand."""

from __future__ import annotations

import pytest

from hakaru.measure.storage._epoch import Epoch
from hakaru.measure.storage._needed import Needed, needed_by


def epoch(seconds: float, computed: float, read: int | None, delivered: int = 100_000_000) -> Epoch:
    return Epoch(
        seconds=seconds, first_s=0.0, waited_s=seconds - computed, computed_s=computed,
        num_samples=1000, delivered_bytes=delivered, read_bytes=read, device_bytes=None,
    )  # fmt: skip


def test_an_epoch_s_numbers() -> None:
    found = Epoch(
        seconds=11.0, first_s=1.0, waited_s=2.0, computed_s=8.0,
        num_samples=1100, delivered_bytes=22_000_000, read_bytes=11_000_000, device_bytes=None,
    )  # fmt: skip
    assert found.rate == 100
    assert found.mb_per_s == 2
    assert found.stall == 0.2
    assert found.utilisation == 0.8
    assert found.label == "partly cached"
    assert found.from_device == 0.5


def test_training_needs_its_bytes_in_the_time_that_it_computes() -> None:
    """100 MB in 2 s of compute are 50 MB/s, however long it waited beside that."""
    training = [epoch(4.0, 2.0, 0), epoch(3.0, 2.0, 0)]
    found = needed_by(training, epoch(0.8, 0.0, 100_000_000))
    assert found is not None
    assert found.now == 50
    assert found.loader == 125
    assert [found.delivers(times) for times in (1, 2, 4, 8)] == [True, True, False, False]
    assert found.sentence.endswith("enough for a device 2 times as fast, but not 4.")
    listed = found.to_json()["for_faster"]
    assert listed[1] == {"times": 4, "mb_per_s": 200.0, "delivers": False}


@pytest.mark.parametrize(
    ("loader", "words"),
    [
        (40, "too little already now"),
        (60, "too little for a device 2 times as fast"),
        (500, "enough for a device 8 times as fast"),
    ],
)
def test_words(loader: float, words: str) -> None:
    assert words in Needed(50, loader, "from the device").sentence


def test_rates_have_thousands_and_their_source() -> None:
    sentence = Needed(1234.5, 5000, "over the network").sentence
    assert (
        "training takes 1,234 MB/s; the loader alone delivers 5,000 MB/s over the network"
        in sentence
    )
    assert sentence.endswith("enough for a device 4 times as fast, but not 8.")


@pytest.mark.parametrize("label", ["cached", "partly cached", "unknown"])
def test_a_rate_that_is_not_storage_s_delivers_nothing_known(label: str) -> None:
    found = Needed(50, 5000, label)
    assert found.delivers(2) is None
    assert "says nothing of storage" in found.sentence


def test_without_compute_nothing_is_needed() -> None:
    assert needed_by([epoch(1.0, 0.0, 0)], None) is None
    assert needed_by([], None) is None
    found = needed_by([epoch(2.0, 1.0, 0)], None)
    assert found is not None
    assert found.delivers(1) is None
    assert "no time" in found.sentence
