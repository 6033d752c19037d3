"""The order of an epoch: a permutation, seeded, other in each epoch, and shared by the ranks."""

from __future__ import annotations

import pytest

from hakaru.measure.storage._order import WHOLE, Share, batches, epoch_order

SPANS = [range(40), range(40, 70), range(70, 101)]


@pytest.mark.parametrize("spans", [None, SPANS])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_ranks_together_read_each_sample_once(spans: list[range] | None, size: int) -> None:
    shares = [epoch_order(101, 0, 1, Share(rank, size), spans) for rank in range(size)]
    assert sorted(index for each in shares for index in each.tolist()) == list(range(101))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_order_follows_from_seed_and_epoch() -> None:
    first = epoch_order(50, 0, 1, WHOLE).tolist()
    assert epoch_order(50, 0, 1, WHOLE).tolist() == first
    assert epoch_order(50, 0, 2, WHOLE).tolist() != first
    assert epoch_order(50, 1, 1, WHOLE).tolist() != first


def test_shards_are_shuffled_and_read_in_a_row() -> None:
    orders = {tuple(epoch_order(101, 0, epoch, WHOLE, SPANS).tolist()) for epoch in range(20)}
    assert 1 < len(orders) <= 6
    runs = [tuple(run) for run in SPANS]
    for order in orders:
        starts = {0, 40, 70}
        found = []
        for index in order:
            if index in starts:
                found.append([index])
            else:
                found[-1].append(index)
        assert sorted(map(tuple, found)) == runs


def test_the_last_batch_has_what_is_left() -> None:
    assert [len(each) for each in batches(epoch_order(5, 0, 0, WHOLE), 2)] == [2, 2, 1]
