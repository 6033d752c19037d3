"""The scripts of the pages, which the build fetches from npm and puts beside this file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hakaru.errors import HakaruError

SCRIPTS = ("echarts", "htmx")
FOLDER = Path(__file__).parent


def script(name: str) -> str:
    """The minified source of `echarts` or `htmx`."""
    return _read(script_path(name))


def script_path(name: str) -> Path:
    """Where the script is, for a server that sends it as a file."""
    if name not in SCRIPTS:
        raise HakaruError(f"there is no script {name!r}; known: {', '.join(SCRIPTS)}")
    path = FOLDER / f"{name}.min.js"
    if not path.is_file():
        raise HakaruError(
            f"{path} is missing: Hakaru was installed without the scripts that its pages need. "
            "Install it again where npm is at hand: pip install --force-reinstall --no-deps hakaru "
            "(in a clone: pip install -e .)"
        )
    return path


@cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
