"""From a sample's bytes to a tensor, in the worker that read them, and the times at which it did.

`raw` takes the first bytes as pixels, which costs a pipeline no decoding and so shows what storage can do;
`jpeg` decodes real images with Pillow. Both scale to the mean and deviation of ImageNet.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hakaru.errors import HakaruError
from hakaru.measure.context import torch
from hakaru.measure.datasets import Sample

DECODE = ("raw", "jpeg")
WARM_UP = -1  # in place of an index: nothing is read
MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32).reshape(3, 1, 1)
DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32).reshape(3, 1, 1)
NUM_CLASSES = 1000  # that the networks know
MOST_PIXELS = 1 << 26  # of an image, 200 MB of memory: a small file may claim any number
MOST_WORDS = 120  # of what Pillow says
OBJECT = re.compile(r" <[^>]*>")  # that Python names by its address
NULL_BYTES = 115_131  # ILSVRC2012's mean

Floats = NDArray[np.float32]
Decoder = Callable[[Sample, int], NDArray[np.uint8]]


class Source(Protocol):
    """Samples by index: a reader of a data set, or memory."""

    def __len__(self) -> int: ...

    def read(self, index: int) -> Sample: ...


class Batch(NamedTuple):
    """What a worker hands over. Its times are of time.monotonic(), the same clock in all processes."""

    inputs: Any
    target: Any
    indices: tuple[int, ...]
    num_bytes: int
    begin: float
    end: float
    pid: int
    problem: str = ""


class Null:
    """A store without input and output: samples come from memory, so that any stall is the loader's own."""

    def __init__(self, num_samples: int, num_bytes: int = NULL_BYTES) -> None:
        self.num_samples, self.lengths = num_samples, np.full(num_samples, num_bytes, np.uint64)
        self._data = np.random.default_rng(0).integers(0, 256, num_bytes, np.uint8).tobytes()

    def __len__(self) -> int:
        return self.num_samples

    def read(self, index: int) -> Sample:
        return Sample(self._data, index % NUM_CLASSES, f"null/{index:09}")


class Pace:
    """Holds a process back to a rate, as a slower store would; a truth for tests."""

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s, self.free_at = bytes_per_s, 0.0

    def wait(self, num_bytes: int) -> None:
        now = time.monotonic()
        self.free_at = max(self.free_at, now) + num_bytes / self.bytes_per_s
        time.sleep(max(0.0, self.free_at - now))


class Samples:
    """The data set as torch's DataLoader asks for it: whole batches by their indices."""

    def __init__(self, source: Source, image: int, decode: str, pace: Pace | None = None) -> None:
        self.source, self.image, self.pace = source, image, pace
        self.decode = find_decoder(decode)

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Batch:
        return self.__getitems__([index])

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        begin = time.monotonic()
        pixels = np.zeros((len(indices), 3, self.image, self.image), dtype=np.float32)
        labels = np.zeros(len(indices), dtype=np.int64)
        num_bytes = 0
        problem = ""
        try:
            for place, index in enumerate(indices):
                if index == WARM_UP:
                    continue
                sample = self.source.read(index)
                num_bytes += len(sample.data)
                labels[place] = sample.label % NUM_CLASSES
                _scale(self.decode(sample, self.image), pixels[place])
        except HakaruError as error:  # torch would bury it in a traceback
            problem = str(error)
        if self.pace is not None:
            self.pace.wait(num_bytes)
        inputs, target = torch().from_numpy(pixels), torch().from_numpy(labels)
        end = time.monotonic()
        return Batch(inputs, target, tuple(indices), num_bytes, begin, end, os.getpid(), problem)


def find_decoder(name: str) -> Decoder:
    if name == "raw":
        return raw_pixels
    if name != "jpeg":
        raise HakaruError(f"decode={name!r}: expected one of {', '.join(DECODE)}")
    try:
        import PIL.Image  # type: ignore[import-not-found, unused-ignore] # noqa: F401
    except ImportError:
        raise HakaruError(
            "decode=jpeg needs Pillow, which is not installed. Install it with: pip install pillow"
        ) from None
    return jpeg_pixels


def raw_pixels(sample: Sample, image: int) -> NDArray[np.uint8]:
    """The first bytes as an image of this size; those of a small sample are repeated."""
    wanted = 3 * image * image
    found = np.frombuffer(sample.data, dtype=np.uint8, count=min(wanted, len(sample.data)))
    return (found if len(found) == wanted else np.resize(found, wanted)).reshape(3, image, image)


def jpeg_pixels(sample: Sample, image: int) -> NDArray[np.uint8]:
    """A real image, decoded and scaled to a square; whatever Pillow raises means that it is none."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(sample.data)) as opened:
            width, height = opened.size
            if width * height <= MOST_PIXELS:
                found = opened.convert("RGB").resize((image, image))
                return np.asarray(found, dtype=np.uint8).transpose(2, 0, 1)
    except Exception as error:
        said = f"{type(error).__name__}: {OBJECT.sub('', str(error))[:MOST_WORDS]}"
        raise HakaruError(
            f"sample {sample.key!r} is no image that Pillow reads ({said}); synthetic data sets hold no "
            "images: use decode=raw, or pack a folder of images with: hakaru bench pack"
        ) from None
    raise HakaruError(
        f"sample {sample.key!r} is an image of {width:,} × {height:,} pixels; expected {MOST_PIXELS:,} "
        "pixels at most: leave it out of the data set, or make it smaller"
    )


def _scale(image: NDArray[np.uint8], out: Floats) -> None:
    """To zero mean and a deviation of one, as networks expect."""
    np.multiply(image, np.float32(1 / 255), out=out)
    out -= MEAN
    out /= DEVIATION
