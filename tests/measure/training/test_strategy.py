"""How strategies are written, and which numbers of ranks they fit."""

from __future__ import annotations

import re

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.training._strategy import Strategy


@pytest.mark.parametrize(
    ("text", "world", "sizes"),
    [
        ("single", 1, {"single": 1}),
        ("ddp", 3, {"ddp": 3}),
        ("DDP", 1, {"ddp": 1}),
        ("ddp2+gpipe2", 4, {"ddp": 2, "gpipe": 2}),
        ("fsdp2+tensor2", 4, {"fsdp": 2, "tensor": 2}),
        ("ddp + 1f1b", 8, {"ddp": 4, "1f1b": 2}),
        ("1f1b4", 4, {"1f1b": 4}),
        ("ddp+1f1b3", 6, {"ddp": 2, "1f1b": 3}),
        ("ddp2+fsdp+tensor2", 16, {"ddp": 2, "fsdp": 4, "tensor": 2}),
    ],
)
def test_parts_and_their_sizes(text: str, world: int, sizes: dict[str, int]) -> None:
    strategy = Strategy.parse(text)
    assert strategy.fits(world) is None
    assert strategy.sizes(world) == sizes
    assert Strategy.parse(str(strategy)) == strategy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dpp", "did you mean ddp"),
        ("ddp2+", "'' is unknown"),
        ("ddp1", "two ranks or more"),
        ("single2", "two ranks or more"),
        ("ddp+ddp2", "named twice"),
        ("single+ddp", "not combined"),
        ("tensor2+gpipe2", "both split the network"),
        ("tensor2+ddp2", r"write ddp\+tensor"),
        ("fsdp2+gpipe2", "combine it with ddp"),
        ("fsdp2+ddp2", "write ddp before fsdp"),
    ],
)
def test_what_does_not_go_together_says_why(text: str, expected: str) -> None:
    with pytest.raises(HakaruError, match=expected):
        Strategy.parse(text)


@pytest.mark.parametrize(
    ("text", "world", "expected"),
    [
        ("single", 2, "single takes 1 rank, not 2"),
        ("ddp2+gpipe2", 6, r"ddp2\+gpipe2 takes 4 ranks, not 6"),
        ("ddp+gpipe4", 6, "needs a multiple of 4 ranks, not 6"),
        ("ddp+1f1b", 2, "ddp needs two ranks or more"),
        ("ddp2", 1, "ddp2 takes 2 ranks, not 1"),
    ],
)
def test_a_world_that_does_not_fit_says_why(text: str, world: int, expected: str) -> None:
    problem = Strategy.parse(text).fits(world)
    assert problem is not None
    assert re.search(expected, problem)


def test_a_batch_is_divided_among_data_parallel_ranks_only() -> None:
    assert Strategy.parse("ddp2+fsdp+tensor2").data_ranks(16) == 8
    assert Strategy.parse("1f1b").data_ranks(4) == 1
