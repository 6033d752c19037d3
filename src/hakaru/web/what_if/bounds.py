"""How much one server plays: what a scenario may ask for, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass

MAX_TEXT = 20_000


@dataclass(frozen=True)
class Bounds:
    """`jobs` counts those of all runs of a scenario together."""

    jobs: int = 5_000_000
    variants: int = 6
    seconds: float = 900.0
    waiting: int = 3
    kept: int = 8
    nodes: int = 20_000
    node_size: int = 4_096
    resamples: int = 5_000
    memory_bytes: int = 8 * 1024**3
