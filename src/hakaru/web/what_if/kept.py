"""Finished runs in the workspace, so that they outlive the server; as private as the lake beside them."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

log = logging.getLogger("hakaru.web")
FOLDER, FACTS = "what-if", "run.json"


def keep(workspace: Path, id: str, files: Path, facts: Mapping[str, Any]) -> Path:
    """Copy a run's files, with the facts beside them; where the copy is, or the files if there is none."""
    above = workspace / FOLDER
    part, whole = above / f".{id}", above / id
    try:
        above.mkdir(mode=0o700, exist_ok=True)  # it has people's names
        shutil.copytree(files, part)
        (part / FACTS).write_text(json.dumps(facts), encoding="utf-8")
        part.rename(whole)
    except OSError as error:
        log.warning("%s: a what-if run cannot be kept there: %s", above, error.strerror or error)
        shutil.rmtree(part, ignore_errors=True)
        return files
    return whole


def kept(workspace: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What was kept, with its facts; what cannot be read is passed over."""
    for path in sorted((workspace / FOLDER).glob(f"[!.]*/{FACTS}")):
        try:
            yield path.parent, json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            log.warning("%s: a kept what-if run cannot be read: %s", path, error)


def forget(workspace: Path, cluster: str) -> int:
    """Remove the runs over jobs of a cluster; how many there were."""
    mine = [
        folder
        for folder, facts in kept(workspace)
        if facts.get("wanted", {}).get("cluster") == cluster
    ]
    for folder in mine:
        shutil.rmtree(folder)
    return len(mine)
