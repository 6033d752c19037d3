"""In which order an epoch reads its samples: shuffled anew in each epoch from one seed, shared by the ranks.

Archives that are read from begin to end (tar) are shuffled by shard, as webdataset does: the samples of a
shard are read in a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
BY_SHARD = ("tar",)


@dataclass(frozen=True)
class Share:
    """Which of how many ranks reads."""

    rank: int = 0
    size: int = 1


WHOLE = Share()


def epoch_order(
    num_samples: int, seed: int, epoch: int, share: Share, spans: Sequence[range] | None = None
) -> Ints:
    """This rank's indices in their order; `spans` are runs of indices that are read in a row."""
    random = np.random.default_rng([seed, epoch])
    if spans is None:
        return random.permutation(num_samples)[share.rank :: share.size].astype(np.int64)
    runs = [np.arange(run.start, run.stop) for run in spans]
    order = np.concatenate([runs[at] for at in random.permutation(len(runs))])
    return np.array_split(order, share.size)[share.rank].astype(np.int64)


def batches(order: Ints, size: int) -> Iterator[list[int]]:
    """Of so many samples; the last has what is left."""
    for at in range(0, len(order), size):
        yield order[at : at + size].tolist()
