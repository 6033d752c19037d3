"""Put small faults into a room's code, one at a time, and count how many its tests find.

    python scripts/seed_faults.py engine web/privacy --faults 30 --seed 7
    python scripts/seed_faults.py engine --list faults.jsonl

A fault is one changed token: a comparison, a sign, a number, a word of SQL inside a string. `--list` takes
faults that a person thought of, one JSON object a line: `path`, and `old`, which occurs once there and
becomes `new`. The tests of the room (`tests/ROOM`, or `--tests`) run against a copy of `src/` that holds the
fault; the checkout itself is never changed. A fault that no test finds is printed with its place: a gap, or
code that does the same. Where the tests time out or none can start, nothing is known of the fault: it is
counted apart, and not in the share.
"""

from __future__ import annotations

import argparse
import io
import json
import keyword
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/hakaru")
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/",
    "/": "*", "//": "*", "and": "or", "or": "and", "True": "False", "False": "True", "min": "max",
    "max": "min", "any": "all", "all": "any",
}  # fmt: skip
BINARY = {"+", "-", "*", "/", "//"}
IN_STRINGS = (
    (r"<=", "<"), (r">=", ">"), (r"(?<= )<(?= )", "<="), (r"(?<= )>(?= )", ">="), (r"\bAND\b", "OR"),
    (r"\bOR\b(?! REPLACE)", "AND"), (r"\bIS NOT NULL\b", "IS NULL"), (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r"\bavg\(", "max("), (r"\bsum\(", "avg("),
    (r"\bDESC\b", "ASC"), (r"\bLEFT JOIN\b", "JOIN"), (r"\b0\.5\b", "0.25"), (r"\b0\.9\b", "0.95"),
    (r"\b0\.95\b", "0.9"), (r"\bgreatest\(", "least("), (r"\bleast\(", "greatest("),
    (r"\bcount\(DISTINCT ", "count("), (r"'completed'", "'failed'"), (r"'failed'", "'completed'"),
    (r"\bstarted_at\b", "submitted_at"), (r"\bended_at\b", "started_at"), (r"\b3600\b", "60"),
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    path: Path
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old!r} became {self.new!r}"

    def applied(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        before = "".join(lines[: self.line - 1]) + lines[self.line - 1][: self.column]
        rest = text[len(before) :]
        assert rest.startswith(self.old), self
        return before + self.new + rest[len(self.old) :]


def faults_of(path: Path, text: str) -> list[Fault]:
    """Every fault that this file could have; those that no longer compile are left out."""
    found = []
    for line, column, old, new in (*_in_code(text), *_in_strings(text)):
        fault = Fault(path, line, column, old, new)
        try:
            compile(fault.applied(text), str(path), "exec")
        except (SyntaxError, ValueError):
            continue
        found.append(fault)
    return found


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def _in_code(text: str) -> Iterator[tuple[int, int, str, str]]:
    tokens = _tokens(text)
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        word = token.string
        if token.type == tokenize.NUMBER and word.isdigit():
            yield (*token.start, word, str(int(word) + 1))
        elif word == "not" and before.string != "is" and after.string != "in":
            yield (*token.start, "not ", "")
        elif word in SWAPS and token.type in (tokenize.OP, tokenize.NAME):
            if word in BINARY and not (_is_operand(before) and _is_operand(after)):
                continue
            if word in ("min", "max", "any", "all") and after.string != "(":
                continue
            yield (*token.start, word, SWAPS[word])


def _is_operand(token: tokenize.TokenInfo) -> bool:
    name = token.type == tokenize.NAME and not keyword.iskeyword(token.string)
    return name or token.type == tokenize.NUMBER or token.string in ("(", ")", "]")


def _in_strings(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Words of SQL in strings, but not in docstrings."""
    kinds = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    tokens = [t for t in _tokens(text) if t.type not in (tokenize.NL, tokenize.COMMENT)]
    for before, token in pairwise(tokens):
        opens = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
        if token.type not in kinds or before.type in opens:
            continue
        for i, row in enumerate(token.string.splitlines()):
            for pattern, new in IN_STRINGS:
                for match in re.finditer(pattern, row):
                    start = match.start() + (token.start[1] if i == 0 else 0)
                    yield token.start[0] + i, start, match.group(), new


def choose(rooms: list[str], num: int, seed: int) -> list[Fault]:
    """Some of the rooms' faults, no two on one line, spread over the files by their size."""
    every: dict[tuple[Path, int], list[Fault]] = {}
    for room in rooms:
        place = ROOT / PACKAGE / room
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        for file in files:
            path = file.relative_to(ROOT)
            for fault in faults_of(path, file.read_text(encoding="utf-8")):
                every.setdefault((path, fault.line), []).append(fault)
    draw = random.Random(seed)
    lines = draw.sample(sorted(every), min(num, len(every)))
    return [draw.choice(every[line]) for line in lines]


def listed(file: Path, rooms: list[str]) -> list[Fault]:
    """The faults of a list that lie in these rooms."""
    found = []
    for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        path = Path(row["path"])
        if not any(path.with_suffix("").is_relative_to(PACKAGE / room) for room in rooms):
            continue
        before, *rest = (ROOT / path).read_text(encoding="utf-8").split(row["old"])
        if len(rest) != 1:
            sys.exit(f"{path}: {row['old']!r} occurs {len(rest)} times, not once")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n") - 1
        found.append(Fault(path, line, column, row["old"], row["new"]))
    return found


class NoVerdict(Exception):
    """Why the tests say nothing: they took too long, or none could start."""


def found_by(fault: Fault, copy: Path, tests: list[str], timeout: float) -> str | None:
    """The test that fails with the fault in place; None where all pass."""
    target = copy / fault.path.relative_to("src")
    sound = target.read_text(encoding="utf-8")
    target.write_text(fault.applied(sound), encoding="utf-8")
    try:
        return first_failure(copy, tests, timeout)
    finally:
        target.write_text(sound, encoding="utf-8")


def first_failure(copy: Path, tests: list[str], timeout: float) -> str | None:
    """The first test that fails on this copy of the code; None where all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise NoVerdict("a time-out") from None
    if run.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    if failed is None:
        raise NoVerdict("no test could start")
    return failed.group(1)


@dataclass
class Score:
    num_found: int = 0
    num_missed: int = 0
    num_unknown: int = 0

    @property
    def share(self) -> float:
        """Of the faults of which the tests said something."""
        known = self.num_found + self.num_missed
        return self.num_found / known if known else 0.0

    def __str__(self) -> str:
        known = self.num_found + self.num_missed
        apart = f"; {self.num_unknown} without a verdict" if self.num_unknown else ""
        return f"{self.num_found} of {known} faults found ({self.share:.0%}){apart}"


def score(faults: list[Fault], copy: Path, tests: list[str], timeout: float) -> Score:
    """Put each fault in, and print what became of it."""
    counts = Score()
    for fault in faults:
        try:
            finder = found_by(fault, copy, tests, timeout)
        except NoVerdict as why:
            counts.num_unknown += 1
            print(f"UNKNOWN {fault}  {why}", flush=True)
            continue
        counts.num_found += finder is not None
        counts.num_missed += finder is None
        print(f"{'found ' if finder else 'MISSED'}  {fault}  {finder or ''}", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="+", help="folders or files under src/hakaru, e.g. engine")
    parser.add_argument("--tests", nargs="+", help="test paths; default: tests/ROOM")
    parser.add_argument("--list", type=Path, metavar="FILE", help="faults to put in; else drawn")
    parser.add_argument("--faults", type=int, default=20, help="how many to draw (default 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for one fault's tests")
    parser.add_argument("--least", type=float, default=0, help="exit 1 below this share found")
    given = parser.parse_args()
    tests = given.tests or [f"tests/{room}" for room in given.rooms]
    chosen = (
        listed(given.list, given.rooms)
        if given.list
        else choose(given.rooms, given.faults, given.seed)
    )
    with tempfile.TemporaryDirectory(prefix="seeded-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        try:
            broken = first_failure(copy, tests, given.timeout)
        except NoVerdict as why:
            broken = str(why)
        if broken:
            print(f"without any fault: {broken}; mend that first")
            return 2
        counts = score(chosen, copy, tests, given.timeout)
    print(f"{', '.join(given.rooms)}: {counts}")
    return 0 if counts.share >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())
