"""Tables that fit the terminal: no number is broken, no blank trails."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from hakaru.cli._table import Column, table_lines
from tests._cli import hakaru


def in_terminal(width: int, *arguments: object) -> list[str]:
    """What a terminal of this width shows, line by line, without its colours."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "hakaru", *(str(argument) for argument in arguments)]
    with subprocess.Popen(command, stdout=there, stderr=subprocess.DEVNULL, env=env):
        os.close(there)
        shown = b""
        with contextlib.suppress(OSError):  # how a terminal says that its program has ended
            while block := os.read(here, 65536):
                shown += block
    os.close(here)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", shown.decode()).splitlines()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_breaks_no_number(log: Path, width: int) -> None:
    lines = in_terminal(width, "show", "walltime", "--from", log, "--by", "user")
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for number in ("1.500", "2.000", "100.00%"):
        assert number in words
    assert sum("single-node" in line for line in lines) == {40: 4, 80: 1, 120: 1}[width]


def columns(num: int) -> list[Column]:
    return [
        Column("key", ["a", "b"], False),
        *(Column(f"x_{i}", ["12,345", "6"]) for i in range(num)),
    ]


def test_headings_break_at_underscores_only() -> None:
    wide = [Column("k", ["a"], False), Column("share_of_all_jobs", ["12.34%"])]
    texts = [text for text, _ in table_lines(wide, 1, 12)]
    assert texts == ["   share_", "      of_", "     all_", "k    jobs", "─────────", "a  12.34%"]


def test_parts_repeat_the_key_and_blocks_are_the_last_resort() -> None:
    texts = [text for text, _ in table_lines(columns(3), 1, 20)]
    assert [text for text in texts if text.startswith("a")] == [
        "a    12,345  12,345",
        "a    12,345",
    ]
    texts = [text for text, _ in table_lines(columns(1), 1, 8)]
    assert texts == ["── 1 ──", "key  a", "x_0  12,345", "── 2 ──", "key  b", "x_0  6"]


def test_a_table_as_wide_as_the_page_stays_whole() -> None:
    """The key takes 3 places, each number 6, and 2 lie between: 19 in all."""
    assert len([text for text, _ in table_lines(columns(2), 1, 19)]) == 4
    assert len([text for text, _ in table_lines(columns(2), 1, 18)]) == 9


def test_a_pipe_has_no_trailing_blanks(log: Path) -> None:
    for verb in (["show", "walltime", "--from", log], ["analyses"], ["analyses", "-v"]):
        assert not any(line.endswith(" ") for line in hakaru(*verb).output.splitlines())
