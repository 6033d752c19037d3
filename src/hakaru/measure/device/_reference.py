"""Matrices whose product the host knows, so that a card's result is compared with more than the card itself.

A tile of random numbers is repeated over each matrix, with random signs for its rows and columns. The numbers
load a card as independent ones do. But the whole product follows from the tiles' product, which a host core
computes in a tenth of a second; for the product of size 8192 it would need half a minute. Signs are exact in
every type, so that every card and the host have the same matrices, bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hakaru.measure._base import WrongResult
from hakaru.measure.context import torch
from hakaru.measure.device._types import prepare_type, rounding

SEED = 20180226
TILE = 1024
SAFETY = 12.0  # typical errors that a right result stays inside


@dataclass(frozen=True)
class Reference:
    """A = rows · tile_a · inner and B = tile_b · columns, where rows, inner and columns are signs.

    All of it is on the host. `product` is of the tiles, in fp64, with each inner sign counted as often as the
    tile repeats.
    """

    dtype: str
    size: int
    tile_a: Any
    tile_b: Any
    rows: Any
    inner: Any
    columns: Any
    product: Any

    def matrices(self, device: str) -> tuple[Any, Any]:
        """A and B, made on the device: only the tiles and signs are copied to it."""
        rows, inner, columns = (
            each.to(self.tile_a.dtype).to(device) for each in (self.rows, self.inner, self.columns)
        )
        a = self._spread(self.tile_a.to(device)).mul(rows[:, None]).mul_(inner)
        return a, self._spread(self.tile_b.to(device)).mul(columns)

    def check(self, c: Any) -> None:
        """Raise `WrongResult` where C is not the product, within what rounding explains.

        First C·x, for random x: the card multiplies in fp64, and the host compares with what it computed
        itself, so that a card that errs in the check is found too. That sees any error that is large for its
        row. Then each element is compared on the card, which sees a single wrong one even in bf16. Inputs
        that the card's memory corrupted lead to a product that is not the host's, and so are found as well.
        """
        limit = SAFETY * rounding(self.dtype, self.size)
        x = _uniform(_random(1), self.size)
        self._check_vector(c, x, limit)
        self._check_elements(c, limit)

    def _check_vector(self, c: Any, x: Any, limit: float) -> None:
        found = torch()
        there = x.to(c.device)
        got = found.cat([strip.double() @ there for strip in c.split(self._tile)]).cpu()
        wanted = self.rows * self._repeated(self.product @ self._folded(self.columns * x))
        # errors of a row's elements are independent, so that they add up as squares do
        squares = self._typical.square() @ self._folded(x.square())
        allowed = limit * self._repeated(squares.sqrt())
        off = (wanted - got).abs()
        if not bool((off <= allowed).all()):  # also where it is not a number
            worst = int((off - allowed).nan_to_num(nan=float("inf")).argmax())
            raise WrongResult(
                f"C·x is off by {float(off[worst]):.3g}, and rounding explains "
                f"{float(allowed[worst]):.3g} ({self.dtype}, size {self.size})"
            )

    def _check_elements(self, c: Any, limit: float) -> None:
        """In strips of a tile's height: the whole in fp64 would take as much memory as A and B."""
        product, typical, rows, columns = (
            each.to(c.device) for each in (self.product, self._typical, self.rows, self.columns)
        )
        times = -(-self.size // self._tile)
        wanted = product.repeat(1, times)[:, : self.size] * columns
        allowed = limit * typical.repeat(1, times)[:, : self.size]
        for strip, signs in zip(c.split(self._tile), rows.split(self._tile), strict=True):
            num = len(strip)
            off = (strip.double() * signs[:, None] - wanted[:num]).abs()
            wrong = int((~(off <= allowed[:num])).sum())
            if wrong:
                raise WrongResult(
                    f"{wrong} of {strip.numel()} elements of C are off by up to {float(off.max()):.3g}, more "
                    f"than rounding explains ({self.dtype}, size {self.size})"
                )

    @property
    def _tile(self) -> int:
        return len(self.product)

    @property
    def _typical(self) -> Any:
        """The size of each element, to which its rounding is relative; small ones are sums of large terms."""
        return self.product.abs().clamp(min=float(self.product.square().mean().sqrt()))

    def _spread(self, tile: Any) -> Any:
        times = -(-self.size // self._tile)
        return tile.repeat(times, times)[: self.size, : self.size]

    def _repeated(self, vector: Any) -> Any:
        return vector.repeat(-(-self.size // self._tile))[: self.size]

    def _folded(self, vector: Any) -> Any:
        return _fold(vector, self._tile)


@lru_cache(maxsize=4)
def reference(dtype: str, size: int) -> Reference:
    """The same for every device: made once for a type and size, by whichever core is first."""
    found, random = torch(), _random(0)
    tile = min(TILE, size)
    tile_a, tile_b = (
        prepare_type(_uniform(random, tile * tile).view(tile, tile), dtype) for _ in range(2)
    )
    rows, inner, columns = (
        found.randint(0, 2, (size,), generator=random).double() * 2 - 1 for _ in range(3)
    )
    product = (tile_a.double() * _fold(inner, tile)) @ tile_b.double()
    return Reference(dtype, size, tile_a, tile_b, rows, inner, columns, product)


def _random(stream: int) -> Any:
    return torch().Generator().manual_seed(SEED + stream)


def _uniform(random: Any, num: int) -> Any:
    """From -0.5 to 0.5."""
    found = torch()
    return found.rand(num, generator=random, dtype=found.float64) - 0.5


def _fold(vector: Any, tile: int) -> Any:
    """The sum over the tile's repetitions; the last of them may be cut off."""
    missing = -len(vector) % tile
    return torch().nn.functional.pad(vector, (0, missing)).view(-1, tile).sum(0)
