"""Where a benchmark runs: its device, and the ranks that it works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hakaru.errors import MissingExtraError

if TYPE_CHECKING:
    from hakaru.measure.devices import Device

EXTRA = "measure"


class Ranks(Protocol):
    """The processes that measure together; a single one is a group of one."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def barrier(self) -> None: ...

    def maximum(self, *values: float) -> tuple[float, ...]:
        """The greatest of each value over all ranks."""


@dataclass(frozen=True)
class Alone:
    """A group of one."""

    rank: int = 0
    size: int = 1

    def barrier(self) -> None:
        return

    def maximum(self, *values: float) -> tuple[float, ...]:
        return values


@dataclass(frozen=True)
class Context:
    """What a benchmark's function gets: its device and its ranks."""

    device: Device
    ranks: Ranks

    @property
    def torch_device(self) -> str:
        """How torch calls the device; a core and a NUMA node are both `cpu`, where threads are pinned."""
        return self.device.torch_name


def torch() -> Any:
    """torch, or the command that installs it."""
    try:
        import torch as found
    except ImportError:
        raise MissingExtraError("torch", EXTRA) from None
    return found
