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
from typing import Any

import click
import pytest
from click.testing import CliRunner

from hakaru.cli._render import result_lines
from hakaru.cli._table import Column, emit, page_width, table_lines, wrapped
from tests._cli import hakaru
from tests.figures._result import result


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


def texts_of(columns: dict[str, list[Any]], width: int) -> list[str]:
    """The table of a result, without its title and its note."""
    return [text for text, _ in result_lines(result("states", columns), width)][2:-2]


def test_every_part_repeats_all_words_that_name_a_row() -> None:
    """A user and a class name the row; words after a number do not."""
    table = {"user": ["ann"], "class": ["all"], "num_jobs": [7], "state": ["ok"], "mean_h": [1.5]}
    assert texts_of(table, 26) == [
        "             num_",
        "user  class  jobs  state",
        "────────────────────────",
        "ann   all       7  ok",
        "",
        "             mean_",
        "user  class      h",
        "──────────────────",
        "ann   all    1.500",
    ]


def test_a_number_names_a_row_only_in_the_first_column() -> None:
    table = {"num_pes": [8], "num_jobs": [7], "share": [0.5], "mean_h": [1.5]}
    assert texts_of(table, 20) == [
        "num_  num_",
        " pes  jobs   share",
        "──────────────────",
        "   8     7  50.00%",
        "",
        "num_  mean_",
        " pes      h",
        "───────────",
        "   8  1.500",
    ]


def test_long_words_are_broken_in_the_room_that_numbers_leave() -> None:
    """Forty places, of which the others take 8 and 4 with the gaps; 24 leave less than 20 for words."""
    question = "A question that is long enough to be broken into two lines"
    wide = [
        Column("id", ["waits", "states"], False),
        Column("question", [question, "  Short?"], False, wraps=True),
        Column("n", ["5", "66"]),
    ]
    assert [text for text, _ in table_lines(wide, 1, 40)] == [
        "id      question                     n",
        "──────────────────────────────────────",
        "waits   A question that is long      5",
        "          enough to be broken into",
        "          two lines",
        "states    Short?                    66",
    ]
    blocks = [text for text, _ in table_lines(wide, 1, 24)]
    assert blocks[:4] == ["── 1 ──", "id        waits", f"question  {question}", "n         5"]


def test_letters_of_east_asia_take_two_places() -> None:
    table = [Column("name", ["東京都", "ab"], False), Column("n", ["5", "66"])]
    assert [text for text, _ in table_lines(table, 1, 40)] == [
        "name     n", "──────────", "東京都   5", "ab      66",
    ]  # fmt: skip
    assert next(text for text, _ in table_lines(table, 1, 9)) == "── 1 ──", (
        "ten places are too many"
    )


def test_a_heading_stays_whole_where_the_page_is_just_wide_enough() -> None:
    table = [Column("k", ["a"], False), Column("ab_cd", ["1"])]
    assert next(text for text, _ in table_lines(table, 1, 8)) == "k  ab_cd"
    assert [text for text, _ in table_lines(table, 1, 7)][:2] == ["   ab_", "k   cd"]


@pytest.mark.parametrize(
    ("columns", "width"), [(None, 1_000_000), ("50", 50), ("5", 20), ("wide", 1_000_000)]
)
def test_a_pipe_is_as_wide_as_columns_says(
    columns: str | None, width: int, monkeypatch: Any
) -> None:
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert page_width() == width


@pytest.mark.parametrize(
    ("no_color", "expected"),
    [("", "\x1b[1ma\x1b[0m\n\x1b[2mb\x1b[0m\nc\x1b[0m\n"), ("1", "a\nb\nc\n")],
)
def test_headings_are_bold_and_notes_dim_unless_no_color(no_color: str, expected: str) -> None:
    @click.command()
    def show() -> None:
        emit([("a  ", "bold"), ("b", "dim"), ("c", "")])

    env = {"NO_COLOR": no_color or None}
    assert CliRunner(env=env).invoke(show, color=True).output == expected


def test_a_link_and_a_hyphen_stay_whole() -> None:
    link = "https://example.org/a-long-one"
    assert wrapped(f"see {link} and single-node jobs", 12, "") == [
        "see", link, "and", "single-node", "jobs",
    ]  # fmt: skip


def test_a_table_as_wide_as_the_page_stays_whole() -> None:
    """The key takes 3 places, each number 6, and 2 lie between: 19 in all."""
    assert len([text for text, _ in table_lines(columns(2), 1, 19)]) == 4
    assert len([text for text, _ in table_lines(columns(2), 1, 18)]) == 9


def test_a_pipe_has_no_trailing_blanks(log: Path) -> None:
    for verb in (["show", "walltime", "--from", log], ["analyses"], ["analyses", "-v"]):
        assert not any(line.endswith(" ") for line in hakaru(*verb).output.splitlines())
