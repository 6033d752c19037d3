"""What ranks say to one another while they build, and over which group, with the others' words made up."""

from __future__ import annotations

from typing import Any

import pytest
import torch.distributed as dist

from hakaru.errors import HakaruError
from hakaru.measure._base import NotApplicable
from hakaru.measure.partition.agree import NoPartition
from hakaru.measure.training import _fsdp, _groups
from hakaru.measure.training._agree import Word, agreed
from hakaru.measure.training._clock import HostClock
from hakaru.measure.training._marks import Spans
from hakaru.measure.training._strategy import Strategy

FINE = Word("b", True)
IDLE = Word("c", False)
BROKEN = Word("d", True, "ValueError: bad")
REFUSED = Word("e", True, "too few", applies=False)


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> list[Word]:
    """What the ranks after this one say."""
    words: list[Word] = []

    def gather(said: list[Any], own: Word, group: Any) -> None:
        assert group == "control"
        said[:] = [own, *words]

    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda group: 1 + len(words))
    monkeypatch.setattr(dist, "all_gather_object", gather)
    monkeypatch.setenv("HAKARU_HOST", "a")
    return words


def attempt(error: Exception | None) -> None:
    def part() -> None:
        if error:
            raise error

    agreed(part, True, "control")


@pytest.mark.parametrize(
    ("own", "words", "kind", "expected"),
    [
        (ValueError("bad"), [FINE], HakaruError, "rank 0 on a cannot train: ValueError: bad"),
        (None, [FINE, BROKEN], HakaruError, "rank 2 on d cannot train: ValueError: bad"),
        (HakaruError("no disk"), [], HakaruError, "rank 0 on a cannot train: no disk"),
        (KeyError(), [BROKEN], HakaruError, "rank 0 on a cannot train: KeyError: "),
        (NotApplicable("too few"), [IDLE, REFUSED], NotApplicable, "too few"),
        (NoPartition("no cut"), [REFUSED], NotApplicable, "no cut"),
        (NotApplicable("too few"), [FINE], HakaruError, "rank 0 on a cannot train: too few"),
        (NotApplicable("too few"), [BROKEN], HakaruError, "rank 1 on d cannot train: Val"),
    ],
)
def test_all_ranks_raise_the_same(
    others: list[Word], own: Exception | None, words: list[Word], kind: type, expected: str
) -> None:
    others[:] = words
    with pytest.raises(kind, match=f"^{expected}") as found:
        attempt(own)
    assert found.type is kind
    assert found.value.__cause__ is own


def test_nothing_is_raised_where_all_succeed(others: list[Word]) -> None:
    others[:] = [FINE, IDLE]
    attempt(None)


def test_the_harness_own_messages_do_not_go_over_the_cards_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dist, "new_group", lambda ranks, backend: (backend, tuple(ranks)))
    cards = _groups.lay_out(Strategy.parse("ddp2+fsdp2"), range(4), 1, "cuda:1")
    assert cards.everyone == ("nccl", (0, 1, 2, 3)) and cards.control == ("gloo", (0, 1, 2, 3))
    assert cards.groups == {"ddp": ("nccl", (1, 3)), "fsdp": ("nccl", (0, 1))}
    processors = _groups.lay_out(Strategy.parse("ddp"), range(4), 1, "cpu")
    assert processors.control is processors.everyone


def test_the_sum_over_copies_of_shards_is_waiting_on_processors_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    summed = []
    monkeypatch.setattr(dist, "all_reduce", lambda shard, group: summed.append((shard, group)))
    spans = Spans(HostClock())
    shard: Any = "shard"
    _fsdp._sum_over("copies", spans)(shard)
    assert len(spans.take()) == 1
    _fsdp._sum_over("copies", None)(shard)
    assert not spans.take() and summed == [("shard", "copies")] * 2
