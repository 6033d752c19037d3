"""Where a result goes and in which format: told by --format, by the file's ending, or both alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hakaru.errors import HakaruError
from hakaru.safety.text import plain

ENDINGS = {".csv": "csv", ".json": "json", ".md": "md", ".parquet": "parquet", ".txt": "table"}


def choose_format(format: str | None, output: Path | None, known: Sequence[str]) -> str:
    """The format asked for, else the one that the file's ending stands for, else a table."""
    told = ENDINGS.get(output.suffix.lower()) if output else None
    if output is None or (format and told in (None, format)):
        return format or "table"
    if format:
        raise HakaruError(f"{output} ends like {told}, and --format says {format}: change one")
    if told is None or told not in known:
        endings = ", ".join(e for e, name in ENDINGS.items() if name in known)
        raise HakaruError(f"{output}: cannot tell its format; end it in {endings} or add --format")
    return told


def write_text(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(plain(text), nl=False)  # click takes colours out where there is no terminal
        return
    with writing(output):
        output.write_text(text, encoding="utf-8")


@contextmanager
def writing(output: Path) -> Iterator[None]:
    """Make the file's folder, and tell in one line why a file cannot be written."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        yield
    except (FileExistsError, NotADirectoryError):
        raise HakaruError(f"{output}: {output.parent} is not a folder") from None
    except OSError as error:
        raise HakaruError(f"{output}: cannot be written: {error.strerror or error}") from None


def without_nan(value: Any) -> Any:
    """JSON has no NaN and no infinity: null stands for both."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: without_nan(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(each) for each in value]
    return value
