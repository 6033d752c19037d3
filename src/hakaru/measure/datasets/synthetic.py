"""Synthetic data sets of any volume, with the sizes of ILSVRC2012's images, after TSUBAME's experiment.

A sample's size, label and bytes follow from the seed and its index alone, so that they are the same in every
layout, order and volume. The bytes are random but for a zero in every 16: zlib makes them 2 % smaller, as it
does JPEGs, and no block repeats that a store could keep once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from hakaru.errors import HakaruError
from hakaru.measure.datasets._layout import Layout, Reader, find_layout, open_dataset
from hakaru.measure.datasets._place import TakenError, building, check_space
from hakaru.measure.datasets._sample import Sample

# 147.5 GB in 1,281,167 images (Miwa 2019, the TSUBAME3.0 report; the count is ILSVRC2012's own). Neither
# source gives the spread: a median of 0.84 of the mean, from which 95 % lie within a factor of 3.2, is ours.
NUM_IMAGES, IMAGES_BYTES = 1_281_167, 147.5e9
MEAN_BYTES = IMAGES_BYTES / NUM_IMAGES
SPREAD = 0.6  # standard deviation of the logarithm
MEDIAN_BYTES = MEAN_BYTES * math.exp(-(SPREAD**2) / 2)
LEAST_BYTES, MOST_BYTES = 2048, 8 << 20
NUM_CLASSES = 1000
CLASSES = tuple(f"c{label:04}" for label in range(NUM_CLASSES))
ZERO_EVERY = 16
VERSION = 1  # of the bytes that a seed stands for
HEAD_WORDS = 3  # random words before the bytes: two for the size, one for the label


def samples(seed: int, total_bytes: int) -> Iterator[Sample]:
    """Samples from index 0 on until their bytes are `total_bytes`; the last one is cut to fit."""
    left = _checked_volume(total_bytes)
    for index in count():
        sample = sample_at(seed, index)
        if len(sample.data) + LEAST_BYTES > left:
            yield _of_size(seed, index, left)
            return
        yield sample
        left -= len(sample.data)


def sample_at(seed: int, index: int) -> Sample:
    """The sample of this index, whatever the others are."""
    return _of_size(seed, index, None)


def num_samples_about(total_bytes: int) -> int:
    """Roughly how many samples a data set of this volume has."""
    return max(1, round(total_bytes / MEAN_BYTES))


def ensure(
    folder: Path,
    layout: str,
    seed: int,
    total_bytes: int,
    progress: Callable[[int], None] = lambda done: None,
) -> Reader:
    """The reader of this data set: the one in the folder if it is whole, else a new one there.

    `progress` is called with the bytes written so far. Nothing is written where the disk has not the space.
    """
    chosen, origin = find_layout(layout), origin_of(seed, total_bytes)
    if _is_taken(folder):
        return _matching(folder, chosen, origin)
    check_space(folder, chosen, num_samples_about(total_bytes), total_bytes)
    made = samples(seed, total_bytes)
    with suppress(TakenError), building(folder) as part:  # by another that wanted the same
        chosen.write(made, part, classes=CLASSES, origin=origin, progress=progress)
    return _matching(folder, chosen, origin)


def origin_of(seed: int, total_bytes: int) -> dict[str, Any]:
    """What the manifest says of a synthetic data set; two with the same are the same."""
    if not 0 <= seed < 2**63:
        raise HakaruError(f"the seed {seed} is not between 0 and 2⁶³")
    _checked_volume(total_bytes)
    return {"kind": "synthetic", "version": VERSION, "seed": seed, "total_bytes": total_bytes}


def _checked_volume(total_bytes: int) -> int:
    if total_bytes < LEAST_BYTES:
        raise HakaruError(
            f"a synthetic data set of {total_bytes:,} bytes is too small; ask for {LEAST_BYTES:,} at least"
        )
    return total_bytes


def _is_taken(folder: Path) -> bool:
    try:
        return folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    except OSError as error:
        raise HakaruError(f"{folder}: cannot be looked at: {error.strerror}") from None


def _matching(folder: Path, layout: Layout, origin: Mapping[str, Any]) -> Reader:
    reader = open_dataset(folder)
    found = reader.manifest
    if (found.layout, dict(found.origin)) != (layout.id, dict(origin)):
        reader.close()
        raise HakaruError(
            f"{folder} holds another data set (layout {found.layout}, {_origin(found.origin)}), expected "
            f"layout {layout.id}, {_origin(origin)}. Name another folder, or remove this one"
        )
    return reader


def _origin(origin: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{name} {value}" for name, value in origin.items())[:200] or "of unknown origin"
    )


def _of_size(seed: int, index: int, size: int | None) -> Sample:
    """SFC64's stream is the same in all versions of numpy; its distributions are not, so they are ours."""
    stream = np.random.SFC64([seed, index])
    head = stream.random_raw(HEAD_WORDS)
    length = _size(int(head[0]), int(head[1])) if size is None else size
    words = stream.random_raw(-(-length // 8)).astype("<u8", copy=False)
    data = words.view(np.uint8)[:length]
    data[::ZERO_EVERY] = 0
    label = int(head[2] % NUM_CLASSES)
    return Sample(data.tobytes(), label, f"{CLASSES[label]}/{index:09}")


def _size(first: int, second: int) -> int:
    """A log-normal size from two random words (Box and Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log((first + 1) / 2.0**64))
    normal = radius * math.cos(2.0 * math.pi * second / 2.0**64)
    return min(MOST_BYTES, max(LEAST_BYTES, round(MEDIAN_BYTES * math.exp(SPREAD * normal))))
