"""Text that others chose (names of jobs, users, files, reject reasons), made harmless where it is shown.

A terminal obeys control characters, a spreadsheet runs cells that begin like a formula, and XML has no
place for most control characters at all.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import pyarrow as pa

# C0, DEL, C1, marks and overrides of direction, separators of lines, halves of surrogate pairs; and what
# nobody sees, so that two names that look the same are the same: spaces of no width, soft hyphens, tags
_CONTROL = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
    r"\u00ad\u200b\u2060\U000e0000-\U000e007f"
)
CONTROL = re.compile(f"[{_CONTROL}]")
LINE_CONTROL = re.compile(f"[\t\n{_CONTROL}]")
# our own styles: bold, dim, italic, underlined, colours other than black, and their ends
_STYLE = r"(?:0|[1-4]|2[2-4]|3[1-79]|9[1-7])"
STYLE = re.compile(rf"\x1b\[(?:{_STYLE}(?:;{_STYLE})*)?m|\r\n")
FORMULA = "^[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]"
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def plain(text: str) -> str:
    """Text for a terminal: control characters as `\\u001b`, which JSON and TOML read back; lines stay.

    A tag is two of them, as in JSON.
    """
    return CONTROL.sub(_escaped, text)


def one_line(text: str) -> str:
    """The same for what stands in one line or cell."""
    return LINE_CONTROL.sub(_escaped, text)


def xml_text(text: str) -> str:
    """Text, or a whole document, with U+FFFD in the place of what XML 1.0 does not allow."""
    return NOT_XML.sub("\ufffd", text)


def spreadsheet_cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe before it says that it is text."""
    return f"'{text}" if re.match(FORMULA, text) and not re.fullmatch(NUMBER, text) else text


def spreadsheet_table(table: pa.Table) -> pa.Table:
    """The same for all texts of a table, and its headings; numbers stay numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = table.column(at)
            risky = pc.and_not(
                pc.match_substring_regex(texts, FORMULA),
                pc.match_substring_regex(texts, f"^{NUMBER}$"),
            )
            marked = pc.replace_substring_regex(texts, "^", "'", max_replacements=1)
            table = table.set_column(at, field.name, pc.if_else(risky, marked, texts))
    return table.rename_columns([spreadsheet_cell(name) for name in table.column_names])


class PlainStream:
    """A terminal's stream that passes text, lines and our own styles, and shows all else as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        kept, at = [], 0
        for style in STYLE.finditer(text):
            kept += [plain(text[at : style.start()]), style.group()]
            at = style.end()
        self.stream.write("".join([*kept, plain(text[at:])]))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # whoever writes bytes would go past it
            raise AttributeError(name)
        return getattr(self.stream, name)


@contextmanager
def plain_output() -> Iterator[None]:
    """All that is written to stdout and stderr inside goes through a `PlainStream`."""
    before: Any = (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (PlainStream(each) for each in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def print_plain_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """For `sys.excepthook`: an error that nobody caught may quote what a log holds."""
    with plain_output():
        traceback.print_exception(kind, error, trace)


def bare(stream: TextIO) -> TextIO:
    """The stream itself, for what moves the cursor, such as a progress bar."""
    return stream.stream if isinstance(stream, PlainStream) else stream


def _escaped(found: re.Match[str]) -> str:
    halves = found.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4))
