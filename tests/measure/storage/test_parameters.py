"""What may be given to the storage benchmarks, and that the documents' commands are among it."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from hakaru.cli.bench._options import choose_parameters
from hakaru.errors import HakaruError
from hakaru.measure._base import BENCHMARKS, find_benchmarks, load_all

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
COMMAND = re.compile(r"hakaru bench run [^`\n#]*")
NAMES = ("loading", "data-size")


def documented() -> list[str]:
    """The commands of all pages that run one of the two."""
    texts = [page.read_text(encoding="utf-8").replace("\\\n", " ") for page in PAGES]
    found = [each.group() for text in texts for each in COMMAND.finditer(text)]
    return [each for each in found if re.search(rf" ({'|'.join(NAMES)})( |$)", each)]


def test_the_documents_have_commands() -> None:
    assert any("memory=machine" in each for each in documented())


@pytest.mark.parametrize("command", documented())
def test_documented_commands_are_understood(command: str) -> None:
    words = shlex.split(command)[3:]
    pairs = [word for before, word in pairwise(words) if before == "--param"]
    names = [name for name in NAMES if name in words]
    choose_parameters(find_benchmarks(names), pairs)


@pytest.mark.parametrize(("text", "value"), [("auto", "auto"), ("machine", "machine"), ("64", 64)])
def test_memory_is_a_number_or_a_word(text: str, value: int | str) -> None:
    load_all()
    assert BENCHMARKS.get("data-size").parse({"memory": text}) == {"memory": [value]}


@pytest.mark.parametrize("text", ["machines", "0", "-1", "1.5", "64MiB", ""])
def test_other_memories_are_refused_with_what_is_expected(text: str) -> None:
    load_all()
    with pytest.raises(HakaruError, match="expected a whole number above 0 or auto or machine"):
        BENCHMARKS.get("data-size").parse({"memory": text})


@pytest.mark.parametrize("name", NAMES)
def test_a_path_may_have_commas_and_spaces(name: str) -> None:
    load_all()
    path = "/data/a, b,c"
    assert BENCHMARKS.get(name).parse({"path": path}) == {"path": [path]}
    assert BENCHMARKS.get(name).parse({"workers": "1, 2"}) == {"workers": [1, 2]}
