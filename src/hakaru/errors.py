"""The errors a user can meet; each message says where, what was found, and how to fix it."""

from __future__ import annotations

from collections.abc import Sequence


class HakaruError(Exception):
    """Something the user can mend; the command line prints it as one clean message."""


class SettingsError(HakaruError):
    """`hakaru.toml` or an option holds something that is not allowed."""


class SourceError(HakaruError):
    """A log could not be read: the wrong format, a broken file, or a bad row under `--strict`."""


class FilterError(HakaruError):
    """A filter uses an unknown column, an operator that is not allowed, or the wrong type."""


class EngineError(HakaruError):
    """An engine could not read a file that a table names: it is missing or broken."""


class InterruptedQuery(HakaruError):
    """A query was stopped: it took longer than whoever asked would wait."""


class LakeError(HakaruError):
    """The workspace is missing, or its tables cannot be read or written."""


class MissingExtraError(HakaruError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed. Install it with: pip install 'hakaru[{extra}]'")


def list_problems(where: str, problems: Sequence[str]) -> str:
    """All that is wrong at a place, a line each."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
    return "\n".join([f"{where} has {count}:", *(f"  {problem}" for problem in problems)])
