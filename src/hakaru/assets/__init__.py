"""The scripts of the pages, which the build fetches from npm and puts beside this file.

`scripts.json` holds their hashes: the build checks what it fetches, and a page what it is about to run.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from hakaru.errors import HakaruError
from hakaru.safety.policy import hash_of

FOLDER = Path(__file__).parent
HASHES: dict[str, str] = json.loads((FOLDER / "scripts.json").read_text(encoding="utf-8"))
SCRIPTS = tuple(HASHES)


def script(name: str) -> str:
    """The minified source of `echarts` or `htmx`."""
    return _read(script_path(name), HASHES[name])


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
def _read(path: Path, expected: str) -> str:
    """The script, unless it is another than the one that this version was made with."""
    content = path.read_bytes()
    if hash_of(content) != expected:
        raise HakaruError(
            f"{path} was changed since it was installed: its hash is {hash_of(content)}, expected "
            f"{expected}. Install Hakaru again: pip install --force-reinstall --no-deps hakaru "
            "(in a clone: delete the file, then pip install -e .)"
        )
    return content.decode("utf-8")
