"""From bytes to tensors, and the stores and paces that tests steer."""

from __future__ import annotations

import importlib.util
import io
import struct
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from hakaru.errors import HakaruError
from hakaru.measure.datasets import Sample
from hakaru.measure.storage._samples import (
    DEVIATION,
    MEAN,
    WARM_UP,
    Null,
    Pace,
    Samples,
    find_decoder,
    raw_pixels,
)

pytest.importorskip("torch")
HAS_PILLOW = importlib.util.find_spec("PIL") is not None


def test_raw_pixels_are_the_first_bytes() -> None:
    data = bytes(range(200))
    found = raw_pixels(Sample(data, 0, "a"), 4)
    assert found.shape == (3, 4, 4)
    assert found.ravel().tolist() == list(range(48))


def test_the_bytes_of_a_small_sample_are_repeated() -> None:
    assert raw_pixels(Sample(b"\x01\x02", 0, "a"), 1).ravel().tolist() == [1, 2, 1]


def test_a_batch_is_scaled_and_knows_its_bytes_and_times() -> None:
    source = Null(8, num_bytes=100)
    before = time.monotonic()
    batch = Samples(source, 4, "raw").__getitems__([3, 5])
    assert before <= batch.begin <= batch.end <= time.monotonic()
    assert batch.indices == (3, 5)
    assert batch.num_bytes == 200
    assert batch.target.tolist() == [3, 5]
    pixels = np.frombuffer(source.read(3).data, np.uint8, count=48).reshape(3, 4, 4)
    expected = (pixels / 255 - MEAN) / DEVIATION
    np.testing.assert_allclose(batch.inputs[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_warming_up_reads_nothing() -> None:
    batch = Samples(Null(1), 4, "raw").__getitems__([WARM_UP, WARM_UP])
    assert batch.num_bytes == 0
    assert batch.inputs.shape == (2, 3, 4, 4)


def test_an_error_of_the_data_set_travels_with_the_batch() -> None:
    class Damaged(Null):
        def read(self, index: int) -> Sample:
            raise HakaruError("the file is missing")

    assert Samples(Damaged(1), 4, "raw").__getitems__([0]).problem == "the file is missing"


def test_a_pace_holds_back_and_does_not_save_up() -> None:
    pace = Pace(1e6)
    begin = time.monotonic()
    pace.wait(20_000)
    pace.wait(20_000)
    assert time.monotonic() - begin >= 0.04
    time.sleep(0.05)  # idle time gives no credit
    begin = time.monotonic()
    pace.wait(30_000)
    assert time.monotonic() - begin >= 0.03


def test_an_unknown_decoder_is_refused() -> None:
    with pytest.raises(HakaruError, match="expected one of raw, jpeg"):
        find_decoder("png")


@pytest.mark.skipif(HAS_PILLOW, reason="Pillow is installed")
def test_without_pillow_the_error_says_how_to_install_it() -> None:
    with pytest.raises(HakaruError, match="pip install pillow"):
        find_decoder("jpeg")


class Bomb(Exception):
    """As Pillow's own, which is no OSError."""


class Pretended:
    """An image as Pillow opens it."""

    def __init__(self, size: tuple[int, int], problem: Exception | None = None) -> None:
        self.size, self.problem = size, problem

    def __enter__(self) -> Pretended:
        return self

    def __exit__(self, *exception: object) -> None:
        return

    def convert(self, mode: str) -> Pretended:
        if self.problem is not None:
            raise self.problem
        return self

    def resize(self, size: tuple[int, int]) -> object:
        return np.zeros((*size, 3), np.uint8)


def pretend(monkeypatch: pytest.MonkeyPatch, opened: Pretended | Exception) -> None:
    def open_image(file: object) -> Pretended:
        if isinstance(opened, Exception):
            raise opened
        return opened

    image = SimpleNamespace(open=open_image)
    monkeypatch.setitem(sys.modules, "PIL", SimpleNamespace(Image=image))
    monkeypatch.setitem(sys.modules, "PIL.Image", image)


@pytest.mark.parametrize(
    "error",
    [Bomb("too large"), SyntaxError("not a TIFF file"), ValueError("mode"), struct.error("short"),
     OSError("truncated"), IndexError("palette")],
)  # fmt: skip
@pytest.mark.parametrize("is_opened", [True, False])
def test_whatever_pillow_raises_is_told_with_the_sample(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_opened: bool
) -> None:
    pretend(monkeypatch, Pretended((8, 8), error) if is_opened else error)
    with pytest.raises(HakaruError, match="sample 'a' is no image that Pillow reads") as found:
        find_decoder("jpeg")(Sample(b"noise", 0, "a"), 8)
    assert f"{type(error).__name__}: {error}" in str(found.value)


def test_no_address_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, OSError("cannot identify image file <_io.BytesIO object at 0x7f>"))
    with pytest.raises(HakaruError, match=r"\(OSError: cannot identify image file\);"):
        find_decoder("jpeg")(Sample(b"noise", 0, "a"), 8)


def test_an_image_of_too_many_pixels_is_refused_before_it_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend(monkeypatch, Pretended((8, 8)))
    assert find_decoder("jpeg")(Sample(b"x", 0, "a"), 4).shape == (3, 4, 4)
    pretend(monkeypatch, Pretended((50_000, 40_000), AssertionError("decoded")))
    with pytest.raises(HakaruError, match="'a' is an image of 50,000 × 40,000 pixels; expected"):
        find_decoder("jpeg")(Sample(b"x", 0, "a"), 4)


@pytest.mark.skipif(not HAS_PILLOW, reason="Pillow is not installed")
def test_images_are_decoded_and_what_is_none_is_refused() -> None:
    from PIL import Image

    stored = io.BytesIO()
    Image.new("RGB", (20, 10), (255, 0, 0)).save(stored, "PNG")
    found = find_decoder("jpeg")(Sample(stored.getvalue(), 0, "a"), 8)
    assert found.shape == (3, 8, 8)
    assert found[0].min() == 255
    assert found[1:].max() == 0
    with pytest.raises(HakaruError, match="no image that Pillow reads"):
        find_decoder("jpeg")(Sample(b"noise", 0, "a"), 8)
