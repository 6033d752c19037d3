"""Small networks to cut: rows, skips, attention, and those that cannot be cut."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Row(nn.Module):
    """Linear layers in a row."""

    def __init__(self, hidden: int = 16, layers: int = 6) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Residual(nn.Module):
    """Two convolutions with batch norm, a skip, and writes in place as torchvision has them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x
        return self.relu(y)


class SmallResNet(nn.Module):
    """A stem, blocks with skips, and a linear layer."""

    def __init__(self, channels: int = 6, blocks: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(Residual(channels) for _ in range(blocks)))
        self.fc = nn.Linear(channels, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


class Attending(nn.Module):
    """A pre-norm block whose mask comes from outside."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.mix, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.widen = nn.Sequential(
            nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Linear(2 * hidden, hidden)
        )

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            each.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for each in self.mix(self.norm1(x)).chunk(3, 2)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.widen(self.norm2(x))


class SmallTransformer(nn.Module):
    """Embeddings and blocks; all blocks use one mask, made on the way. `tied` shares the embedding."""

    def __init__(
        self, hidden: int = 16, layers: int = 3, words: int = 50, tied: bool = False
    ) -> None:
        super().__init__()
        self.token = nn.Embedding(words, hidden)
        self.position = nn.Embedding(8, hidden)
        self.blocks = nn.ModuleList(Attending(hidden, 2) for _ in range(layers))
        self.head = nn.Linear(hidden, words, bias=False)
        self.register_buffer("scale", torch.full((1,), 0.5))
        if tied:
            self.head.weight = self.token.weight

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        length = text.shape[1]
        x = self.token(text) + self.position(torch.arange(length))
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        for block in self.blocks:
            x = block(x, mask) * self.scale
        return self.head(x)


class LongSkip(nn.Module):
    """The first layer's value goes over the middle to the last layers."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.middle = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, hidden))
        self.last = nn.Linear(2 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        second = self.second(first).tanh()
        return self.last(torch.cat([self.middle(second), first * 2], 1)) + second.sin()


class Masked(nn.Module):
    """A mask, which has no gradient, goes from the first layer to the last."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.c, self.d = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        mask = x > 0
        return self.d(self.c(self.b(x)).masked_fill(mask, 0.0))


class UsedTwice(nn.Module):
    """The first layer's value is needed in the middle and at the end."""

    def __init__(self, hidden: int = 16) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.c, self.d = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        b = self.b(a)
        return self.d(self.c(b * a) * a)


class Gate(nn.Module):
    """Control flow on a value."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x


class Gated(nn.Module):
    """Cannot be exported."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.gate = Gate()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gate(self.layer(x))
