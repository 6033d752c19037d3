"""A table as plain lines that fit a width: a number is never broken, too many columns are stacked."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import click

from hakaru.safety.text import plain

Style = Literal["", "bold", "dim"]
Line = tuple[str, Style]
UNLIMITED = 1_000_000
GAP = "  "
NO_BREAK = "\u00a0"
UNIT = re.compile(r"(?<=[0-9≥]) (?=%|[0-9]|(?:s|min|h|d)\b)")
LEAST_TEXT = 20


@dataclass(frozen=True)
class Column:
    """A heading and its cells; `wraps` allows breaks between the words of a cell."""

    name: str
    cells: Sequence[str]
    right: bool = True
    wraps: bool = False


@dataclass(frozen=True)
class Laid:
    """A part of the table that fits: the lines of its heading, and of each row."""

    heading: list[str]
    rows: list[list[str]]

    def top(self) -> Iterator[Line]:
        for text in self.heading:
            yield text, "bold"
        yield "─" * max(map(_width, (*self.heading, *(t for row in self.rows for t in row)))), ""

    def lines(self) -> Iterator[Line]:
        yield from self.top()
        for row in self.rows:
            for text in row:
                yield text, ""


def page_width() -> int:
    """The terminal's width; a pipe or a file is as wide as the table needs, unless COLUMNS says."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(20, shutil.get_terminal_size().columns)
    return UNLIMITED


def emit(lines: Iterable[Line]) -> None:
    """Print lines with their style, which a pipe and NO_COLOR do without."""
    color = False if os.environ.get("NO_COLOR") else None
    for text, style in lines:
        # click's False for either would end the other again: one code ends bold and dim
        bold, dim = style == "bold" or None, style == "dim" or None
        click.secho(plain(text.rstrip()), bold=bold, dim=dim, color=color)


def table_lines(columns: Sequence[Column], num_keys: int, width: int) -> Iterator[Line]:
    """The table whole, in parts that repeat the first columns, or as a block for each row."""
    parts = lay_out(columns, num_keys, width)
    for number, part in enumerate(parts):
        if number:
            yield "", ""
        yield from part.lines()
    if not parts:
        yield from _blocks(columns)


def lay_out(columns: Sequence[Column], num_keys: int, width: int) -> list[Laid]:
    """The parts that fit the width; none where the keys leave no room for a number."""
    for tried in (columns, _shrunk(columns, width)):
        for headings in (_whole_heading, _broken_heading):
            sizes = [_size(column, headings(column)) for column in tried]
            if _total(sizes) <= width:
                return [_laid(tried, sizes)]
    return _stacked(_shrunk(columns, width), num_keys, width)


def wrapped(text: str, width: int, indent: str = "  ") -> list[str]:
    """A sentence in lines; words stay whole, and so does a number with its sign and unit."""
    lines = textwrap.wrap(
        UNIT.sub(NO_BREAK, text),
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines] or [""]


def _stacked(columns: Sequence[Column], num_keys: int, width: int) -> list[Laid]:
    keys, rest = list(columns[:num_keys]), list(columns[num_keys:])
    parts: list[list[Column]] = []
    for column in rest:
        longer = [*(parts[-1] if parts else keys), column]
        if parts and _fits(longer, width):
            parts[-1] = longer
        else:
            parts.append([*keys, column])
    if not all(_fits(part, width) for part in parts):
        return []
    return [_laid(part, _sizes(part)) for part in parts]


def _fits(columns: Sequence[Column], width: int) -> bool:
    return _total(_sizes(columns)) <= width


def _sizes(columns: Sequence[Column]) -> list[int]:
    return [_size(column, _broken_heading(column)) for column in columns]


def _shrunk(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns with the cells that may be broken as narrow as the others ask for."""
    fixed = [c for c in columns if not c.wraps]
    room = width - _total(_sizes(fixed)) - len(GAP)
    lines = {
        id(c): ["\n".join(wrapped(cell, max(LEAST_TEXT, room), _hanging(cell))) for cell in c.cells]
        for c in columns
        if c.wraps
    }
    return [replace(c, cells=lines[id(c)]) if c.wraps else c for c in columns]


def _hanging(cell: str) -> str:
    return " " * (len(cell) - len(cell.lstrip()) + 2)


def _whole_heading(column: Column) -> list[str]:
    return [column.name]


def _broken_heading(column: Column) -> list[str]:
    """The heading in lines as wide as the cells, broken after `_` and blanks only."""
    words = re.findall(r"[^_ ]*[_ ]|[^_ ]+", column.name) or [""]
    room = max(_size(column, []), *(len(word.rstrip()) for word in words))
    lines = [""]
    for word in words:
        if lines[-1] and len((lines[-1] + word).rstrip()) > room:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines]


def _size(column: Column, heading: Sequence[str]) -> int:
    texts = [*heading, *(line for cell in column.cells for line in cell.split("\n"))]
    return max(map(_width, texts), default=0)


def _total(sizes: Sequence[int]) -> int:
    return sum(sizes) + len(GAP) * (len(sizes) - 1)


def _laid(columns: Sequence[Column], sizes: Sequence[int]) -> Laid:
    headings = [
        [c.name] if _width(c.name) <= size else _broken_heading(c)
        for c, size in zip(columns, sizes, strict=True)
    ]
    height = max(map(len, headings))
    top = [[""] * (height - len(heading)) + heading for heading in headings]
    rows = zip(*(column.cells for column in columns), strict=True)
    return Laid(
        _joined(columns, sizes, top),
        [_joined(columns, sizes, [cell.split("\n") for cell in row]) for row in rows],
    )


def _joined(
    columns: Sequence[Column], sizes: Sequence[int], cells: Sequence[Sequence[str]]
) -> list[str]:
    """One row's lines: as many as its highest cell has."""
    lines = []
    for number in range(max(map(len, cells))):
        texts = [cell[number] if number < len(cell) else "" for cell in cells]
        padded = [
            _pad(text, size, column.right)
            for text, size, column in zip(texts, sizes, columns, strict=True)
        ]
        lines.append(GAP.join(padded).rstrip())
    return lines


def _pad(text: str, size: int, right: bool) -> str:
    blanks = " " * (size - _width(text))
    return blanks + text if right else text + blanks


def _width(text: str) -> int:
    """How many places a text takes: those of East Asia take two a letter."""
    from rich.cells import cell_len

    return cell_len(text)


def _blocks(columns: Sequence[Column]) -> Iterator[Line]:
    name_size = max(_width(column.name) for column in columns)
    for number in range(len(columns[0].cells)):
        yield f"── {number + 1} ──", "bold"
        for column in columns:
            yield f"{_pad(column.name, name_size, False)}{GAP}{column.cells[number]}", ""
