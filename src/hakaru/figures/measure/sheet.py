"""A small table beside the figures, the same on the page and in the report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sheet:
    """Headings, which of them stand over numbers, and the cells as they are shown."""

    title: str
    heads: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
