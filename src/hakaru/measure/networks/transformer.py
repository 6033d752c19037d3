"""A small transformer that predicts the next word, in the shape of GPT-2 (Radford et al. 2019)."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn
from torch.nn import functional

from hakaru.errors import HakaruError
from hakaru.measure.networks.samples import tokens_of
from hakaru.measure.networks.workload import Workload


def workload(
    hidden: int = 256,
    layers: int = 4,
    heads: int = 4,
    length: int = 128,
    words: int = 8192,
    batch: int = 8,
) -> Workload:
    """`length` tokens a sample from `words` different ones."""
    if hidden % heads:
        raise HakaruError(f"transformer: hidden {hidden} is not a multiple of heads {heads}")
    return Workload(
        name="transformer",
        make=partial(Transformer, hidden, layers, heads, length, words),
        batch_of=partial(tokens_of, length, words),
        loss=next_word,
        reduction="mean",
        learning_rate=0.01,
        batch=batch,
    )


def next_word(scores: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over all positions."""
    return functional.cross_entropy(scores.flatten(0, 1), following.flatten())


class Transformer(nn.Module):
    """Token and position embeddings, pre-norm blocks, and a linear head."""

    def __init__(self, hidden: int, layers: int, heads: int, length: int, words: int) -> None:
        super().__init__()
        self.token = nn.Embedding(words, hidden)
        self.position = nn.Parameter(torch.randn(length, hidden) * 0.02)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, words, bias=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.token(text) + self.position
        for block in self.blocks:
            x = block(x)
        scores: torch.Tensor = self.head(self.norm(x))
        return scores


class Block(nn.Module):
    """Causal attention and two linear layers, each with a skip."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads)
        self.norm2 = nn.LayerNorm(hidden)
        self.widen = nn.Sequential(
            nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        y: torch.Tensor = x + self.widen(self.norm2(x))
        return y


class Attention(nn.Module):
    """Each position attends to itself and to those before it."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.mix = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.mix(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(
            parts[0], parts[1], parts[2], is_causal=True
        )
        y: torch.Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return y
