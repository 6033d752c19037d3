"""The documents of stored rows, read with care: what is of a wrong type, no number or too large is left out.

A document says what numbers alone cannot: the breakdown of a step, a fit, a timeline, a plan. It comes from
a file that anybody may have written, so that figures and comparisons read it through `Document` alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

LARGEST = 1e15  # of a number: beyond it no time, size or rate is real
MOST_TEXT, MOST_PARTS = 600, 20_000
MOST_CHARACTERS = 4_000_000  # of a document
CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class Document:
    """A JSON object whose values are asked for by name and type; any other value is as if absent."""

    __slots__ = ("_found",)

    def __init__(self, found: Any = None) -> None:
        self._found: Mapping[str, Any] = found if isinstance(found, Mapping) else {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def number(self, name: str, least: float = 0.0) -> float | None:
        return number_of(self._found.get(name), least)

    def whole(self, name: str) -> int | None:
        found = self.number(name)
        return int(found) if found is not None and found == int(found) else None

    def is_true(self, name: str) -> bool:
        return self.truth(name) is True

    def truth(self, name: str) -> bool | None:
        """Yes or no; None where nobody knows."""
        found = self._found.get(name)
        return found if isinstance(found, bool) else None

    def text(self, name: str, most: int = MOST_TEXT) -> str:
        return text_of(self._found.get(name), most)

    def part(self, name: str) -> Document:
        return Document(self._found.get(name))

    def parts(self, name: str) -> list[Document]:
        return [Document(each) for each in self.items(name) if isinstance(each, Mapping)]

    def items(self, name: str) -> list[Any]:
        found = self._found.get(name)
        return list(found[:MOST_PARTS]) if isinstance(found, list | tuple) else []

    def texts(self, name: str) -> list[str]:
        return [text for each in self.items(name) if (text := text_of(each))]

    def numbers(self, name: str) -> list[float]:
        return [value for each in self.items(name) if (value := number_of(each)) is not None]

    def without(self, *names: str) -> dict[str, int | str]:
        """Its other values that are words or whole numbers, in order of their names."""
        kept = {
            text_of(name, 60): value for name, value in self._found.items() if name not in names
        }
        return {
            name: value if isinstance(value, int) else text_of(value, 60)
            for name, value in sorted(kept.items())
            if isinstance(value, str) or (isinstance(value, int) and abs(value) <= LARGEST)
        }  # fmt: skip


def number_of(value: Any, least: float = 0.0) -> float | None:
    """A finite number between `least` and LARGEST."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if least <= value <= LARGEST else None  # NaN is in no order


def text_of(value: Any, most: int = MOST_TEXT) -> str:
    """One line that can be written to a page, whatever the file says."""
    if not isinstance(value, str):
        return ""
    line = CONTROL.sub(" ", value[: 2 * most]).strip()
    return line[:most].encode("utf-8", "replace").decode("utf-8")


def read_object(text: str) -> dict[str, Any]:
    """A JSON object; anything else is empty."""
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@lru_cache(maxsize=32)
def parse_document(text: str) -> Document:
    """Read once for all the rows and figures that share it."""
    return Document(read_object(text) if len(text) <= MOST_CHARACTERS else None)
